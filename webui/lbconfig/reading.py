"""From plain data, as JSON has it, to dataclasses: every type is checked, and what is wrong is named by its path.

It knows the shape of a dataclass and nothing of what it is about.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import types
import typing
from collections.abc import Mapping
from enum import StrEnum

MAX_TEXT = 1024  # characters; a field that needs more says so ("longest"), and may have several lines
MAX_ITEMS = 20_000  # entries of one list; the kernel takes more, a web page does not


class SnapshotError(ValueError):
    """The data has not the shape of a snapshot. `path` names the place, e.g. "services[0].port"."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path or 'snapshot'}: {message}")
        self.path = path
        self.message = message


def build(kind: type, data: object, path: str = ""):
    """One of that dataclass. Raises SnapshotError."""
    if not isinstance(data, Mapping):
        raise SnapshotError(path, f"must be an object, not {_type_name(data)}")
    hints = typing.get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}
    for key in data:
        if key not in fields:
            raise SnapshotError(_join(path, _unknown(key)), "is not a known field")
    values = {}
    for name, field in fields.items():
        if name in data:
            longest = field.metadata.get("longest")
            read = _convert if longest is None else functools.partial(_lines, longest=longest)
            values[name] = read(hints[name], data[name], _join(path, name))
        elif field.default is dataclasses.MISSING:
            raise SnapshotError(_join(path, name), "is missing")
    return kind(**values)


def _unknown(key: object) -> str:
    """Somebody's key as a name in a path: short, never empty, and nothing in it acts."""
    return re.sub(r"[^A-Za-z0-9_-]", "?", str(key)[:80]) or "?"


def _convert(hint: object, value: object, path: str):
    if typing.get_origin(hint) is types.UnionType:  # of a type and None
        return None if value is None else _convert(typing.get_args(hint)[0], value, path)
    if typing.get_origin(hint) is tuple:
        return _convert_list(typing.get_args(hint)[0], value, path)
    if dataclasses.is_dataclass(hint):
        return build(hint, value, path)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        names = [str(member) for member in hint]
        if not isinstance(value, str) or value not in names:
            raise SnapshotError(path, f"must be one of {', '.join(names)}")
        return hint(value)
    if type(value) is not hint:  # exactly: True is no int
        raise SnapshotError(path, f"must be {_TYPE_WORDS[hint]}, not {_type_name(value)}")
    if isinstance(value, str) and len(value) > MAX_TEXT:
        raise SnapshotError(path, f"is longer than {MAX_TEXT} characters")
    if isinstance(value, str) and not value.isprintable():
        raise SnapshotError(path, "contains a character that cannot be printed")
    return value


def _lines(hint: object, value: object, path: str, longest: int) -> str:
    """A text of several lines."""
    if type(value) is not hint:
        raise SnapshotError(path, f"must be {_TYPE_WORDS[hint]}, not {_type_name(value)}")
    if len(value) > longest:
        raise SnapshotError(path, f"is longer than {longest} characters")
    if not value.replace("\n", "").isprintable():
        raise SnapshotError(path, "contains a character that cannot be printed")
    return value


def _convert_list(item: type, value: object, path: str) -> tuple:
    if not isinstance(value, list | tuple):
        raise SnapshotError(path, f"must be a list, not {_type_name(value)}")
    if len(value) > MAX_ITEMS:
        raise SnapshotError(path, f"has more than {MAX_ITEMS} entries")
    return tuple(_convert(item, entry, f"{path}[{index}]") for index, entry in enumerate(value))


_TYPE_WORDS = {str: "text", int: "a whole number", bool: "true or false"}


def _type_name(value: object) -> str:
    if value is None:
        return "nothing"
    words = {str: "text", int: "a number", float: "a number with a point", bool: "true or false"}
    return words.get(type(value), "a list" if isinstance(value, list | tuple) else "an object")


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
