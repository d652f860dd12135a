"""A snapshot without its secrets: for a file that goes to somebody else."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from lbconfig.snapshot import Snapshot


def without_secrets(snapshot: Snapshot) -> Snapshot:
    """Every field that is marked as a secret is empty."""
    return _cleared(snapshot)


def losing(old: Snapshot, new: Snapshot) -> list[str]:
    """The names of services that have secrets in `old`, and fewer of them in `new`."""
    after = {service.id: len(list(_secrets(service))) for service in new.services}
    return [one.name for one in old.services if one.id in after and len(list(_secrets(one))) > after[one.id]]


def has_secrets(snapshot: Snapshot) -> bool:
    return any(True for _ in _secrets(snapshot))


def _cleared(value):
    if isinstance(value, tuple):
        return tuple(_cleared(entry) for entry in value)
    if not dataclasses.is_dataclass(value):
        return value
    changes = {}
    for field in dataclasses.fields(value):
        if field.metadata.get("secret"):
            changes[field.name] = field.default
        elif (now := _cleared(getattr(value, field.name))) != getattr(value, field.name):
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
