"""Lists of ports and ranges as text: "443,8000-8100"."""

from __future__ import annotations

import re

from lbconfig.model.problem import quote, written_as

# IANA's names, of services that people balance.
NAMES = {
    "ftp": 21, "ssh": 22, "smtp": 25, "domain": 53, "tftp": 69, "http": 80, "kerberos": 88, "pop3": 110, "nntp": 119,
    "ntp": 123, "imap": 143, "snmp": 161, "ldap": 389, "https": 443, "submissions": 465, "syslog": 514, "rtsp": 554,
    "submission": 587, "ldaps": 636, "imaps": 993, "pop3s": 995, "ms-sql-s": 1433, "radius": 1812, "radius-acct": 1813,
    "mqtt": 1883, "nfs": 2049, "mysql": 3306, "ms-wbt-server": 3389, "sip": 5060, "sips": 5061, "xmpp-client": 5222,
    "postgresql": 5432, "amqp": 5672, "redis": 6379, "http-alt": 8080,
}  # fmt: skip
# Of fields of the model and of requests, whose values may be given by these names as well (lbconfig.model.reading).
PORT = {"port": True}
PORTS = {"ports": True}
Range = tuple[int, int]  # first and last port

_ENTRY = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?")
MOST = 64  # entries of one list


def parse(text: str) -> tuple[Range, ...]:
    """In order, those that touch joined; () for an empty text. ValueError with a sentence where it is no such list."""
    ranges = []
    for entry in text.replace(" ", "").split(",") if text.strip() else ():
        match = _ENTRY.fullmatch(number(entry))
        if match is None:
            raise ValueError(f"must be ports and ranges such as 443, 8000-8100, not {quote(text)}")
        first, last = int(match[1]), int(match[2] or match[1])
        if not 1 <= first <= 65535 or not 1 <= last <= 65535:
            raise ValueError(f"has a port that is not 1 to 65535: {entry}")
        if last < first:
            raise ValueError(f"has a range that ends before it begins: {entry}")
        ranges.append((first, last))
    joined: list[Range] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    if len(joined) > MOST:
        raise ValueError(f"must not have more than {MOST} entries")
    return tuple(joined)


def number(entry: str) -> str:
    """The number of a port that is called by its service's name; anything else stays as it is."""
    named = NAMES.get(entry.strip().lower())
    return entry if named is None else str(named)


def text(ranges: tuple[Range, ...]) -> str:
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def problem(value: str) -> str | None:
    """For a field of the snapshot, where one list has one spelling."""
    try:
        usual = text(parse(value))
    except ValueError as error:
        return str(error)
    return None if usual == value else written_as(usual)
