"""One change in plain words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

REFUSED = "New connections may be refused for a moment."

Kind = Literal["added", "changed", "removed"]


@dataclass(frozen=True, slots=True)
class Change:
    kind: Kind
    object: str  # "virtual service 'web'"
    sentences: tuple[str, ...]
    impact: str | None = None  # what clients or the admin notice; None: nothing
    service: int | None = field(default=None, compare=False)  # the id of the service that it is about


def list_change(old: tuple[str, ...], new: tuple[str, ...], words: Callable[[str], str]) -> Iterator[str]:
    yield from (f"{words(text)} is added." for text in new if text not in old)
    yield from (f"{words(text)} is removed." for text in old if text not in new)
    if set(old) == set(new) and old != new:
        yield "Only the order changes."
