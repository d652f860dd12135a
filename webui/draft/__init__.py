"""The draft: the wish that admins edit, and what the pages that edit it share."""
