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
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from applier.base import durable
from applier.kept import records
from applier.kept.faults import now
from applier.kept.records import Copy, Meta
from applier.kept.records import Damaged as Damaged
from applier.kept.records import Descent as Descent
from applier.wire.shapes import GenerationEntry, Outcome, StepStatus
from lbconfig import migrate
from lbconfig.agreement import ID_LENGTH, Lineage, Revision
from lbconfig.model import canonical
from lbconfig.model.snapshot import Snapshot, SnapshotError
from lbconfig.model.tuning import Tuning
from lbconfig.pair import view
from lbconfig.render import files_digest
from lbconfig.target import Target

KEEP = 100
# What becomes of one that was under way when the power or the daemon went.
CUT_SHORT: dict[str, Outcome] = {"applying": "interrupted", "waiting": "not confirmed"}


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
            "snapshot_digest": records.sha256(text.encode()),
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
            durable.write(temporary / "meta.json", records.as_json(meta))
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
            durable.replace(self.descent, records.lineage_text(lineage))
        copy = durable.prepare(self.second_copy, records.second_copy(number, text, meta.get("box")))
        confirmed = meta | {"outcome": "confirmed", "seconds": round(seconds, 3)}
        new_meta = durable.prepare(self._path(number) / "meta.json", records.as_json(confirmed))
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
        durable.replace(self._path(number) / "meta.json", records.as_json(meta))

    def adopt(self, lineage: Lineage, desk: str) -> None:
        """Know the confirmed one by the name that the other box has for it. The commit is the rename of its record."""
        number = self.confirmed_number()
        if number is None:
            return
        meta, head = self._meta(number), lineage[-1]
        parent = lineage[-2].digest if len(lineage) > 1 else ""
        meta["pair"] = {"id": head.id, "digest": head.digest, "parent": parent, "number": number, "desk": desk}
        durable.replace(self.descent, records.lineage_text(lineage))
        durable.replace(self._path(number) / "meta.json", records.as_json(meta))

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

    def second(self) -> Copy | None:
        """The second copy of the confirmed one, if it is as it was written."""
        try:
            return records.copied(self.second_copy.read_bytes())
        except OSError:
            return None

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
            known = records.lineage(self.descent.read_text(errors="replace"))
        except OSError:
            known = []
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
        if records.sha256(text.encode()) != meta["snapshot_digest"]:
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

    # --- details ---------------------------------------------------------------------------------

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:06}"

    def _next_number(self) -> int:
        second = self.second()
        used = [*self.numbers(), self.confirmed_number() or 0, second.number if second else 0]
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
        return records.meta(number, self._read(number, "meta.json"))

    def _steps(self, number: int) -> Iterator[StepStatus]:
        """The log; a last line that a power cut tore is left out."""
        try:
            lines = (self._path(number) / "steps.jsonl").read_bytes().splitlines()
        except OSError:
            return
        for line in lines:
            with contextlib.suppress(ValueError):
                yield json.loads(line)
