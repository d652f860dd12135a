"""The draft becomes another configuration as a whole: what it loses, what it becomes, and then the deed."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from django.db import transaction

from draft import store as draft
from lbconfig.diff import services as diff
from lbconfig.model import redact
from lbconfig.model.problem import Problem
from lbconfig.model.snapshot import Snapshot
from lbconfig.validate.services import validate


class Moved(Exception):
    """The draft was changed since the admin looked at what it would lose."""


@dataclass(frozen=True)
class Outlook:
    """What an admin sees first."""

    counter: int  # of the draft that was looked at
    lost: list[diff.Change]  # of the present draft: what does not run, and the new one does not have
    authors: list[str]
    becomes: list[diff.Change]
    same: bool  # nothing would change
    problems: list[Problem] = field(default_factory=list)
    passwords: list[str] = field(default_factory=list)  # services whose passwords would be gone


def outlook(new: Snapshot, running: Snapshot | None, since: datetime | None) -> Outlook:
    """`running`: what the box runs, if it says so; `since`: when that was applied, if it is known."""
    with transaction.atomic():
        count, now = draft.counter(), draft.current()
        authors = sorted(set(draft.authors(since)))
    lost = []
    if running is not None and not draft.same(running, now) and not draft.same(now, new):
        lost = diff.summary(running, now)
    return Outlook(
        counter=count,
        lost=lost,
        authors=authors if lost else [],
        becomes=diff.summary(now, new),
        same=draft.same(now, new),
        problems=validate(new),
        passwords=redact.losing(now, new),
    )


def replace(new: Snapshot, seen: int, user: str) -> None:
    """`seen`: the counter of the draft that the admin looked at. Raises Moved; then nothing was changed."""
    with transaction.atomic():
        if draft.counter() != seen:
            raise Moved
        draft.replace(new, user)
