"""What the box can forward, and what it forwards now."""
