"""Who changed an object of the draft, when, and which change of the draft that was."""

from __future__ import annotations

from django.utils import timezone

from changes.models import Draft, Tracked

ONLY_ROW = 1


def change_number() -> int:
    """Count one change of the draft. Needs a transaction, which on SQLite admits one writer at a time."""
    draft, _ = Draft.objects.get_or_create(pk=ONLY_ROW)
    draft.counter += 1
    draft.save(update_fields=["counter"])
    return draft.counter


def stamp(row: Tracked, user: str) -> None:
    row.version = change_number()
    row.changed_by = user
    row.changed_at = timezone.now()
