"""What each kind of health check needs to know; the fields are those of lbconfig.snapshot.HealthCheck."""

from __future__ import annotations

from typing import NamedTuple

from lbconfig.snapshot import CheckKind


class Kind(NamedTuple):
    fields: tuple[str, ...] = ()  # beside port, interval, timeout and failures
    tcp: bool = True  # it asks a TCP port


_TALK = ("connects",)
_LOGIN = ("login", "password", *_TALK)
_HTTP = ("path", "host", "expect", *_TALK)

KINDS: dict[CheckKind, Kind] = {
    CheckKind.CONNECT: Kind(),
    CheckKind.HTTP: Kind(_HTTP),
    CheckKind.HTTPS: Kind((*_HTTP, "verify", "authority")),
    CheckKind.PING: Kind(tcp=False),
    CheckKind.OFF: Kind(tcp=False),
    CheckKind.SMTP: Kind(_TALK),
    CheckKind.SUBMISSION: Kind(_TALK),
    CheckKind.IMAP: Kind(_LOGIN),
    CheckKind.IMAPS: Kind(_LOGIN),
    CheckKind.POP: Kind(_LOGIN),
    CheckKind.POPS: Kind(_LOGIN),
    CheckKind.FTP: Kind(_LOGIN),
    CheckKind.NNTP: Kind(_TALK),
    CheckKind.DNS: Kind(("ask", "expect"), tcp=False),
    CheckKind.LDAP: Kind((*_LOGIN, "ask")),
    CheckKind.LDAPS: Kind((*_LOGIN, "ask")),
    CheckKind.MYSQL: Kind(_TALK),
    CheckKind.PGSQL: Kind(("login", "database", *_TALK)),
    CheckKind.RADIUS: Kind(("login", "password", "secret"), tcp=False),
    CheckKind.SIP: Kind(tcp=False),
    CheckKind.SIMPLETCP: Kind(("ask", "expect", *_TALK)),
}


def using(field: str) -> list[CheckKind]:
    """The kinds for which this field means something."""
    return [kind for kind, facts in KINDS.items() if field in facts.fields]
