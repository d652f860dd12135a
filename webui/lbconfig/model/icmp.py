"""What the box does with each message of ICMP: RFC 4890 for IPv6, and the same for IPv4.

render/nftables.py makes its rules of this table, and judge.py its answers.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Care(Enum):
    """What becomes of a message that is for the box itself."""

    TAKEN = "taken"  # the kernel knows what it asked for and who its neighbours are
    NEAR = "near"  # taken from the link itself: its hop limit is 1, and its source link-local or none yet
    SILENT = "silent"  # dropped, and not worth a line in the log: every host on the link says it
    RULES = "rules"  # as any other packet: the admin's rules decide


class Message(NamedTuple):
    version: int
    type: int
    name: str  # as nft calls it
    words: str
    care: Care
    error: bool = False  # about a packet that was sent before: it passes through the box, too


MESSAGES = (
    Message(4, 0, "echo-reply", "echo reply", Care.TAKEN),
    Message(4, 3, "destination-unreachable", "destination unreachable", Care.TAKEN, error=True),
    Message(4, 5, "redirect", "redirect", Care.RULES),
    Message(4, 11, "time-exceeded", "time exceeded", Care.TAKEN, error=True),
    Message(4, 12, "parameter-problem", "parameter problem", Care.TAKEN, error=True),
    Message(6, 1, "destination-unreachable", "destination unreachable", Care.TAKEN, error=True),
    Message(6, 2, "packet-too-big", "packet too big", Care.TAKEN, error=True),
    Message(6, 3, "time-exceeded", "time exceeded", Care.TAKEN, error=True),
    Message(6, 4, "parameter-problem", "parameter problem", Care.TAKEN, error=True),
    Message(6, 129, "echo-reply", "echo reply", Care.TAKEN),
    Message(6, 130, "mld-listener-query", "multicast listener query", Care.NEAR),
    Message(6, 131, "mld-listener-report", "multicast listener report", Care.NEAR),
    Message(6, 132, "mld-listener-done", "multicast listener done", Care.NEAR),
    # The box has the routes and addresses that it was told, and tells nobody a router.
    Message(6, 133, "nd-router-solicit", "router solicitation", Care.SILENT),
    Message(6, 134, "nd-router-advert", "router advertisement", Care.SILENT),
    Message(6, 135, "nd-neighbor-solicit", "neighbor solicitation", Care.TAKEN),
    Message(6, 136, "nd-neighbor-advert", "neighbor advertisement", Care.TAKEN),
    Message(6, 137, "nd-redirect", "redirect", Care.RULES),
    Message(6, 143, "mld2-listener-report", "multicast listener report, version 2", Care.NEAR),
)
NEAR_SOURCES = ("::/128", "fe80::/10")  # RFC 3590: who has no address yet has none as its source


def names(version: int, *cares: Care) -> str:
    """As a list for nft."""
    return ", ".join(one.name for one in MESSAGES if one.version == version and one.care in cares)


def rules(version: int) -> list[str]:
    """Rules of nft for what is taken."""
    taken = f"icmp{'v6' if version == 6 else ''} type {{ {names(version, Care.TAKEN)} }} accept"
    if version == 4:
        return [taken]
    link = f"ip6 saddr {{ {', '.join(NEAR_SOURCES)} }} ip6 hoplimit 1"
    return [taken, f"icmpv6 type {{ {names(version, Care.NEAR)} }} {link} accept"]


def errors(version: int) -> str:
    """As a list for nft."""
    return ", ".join(one.name for one in MESSAGES if one.version == version and one.error)


def message(version: int, number: int) -> Message | None:
    """That of the type; None where the box knows nothing particular about it."""
    return next((one for one in MESSAGES if (one.version, one.type) == (version, number)), None)
