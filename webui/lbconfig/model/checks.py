"""What each kind of health check needs to know; the fields are those of lbconfig.model.snapshot.HealthCheck."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

from lbconfig.model.snapshot import CheckKind, HealthCheck


class Kind(NamedTuple):
    fields: tuple[str, ...] = ()  # beside port, the times and the counts
    tcp: bool = True  # it asks a TCP port


_TALK = ("connects",)
_TLS = ("old_tls",)
_LOGIN = ("login", "password", *_TALK)
_HTTP = ("method", "path", "host", "statuses", "expect", "matching", "more_requests", *_LOGIN)

KINDS: dict[CheckKind, Kind] = {
    CheckKind.CONNECT: Kind(),
    CheckKind.HTTP: Kind(_HTTP),
    CheckKind.HTTPS: Kind((*_HTTP, "verify", "authority", *_TLS)),
    CheckKind.PING: Kind(tcp=False),
    CheckKind.OFF: Kind(tcp=False),
    CheckKind.SMTP: Kind(_TALK),
    CheckKind.SUBMISSION: Kind(_TALK),
    CheckKind.IMAP: Kind(_LOGIN),
    CheckKind.IMAPS: Kind((*_LOGIN, *_TLS)),
    CheckKind.POP: Kind(_LOGIN),
    CheckKind.POPS: Kind((*_LOGIN, *_TLS)),
    CheckKind.FTP: Kind(_LOGIN),
    CheckKind.NNTP: Kind(_TALK),
    CheckKind.DNS: Kind(("ask", "expect"), tcp=False),
    CheckKind.LDAP: Kind((*_LOGIN, "ask")),
    CheckKind.LDAPS: Kind((*_LOGIN, "ask", *_TLS)),
    CheckKind.MYSQL: Kind((*_LOGIN, "database", "ask")),
    CheckKind.PGSQL: Kind((*_LOGIN, "database", "ask")),
    CheckKind.RADIUS: Kind(("login", "password", "secret"), tcp=False),
    CheckKind.SIP: Kind(tcp=False),
    CheckKind.SIMPLETCP: Kind(("ask", "expect", "matching", *_TALK)),
    CheckKind.PROGRAM: Kind(("program", "login", "password", "ask"), tcp=False),
}


SQL_CHECKS = (CheckKind.MYSQL, CheckKind.PGSQL)
WEB_CHECKS = (CheckKind.HTTP, CheckKind.HTTPS)
_ALWAYS = ("kind", "interval", "timeout", "failures", "successes", "retry")


def uses(check: HealthCheck, field: str) -> bool:
    """Whether this field of the check means anything."""
    if field == "port":
        return check.kind not in (CheckKind.PING, CheckKind.OFF)
    if (field == "authority" and not check.verify) or (field == "matching" and not check.expect):
        return False
    return field in _ALWAYS or field in KINDS[check.kind].fields


def unused(check: HealthCheck) -> list[str]:
    """The fields that are filled in and mean nothing for this kind of check."""
    return [
        field.name
        for field in dataclasses.fields(check)
        if not uses(check, field.name) and getattr(check, field.name) != field.default
    ]


def without_unused(check: HealthCheck) -> HealthCheck:
    """The same check with these fields as they are by default."""
    defaults: dict[str, Any] = {field.name: field.default for field in dataclasses.fields(check)}
    return dataclasses.replace(check, **{name: defaults[name] for name in unused(check)})


def using(field: str) -> list[CheckKind]:
    """The kinds for which this field means something."""
    return [kind for kind, facts in KINDS.items() if field in facts.fields]


def worst_case_detection(check: HealthCheck) -> float:
    """Seconds until a dead server has left its service, at the worst; 0 where nothing is checked.

    A check begins an interval after the last one began, or when that one ended if it took longer; where there is
    another time for a server that has failed, after that time. The worst is a server that dies right after its check
    began, silently, so that each check runs into its timeout; where plain connects stand between whole checks, one
    that goes on taking connections. A box that has too many servers to ask in time says so in its log.
    """
    if check.kind == CheckKind.OFF:
        return 0.0
    first = check.interval * (1 + connects(check))
    return float(first + (check.failures - 1) * max(check.retry or check.interval, check.timeout) + check.timeout)


def connects(check: HealthCheck) -> int:
    """Plain connects that stand between two whole checks."""
    return check.connects if "connects" in KINDS[check.kind].fields else 0
