"""What the box keeps over a restart: generations, faults, events, codes, the certificate."""
