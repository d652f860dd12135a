"""A snapshot without its secrets: for a file that goes to somebody else, or an answer to who may only read."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TypeVar, cast

from lbconfig.model.snapshot import Snapshot

Part = TypeVar("Part")  # a snapshot, or one of the dataclasses that it is made of


def without_secrets(part: Part, instead: str = "") -> Part:
    """Every field that is marked as a secret is empty; one that held something is `instead`."""
    return cast(Part, _cleared(part, instead))  # it replaces fields of each dataclass, and nothing by another class


def losing(old: Snapshot, new: Snapshot) -> list[str]:
    """The names of services that have secrets in `old`, and fewer of them in `new`."""
    after = {service.id: len(list(_secrets(service))) for service in new.services}
    return [one.name for one in old.services if one.id in after and len(list(_secrets(one))) > after[one.id]]


def with_key(new: Snapshot, now: Snapshot) -> Snapshot:
    """`new` with the private key of the web page that `now` has for the same certificate; without one it goes, too.

    What was exported without secrets has no key, and its certificate is of no use alone.
    """
    management, known = new.management, now.management
    if not management.certificate or management.key:
        return new
    same = management.certificate.rstrip() == known.certificate.rstrip()
    if same and known.key:
        return dataclasses.replace(new, management=dataclasses.replace(management, key=known.key))
    return dataclasses.replace(new, management=dataclasses.replace(management, certificate=""))


def has_secrets(snapshot: Snapshot) -> bool:
    return any(True for _ in _secrets(snapshot))


def _cleared(value: object, instead: str) -> object:
    if isinstance(value, tuple):
        return tuple(_cleared(entry, instead) for entry in value)
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    changes: dict[str, object] = {}
    for field in dataclasses.fields(value):
        if field.metadata.get("secret"):
            if getattr(value, field.name) != field.default:
                changes[field.name] = instead
        elif (now := _cleared(getattr(value, field.name), instead)) != getattr(value, field.name):
            changes[field.name] = now
    return dataclasses.replace(value, **changes) if changes else value


def _secrets(value: object) -> Iterator[object]:
    if isinstance(value, tuple):
        for entry in value:
            yield from _secrets(entry)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            inner = getattr(value, field.name)
            if not field.metadata.get("secret"):
                yield from _secrets(inner)
            elif inner != field.default:
                yield inner
