"""The shapes of the answers about a pair of boxes, as they come out of `applier.wire.client` and `tests.fake`."""

from __future__ import annotations

from typing import Literal, TypedDict

LONGEST_HOLD = 168  # hours; 0 stands for: until it is released
PairStep = Literal["", "in step", "behind", "ahead", "forked"]


class PairLine(TypedDict):
    """What every page says of the pair."""

    sentence: str
    good: bool  # one box leads, and the other one can take over
    desk: str  # host name of the other box, where that one leads and the configuration is edited there; "": here
    desk_addresses: list[str]  # by which its page is reached


class PairBoxStatus(TypedDict):
    hostname: str
    own: bool  # whether this is the box that was asked
    addresses: list[str]  # its own ones, by which its page is reached
    heard: float | None  # seconds ago; None: never, and what follows is empty
    role: Literal["leads", "stands by", "held", "fault", ""]
    since: float  # seconds ago
    reason: str  # why it is held or cannot lead
    version: str
    revision: int  # 0: the factory configuration
    ready: bool  # whether it may lead
    connections: int  # entries in its table
    lacks: list[str]  # sentences: what keeps it from serving as well as it could


class HoldStatus(TypedDict):
    """This box is held because an admin wants it so."""

    user: str
    since: str
    hours: int  # 0: until it is released
    left: float | None  # seconds; None: until it is released


class LeadChange(TypedDict):
    """One box began to lead instead of the other one."""

    when: str
    leads: str  # host name
    reason: str


class AlongState(TypedDict):
    """What goes along in a pair: for the web process, which has it."""

    pair: str  # its id; "": the box is in none
    box: int  # which of the two this one is
    own: str  # host names
    other: str
    desk: bool  # whether this box leads, or is the first one where both do or neither
    revision: int | None  # that is confirmed here
    theirs: dict[str, str] | None  # the stamps of the other box's documents; None: it is away
    wanted: list[str]  # documents that the other box asks for


class Brought(TypedDict):
    text: str


class ErrandLine(TypedDict):
    """What one box of a pair asks the other one, or answers it, on its way to the process that carries it there."""

    kind: Literal["ask", "answer"]
    body: dict[str, object]  # pair/errand_lines.py


class Drill(TypedDict):
    """A hand-over that was tried and measured. The numbers of connections are those that were compared."""

    id: str
    when: str
    user: str
    gave: str  # host name of the box that led before
    took: str
    failed: str  # why it came to nothing, or why connections were not compared; empty: neither
    silence: float | None  # milliseconds until the last address answered at the other box; None: not known
    unanswered: list[str]  # addresses that did not answer there
    part: int  # of so many connections one was compared
    before: int  # open at the box that led
    after: int  # of these, still open at the other one
    ended: int  # … ended by clients or servers meanwhile
    lost: int  # … unknown at the other one


class ShownDrill(Drill):
    sentence: str  # all of it, for people


class DrillState(TypedDict):
    running: str  # what is being tried now; empty: nothing
    drills: list[ShownDrill]  # the newest first


class PathStatus(TypedDict):
    """A network in which both boxes are, or the cable between them."""

    interface: str
    address: str  # of the other box there
    cable: bool
    silent: float  # seconds since the other box answered there last, or since it is asked
    ever: bool  # whether it has answered at all
    alive: bool


class PairState(TypedDict):
    boxes: list[PairBoxStatus]  # the first box and the second one; empty: this box is in no pair
    sentence: str
    good: bool
    step: PairStep  # of the other box: the same configuration, an older one, a newer one, one that was made apart
    clock: float | None  # how many seconds the clock of the other box is ahead
    paths: list[PathStatus]  # between the boxes, the pair cable first
    lag: float | None  # milliseconds that a question to the other box and its answer take; None: it did not answer
    differences: list[str]  # sentences: servers that answer one of the boxes alone
    hold: HoldStatus | None  # of this box
    refusal: str  # why this box cannot hand over now; empty: it can
    by_itself: bool  # whether the leading box hands over when the other one is fitter
    changes: list[LeadChange]  # the newest first
