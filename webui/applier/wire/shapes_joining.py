"""The shapes of what the applier says of two boxes that are about to become a pair."""

from __future__ import annotations

from typing import Any, TypedDict


class Invitation(TypedDict):
    """A box waits for its second one."""

    code: str
    addresses: list[str]  # of this box
    port: int
    seconds: float  # that are left
    tries: int  # that are left


class JoinedBoxes(TypedDict):
    """Two boxes know each other, and are no pair yet."""

    id: str
    box: int  # which of the two this one is
    keys: list[str]  # the public ones
    other: str  # the other box's host name
    address: str
    time: int  # of this box when they met, in Unix seconds
    facts: dict[str, Any] | None  # of the second box, as lbconfig.joining.Facts; only the first one has them
    taken: list[str]  # addresses that answered ARP


class Joining(TypedDict):
    invitation: Invitation | None
    joined: JoinedBoxes | None
    said: str  # how the last invitation ended, where it ended without a second box


class Asked(TypedDict):
    taken: list[str]  # of the addresses that were asked for
