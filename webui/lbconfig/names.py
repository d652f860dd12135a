"""The words for the model's values: what the web pages, the diff and the messages call them.

The keys are the kernel's and ldirectord's own names, which is what a snapshot stores.
"""

from __future__ import annotations

from typing import NamedTuple

from lbconfig.snapshot import CheckKind, Forwarding, Protocol, Scheduler

MANAGEMENT_PORT = 443  # TCP; the web UI of the box itself


class Name(NamedTuple):
    long: str
    help: str  # one sentence: what it does, or when to choose it


SCHEDULERS: dict[Scheduler, Name] = {
    Scheduler.RR: Name(
        "round robin",
        "Each new connection goes to the next server in turn; for equal servers and short requests.",
    ),
    Scheduler.WRR: Name(
        "weighted round robin",
        "In turn, but a server of weight 2 gets twice as many connections as one of weight 1; for unequal servers.",
    ),
    Scheduler.LC: Name(
        "least connections",
        "To the server with the fewest connections; for equal servers and connections of very different length.",
    ),
    Scheduler.WLC: Name(
        "weighted least connections",
        "To the server with the fewest connections for its weight; the right choice where nothing speaks against it.",
    ),
}

PROTOCOLS: dict[Protocol, Name] = {
    Protocol.TCP: Name("TCP", "Connections: web, mail, databases and most other services."),
    Protocol.UDP: Name("UDP", "Single packets: DNS, syslog, RADIUS, some games and voice."),
}

CHECKS: dict[CheckKind, Name] = {
    CheckKind.CONNECT: Name("TCP connect", "The server is up when it accepts a TCP connection."),
    CheckKind.HTTP: Name(
        "HTTP", "The server is up when it answers GET with success (redirects are followed) and the expected text."
    ),
    CheckKind.PING: Name(
        "ping", "The server is up when it answers an ICMP echo; says nothing about the service itself."
    ),
    CheckKind.OFF: Name("no check", "The server always counts as up: connections go to it even when it is dead."),
}

FORWARDING: dict[Forwarding, Name] = {
    Forwarding.NAT: Name(
        "NAT",
        "The box rewrites addresses both ways; the servers need the box as their default gateway, and nothing else.",
    ),
}


def scheduler(value: Scheduler) -> str:
    """As it stands in a sentence: "round robin (rr)"."""
    return f"{SCHEDULERS[value].long} ({value})"
