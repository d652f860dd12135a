"""From plain data, as JSON has it, to dataclasses: every type is checked, and what is wrong is named by its path.

It knows the shape of a dataclass and nothing of what it is about.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import types
import typing
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TypeVar

from lbconfig.model import ports
from lbconfig.model.problem import UNKNOWN_FIELD, UNPRINTABLE, quote

Kind = TypeVar("Kind")
Reader = Callable[[object, str], object]  # of a value at its path
Fits = Callable[[object], bool]  # whether a value is one that a reader gives

MAX_TEXT = 1024  # characters; a field that needs more says so ("longest"), and may have several lines
MAX_ITEMS = 20_000  # entries of one list; the kernel takes more, a web page does not


class SnapshotError(ValueError):
    """The data has not the shape of a snapshot. `path` names the place, e.g. "services[0].port"."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path or 'snapshot'}: {message}")
        self.path = path
        self.message = message


def build(kind: type[Kind], data: object, path: str = "", exact: bool = False) -> Kind:
    """One of that dataclass; `exact`: no port may be spelt in another way than it is kept. Raises SnapshotError."""
    if not isinstance(data, Mapping):
        raise SnapshotError(path, f"must be an object, not {_type_name(data)}")
    fields = _fields(kind, exact)  # type: ignore[arg-type] # a class is hashable; mypy asks it of what it makes
    for key in data:
        if key not in fields:
            raise SnapshotError(_join(path, _unknown(key)), UNKNOWN_FIELD)
    values: dict[str, object] = {}
    for name, (read, needed) in fields.items():
        if name in data:
            values[name] = read(data[name], _join(path, name))
        elif needed:
            raise SnapshotError(_join(path, name), "is missing")
    return kind(**values)


@functools.cache  # of ten thousand real servers each would look its types up again
def _fields(kind: type, exact: bool) -> dict[str, tuple[Reader, bool]]:
    """Of each field: how its value is read, and whether it must be there."""
    hints = typing.get_type_hints(kind)
    found: dict[str, tuple[Reader, bool]] = {}
    for field in dataclasses.fields(kind):
        read = _reader(hints[field.name], exact)
        if "longest" in field.metadata:
            read = _of_text(field.metadata)
        elif field.metadata.get("port") and not exact:
            read = _port
        elif field.metadata.get("ports") and not exact:
            read = _ports
        found[field.name] = (read, field.default is dataclasses.MISSING)
    return found


def has_shape(kind: type, value: object) -> bool:
    """Whether the value is one that `build` could have made.

    It takes a fraction of the time of writing the value out and building it again, and names nothing.
    """
    return type(value) is kind and all(fits(getattr(value, name)) for name, fits in _shape(kind))  # type: ignore[arg-type] # as in build


@functools.cache
def _shape(kind: type) -> tuple[tuple[str, Fits], ...]:
    hints = typing.get_type_hints(kind)
    return tuple((field.name, _fits(hints[field.name], field.metadata)) for field in dataclasses.fields(kind))


def _fits(hint: object, about: Mapping[str, typing.Any]) -> Fits:
    """`about`: the metadata of the field."""
    if typing.get_origin(hint) is types.UnionType:  # of a type and None
        inner = _fits(typing.get_args(hint)[0], about)
        return lambda value: value is None or inner(value)
    if typing.get_origin(hint) is tuple:
        kinds = typing.get_args(hint)
        entry, lengths = _fits(kinds[0], {}), range(MAX_ITEMS + 1)
        if kinds[-1] is not Ellipsis:
            lengths = range(len(kinds), len(kinds) + 1)
        return lambda value: type(value) is tuple and len(value) in lengths and all(map(entry, value))
    if not isinstance(hint, type):
        raise TypeError(f"{hint} is no type that a field can have")
    if dataclasses.is_dataclass(hint):
        return functools.partial(has_shape, hint)
    if hint is not str:
        return lambda value: type(value) is hint
    read = _of_text(about)

    def fits(value: object) -> bool:
        try:
            read(value, "")
        except SnapshotError:
            return False
        return True

    return fits


def _of_text(about: Mapping[str, typing.Any]) -> Reader:
    """The reader of a text."""
    if "longest" not in about:
        return _text
    blanks = "\n\t" if about.get("tabs") else "\n"
    return functools.partial(_lines, longest=about["longest"], blanks=blanks)


def _unknown(key: object) -> str:
    """Somebody's key as a name in a path: short, never empty, and nothing in it acts."""
    return re.sub(r"[^A-Za-z0-9_-]", "?", str(key)[:80]) or "?"


def _reader(hint: object, exact: bool) -> Reader:
    if typing.get_origin(hint) is types.UnionType:  # of a type and None
        return functools.partial(_or_nothing, _reader(typing.get_args(hint)[0], exact))
    if typing.get_origin(hint) is tuple:
        kinds = typing.get_args(hint)
        count = None if kinds[-1] is Ellipsis else len(kinds)
        return functools.partial(_list, _reader(kinds[0], exact), count)
    if not isinstance(hint, type):
        raise TypeError(f"{hint} is no type that a field can have")
    if dataclasses.is_dataclass(hint):
        return functools.partial(build, hint, exact=exact)
    if issubclass(hint, StrEnum):
        return functools.partial(_member, {str(member): member for member in hint})
    return _text if hint is str else functools.partial(_exactly, hint)


def _or_nothing(read: Reader, value: object, path: str) -> object:
    return None if value is None else read(value, path)


def _list(read: Reader, count: int | None, value: object, path: str) -> tuple[object, ...]:
    """`count`: of entries that there must be; None: any number."""
    if not isinstance(value, list | tuple):
        raise SnapshotError(path, f"must be a list, not {_type_name(value)}")
    if count is not None and len(value) != count:
        raise SnapshotError(path, f"must have exactly {count} entries, and has {len(value)}")
    if len(value) > MAX_ITEMS:
        raise SnapshotError(path, f"has more than {MAX_ITEMS} entries")
    return tuple(read(entry, f"{path}[{index}]") for index, entry in enumerate(value))


def _member(members: dict[str, StrEnum], value: object, path: str) -> StrEnum:
    if not isinstance(value, str) or value not in members:
        raise SnapshotError(path, f"must be one of {', '.join(members)}")
    return members[value]


def _exactly(kind: type[Kind], value: object, path: str) -> Kind:
    if type(value) is not kind:  # exactly: True is no int
        raise SnapshotError(path, wrong_type(kind, value))
    return value


def _text(value: object, path: str) -> str:
    text = _exactly(str, value, path)
    if len(text) > MAX_TEXT:
        raise SnapshotError(path, f"is longer than {MAX_TEXT} characters")
    if not text.isprintable():
        raise SnapshotError(path, UNPRINTABLE)
    return text


def _port(value: object, path: str) -> int:
    """A number, or the name of a service."""
    if not isinstance(value, str):
        return _exactly(int, value, path)
    named = ports.NAMES.get(value.lower())
    if named is None:
        words = f"must be a whole number or the name of a service such as https, not {quote(value)}"
        raise SnapshotError(path, words)
    return named


def _ports(value: object, path: str) -> str:
    """In the usual spelling; what is no list of ports stays for validation to refuse."""
    text = _text(value, path)
    try:
        return ports.text(ports.parse(text))
    except ValueError:
        return text


def _lines(value: object, path: str, longest: int, blanks: str) -> str:
    """A text of several lines."""
    text = _exactly(str, value, path)
    if len(text) > longest:
        raise SnapshotError(path, f"is longer than {longest} characters")
    if not text.translate(dict.fromkeys(map(ord, blanks))).isprintable():
        raise SnapshotError(path, UNPRINTABLE)
    return text


def wrong_type(kind: type[object], value: object) -> str:
    """What is wrong with a value that should be text, a whole number, or true or false."""
    return f"must be {_TYPE_WORDS[kind]}, not {_type_name(value)}"


_TYPE_WORDS: dict[type[object], str] = {str: "text", int: "a whole number", bool: "true or false"}


def _type_name(value: object) -> str:
    if value is None:
        return "nothing"
    words = {str: "text", int: "a number", float: "a number with a point", bool: "true or false"}
    return words.get(type(value), "a list" if isinstance(value, list | tuple) else "an object")


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
