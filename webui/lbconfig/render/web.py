"""Where the web page listens: a part of /etc/fairlead/nginx.conf. Who may come there is the firewall's to decide."""

from __future__ import annotations

from lbconfig.snapshot import Snapshot


def render(snapshot: Snapshot) -> str:
    """In nginx's syntax, for the inside of its server block."""
    port = snapshot.management.port
    return f"listen {port} ssl default_server;\nlisten [::]:{port} ssl default_server;\n"
