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
    replaces: bool  # this box takes the place of a dead one, and is not heard until the other box has applied that


class JoinedLink(TypedDict):
    """The link between two boxes that were joined, before they are a pair."""

    heard: bool  # the other box is heard
    lasts: float  # seconds since when that is so


class Joining(TypedDict):
    invitation: Invitation | None
    joined: JoinedBoxes | None
    link: JoinedLink | None  # of two boxes that were joined; null: there are none, or it is not known yet
    said: str  # why no second box is known: how the last invitation ended, or what became of a try at this one


class Asked(TypedDict):
    taken: list[str]  # of the addresses that were asked for
