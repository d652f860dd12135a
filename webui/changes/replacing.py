"""The draft becomes another configuration as a whole: what it loses, what it becomes, and then the deed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from django.db import transaction
from django.db.models import Model, Q

from changes import draft
from changes.models import Draft, Removal, Tracked
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
        count, now = counter(), draft.current()
        authors = sorted(set(_authors(since)))
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
        if counter() != seen:
            raise Moved
        draft.replace(new, user)


def counter() -> int:
    """How often the draft was changed."""
    row = Draft.objects.filter(pk=draft.ONLY_ROW).first()
    return row.counter if row else 0


def _authors(since: datetime | None) -> Iterator[str]:
    """Everybody who touched the draft since then, in whatever table."""
    late = Q() if since is None else Q(changed_at__gt=since)
    tables: list[type[Model]] = [*Tracked.__subclasses__(), Removal]
    for table in tables:
        yield from table._default_manager.filter(late).exclude(changed_by="").values_list("changed_by", flat=True)
