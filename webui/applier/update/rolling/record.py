"""The update of both boxes as it is kept on the disk of each, and as one box tells the other. Read by both versions.

A version may be older than the one that wrote it: it leaves out what it does not know, and what is missing is as
usual.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import TypeVar

from applier.base import durable
from applier.update.rolling.course import Course, Half
from lbconfig.model.reading import SnapshotError, build

MOST_FAULTS = 100  # of a box
LONGEST = 500  # characters of a sentence that is told to the other box
LARGEST = 1 << 40  # bytes of a bundle
Kind = TypeVar("Kind")

_ID = re.compile(r"[0-9a-f]{32}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


class Wrong(ValueError):
    """It is none; the text names the field."""


def load(path: Path) -> Course | None:
    """None where there is none, or none that can be read."""
    try:
        data = json.loads(path.read_bytes())
        return read_course(data) if isinstance(data, dict) else None
    except (OSError, ValueError, RecursionError):
        return None


def save(path: Path, course: Course) -> None:
    """Raises OSError."""
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    durable.replace(path, json.dumps(asdict(course)).encode() + b"\n")


def read_course(data: Mapping[str, object]) -> Course:
    """Raises Wrong."""
    course = _built(Course, data)
    if not _ID.fullmatch(course.id):
        raise Wrong("id: must be 32 hexadecimal digits")
    if not _DIGEST.fullmatch(course.digest):
        raise Wrong("digest: must be 64 hexadecimal digits")
    if course.desk not in (0, 1):
        raise Wrong("desk: must be 0 or 1")
    if not 0 < course.size <= LARGEST:
        raise Wrong(f"size: must be 1 to {LARGEST}")
    return course


def read_half(data: Mapping[str, object]) -> Half:
    """Raises Wrong."""
    half = _built(Half, data)
    if len(half.faults) > MOST_FAULTS:
        raise Wrong(f"faults: has more than {MOST_FAULTS} entries")
    if not 0 <= half.received <= LARGEST:
        raise Wrong(f"received: must be 0 to {LARGEST}")
    if not 0 <= half.percent <= 100:
        raise Wrong("percent: must be 0 to 100")
    return half


def line(text: str) -> str:
    """What the other box takes as a text, whatever a program of this one has said."""
    words = " ".join(text.split())
    return "".join(letter if letter.isprintable() else "?" for letter in words)[:LONGEST]


def _built(kind: type[Kind], data: Mapping[str, object]) -> Kind:
    known = {field.name for field in fields(kind)}  # type: ignore[arg-type] # both are dataclasses
    try:
        return build(kind, {name: value for name, value in data.items() if name in known})
    except SnapshotError as error:
        raise Wrong(f"{error.path or 'body'}: {error.message}") from None
