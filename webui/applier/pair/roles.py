"""Which role the box has, out of what keepalived says and whether somebody holds the box. Pure, and quick to load."""

from __future__ import annotations

import json
from typing import NamedTuple

LEADS, STANDS_BY, HELD, FAULTY = "leads", "stands by", "held", "fault"
# keepalived's words. A group stands for all its instances: one that cannot work takes the others along.
MASTER, BACKUP, FAULT = "MASTER", "BACKUP", "FAULT"
STILL = "STILL"  # ours: it has said nothing, and has not run either
NOT_RUNNING = "keepalived does not run"  # a reason
LOWER_SEEN = "MASTER_RX_LOWER_PRI"  # we lead, and somebody of less priority believes the same
_GROUP, _INSTANCE = "GROUP", "INSTANCE"
_LONGEST = 160  # letters of a reason
_HANDING_OVER = "handing over"


class Role(NamedTuple):
    """What the file `role` says."""

    role: str
    since: float  # seconds since the boot
    reason: str


class Event(NamedTuple):
    """A line of keepalived's."""

    of_group: bool
    name: str
    word: str


class Heard(NamedTuple):
    """All that matters of what keepalived has said so far."""

    state: str = ""  # of the group; "": it does not run
    faulty: tuple[str, ...] = ()  # instances, the first to fail first
    ahead: bool = False  # an instance has left this leader, and the group has said nothing of it yet


# What keepalived had said last, for a floater that is started again: the pipe holds only what came since.
RESUMED = {LEADS: MASTER, STANDS_BY: BACKUP, HELD: FAULT, FAULTY: FAULT}


def parse(line: str) -> Event | None:
    """A line such as GROUP "pair" MASTER 254; None for anything else."""
    words = line.split()
    if len(words) < 3 or words[0] not in (_GROUP, _INSTANCE):
        return None
    return Event(words[0] == _GROUP, words[1].strip('"'), words[2])


def after(heard: Heard, event: Event) -> Heard:
    """What is known once that has been said, too.

    The group does not say everything: where timers ran late, its instances stand by one by one, and keepalived goes on
    believing that the group leads (2.3.3, and later ones). As long as it does, it says no word of who leads again.
    """
    if event.of_group:
        return heard._replace(state=event.word, ahead=False)
    others = tuple(name for name in heard.faulty if name != event.name)
    if event.word == FAULT:
        heard = heard._replace(faulty=heard.faulty if event.name in heard.faulty else (*others, event.name))
    elif event.word in (MASTER, BACKUP):
        heard = heard._replace(faulty=others)
    left = heard.state == MASTER and event.word in (BACKUP, FAULT)
    return heard._replace(state=event.word, ahead=True) if left else heard


def describe(heard: Heard, hold: str | None) -> tuple[str, str]:
    """The role and its reason. `hold`: why somebody holds the box; None: nobody does."""
    if heard.state == MASTER:
        return LEADS, ""
    if heard.state == BACKUP:
        return STANDS_BY, ""
    if heard.state == STILL:
        return FAULTY, "keepalived stands still"
    if heard.state != FAULT:
        return FAULTY, NOT_RUNNING
    if hold is not None:
        return HELD, hold
    return FAULTY, f"{heard.faulty[0]}: its network has no link or no address" if heard.faulty else ""


def hold_reason(text: str) -> str | None:
    """Why somebody holds the box, by the file that keepalived looks at; None: nobody does."""
    number, _, reason = text.partition("\n")
    try:
        held = int(number) != 0
    except ValueError:
        held = False  # as keepalived reads it
    return reason.strip() if held else None


def handing_over(why: str) -> str:
    """The reason of the short hold by which a box lets the other one lead."""
    return f"{_HANDING_OVER}: {why}" if why else _HANDING_OVER


def hands_over(reason: str | None) -> bool:
    """Whether a hold is such a short one."""
    return reason is not None and reason.partition(":")[0] == _HANDING_OVER


def why(reason: str) -> str:
    """A reason without the words that it is such a short hold."""
    return reason.partition(": ")[2] or reason if hands_over(reason) else reason


def hold_text(reason: str | None) -> str:
    """The file with which the box is held, or is not."""
    return "0\n" if reason is None else f"1\n{' '.join(reason.split())[:_LONGEST]}\n"


def role_text(role: Role) -> str:
    return json.dumps(role._asdict()) + "\n"


def read_role(text: str) -> Role | None:
    """What the file `role` says; None where it says nothing that can be used."""
    try:
        data = json.loads(text)
        role = Role(str(data["role"]), float(data["since"]), str(data["reason"]))
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return role if role.role in RESUMED else None
