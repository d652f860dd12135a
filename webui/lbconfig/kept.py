"""What pure functions made of an object, kept for as long as the object lives.

A configuration is a tree of frozen objects, and a change makes few of them anew. What a function makes of one that
stayed need not be made again. Kept by the object itself and not by its value: to look that up would cost as much as
many a function. `Reading` sees to it that equal services of two snapshots are one object.
"""

from __future__ import annotations

import dataclasses
import functools
import marshal
import weakref
from collections.abc import Callable, Mapping
from typing import TypeVar

from lbconfig.reading import MAX_ITEMS, SnapshotError
from lbconfig.snapshot import Snapshot, VirtualService, from_data, part

One, Made = TypeVar("One"), TypeVar("Made")

RECENT = 3  # snapshots whose services are known again: what runs, what is tried, and one between


def kept(function: Callable[[One], Made]) -> Callable[[One], Made]:
    """Compute a pure function of one frozen object once; callers must not change what it gives."""
    found: dict[int, tuple[weakref.ref, Made]] = {}

    @functools.wraps(function)
    def once(one: One) -> Made:
        known = found.get(id(one))
        if known is not None and known[0]() is one:
            return known[1]
        made = function(one)
        number = id(one)
        found[number] = (weakref.ref(one, lambda _: found.pop(number, None)), made)
        return made

    return once


@dataclasses.dataclass(frozen=True, slots=True)
class _Read:
    """A snapshot that was read, by what it was read from."""

    rest: bytes  # all but the services
    keys: tuple[bytes, ...]  # of each service
    snapshot: Snapshot


class Reading:
    """Reads snapshots from plain data as `from_data` does; what stands in a recent one, too, is the same object."""

    def __init__(self) -> None:
        self._recent: tuple[_Read, ...] = ()  # the newest first; replaced as a whole, so threads need no lock

    @property
    def recent(self) -> tuple[Snapshot, ...]:
        """The newest first."""
        return tuple(one.snapshot for one in self._recent)

    def __call__(self, data: object) -> Snapshot:
        """Raises SnapshotError."""
        try:
            read = self._read(data)
        except (SnapshotError, ValueError):
            read = None
        if read is None:
            return from_data(data)  # it says what is wrong, by its whole path
        others = tuple(one for one in self._recent if one.snapshot is not read.snapshot)
        self._recent = (read, *others)[:RECENT]
        return read.snapshot

    def _read(self, data: object) -> _Read | None:
        services = data.get("services") if isinstance(data, Mapping) else None
        if not isinstance(services, list) or len(services) > MAX_ITEMS:
            return None
        rest = {name: value for name, value in data.items() if name != "services"}
        # Version 2 knows no references, so equal data are equal bytes, and True is not 1.
        rest_key, keys = marshal.dumps(rest, 2), tuple(marshal.dumps(one, 2) for one in services)
        for one in self._recent:
            if one.keys == keys and one.rest == rest_key:
                return one
        known: dict[bytes, VirtualService] = {}
        for one in reversed(self._recent):
            known.update(zip(one.keys, one.snapshot.services, strict=True))
        their_own = {key: key for key in known}  # one of each in memory
        keys = tuple(their_own.get(key, key) for key in keys)
        same = next((one.snapshot for one in self._recent if one.rest == rest_key), None)
        whole = from_data(rest) if same is None else same
        read = tuple(
            known[key] if key in known else part(VirtualService, entry)
            for key, entry in zip(keys, services, strict=True)
        )
        return _Read(rest_key, keys, dataclasses.replace(whole, services=read))
