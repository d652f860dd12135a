"""Numbered folders of what was applied, and which of them is confirmed.

    generations/000012/snapshot.json    what was applied for
                       files/<name>     what was rendered from it, as the admin reviewed it
                       meta.json        who, when, outcome, and the digests of the two above
                       steps.jsonl      one line for each step that ended
    confirmed -> generations/000012     what the next boot loads; replaced in one piece
    confirmed.json                      the same snapshot once more, should that folder be damaged
    lineage                             in a pair: the revisions that led to the newest one, a line each
    last-number                         so that no number is ever used twice

A folder is built under another name, synced, and renamed: it is there as a whole or not at all. Everything that
the disk may refuse for lack of space is written before the one rename that confirms.

In a pair a revision has an identity that both boxes know it by, in meta.json. What has none, as it was made while the
box was alone, has one that is made of its content. `lineage` may be of a revision that was never confirmed: what counts
of it is what comes before the confirmed one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NotRequired, TypedDict, cast

from applier.base import durable
from applier.kept.faults import now
from applier.wire.shapes import GenerationEntry, Outcome, StepStatus
from lbconfig import migrate
from lbconfig.agreement import ID_LENGTH, Lineage, Revision
from lbconfig.model import canonical
from lbconfig.model.snapshot import Snapshot, SnapshotError
from lbconfig.model.tuning import Tuning
from lbconfig.pair import BOXES, view
from lbconfig.render import files_digest
from lbconfig.target import Target

KEEP = 100
# What becomes of one that was under way when the power or the daemon went.
CUT_SHORT: dict[str, Outcome] = {"applying": "interrupted", "waiting": "not confirmed"}


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


@dataclass(frozen=True, slots=True)
class Generation:
    number: int
    snapshot: Snapshot
    files: dict[str, str]
    meta: Meta

    @property
    def box(self) -> int | None:
        """Which box of its pair this one was when it was stored; None without a pair."""
        return self.meta.get("box")

    @property
    def tuning(self) -> Tuning:
        """What was chosen for the hardware of this box."""
        if self.snapshot.pair is None:
            return self.snapshot.tuning
        return Tuning() if self.box is None else view(self.snapshot, self.box).tuning


@dataclass(frozen=True, slots=True)
class Recovered:
    """What to load at boot."""

    number: int | None  # None: no generation holds it
    snapshot: Snapshot | None  # None: nothing is left, or nothing ever was
    box: int | None = None  # of its pair: which of them this one was when it was stored
    fault: tuple[str, str] | None = None  # code and sentence


class Generations:
    def __init__(self, state: Path) -> None:
        self.state = state
        self.folder = state / "generations"
        self.link = state / "confirmed"
        self.second_copy = state / "confirmed.json"
        self.counter = state / "last-number"
        self.descent = state / "lineage"

    # --- writing ---------------------------------------------------------------------------------

    def prepare(self) -> None:
        """At the start: remove what a power cut left half done. OSError where that cannot be."""
        self.make_folder()
        for leftover in [*self.state.glob(".*.new"), *self.folder.glob(".*")]:
            shutil.rmtree(leftover) if leftover.is_dir() and not leftover.is_symlink() else leftover.unlink()

    def make_folder(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def create(
        self,
        snapshot: Snapshot,
        user: str,
        comment: str,
        client: str = "",
        box: int | None = None,
        descent: Descent | None = None,
    ) -> int:
        """Store a new one that is not confirmed; its number. OSError where the disk does not take it.

        `box`: which of its boxes this one is, where it is the snapshot of a pair.
        """
        number = self._next_number()
        durable.replace(self.counter, f"{number}\n".encode())
        temporary = self.folder / f".{number:06}"
        text, files = canonical.text(snapshot), Target(number, snapshot, box).files
        meta: Meta = {
            "number": number,
            "user": user,
            "comment": comment,
            "client": client,
            "created": now(),
            "outcome": "applying",
            "seconds": 0.0,
            "snapshot_digest": _sha256(text.encode()),
            "files_digest": files_digest(files),
        }
        if box is not None:
            meta["box"] = box
        if descent:
            meta["pair"] = descent
        try:
            os.mkdir(temporary, 0o700)
            os.mkdir(temporary / "files", 0o700)
            for name, content in files.items():
                durable.write(temporary / "files" / name, content.encode())
            durable.sync_folder(temporary / "files")
            durable.write(temporary / "snapshot.json", text.encode())
            durable.write(temporary / "meta.json", _json(meta))
            durable.sync_folder(temporary)
            os.rename(temporary, self._path(number))
            durable.sync_folder(self.folder)
        except OSError:
            shutil.rmtree(temporary, ignore_errors=True)  # a full disk needs the space back
            raise
        return number

    def skip_to(self, number: int) -> None:
        """From now on numbers are higher than this one. OSError where the disk does not take it."""
        if number >= self._next_number():
            durable.replace(self.counter, f"{number}\n".encode())

    def log_step(self, number: int, step: StepStatus) -> None:
        durable.append(self._path(number) / "steps.jsonl", json.dumps(step, ensure_ascii=False).encode() + b"\n")

    def confirm(self, number: int, seconds: float = 0.0, lineage: Lineage = ()) -> None:
        """From now on the next boot loads this one. The commit is one rename: that of the link.

        `lineage`: in a pair, with this one as its last.
        """
        meta, text, _ = self.whole(number)
        if lineage:
            durable.replace(self.descent, _lines(lineage))
        copy = durable.prepare(self.second_copy, _second_copy(number, text, meta.get("box")))
        confirmed = meta | {"outcome": "confirmed", "seconds": round(seconds, 3)}
        new_meta = durable.prepare(self._path(number) / "meta.json", _json(confirmed))
        durable.point(self.link, f"generations/{number:06}")
        durable.put(copy, self.second_copy)
        durable.put(new_meta, self._path(number) / "meta.json")

    def confirm_again(self, number: int | None) -> None:
        """Take a confirmation back: this is the confirmed one again; None: none is, as on a new box."""
        if number is not None:
            if self.confirmed_number() != number:
                self.confirm(number, self._meta(number).get("seconds", 0.0))
            return
        for path in (self.link, self.second_copy):
            path.unlink(missing_ok=True)
        durable.sync_folder(self.state)

    def end(self, number: int, outcome: Outcome, seconds: float) -> None:
        meta = self._meta(number) | {"outcome": outcome, "seconds": round(seconds, 3)}
        durable.replace(self._path(number) / "meta.json", _json(meta))

    def adopt(self, lineage: Lineage, desk: str) -> None:
        """Know the confirmed one by the name that the other box has for it. The commit is the rename of its record."""
        number = self.confirmed_number()
        if number is None:
            return
        meta, head = self._meta(number), lineage[-1]
        parent = lineage[-2].digest if len(lineage) > 1 else ""
        meta["pair"] = {"id": head.id, "digest": head.digest, "parent": parent, "number": number, "desk": desk}
        durable.replace(self.descent, _lines(lineage))
        durable.replace(self._path(number) / "meta.json", _json(meta))

    def not_chosen(self, lineage: Lineage) -> None:
        """The confirmed ones that are no part of it lost against those of the other box."""
        chosen = {one.id for one in lineage}
        for number in self.numbers():
            with contextlib.suppress(Damaged):
                meta = self._meta(number)
                if meta["outcome"] == "confirmed" and self._revision(meta).id not in chosen and "pair" in meta:
                    self.end(number, "not chosen", meta["seconds"])

    def mark_interrupted(self, waiting: int | None = None) -> list[Generation]:
        """Those that were under way when the power or the daemon went; the readable ones, oldest first.

        The link is the truth: one that it names was confirmed, whatever its own record says. One that waited to be
        confirmed never was, but for the one that goes on `waiting`.
        """
        found = []
        confirmed = self.confirmed_number()
        for number in self.numbers():
            if number == waiting:
                continue
            with contextlib.suppress(Damaged):
                meta = self._meta(number)
                if meta["outcome"] in CUT_SHORT:
                    if number != confirmed:
                        found.append(self.load(number))
                    outcome = "confirmed" if number == confirmed else CUT_SHORT[meta["outcome"]]
                    self.end(number, outcome, meta["seconds"])
        return found

    def prune(self, keep: int = KEEP) -> None:
        """Remove the oldest; never the confirmed one."""
        confirmed = self.confirmed_number()
        for number in self.numbers()[:-keep]:
            if number != confirmed:
                gone = self.folder / f".{number:06}.gone"
                os.rename(self._path(number), gone)
                shutil.rmtree(gone)

    # --- reading ---------------------------------------------------------------------------------

    def numbers(self) -> list[int]:
        """The oldest first; empty where there is no folder."""
        try:
            return sorted(int(name) for name in os.listdir(self.folder) if name.isdigit())
        except OSError:
            return []

    def confirmed_number(self) -> int | None:
        try:
            name = Path(os.readlink(self.link)).name
        except OSError:
            return None
        return int(name) if name.isdigit() else None

    def snapshot_digest(self, number: int) -> str:
        """Of the file as it was written; Damaged where nothing tells it."""
        return self._meta(number)["snapshot_digest"]

    def lineage(self) -> Lineage:
        """What a box of a pair has confirmed, one made from the other; empty where nothing is confirmed."""
        number = self.confirmed_number()
        try:
            head = None if number is None else self._revision(self._meta(number))
        except Damaged:
            return ()
        if head is None:
            return ()
        try:
            lines = [_LINE.fullmatch(line) for line in self.descent.read_text(errors="replace").splitlines()]
        except OSError:
            lines = []
        known = [Revision(*line.groups()) for line in lines if line]
        ids = [one.id for one in known]
        return (*known[: ids.index(head.id)], head) if head.id in ids else (head,)

    def descent_of(self, revision: Revision, desk: str, number: int | None = None) -> Descent:
        """Of what is to be stored next, made from the confirmed one. `number`: that it has at the desk; None: this."""
        lineage = self.lineage()
        parent = lineage[-1].digest if lineage else ""
        number = number or self._next_number()
        return {"id": revision.id, "digest": revision.digest, "parent": parent, "number": number, "desk": desk}

    @staticmethod
    def _revision(meta: Meta) -> Revision:
        descent, digest = meta.get("pair"), meta["snapshot_digest"]
        # That of its descent: a box of another version that follows writes it in other words.
        return Revision(descent["id"], descent["digest"]) if descent else Revision(digest[:ID_LENGTH], digest)

    def load(self, number: int) -> Generation:
        """One that is whole; otherwise Damaged, with the reason."""
        meta, text, files = self.whole(number)
        try:
            snapshot = migrate.read(text)
        except SnapshotError as error:
            raise Damaged(f"snapshot.json of revision {number}: {error}") from None
        return Generation(number, snapshot, files, meta)

    def whole(self, number: int) -> tuple[Meta, str, dict[str, str]]:
        """The record, the snapshot's text and the files of one that is as it was written; otherwise Damaged."""
        meta = self._meta(number)
        text = self._read(number, "snapshot.json")
        if _sha256(text.encode()) != meta["snapshot_digest"]:
            raise Damaged(f"snapshot.json of revision {number} is not as it was written")
        try:
            names = sorted(os.listdir(self._path(number) / "files"))
        except OSError as error:
            raise Damaged(f"the files of revision {number} cannot be read: {error.strerror}") from None
        files = {name: self._read(number, f"files/{name}") for name in names}
        if files_digest(files) != meta["files_digest"]:
            raise Damaged(f"the files of revision {number} are not as they were written")
        return meta, text, files

    def entries(self) -> list[GenerationEntry]:
        return [self.entry(number) for number in reversed(self.numbers())]

    def entry(self, number: int) -> GenerationEntry:
        entry: GenerationEntry = {
            "number": number,
            "user": "",
            "comment": "",
            "created": "",
            "outcome": "damaged",
            "seconds": 0.0,
            "steps": list(self._steps(number)),
        }
        try:
            meta = self._meta(number)
        except Damaged as error:
            return entry | {"comment": str(error)}
        return entry | {
            "user": meta["user"],
            "comment": meta["comment"],
            "created": meta["created"],
            "outcome": meta["outcome"],
            "seconds": meta["seconds"],
        }

    # --- the way back to the confirmed one --------------------------------------------------------

    def recover(self) -> Recovered:
        """What to load at boot: the confirmed one; its second copy; an older one; or nothing."""
        number = self.confirmed_number()
        try:
            if number is not None:
                generation = self.load(number)
                return Recovered(number, generation.snapshot, generation.box)
            reason = "no revision is named as the confirmed one"
        except Damaged as error:
            reason = str(error)
        copied = self._read_second_copy()
        if number is None and copied is None and not self._ever_confirmed():
            return Recovered(None, None)  # a new box
        if copied is not None:
            return self._from_second_copy(*copied, reason)
        return self._from_older(number, reason)

    def refresh_second_copy(self) -> None:
        """After a power cut between the two writes of a confirmation."""
        number = self.confirmed_number()
        if number is not None and (self._read_second_copy() or (None,))[0] != number:
            generation = self.load(number)
            text = canonical.text(generation.snapshot)
            durable.replace(self.second_copy, _second_copy(number, text, generation.box))

    def _from_second_copy(self, number: int, snapshot: Snapshot, box: int | None, reason: str) -> Recovered:
        said = f"Revision {number} is missing or damaged ({reason})"
        try:
            new = self.create(snapshot, "system", f"revision {number} from its second copy", box=box)
            self.confirm(new)
        except (OSError, Damaged) as error:
            fault = f"{said}. The box runs its second copy, which could not be stored as a revision: {error}."
            return Recovered(None, snapshot, box, ("generation-missing", fault))
        fault = f"{said}. The box runs its second copy, stored as revision {new}."
        return Recovered(new, snapshot, box, ("generation-missing", fault))

    def _from_older(self, lost: int | None, reason: str) -> Recovered:
        name = "The confirmed revision" if lost is None else f"Revision {lost}"
        for number in reversed(self.numbers()):
            with contextlib.suppress(Damaged):
                generation = self.load(number)
                if generation.meta["outcome"] == "confirmed":
                    with contextlib.suppress(OSError):
                        durable.point(self.link, f"generations/{number:06}")
                    fault = (
                        f"{name} and its second copy are missing or damaged ({reason}). "
                        f"The box runs the older revision {number}; review it before you change anything."
                    )
                    return Recovered(number, generation.snapshot, generation.box, ("generation-missing", fault))
        fault = (
            f"{name} and its second copy are missing or damaged ({reason}), and no older one can be read. "
            "The box runs the factory configuration: restore a revision in the web UI and apply it."
        )
        return Recovered(None, None, fault=("generation-missing", fault))

    # --- details ---------------------------------------------------------------------------------

    def _ever_confirmed(self) -> bool:
        """A generation was confirmed once, as far as anything is left to tell."""
        outcomes = []
        for number in self.numbers():
            try:
                outcomes.append(self._meta(number)["outcome"])
            except Damaged:
                outcomes.append("damaged")
        return os.path.lexists(self.link) or self.second_copy.exists() or bool({"confirmed", "damaged"} & set(outcomes))

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:06}"

    def _next_number(self) -> int:
        used = [*self.numbers(), self.confirmed_number() or 0, (self._second_copy_text() or (0,))[0]]
        with contextlib.suppress(OSError, ValueError):
            used.append(int(self.counter.read_text()))
        return max(used) + 1

    def _read(self, number: int, name: str) -> str:
        try:
            return (self._path(number) / name).read_bytes().decode()
        except FileNotFoundError:
            raise Damaged(f"{name} of revision {number} is missing") from None
        except (OSError, UnicodeDecodeError) as error:
            raise Damaged(f"{name} of revision {number} cannot be read: {error}") from None

    def _meta(self, number: int) -> Meta:
        try:
            meta = json.loads(self._read(number, "meta.json"))
        except (ValueError, RecursionError):
            raise Damaged(f"meta.json of revision {number} is damaged") from None
        kinds = {"user": str, "comment": str, "created": str, "outcome": str, "seconds": float}
        kinds |= {"snapshot_digest": str, "files_digest": str}
        whole = isinstance(meta, dict) and all(isinstance(meta.get(name), kind) for name, kind in kinds.items())
        if not whole or meta.get("box") not in (None, *BOXES):
            raise Damaged(f"meta.json of revision {number} is damaged")
        if "pair" in meta and not _is_descent(meta["pair"]):
            raise Damaged(f"meta.json of revision {number} is damaged")
        return cast(Meta, meta)  # the fields that anybody asks for are there, and of their types

    def _steps(self, number: int) -> Iterator[StepStatus]:
        """The log; a last line that a power cut tore is left out."""
        try:
            lines = (self._path(number) / "steps.jsonl").read_bytes().splitlines()
        except OSError:
            return
        for line in lines:
            with contextlib.suppress(ValueError):
                yield json.loads(line)

    def _read_second_copy(self) -> tuple[int, Snapshot, int | None] | None:
        found = self._second_copy_text()
        try:
            return None if found is None else (found[0], migrate.read(found[1]), found[2])
        except SnapshotError:
            return None

    def _second_copy_text(self) -> tuple[int, str, int | None] | None:
        """Its number, the text of its snapshot, and which box of a pair it is for, if it is as it was written."""
        try:
            found = _COPY.fullmatch(self.second_copy.read_bytes())
        except OSError:
            return None
        whole = found is not None and _sha256(found["text"]).encode() == found["digest"]
        if found is None or not whole:
            return None
        return int(found["number"]), found["text"].decode(), int(found["box"]) if found["box"] else None


_LINE = re.compile(r"([0-9a-f]{32}) ([0-9a-f]{64})")


def _lines(lineage: Lineage) -> bytes:
    return "".join(f"{one.id} {one.digest}\n" for one in lineage).encode()


def _is_descent(data: object) -> bool:
    kinds = {"id": str, "digest": str, "parent": str, "number": int, "desk": str}
    return isinstance(data, dict) and all(isinstance(data.get(name), kind) for name, kind in kinds.items())


_COPY = re.compile(
    rb'\{(?:"box":(?P<box>[01]),)?"digest":"(?P<digest>[0-9a-f]{64})",'
    rb'"number":(?P<number>\d{1,9}),"snapshot":(?P<text>.*)\}\n',
    re.S,
)


def _second_copy(number: int, text: str, box: int | None) -> bytes:
    """`text`: the canonical one, which is JSON as it stands. `box`: of a pair, which of its boxes this one is."""
    place = "" if box is None else f'"box":{box},'
    return f'{{{place}"digest":"{_sha256(text.encode())}","number":{number},"snapshot":{text}}}\n'.encode()


def _json(data: object) -> bytes:
    return json.dumps(data, sort_keys=True, indent=2, ensure_ascii=False).encode() + b"\n"


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
