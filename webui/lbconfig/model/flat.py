"""An object of a snapshot as flat values, the way a form has them: `check_port` is the field `port` of its `check`.

Which fields there are, the dataclasses alone say: a new one of them is there at once.
"""

from __future__ import annotations

import dataclasses
import functools
import typing
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

Kind = TypeVar("Kind")


def flat(wish: object) -> dict[str, Any]:
    """Its values by flat names; lists of objects with an id, such as real servers, are left out: each has values."""
    kind: Any = type(wish)
    return {name: functools.reduce(getattr, path, wish) for name, path in _paths(kind).items()}


def defaults(kind: Any) -> dict[str, Any]:
    """What a new one begins with, by flat names; without the fields that have to be filled in."""
    return dict(_defaults(kind))


def shaped(kind: Callable[..., Kind], values: Mapping[str, Any], **others: object) -> Kind:
    """One of `kind` from flat values; what is None or missing is as it begins. `others`: values of its own fields."""
    given = {**_defaults(kind), **{name: value for name, value in values.items() if value is not None}}
    made: dict[str, Any] = {}
    for name, path in _paths(kind).items():
        if name in given:
            functools.reduce(lambda inner, one: inner.setdefault(one, {}), path[:-1], made)[path[-1]] = given[name]
    return _build(kind, made | others)


def _build(kind: Callable[..., Kind], values: Mapping[str, Any]) -> Kind:
    inner = _inner(kind)
    return kind(**{name: _build(inner[name], one) if name in inner else one for name, one in values.items()})


@functools.cache
def _inner(kind: Any) -> dict[str, type[Any]]:
    """The dataclass of each field that is one."""
    hints = typing.get_type_hints(kind)
    return {
        field.name: hint
        for field in dataclasses.fields(kind)
        if isinstance(hint := hints[field.name], type) and dataclasses.is_dataclass(hint)
    }


def _field_names(kind: Any) -> tuple[str, ...]:
    """Of a dataclass; of any other type none."""
    return tuple(field.name for field in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else ()


@functools.cache
def _paths(kind: Any) -> dict[str, tuple[str, ...]]:
    """Where the value of each flat name is."""
    hints = typing.get_type_hints(kind)
    found: dict[str, tuple[str, ...]] = {}
    for field in dataclasses.fields(kind):
        if field.name in _inner(kind):
            inner: Any = _inner(kind)[field.name]
            rest = _paths(inner)
            found |= {f"{field.name}_{name}": (field.name, *path) for name, path in rest.items()}
        elif not any("id" in _field_names(one) for one in typing.get_args(hints[field.name])):
            found[field.name] = (field.name,)
    return found


@functools.cache
def _defaults(kind: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        if field.default is dataclasses.MISSING:
            continue
        if field.name in _inner(kind):
            found |= {f"{field.name}_{name}": value for name, value in flat(field.default).items()}
        elif field.name in _paths(kind):
            found[field.name] = field.default
    return found
