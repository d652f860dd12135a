"""How a virtual service is doing: its health, why, and what a check says now."""
