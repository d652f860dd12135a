"""Where the web page listens, and which certificate it shows: a part of /etc/fairlead/nginx.conf.

Who may come there is the firewall's to decide. The box's own certificate is named in nginx.conf itself.
"""

from __future__ import annotations

import hashlib

from lbconfig.model.snapshot import Management, Snapshot

FOLDER = "/run/fairlead/certificates"


def render(snapshot: Snapshot) -> str:
    """In nginx's syntax, for the inside of its server block."""
    management = snapshot.management
    lines = listening(management.port)
    if management.page_key:
        place = f"{FOLDER}/{name(management)}"
        lines += [f"ssl_certificate {place};", f"ssl_certificate_key {place};"]
    return "".join(f"{line}\n" for line in lines)


def alone(snapshot: Snapshot) -> str:
    """The same with the box's own certificate."""
    return "".join(f"{line}\n" for line in listening(snapshot.management.port))


def listening(port: int) -> list[str]:
    return [f"listen {port} ssl default_server;", f"listen [::]:{port} ssl default_server;"]


def name(management: Management) -> str:
    """Of the file with certificate and key. Others have another name, so the review tells them apart."""
    return f"{hashlib.sha256(management.page_key.encode()).hexdigest()[:32]}.pem"
