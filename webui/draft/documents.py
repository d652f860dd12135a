"""From an object of a snapshot to the text that is stored of it, and back.

What was read last of a text is kept: objects that are one and the same are quick to compare, and to make ten thousand
real servers anew takes a small box seconds.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from typing import Any, TypeVar

from lbconfig.model import canonical
from lbconfig.model.lines import line
from lbconfig.model.snapshot import Snapshot, VirtualService, part, plain

Wish = TypeVar("Wish")

# What a snapshot has once, beside its lists: by the name of its field.
PARTS: dict[str, type] = {
    name: hint
    for name, hint in typing.get_type_hints(Snapshot).items()
    if name != "firewall" and isinstance(hint, type) and dataclasses.is_dataclass(hint)
}
# What it has once, or not at all.
OPTIONAL: dict[str, type] = {
    name: typing.get_args(hint)[0]
    for name, hint in typing.get_type_hints(Snapshot).items()
    if typing.get_origin(hint) is types.UnionType
}


def text(wish: object) -> str:
    """What is stored of it."""
    return canonical.service_text(wish) if isinstance(wish, VirtualService) else line(plain(wish))


def checked_text(wish: object) -> str:
    """The same, when it can be read again. Raises SnapshotError."""
    stored = text(wish)
    part(type(wish), json.loads(stored))
    return stored


def read(kind: type[Wish], stored: str) -> Wish:
    """Raises SnapshotError, and ValueError for what is no JSON."""
    return part(kind, json.loads(stored))


class Kept:
    """Reads documents by their keys; one whose text is as it was the last time is the same object."""

    def __init__(self, kind: type) -> None:
        self._kind = kind
        self._last: dict[Any, tuple[str, Any]] = {}

    def __call__(self, key: object, stored: str) -> Any:
        known = self._last.get(key)
        if known is None or known[0] != stored:
            known = stored, read(self._kind, stored)
            self._last[key] = known
        return known[1]

    def forget_others(self, keys: set[Any]) -> None:
        """All but these: they are gone."""
        for gone in self._last.keys() - keys:
            self._last.pop(gone, None)  # perhaps another thread was quicker
