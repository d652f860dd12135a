"""One change of a snapshot, in words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Change:
    kind: str  # "added", "changed", "removed"
    object: str  # "virtual service 'web'"
    sentences: tuple[str, ...]
    impact: str | None = None  # what clients or the admin notice; None: nothing
