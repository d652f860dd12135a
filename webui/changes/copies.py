"""The history as it goes along to the other box of a pair: who applied what, when and why.

Both boxes apply the same revisions, but one that was away knows only what it followed, and nobody's comments. A list of
all revisions goes there; the configuration of one that is missing is asked for by itself.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from django.db import transaction

from changes import revisions
from changes.models import Revision, SetAside
from lbconfig.model.reading import SnapshotError, build
from lbconfig.model.snapshot import Snapshot, to_json

FOLLOWED = "pair"  # who applied what a box has followed (applier/apply/verbs.py)
LONGEST = 8 << 20  # characters of a configuration


@dataclass(frozen=True)
class Entry:
    number: int
    user: str
    comment: str
    corrected_by: str
    corrected_at: str  # "": never
    created: str
    outcome: str


@dataclass(frozen=True)
class History:
    revisions: tuple[Entry, ...]
    forgotten: tuple[str, ...]  # digests of drafts that were set aside, and that nobody wants any more


@dataclass(frozen=True)
class Whole:
    """A revision with its configuration."""

    entry: Entry
    seconds: float | None
    snapshot: str = field(metadata={"longest": LONGEST, "tabs": True})
    steps: str = field(metadata={"longest": LONGEST, "tabs": True})  # as JSON


Kind = TypeVar("Kind", History, Whole)


def text() -> str:
    names = [one.name for one in dataclasses.fields(Entry)]
    rows = Revision.objects.order_by("number").only(*names)
    gone = SetAside.objects.filter(snapshot="").order_by("digest").values_list("digest", flat=True)
    return _json(History(tuple(_entry(row) for row in rows), tuple(gone)))


def stamp(said: str) -> str:
    return hashlib.sha256(said.encode()).hexdigest()


def whole(number: int) -> str | None:
    """None where it is not here any more."""
    row = Revision.objects.filter(number=number).first()
    return _json(Whole(_entry(row), row.seconds, row.snapshot, json.dumps(row.steps))) if row else None


def take(said: str) -> list[int]:
    """What is said of revisions that this box has as well; the numbers of those that it has not, the newest first.

    Raises SnapshotError.
    """
    found = _read(History, said)
    theirs = {one.number: one for one in found.revisions}
    with transaction.atomic():
        SetAside.objects.filter(digest__in=found.forgotten).update(snapshot="")
        mine = {row.number: row for row in Revision.objects.defer("snapshot", "steps")}
        for number in mine.keys() & theirs.keys():
            _bring(mine[number], theirs[number])
        wanted = revisions.wanted(mine.keys() | theirs.keys())
    return sorted((wanted - mine.keys()) & theirs.keys(), reverse=True)


def put(said: str) -> None:
    """A revision that this box did not have. Raises SnapshotError."""
    found = _read(Whole, said)
    try:
        steps = json.loads(found.steps)
    except (ValueError, RecursionError):
        raise SnapshotError("revision.steps", "is not JSON") from None
    entry = found.entry
    Revision.objects.get_or_create(
        number=entry.number,
        defaults={
            "user": entry.user[:150],
            "comment": entry.comment[:500],
            "corrected_by": entry.corrected_by[:150],
            "corrected_at": _moment(entry.corrected_at) if entry.corrected_at else None,
            "created": _moment(entry.created),
            "outcome": entry.outcome[:40],
            "seconds": found.seconds,
            "snapshot": found.snapshot,
            "steps": steps if isinstance(steps, list) else [],
        },
    )


def set_aside(digest: str, hostname: str, snapshot: Snapshot) -> bool:
    """Keep a draft that is not taken; False: it is kept, or forgotten, already."""
    kept_already = SetAside.objects.filter(digest=digest).exists()
    if not kept_already:
        SetAside.objects.create(digest=digest, hostname=hostname[:253], snapshot=to_json(snapshot))
    return not kept_already


def _bring(mine: Revision, theirs: Entry) -> None:
    """What people said of it there, where it is newer or was never known here."""
    changed: dict[str, object] = {}
    if mine.user == FOLLOWED != theirs.user:
        changed |= {"user": theirs.user[:150], "comment": theirs.comment[:500]}
    if theirs.corrected_at and (mine.corrected_at is None or _moment(theirs.corrected_at) > mine.corrected_at):
        changed |= {
            "comment": theirs.comment[:500],
            "corrected_by": theirs.corrected_by[:150],
            "corrected_at": _moment(theirs.corrected_at),
        }
    if changed:
        Revision.objects.filter(pk=mine.pk).update(**changed)


def _entry(row: Revision) -> Entry:
    corrected = row.corrected_at.isoformat() if row.corrected_at else ""
    created = row.created.isoformat()
    return Entry(row.number, row.user, row.comment, row.corrected_by, corrected, created, row.outcome)


def _json(what: History | Whole) -> str:
    return json.dumps(dataclasses.asdict(what), separators=(",", ":"))


def _read(kind: type[Kind], said: str) -> Kind:
    try:
        data: Mapping[str, object] = json.loads(said)
    except (ValueError, RecursionError):
        raise SnapshotError("history", "is not JSON") from None
    return build(kind, data, "history")


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise SnapshotError("history", "has a revision whose time is none") from None
    if found.tzinfo is None:
        raise SnapshotError("history", "has a revision whose time is none")
    return found
