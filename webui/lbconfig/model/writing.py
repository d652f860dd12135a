"""From dataclasses to plain data, as JSON has it; reading.py knows the way back."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from enum import StrEnum

# Of a field that is written only where it differs from its default. What has no use for it keeps the data, and so the
# digest, that it had before there was such a field.
SPARSE = {"sparse": True}

_AS_IT_IS = frozenset({str, int, bool, type(None)})


def plain(value: object) -> object:
    """Dicts, lists, strings, ints and bools (tuples become lists)."""
    if type(value) in _AS_IT_IS:  # most are, and there are a hundred thousand of them
        return value
    if isinstance(value, tuple):
        return [plain(one) for one in value]
    if dataclasses.is_dataclass(value):
        return {name: plain(getattr(value, name)) for name in written(value)}
    return str(value) if isinstance(value, StrEnum) else value


def written(value: object) -> tuple[str, ...]:
    """The names of the fields of a dataclass that are written."""
    names, sparse = _fields(type(value))  # type: ignore[arg-type] # a class is hashable; mypy asks it of what it makes
    if not sparse or all(getattr(value, name) != default for name, default in sparse.items()):
        return names
    return tuple(name for name in names if name not in sparse or getattr(value, name) != sparse[name])


@functools.cache
def _fields(kind: type) -> tuple[tuple[str, ...], Mapping[str, object]]:
    """All names, and of those that are left out at their defaults also these."""
    fields = dataclasses.fields(kind)
    sparse = {field.name: field.default for field in fields if field.metadata.get("sparse")}
    return tuple(field.name for field in fields), sparse
