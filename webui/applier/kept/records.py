"""What the files of a generation hold, as text: its record, the second copy, and the lineage of a pair."""

from __future__ import annotations

import hashlib
import json
import re
from typing import NamedTuple, NotRequired, TypedDict, cast

from applier.wire.shapes import Outcome
from lbconfig.agreement import Lineage, Revision
from lbconfig.pair import BOXES


class Damaged(Exception):
    """A generation that is not there, or not as it was written."""


class Descent(TypedDict):
    """What both boxes of a pair know a revision by, and where it comes from."""

    id: str
    digest: str
    parent: str  # digest of what was confirmed before it
    number: int  # that it has at the desk
    desk: str  # host name of the box at which it was applied


class Meta(TypedDict):
    """The record of a generation, as meta.json has it."""

    number: NotRequired[int]
    user: str
    comment: str
    client: NotRequired[str]
    created: str
    outcome: Outcome
    seconds: float
    snapshot_digest: str
    files_digest: str
    box: NotRequired[int]  # of a pair: which of its boxes this one was
    pair: NotRequired[Descent]


class Copy(NamedTuple):
    """The second copy of a confirmed generation."""

    number: int
    text: str  # of its snapshot
    box: int | None  # of a pair, which of its boxes this one is


def meta(number: int, text: str) -> Meta:
    """The record of this generation; Damaged where it is none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise Damaged(f"meta.json of revision {number} is damaged") from None
    kinds = {"user": str, "comment": str, "created": str, "outcome": str, "seconds": float}
    kinds |= {"snapshot_digest": str, "files_digest": str}
    whole = isinstance(found, dict) and all(isinstance(found.get(name), kind) for name, kind in kinds.items())
    if not whole or found.get("box") not in (None, *BOXES):
        raise Damaged(f"meta.json of revision {number} is damaged")
    if "pair" in found and not _is_descent(found["pair"]):
        raise Damaged(f"meta.json of revision {number} is damaged")
    return cast(Meta, found)  # the fields that anybody asks for are there, and of their types


def _is_descent(data: object) -> bool:
    kinds = {"id": str, "digest": str, "parent": str, "number": int, "desk": str}
    return isinstance(data, dict) and all(isinstance(data.get(name), kind) for name, kind in kinds.items())


_LINE = re.compile(r"([0-9a-f]{32}) ([0-9a-f]{64})")


def lineage_text(lineage: Lineage) -> bytes:
    return "".join(f"{one.id} {one.digest}\n" for one in lineage).encode()


def lineage(text: str) -> list[Revision]:
    """Of the lines that can be read."""
    lines = [_LINE.fullmatch(line) for line in text.splitlines()]
    return [Revision(*line.groups()) for line in lines if line]


_COPY = re.compile(
    rb'\{(?:"box":(?P<box>[01]),)?"digest":"(?P<digest>[0-9a-f]{64})",'
    rb'"number":(?P<number>\d{1,9}),"snapshot":(?P<text>.*)\}\n',
    re.S,
)


def second_copy(number: int, text: str, box: int | None) -> bytes:
    """`text`: the canonical one, which is JSON as it stands. `box`: of a pair, which of its boxes this one is."""
    place = "" if box is None else f'"box":{box},'
    return f'{{{place}"digest":"{sha256(text.encode())}","number":{number},"snapshot":{text}}}\n'.encode()


def copied(data: bytes) -> Copy | None:
    """What a second copy holds, if it is as it was written."""
    found = _COPY.fullmatch(data)
    if found is None or sha256(found["text"]).encode() != found["digest"]:
        return None
    return Copy(int(found["number"]), found["text"].decode(), int(found["box"]) if found["box"] else None)


def as_json(data: object) -> bytes:
    return json.dumps(data, sort_keys=True, indent=2, ensure_ascii=False).encode() + b"\n"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
