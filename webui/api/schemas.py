"""JSON Schema (2020-12) out of the types that the code has anyway: dataclasses, TypedDicts, enums, literals."""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from typing import Any

from lbconfig.model.snapshot import MAX_ITEMS, MAX_TEXT
from lbconfig.schema import RANGES, SENTENCES

REFERENCE = "#/components/schemas/"
PORT_BY_NAME = "A request may have the name of a service instead, such as https."
PLAIN = {int: "integer", bool: "boolean", float: "number", str: "string"}


class Components:
    """The schemas that have names, as they are met."""

    def __init__(self) -> None:
        self.schemas: dict[str, dict] = {}
        self._types: dict[str, object] = {}

    def of(self, hint: Any) -> dict:
        """The schema of a type; a reference where it has a name."""
        if isinstance(hint, Variant):
            return self._named(hint.name, hint, lambda: self._fields(hint.kind, hint))
        if isinstance(hint, Patch):
            return self._named(f"{hint.kind.__name__}Patch", hint, lambda: self._patch(hint.kind, hint.without))
        if hint is None or hint is type(None):
            return {"type": "null"}
        if hint in PLAIN:
            return {"type": PLAIN[hint]}
        if dataclasses.is_dataclass(hint) or typing.is_typeddict(hint):
            return self._named(hint.__name__, hint, lambda: self._fields(hint))
        if isinstance(hint, type) and issubclass(hint, enum.Enum):
            return self._named(hint.__name__, hint, lambda: {"type": "string", "enum": [str(one) for one in hint]})
        return self._composed(hint)

    def _composed(self, hint: object) -> dict:
        origin, inner = typing.get_origin(hint), typing.get_args(hint)
        if origin is typing.Literal:
            return {"type": "string", "enum": list(inner)}
        if origin in (types.UnionType, typing.Union):
            return {"anyOf": [self.of(one) for one in inner]}
        if origin in (tuple, list):
            return {"type": "array", "items": self.of(inner[0])}
        if origin is dict:
            return {"type": "object"} | ({} if inner[1] is Any else {"additionalProperties": self.of(inner[1])})
        if origin is typing.NotRequired:
            return self.of(inner[0])
        if hint is dict:
            return {"type": "object"}
        raise TypeError(f"no schema for {hint!r}")

    def _named(self, name: str, hint: object, make) -> dict:
        if self._types.setdefault(name, hint) != hint:
            raise TypeError(f"two types are called {name}")
        if name not in self.schemas:
            self.schemas[name] = {}  # before its fields: one of them may lead back here
            self.schemas[name] = make()
        return {"$ref": REFERENCE + name}

    def _fields(self, kind: type, variant: Variant | None = None) -> dict:
        """An object whose fields are all known: what a request has beside them is refused."""
        variant = variant or Variant("", kind)
        replaced = variant.replaced
        found = typing.get_type_hints(kind, include_extras=True)
        names = [name for name in found if name not in variant.without]
        schema = {
            "type": "object",
            "properties": {name: self._field(kind, name, replaced.get(name, found[name])) for name in names},
            "required": [name for name in names if name not in variant.optional and _required(kind, name, found[name])],
            "additionalProperties": False,
        }
        words = first_sentence(kind)
        return schema | ({"description": words} if words else {})

    def _patch(self, kind: type, without: tuple[str, ...]) -> dict:
        """RFC 7396: what is given replaces, null goes back to the default, a list is replaced as a whole."""
        properties = {}
        for name, hint in typing.get_type_hints(kind).items():
            if name not in without:
                given = Patch(hint) if isinstance(hint, type) and dataclasses.is_dataclass(hint) else hint
                properties[name] = {"anyOf": [self.of(given), {"type": "null"}]}
        return {"type": "object", "properties": properties, "additionalProperties": False}

    def _field(self, kind: type, name: str, hint: object) -> dict:
        schema = self.of(hint)
        if not dataclasses.is_dataclass(kind):
            return schema
        field = next(one for one in dataclasses.fields(kind) if one.name == name)
        if schema == {"type": "string"}:
            schema |= {"maxLength": field.metadata.get("longest", MAX_TEXT)}
        if schema.get("type") == "array":
            schema |= {"maxItems": MAX_ITEMS}
        place = f"{kind.__name__}.{name}"
        if place in RANGES:
            schema |= dict(zip(("minimum", "maximum"), RANGES[place], strict=True))
        said = [SENTENCES[place]] if place in SENTENCES else []
        said += [PORT_BY_NAME] if field.metadata.get("port") else []
        if said:
            schema |= {"description": " ".join(said)}
        if isinstance(field.default, str | int) and "$ref" not in schema:
            schema |= {"default": field.default}
        return schema


@dataclasses.dataclass(frozen=True)
class Variant:
    """A type with other fields: `id` is not given for something new, and may be left out where it is known."""

    name: str
    kind: type
    without: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    other: tuple[tuple[str, object], ...] = ()  # (field, its type here)

    @property
    def replaced(self) -> dict[str, object]:
        return dict(self.other)


@dataclasses.dataclass(frozen=True)
class Patch:
    """A JSON merge patch of that dataclass."""

    kind: type
    without: tuple[str, ...] = ()


def _required(kind: type, name: str, hint: object) -> bool:
    if typing.is_typeddict(kind):
        return typing.get_origin(hint) is not typing.NotRequired
    return next(one for one in dataclasses.fields(kind) if one.name == name).default is dataclasses.MISSING


def first_sentence(kind: type) -> str:
    """Of the docstring; a dataclass without one has its signature there."""
    text = (kind.__doc__ or "").strip()
    return "" if text.startswith(f"{kind.__name__}(") or text.startswith("dict(") else text.partition("\n\n")[0]
