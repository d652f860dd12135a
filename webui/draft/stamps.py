"""Who changed an object of the draft, when, and which change of the draft that was."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils import timezone

from draft.models import Draft, Tracked

ONLY_ROW = 1


def change_number(count: int = 1) -> int:
    """Count changes of the draft; the last one's number.

    Needs a transaction, which on SQLite admits one writer at a time.
    """
    draft, _ = Draft.objects.get_or_create(pk=ONLY_ROW)
    draft.counter += count
    draft.save(update_fields=["counter"])
    return draft.counter


def stamp(row: Tracked, user: str) -> None:
    stamp_all([row], user)


def stamp_all(rows: Sequence[Tracked], user: str) -> None:
    last, now = change_number(len(rows)), timezone.now()
    for number, row in enumerate(rows, last - len(rows) + 1):
        row.version, row.changed_by, row.changed_at = number, user, now
