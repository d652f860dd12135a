"""What differs between two configurations, in words, and what it means for clients and the admin."""
