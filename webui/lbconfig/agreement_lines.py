"""What the two boxes of a pair agree by: one line of JSON each, and everything in it is checked.

A line comes over a network, from a box that may run other software or be somebody else's. So what is not exactly of
the shape is refused whole, with the name of the field, and nothing of it is kept. A long line is packed: while it is
on its way, no other one is.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final, Generic, Never, TypeVar

from lbconfig.agreement import ID_LENGTH, KNOWN, REFUSALS, Job, Lineage, Part, Revision, Said, Stage
from lbconfig.model.problem import quote
from lbconfig.model.reading import SnapshotError, build

VERSION: Final = 1
MAX_LINE = 8 << 20  # bytes, packed or not; a snapshot of ten thousand servers has two million
LONG = 16 << 10  # bytes of a line that is worth packing
PACKED: Final = "packed"
FAST = 1  # of zlib's levels: half as large again as by the best one, in a tenth of its time
MAX_NUMBER = 2**53  # what every JSON reader takes
MAX_REVISION = 10**9
LONGEST_WAIT = 24 * 3600  # seconds
LONGEST_TEXTS = {"desk": 253, "user": 150, "comment": 1000, "apply": 64}  # characters

ID = re.compile(rf"[0-9a-f]{{{ID_LENGTH}}}")
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
    """The other box is asked for the snapshot of a revision. `whole`: with all services, none by its name alone."""

    id: str
    whole: bool


@dataclass(frozen=True, slots=True)
class About:
    """What goes with the snapshot of a revision."""

    id: str
    files: str  # digest of all files that the sender makes of it, for both boxes
    number: int  # by which people know it
    desk: str  # the box at which it was applied
    user: str
    comment: str
    apply: str  # the name of the apply, while it is under way
    secret: str  # a hash of what proves that its admin reaches the box; "": nobody is asked


@dataclass(frozen=True, slots=True)
class Content:
    """The snapshot of a revision, as plain data; whoever takes it compares its digest.

    It may have the name of a service in its place (canonical.named); `services` are those that may not be known there.
    """

    about: About
    snapshot: Mapping[str, object]
    services: Sequence[Mapping[str, object]] = ()


Line = Said | Fetch | Content
KINDS = ("state", "fetch", "content")
Plain = dict[str, object]
Kind = TypeVar("Kind")
Other = TypeVar("Other")
Read = Callable[[Mapping[str, object]], Other]  # of the body of a line; raises LineError
NO_OTHERS: Mapping[str, Read[Never]] = {}


class Writer:
    """Makes the lines of one connection."""

    def __init__(self, pair: str, box: int) -> None:
        self._head = {"version": VERSION, "pair": pair, "box": box}
        self._lineage: Lineage | None = None

    def line(self, what: Line) -> bytes:
        match what:
            case Said():
                known, self._lineage = self._lineage, what.lineage
                return self.other("state", plain_said(what, known))
            case Fetch():
                return self.other("fetch", asdict(what))
            case Content():
                return self.other("content", plain_content(what))

    def other(self, kind: str, body: Plain) -> bytes:
        """A line of a kind of its own."""
        line = self._line(kind, body)
        return self._line(PACKED, {"zlib": _packed(line)}) if len(line) > LONG and _shrinks(line) else line

    def _line(self, kind: str, body: Plain) -> bytes:
        return json.dumps(self._head | {"kind": kind, "body": body}, separators=(",", ":")).encode() + b"\n"


def plain_content(content: Content) -> Plain:
    return {"about": asdict(content.about), "snapshot": content.snapshot, "services": [*content.services]}


def plain_said(said: Said, known: Lineage | None) -> Plain:
    """As JSON has it; without its lineage, where that is `known`."""
    job = said.job
    body: Plain = {
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
    if said.lineage != known:
        body["lineage"] = [_plain(one) for one in said.lineage]
    return body


def _plain(revision: Revision) -> dict[str, str]:
    return {"id": revision.id, "digest": revision.digest}


class Reader(Generic[Other]):
    """Reads the lines of one connection; `box` is the one that they must come from.

    `others`: what makes of the bodies of other kinds of lines what they are.
    """

    def __init__(self, pair: str, box: int, others: Mapping[str, Read[Other]] = NO_OTHERS) -> None:
        self._pair, self._box = pair, box
        self._others = others
        self._lineage: Lineage | None = None

    def line(self, line: bytes) -> Line | Other:
        """Raises LineError; a line that is refused changes nothing for the next one."""
        kind, body = self._opened(line)
        if kind == PACKED:
            kind, body = self._opened(_unpacked(body))
        match kind:
            case "state":
                said = read_said(body, self._lineage)
                self._lineage = said.lineage
                return said
            case "fetch":
                return read_fetch(body)
            case "content":
                return read_content(body)
            case str() if kind in self._others:
                return self._others[kind](body)
        kinds = [*KINDS, *self._others]
        words = f"{', '.join(kinds[:-1])} or {kinds[-1]}"
        raise LineError(f"kind: must be {words}, not {quote(str(kind)[:80])}")

    def _opened(self, line: bytes) -> tuple[object, Mapping[str, object]]:
        """Kind and body of a line from that box of that pair."""
        data = _object("line", _json(line))
        if set(data) != {"version", "pair", "box", "kind", "body"}:
            raise LineError("a line has version, pair, box, kind and body")
        for name, wanted in (("version", VERSION), ("pair", self._pair), ("box", self._box)):
            if type(data[name]) is not type(wanted) or data[name] != wanted:
                raise LineError(f"{name}: must be {wanted}, not {quote(str(data[name])[:80])}")
        return data["kind"], _object("body", data["body"])


def read_said(body: Mapping[str, object], known: Lineage | None) -> Said:
    """What plain_said() made; `known`: the lineage that a body without one has. Raises LineError."""
    state = _build(State, body)
    for name in ("epoch", "number"):
        if not 0 <= getattr(state, name) <= MAX_NUMBER:
            raise LineError(f"{name}: must be 0 to {MAX_NUMBER}")
    lineage = known if state.lineage is None else state.lineage
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
    refused = tuple((one.id, one.why) for one in state.refused)
    return Said(state.epoch, state.number, lineage, job, refused, state.proved, state.chosen)


def _job(change: Change, lineage: Lineage) -> Job:
    _revision("job.revision", change.revision)
    if not 0 <= change.within <= LONGEST_WAIT:
        raise LineError(f"job.within: must be 0 to {LONGEST_WAIT} seconds")
    after = (*lineage, change.revision)[-KNOWN:]
    return Job(change.part, change.revision, after, change.stage, 0.0, change.within, change.together)


def read_fetch(body: Mapping[str, object]) -> Fetch:
    fetch = _build(Fetch, body)
    _id("id", fetch.id)
    return fetch


def read_content(body: Mapping[str, object]) -> Content:
    if set(body) != {"about", "snapshot", "services"}:
        raise LineError("body: a content has about, snapshot and services")
    about = _build(About, body["about"])
    _id("about.id", about.id)
    _digest("about.files", about.files)
    if about.secret:
        _digest("about.secret", about.secret)
    if not 1 <= about.number <= MAX_REVISION:
        raise LineError(f"about.number: must be 1 to {MAX_REVISION}")
    for name, longest in LONGEST_TEXTS.items():
        if len(getattr(about, name)) > longest:
            raise LineError(f"about.{name}: has more than {longest} characters")
    services = body["services"]
    if not isinstance(services, list):
        raise LineError("services: must be a list")
    return Content(about, _object("snapshot", body["snapshot"]), [_object("services", one) for one in services])


def _build(kind: type[Kind], body: object) -> Kind:
    try:
        return build(kind, body)
    except SnapshotError as error:
        raise LineError(f"{error.path or 'body'}: {error.message}") from None


def _json(line: bytes) -> object:
    if len(line) > MAX_LINE:
        raise LineError(f"the line has more than {MAX_LINE} bytes")
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        raise LineError("the line is not JSON") from None


def _shrinks(line: bytes) -> bool:
    """Whether its middle does. What is packed already, as a piece of a bundle, is not worth the time.

    The beginning of a configuration has nothing but digests.
    """
    begin = (len(line) - LONG) // 2
    return len(zlib.compress(line[begin : begin + LONG], FAST)) < LONG / 2


def _packed(line: bytes) -> str:
    return base64.b64encode(zlib.compress(line, FAST)).decode()


def _unpacked(body: Mapping[str, object]) -> bytes:
    """The line that _packed() was given, of MAX_LINE bytes at most."""
    text = body.get("zlib")
    if set(body) != {"zlib"} or not isinstance(text, str):
        raise LineError("body: a packed line has zlib, a text")
    opened = zlib.decompressobj()
    try:
        line = opened.decompress(binascii.a2b_base64(text, strict_mode=True), MAX_LINE + 1)
    except (ValueError, zlib.error):
        raise LineError("zlib: is not base64 of what zlib has packed") from None
    if len(line) <= MAX_LINE and (not opened.eof or opened.unused_data):
        raise LineError("zlib: has something missing, or more, at its end")
    return line


def _object(name: str, data: object) -> Mapping[str, object]:
    if not isinstance(data, dict):
        raise LineError(f"{name}: must be an object")
    return data


def _id(name: str, text: str) -> None:
    if not ID.fullmatch(text):
        raise LineError(f"{name}: must be the id of a revision, not {quote(text[:80])}")


def _revision(name: str, revision: Revision) -> None:
    _id(f"{name}.id", revision.id)
    _digest(f"{name}.digest", revision.digest)


def _digest(name: str, text: str) -> None:
    if not DIGEST.fullmatch(text):
        raise LineError(f"{name}: must be 64 hexadecimal digits, not {quote(text[:80])}")
