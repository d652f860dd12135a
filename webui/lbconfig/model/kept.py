"""What pure functions made of an object, kept for as long as the object lives.

A configuration is a tree of frozen objects, and a change makes few of them anew. What a function makes of one that
stayed need not be made again. Kept by the object itself and not by its value: to look that up would cost as much as
many a function. `Reading` sees to it that equal services of two snapshots are one object.
"""

from __future__ import annotations

import dataclasses
import functools
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from lbconfig.model.lines import NAME, line, name_of
from lbconfig.model.reading import MAX_ITEMS, SnapshotError
from lbconfig.model.snapshot import Snapshot, VirtualService, from_data, part, plain

One = TypeVar("One")
Made = TypeVar("Made")

RECENT = 3  # snapshots whose services are known again: what runs, what is tried, and one between


def kept(function: Callable[[One], Made]) -> Callable[[One], Made]:
    """Compute a pure function of one frozen object once; callers must not change what it gives.

    It must not give the object itself, which would then be kept for ever.
    """
    found: dict[int, tuple[weakref.ref[One], Made]] = {}

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


def kept_by(part: Callable[[One], object]) -> Callable[[Callable[[One], Made]], Callable[[One], Made]]:
    """Compute a pure function again only where that part of the object differs which it looks at.

    The last few results are kept, by the value of the part; what it is made of should be kept itself, so that to
    compare it is quick.
    """

    def decorate(function: Callable[[One], Made]) -> Callable[[One], Made]:
        recent: list[tuple[object, Made]] = []  # the newest first; replaced item by item, so threads need no lock

        @functools.wraps(function)
        def once(one: One) -> Made:
            key = part(one)
            for known, made in list(recent):
                if known == key:
                    return made
            made = function(one)
            recent.insert(0, (key, made))
            del recent[RECENT:]
            return made

        return once

    return decorate


class Unknown(KeyError):
    """A service that stands for itself by its name is none of the recent ones."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Read:
    """A snapshot that was read, by what it was read from."""

    rest: str  # the text of all but the services
    names: tuple[str, ...]  # of each service
    snapshot: Snapshot


class Reading:
    """Reads snapshots from plain data as `from_data` does; what stands in a recent one, too, is the same object.

    Instead of a service the data may have its name, as `canonical.named` does.
    """

    def __init__(self) -> None:
        self._recent: tuple[_Read, ...] = ()  # the newest first; replaced as a whole, so threads need no lock

    @property
    def recent(self) -> tuple[Snapshot, ...]:
        """The newest first."""
        return tuple(one.snapshot for one in self._recent)

    def missing(self, names: Iterable[str]) -> list[str]:
        """Those of no recent service, in their order."""
        known = self._known()
        return [name for name in names if name not in known]

    def __call__(self, data: object, services: Iterable[object] = ()) -> Snapshot:
        """`services`: those that `data` only names and that are `missing`. Raises SnapshotError, Unknown."""
        told: dict[str, object] = {}
        try:
            told = {name_of(one): one for one in services}
            read = self._read(data, told)
        except (SnapshotError, ValueError, TypeError, RecursionError):
            read = None
        if read is None:
            return from_data(self._spelt_out(data, told))  # it says what is wrong, by its whole path
        others = tuple(one for one in self._recent if one.snapshot is not read.snapshot)
        self._recent = (read, *others)[:RECENT]
        return read.snapshot

    def _known(self) -> dict[str, VirtualService]:
        return {
            name: service
            for one in reversed(self._recent)
            for name, service in zip(one.names, one.snapshot.services, strict=True)
        }

    def _read(self, data: object, told: dict[str, object]) -> _Read | None:
        if not isinstance(data, Mapping):
            return None
        services = data.get("services")
        if not isinstance(services, list) or len(services) > MAX_ITEMS:
            return None
        rest = {name: value for name, value in data.items() if name != "services"}
        rest_key, names = line(rest), []
        for one in services:
            name = one if isinstance(one, str) else name_of(one)
            if name is not one:
                told[name] = one
            names.append(name)
        for recent in self._recent:
            if recent.names == tuple(names) and recent.rest == rest_key:
                return recent
        known = self._known()
        same = next((one.snapshot for one in self._recent if one.rest == rest_key), None)
        whole = from_data(rest) if same is None else same
        read = tuple(known[name] if name in known else _service(name, told) for name in names)
        return _Read(rest_key, tuple(names), dataclasses.replace(whole, services=read))

    def _spelt_out(self, data: object, told: dict[str, object]) -> object:
        """The data with the services whose names it has."""
        if not isinstance(data, Mapping):
            return data
        services = data.get("services")
        if not isinstance(services, list) or not any(isinstance(one, str) for one in services):
            return data
        known = self._known()
        spelt = [
            one if not isinstance(one, str) else plain(known[one]) if one in known else told.get(one, one)
            for one in services
        ]
        return {**data, "services": spelt}


def _service(name: str, told: Mapping[str, object]) -> VirtualService:
    if name not in told:
        raise Unknown(name) if NAME.fullmatch(name) else SnapshotError("", "is no name of a service")
    return part(VirtualService, told[name])
