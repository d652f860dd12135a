"""The history: what is kept of it, and any two states of the box side by side."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils import timezone

from changes import diffs
from changes.models import Keeping, Revision
from draft import store as draft
from lbconfig import migrate
from lbconfig.diff import services as diff
from lbconfig.diff.files import unified
from lbconfig.model.snapshot import Snapshot, SnapshotError
from lbconfig.render import render
from lbconfig.validate.services import validate

LEAST, MOST = 10, 5000  # revisions that can be kept
ONLY_ROW = 1
RUNNING, DRAFT = "running", "draft"


class Unreadable(Exception):
    """There is nothing to compare, or to restore; the text is a sentence for an admin."""


@dataclass(frozen=True)
class Side:
    """One of two states: a revision, what runs, or the draft."""

    key: str  # "12", "running", "draft": as the address of a page has it
    title: str  # in the middle of a sentence
    snapshot: Snapshot


@dataclass(frozen=True)
class Comparison:
    old: Side
    new: Side
    changes: list[diff.Change]
    files: list[diffs.FileDiff]
    unrendered: str  # why there are no files


def kept() -> int:
    row = Keeping.objects.filter(pk=ONLY_ROW).first() or Keeping()
    return row.revisions


def keep(count: int, running: int | None) -> None:
    """`running`: the number of the one that runs, which stays in any case."""
    Keeping.objects.update_or_create(pk=ONLY_ROW, defaults={"revisions": count})
    prune(running)


def wanted(numbers: set[int]) -> set[int]:
    """Of revisions that are stored or could be: those that are to be kept."""
    return set(sorted(numbers, reverse=True)[: kept()])


def prune(running: int | None) -> int:
    """Forget the oldest, never the one that runs; how many these were."""
    numbers = set(Revision.objects.values_list("number", flat=True))
    gone = numbers - wanted(numbers) - {running}
    for number in gone:  # one by one: SQLite takes a limited number of parameters
        Revision.objects.filter(number=number).delete()
    return len(gone)


def before(revision: Revision) -> Revision | None:
    """The one that ran until this one was applied, as far as the history goes back."""
    return Revision.objects.filter(number__lt=revision.number, outcome="confirmed").exclude(snapshot="").first()


def correct(revision: Revision, comment: str, user: str) -> None:
    revision.comment, revision.corrected_by, revision.corrected_at = comment, user, timezone.now()
    revision.save(update_fields=["comment", "corrected_by", "corrected_at"])


def side(key: str, running: Snapshot | None) -> Side:
    """`running`: what the box runs, or None where that is unknown. Raises Unreadable."""
    if key == DRAFT:
        return Side(key, "the draft", draft.current())
    if key == RUNNING:
        if running is None:
            raise Unreadable("What runs cannot be compared at the moment: the box does not answer.")
        return Side(key, "what runs", running)
    revision = None
    if key.isascii() and key.isdigit() and len(key) < 10:
        revision = Revision.objects.filter(number=int(key)).first()
    if revision is None:
        raise Unreadable("The history does not have this revision any more.")
    return of_revision(revision)


def of_revision(revision: Revision) -> Side:
    """Raises Unreadable."""
    try:
        return Side(str(revision.number), f"revision {revision.number}", migrate.read(revision.snapshot))
    except SnapshotError as error:
        raise Unreadable(f"The configuration of revision {revision.number} cannot be read: {error}.") from None


def compare(old: Side, new: Side, in_full: bool = True) -> Comparison:
    changes = diff.summary(old.snapshot, new.snapshot)
    broken = next((one for one in (old, new) if in_full and validate(one.snapshot)), None)
    if broken:
        said = f"There are no files to compare: {broken.title} has problems, so nothing can be rendered from it."
        return Comparison(old, new, changes, [], said)
    files = unified(render(old.snapshot), render(new.snapshot)) if in_full else {}
    return Comparison(old, new, changes, [diffs.read(path, text) for path, text in files.items()], "")
