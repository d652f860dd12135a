"""The draft as one document, with who changed what when: it goes along to the other box of a pair.

An object keeps its version there, so a form that was opened on one box can be saved on the other one.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from django.db import transaction

from draft import store
from draft.models import Draft, Part, Removal, Rule, Service, Tracked
from draft.stamps import ONLY_ROW
from lbconfig.model.reading import SnapshotError, build
from lbconfig.model.snapshot import SCHEMA, Snapshot

Step = Literal["same", "wait", "take", "set aside mine", "set aside theirs"]
LONGEST = 4 << 20  # characters of an object
AT_ONCE = 200  # rows that are written by one statement


@dataclass(frozen=True)
class Stamp:
    """`counter`: how often the draft was changed; `digest`: of what it says."""

    counter: int = 0
    digest: str = ""

    def __str__(self) -> str:
        return f"{self.counter}:{self.digest}"

    @classmethod
    def read(cls, text: str) -> Stamp | None:
        """None for what is no stamp."""
        counter, _, digest = text.partition(":")
        good = counter.isascii() and counter.isdigit() and len(counter) < 16 and len(digest) == 64
        return cls(int(counter), digest) if good else None


def step(mine: Stamp, theirs: Stamp, agreed: Stamp | None, desk: bool) -> Step:
    """What to do about the other box's draft. `agreed`: the last one that both had; None: there was none.

    `desk`: whether that of this box stays where both were changed since.
    """
    if mine.digest == theirs.digest:
        return "same"
    if agreed is None:
        return "wait" if desk else "set aside mine"
    if theirs.digest == agreed.digest or theirs.counter <= agreed.counter:
        return "wait"  # it is the other box that has to take what is here
    if mine.digest == agreed.digest:
        return "take"
    return "set aside theirs" if desk else "set aside mine"


@dataclass(frozen=True)
class Row:
    """An object of the draft."""

    key: str
    data: str = field(metadata={"longest": LONGEST, "tabs": True})
    position: int  # of a rule
    version: int
    changed_by: str
    changed_at: str  # "": nobody knows


@dataclass(frozen=True)
class Document:
    schema: int
    counter: int
    last_server: int
    services: tuple[Row, ...]
    rules: tuple[Row, ...]
    parts: tuple[Row, ...]
    removals: tuple[Row, ...]  # of services; `data` is the name


_known: dict[tuple[object, int], str] = {}  # the digest of the draft that was stamped last, by filling and counter


def stamp() -> Stamp:
    """Of the draft as it is now."""
    with transaction.atomic():
        row = Draft.objects.filter(pk=ONLY_ROW).first() or Draft()
        key = row.filled_at, row.counter
        digest = _known.get(key) or _digest(_document())
    _known.clear()
    _known[key] = digest
    return Stamp(row.counter, digest)


def text() -> str:
    return json.dumps(dataclasses.asdict(_document()), separators=(",", ":"))


def read(text: str) -> Document:
    """Raises SnapshotError for what is no document of this version."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise SnapshotError("draft", "is not JSON") from None
    found = build(Document, data, "draft")
    if found.schema != SCHEMA:
        raise SnapshotError("draft.schema", f"must be {SCHEMA}, not {found.schema}")
    return found


def take(document: Document, expected: Stamp) -> bool:
    """The draft becomes this one, unless it is not as it was expected any more.

    Raises SnapshotError where the other box's cannot be read; then nothing was changed.
    """
    with transaction.atomic():
        if stamp() != expected:
            return False
        _write(document)
        Draft.objects.update_or_create(
            pk=ONLY_ROW,
            defaults={
                "counter": max(document.counter, expected.counter + 1),
                "last_server": max(document.last_server, _last_server()),
            },
        )
        store.current()  # each of its objects can be read
        return True


def snapshot_of(document: Document) -> Snapshot:
    """What it says, and nothing is changed. Raises SnapshotError."""
    with transaction.atomic():
        point = transaction.savepoint()
        _write(document)
        try:
            return store.current()
        finally:
            transaction.savepoint_rollback(point)


def move_counter(least: int) -> None:
    """So that the other box, which is further, sees that this draft is the newer one."""
    with transaction.atomic():
        Draft.objects.filter(pk=ONLY_ROW, counter__lt=least).update(counter=least)


def _document() -> Document:
    with transaction.atomic():
        draft = Draft.objects.filter(pk=ONLY_ROW).first() or Draft()
        return Document(
            draft.schema,
            draft.counter,
            draft.last_server,
            tuple(_row(one, str(one.pk), one.data) for one in Service.objects.order_by("pk")),
            tuple(_row(one, str(one.pk), one.data, one.position) for one in Rule.objects.order_by("position", "pk")),
            tuple(_row(one, one.name, one.data) for one in Part.objects.order_by("name")),
            tuple(
                Row(str(one.service), one.name, 0, 0, one.changed_by, one.changed_at.isoformat())
                for one in Removal.objects.order_by("service")
            ),
        )


def _row(row: Tracked, key: str, data: str, position: int = 0) -> Row:
    changed_at = row.changed_at.isoformat() if row.changed_at else ""
    return Row(key, data, position, row.version, row.changed_by, changed_at)


def _write(document: Document) -> None:
    """Raises SnapshotError."""
    for kind in (Service, Rule, Part, Removal):
        kind._default_manager.all().delete()
    services = [Service(pk=_number(row.key), data=row.data, **_tracked(row)) for row in document.services]
    rules = [Rule(pk=_number(row.key), data=row.data, position=row.position, **_tracked(row)) for row in document.rules]
    parts = [Part(name=row.key, data=row.data, **_tracked(row)) for row in document.parts]
    removals = [
        Removal(service=_number(row.key), name=row.data, changed_by=row.changed_by, changed_at=_moment(row.changed_at))
        for row in document.removals
    ]
    Service.objects.bulk_create(services, AT_ONCE)
    Rule.objects.bulk_create(rules, AT_ONCE)
    Part.objects.bulk_create(parts, AT_ONCE)
    Removal.objects.bulk_create(removals, AT_ONCE)


def _tracked(row: Row) -> dict[str, Any]:
    return {
        "version": row.version,
        "changed_by": row.changed_by[:150],
        "changed_at": _moment(row.changed_at) if row.changed_at else None,
    }


def _last_server() -> int:
    row = Draft.objects.filter(pk=ONLY_ROW).first()
    return row.last_server if row else 0


def _number(key: str) -> int:
    if not (key.isascii() and key.isdigit() and len(key) < 16):
        raise SnapshotError("draft", "has an object whose number is none")
    return int(key)


def _moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise SnapshotError("draft", "has an object whose time is none") from None


def _digest(document: Document) -> str:
    """Of what it says, and not of who said it when."""
    said = [
        [[row.key, row.data, row.position] for row in rows]
        for rows in (document.services, document.rules, document.parts)
    ]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()
