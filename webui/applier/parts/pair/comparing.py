"""Which connections one box of a pair had before a hand-over, and what the other one knows of them afterwards.

A connection is known by a number that is made of its ends; the state is the kernel's. Of a table that is too large each
second, fourth, eighth … connection is compared, the same ones on both boxes.
"""

from __future__ import annotations

import base64
import hashlib
import struct
from array import array
from collections.abc import Iterable
from dataclasses import dataclass

from applier.host import ipvs_connections
from applier.host.host import Host, OutOfTime
from applier.host.ipvs_connections import Connection, ConnectionsError

MOST = 100_000  # connections that are compared
SEVERAL = 4  # times as many may have come meanwhile, or be ending
READING = 30.0  # seconds that reading the table may take
# States of a connection that goes on; of TCP and SCTP, and of UDP, which has no end.
_OPEN = (b"ESTABLISHED", b"UDP")
_ENDS = struct.Struct("!BHHH")


@dataclass(frozen=True, slots=True)
class Table:
    """What was read of a box's table."""

    part: int  # of so many connections one is here
    open: frozenset[int]
    ending: frozenset[int]  # ended by the client or by the server, and not forgotten yet
    whole: bool  # whether there was time to read all of it


@dataclass(frozen=True, slots=True)
class Known:
    """What a box knows of connections that another one had."""

    open: int
    ending: int
    missing: frozenset[int]


def number(one: Connection) -> int:
    """By which both boxes know it."""
    ends = _ENDS.pack(one.protocol, one.client_port, one.virtual_port, one.server_port)
    return int.from_bytes(hashlib.sha256(ends + one.client + one.virtual + one.server).digest()[:8], "big")


def read(host: Host, part: int | None = None) -> Table:
    """The table as it is now, or a part of it that another one has; None: as much as can be compared.

    HostError where it cannot be read.
    """
    chosen, part = part is None, part or 1
    found: dict[int, bool] = {}
    whole = True
    try:
        for line in host.lines(ipvs_connections.PATH, READING):
            try:
                one = ipvs_connections.parse(line)
            except ConnectionsError:
                continue
            if one is None or one.template:
                continue
            key = number(one)
            if key % part == 0:
                found[key] = one.state in _OPEN
            if len(found) > (MOST if chosen else SEVERAL * MOST):
                if not chosen:
                    whole = False
                    break
                part *= 2
                found = {key: state for key, state in found.items() if key % part == 0}
    except OutOfTime:
        whole = False
    opened = frozenset(key for key, state in found.items() if state)
    return Table(part, opened, frozenset(found.keys() - opened), whole)


def compare(before: Iterable[int], after: Table) -> Known:
    asked = frozenset(before)
    known = after.open | after.ending
    return Known(len(asked & after.open), len(asked & after.ending), asked - known)


def to_text(numbers: Iterable[int]) -> str:
    """For a line of JSON."""
    packed = array("Q", sorted(numbers))
    return base64.b64encode(packed.tobytes()).decode()


def from_text(text: str) -> frozenset[int]:
    """ValueError where it is nothing of the kind."""
    data = base64.b64decode(text, validate=True)
    if len(data) % 8 or len(data) > 8 * MOST:
        raise ValueError(f"must be at most {MOST} numbers of 8 bytes")
    return frozenset(array("Q", data))
