"""Filled forms for what small shops balance. A preset only fills the form: everything stands there to be changed."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Preset:
    name: str
    help: str  # one sentence: what is chosen, and why
    values: dict = field(default_factory=dict)


_HTTP = {"check_kind": "http", "check_path": "/"}
_HOUR = 3600

PRESETS: dict[str, Preset] = {
    "web": Preset("Web site", "HTTP on port 80; a server is up when it answers a page.", {"port": 80} | _HTTP),
    "web-tls": Preset(
        "Web site with TLS",
        "HTTPS on port 443, which the servers themselves decrypt; a client stays on its server for five minutes.",
        {"port": 443, "persistence": 300},
    ),
    "mail": Preset(
        "Mail (SMTP)", "Port 25 to the server with the fewest connections.", {"port": 25, "scheduler": "lc"}
    ),
    "dns": Preset(
        "DNS",
        "Port 53 over UDP and, for long answers, TCP; clients in turn.",
        {"port": 53, "protocol": "tcp+udp", "scheduler": "rr", "check_kind": "ping"},
    ),
    "rdp": Preset(
        "Remote desktop (RDP)",
        "TCP port 3389; a client that loses its connection comes back to its session within an hour.",
        {"port": 3389, "scheduler": "lc", "persistence": _HOUR},
    ),
    "mysql": Preset(
        "MySQL or MariaDB",
        "Port 3306, all to the server with the highest weight; the others stand by, as only one may be written to.",
        {"port": 3306, "scheduler": "fo"},
    ),
    "postgresql": Preset(
        "PostgreSQL",
        "Port 5432, all to the server with the highest weight; the others stand by, as only one may be written to.",
        {"port": 5432, "scheduler": "fo"},
    ),
    "syslog": Preset(
        "Syslog",
        "UDP port 514, one way; each message goes to the next server by itself.",
        {"port": 514, "protocol": "udp", "scheduler": "rr", "one_packet": True, "check_kind": "ping"},
    ),
    "sip": Preset(
        "SIP",
        "UDP port 5060; a call stays on its server for an hour.",
        {"port": 5060, "protocol": "udp", "persistence": _HOUR, "call_id": True, "check_kind": "ping"},
    ),
}
