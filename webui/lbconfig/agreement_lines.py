"""What the two boxes of a pair say to each other: one line of JSON each, and everything in it is checked.

A line comes over a network, from a box that may run other software or be somebody else's. So what is not exactly of
the shape is refused whole, with the name of the field, and nothing of it is kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from lbconfig.agreement import KNOWN, REFUSALS, Job, Lineage, Part, Revision, Said, Stage
from lbconfig.model.problem import quote
from lbconfig.model.reading import SnapshotError, build

VERSION: Final = 1
MAX_LINE = 8 << 20  # bytes; a snapshot of ten thousand servers has three million
MAX_NUMBER = 2**53  # what every JSON reader takes
LONGEST_WAIT = 24 * 3600  # seconds

ID = re.compile(r"[0-9a-f]{32}")
DIGEST = re.compile(r"[0-9a-f]{64}")


class LineError(ValueError):
    """A line that is none; the text names the field."""


@dataclass(frozen=True, slots=True)
class Refusal:
    id: str
    why: str


@dataclass(frozen=True, slots=True)
class Change:
    """A job, without what only its own box needs."""

    part: Part
    stage: Stage
    revision: Revision
    within: int  # seconds
    together: bool


@dataclass(frozen=True, slots=True)
class State:
    """The state of a box. A lineage is long and changes seldom: it is there where it differs from the last line's."""

    epoch: int
    number: int
    job: Change | None
    refused: tuple[Refusal, ...]
    proved: str
    chosen: bool
    lineage: tuple[Revision, ...] | None = None


@dataclass(frozen=True, slots=True)
class Fetch:
    """The other box is asked for the snapshot of a revision."""

    id: str


@dataclass(frozen=True, slots=True)
class Content:
    """The snapshot of a revision, as plain data; whoever takes it compares its digest."""

    id: str
    snapshot: Mapping[str, object]


Line = Said | Fetch | Content


class Writer:
    """Makes the lines of one connection."""

    def __init__(self, pair: str, box: int) -> None:
        self._head = {"version": VERSION, "pair": pair, "box": box}
        self._lineage: Lineage | None = None

    def line(self, what: Line) -> bytes:
        match what:
            case Said():
                kind, body = "state", self._state(what)
            case Fetch():
                kind, body = "fetch", {"id": what.id}
            case Content():
                kind, body = "content", {"id": what.id, "snapshot": what.snapshot}
        return json.dumps(self._head | {"kind": kind, "body": body}, separators=(",", ":")).encode() + b"\n"

    def _state(self, said: Said) -> dict[str, object]:
        job = said.job
        body: dict[str, object] = {
            "epoch": said.epoch,
            "number": said.number,
            "job": job
            and {
                "part": job.part,
                "stage": job.stage,
                "revision": _plain(job.revision),
                "within": round(job.within),
                "together": job.together,
            },
            "refused": [{"id": id, "why": why} for id, why in said.refused],
            "proved": said.proved,
            "chosen": said.chosen,
        }
        if said.lineage != self._lineage:
            self._lineage = said.lineage
            body["lineage"] = [_plain(one) for one in said.lineage]
        return body


def _plain(revision: Revision) -> dict[str, str]:
    return {"id": revision.id, "digest": revision.digest}


class Reader:
    """Reads the lines of one connection; `box` is the one that they must come from."""

    def __init__(self, pair: str, box: int) -> None:
        self._pair, self._box = pair, box
        self._lineage: Lineage | None = None

    def line(self, line: bytes) -> Line:
        """Raises LineError; a line that is refused changes nothing for the next one."""
        data = _object("line", _json(line))
        if set(data) != {"version", "pair", "box", "kind", "body"}:
            raise LineError("a line has version, pair, box, kind and body")
        for name, wanted in (("version", VERSION), ("pair", self._pair), ("box", self._box)):
            if type(data[name]) is not type(wanted) or data[name] != wanted:
                raise LineError(f"{name}: must be {wanted}, not {quote(str(data[name])[:80])}")
        body = _object("body", data["body"])
        try:
            match data["kind"]:
                case "state":
                    return self._said(build(State, body))
                case "fetch":
                    return _fetch(build(Fetch, body))
                case "content":
                    return _content(body)
        except SnapshotError as error:
            raise LineError(f"{error.path or 'body'}: {error.message}") from None
        raise LineError(f"kind: must be state, fetch or content, not {quote(str(data['kind'])[:80])}")

    def _said(self, state: State) -> Said:
        for name in ("epoch", "number"):
            if not 0 <= getattr(state, name) <= MAX_NUMBER:
                raise LineError(f"{name}: must be 0 to {MAX_NUMBER}")
        lineage = self._lineage if state.lineage is None else state.lineage
        if not lineage:
            raise LineError("lineage: is missing")
        if len(lineage) > KNOWN:
            raise LineError(f"lineage: has more than {KNOWN} revisions")
        for one in state.lineage or ():
            _revision("lineage", one)
        if len({one.id for one in lineage}) < len(lineage):
            raise LineError("lineage: has a revision twice")
        if len(state.refused) > REFUSALS:
            raise LineError(f"refused: has more than {REFUSALS} entries")
        for refusal in state.refused:
            _id("refused", refusal.id)
        if state.proved:
            _id("proved", state.proved)
        job = _job(state.job, lineage) if state.job else None
        self._lineage = lineage
        refused = tuple((one.id, one.why) for one in state.refused)
        return Said(state.epoch, state.number, lineage, job, refused, state.proved, state.chosen)


def _job(change: Change, lineage: Lineage) -> Job:
    _revision("job.revision", change.revision)
    if not 0 <= change.within <= LONGEST_WAIT:
        raise LineError(f"job.within: must be 0 to {LONGEST_WAIT} seconds")
    after = (*lineage, change.revision)[-KNOWN:]
    return Job(change.part, change.revision, after, change.stage, 0.0, change.within, change.together)


def _fetch(fetch: Fetch) -> Fetch:
    _id("id", fetch.id)
    return fetch


def _content(body: Mapping[str, object]) -> Content:
    if set(body) != {"id", "snapshot"}:
        raise LineError("body: a content has id and snapshot")
    fetch = _fetch(build(Fetch, {"id": body["id"]}))
    return Content(fetch.id, _object("snapshot", body["snapshot"]))


def _json(line: bytes) -> object:
    if len(line) > MAX_LINE:
        raise LineError(f"the line has more than {MAX_LINE} bytes")
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        raise LineError("the line is not JSON") from None


def _object(name: str, data: object) -> Mapping[str, object]:
    if not isinstance(data, dict):
        raise LineError(f"{name}: must be an object")
    return data


def _id(name: str, text: str) -> None:
    if not ID.fullmatch(text):
        raise LineError(f"{name}: must be the id of a revision, not {quote(text[:80])}")


def _revision(name: str, revision: Revision) -> None:
    _id(f"{name}.id", revision.id)
    if not DIGEST.fullmatch(revision.digest):
        raise LineError(f"{name}.digest: must be 64 hexadecimal digits, not {quote(revision.digest[:80])}")
