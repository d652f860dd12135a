"""The draft: the configuration that admins edit, and what the pages that edit it share."""
