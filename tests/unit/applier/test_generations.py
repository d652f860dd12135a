"""Generations on a disk that may lose its power at any moment."""

import contextlib
import json
import os
from collections import Counter
from pathlib import Path

import pytest
from box import ONE, TWO

from applier.kept import way_back
from applier.kept.generations import Damaged, Generations
from lbconfig.agreement import Revision
from lbconfig.model.canonical import digest
from lbconfig.model.snapshot import FACTORY

WATCHED = ("open", "write", "fsync", "rename", "replace", "mkdir", "symlink", "unlink", "rmdir")


class PowerCut(BaseException):
    pass


class Disk:
    """Stops at the n-th operation; what was written and not synced by then is lost."""

    def __init__(self, monkeypatch, stop_at=None):
        self.count, self.stop_at, self.off = 0, stop_at, False
        self.handles: dict[int, Path] = {}
        self.unsynced: set[int] = set()  # inodes
        self.names: Counter = Counter()  # folders with entries that are not synced
        self.at_commit = None
        for name in WATCHED:
            monkeypatch.setattr(os, name, self._watched(name, getattr(os, name)))

    def _watched(self, name, real):
        def operation(*args, **kwargs):
            if self.off or self.count == self.stop_at:
                self.off = True
                raise PowerCut
            self.count += 1
            if name == "replace" and Path(args[1]).name == "confirmed":
                self.at_commit = (set(self.unsynced), {folder.name for folder in self.names if self.names[folder]})
            result = real(*args, **kwargs)
            self._note(name, args, result)
            return result

        return operation

    def _note(self, name, args, result):
        if name == "open":
            self.handles[result] = Path(os.fspath(args[0]))
            if args[1] & os.O_CREAT:
                self.names[Path(args[0]).parent] += 1
        elif name == "write":
            self.unsynced.add(os.fstat(args[0]).st_ino)
        elif name == "fsync":
            self.unsynced.discard(os.fstat(args[0]).st_ino)
            self.names.pop(self.handles.get(args[0]), None)
        elif name in ("rename", "replace", "symlink"):
            self.names[Path(args[1]).parent] += 1

    def lose_unsynced(self, folder: Path):
        for path in folder.rglob("*"):
            if path.is_file() and not path.is_symlink() and path.stat().st_ino in self.unsynced:
                path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def with_one(folder: Path) -> Generations:
    generations = Generations(folder)
    generations.prepare()
    generations.confirm(generations.create(ONE, "ann", "first"))
    return generations


def apply_two(generations: Generations) -> None:
    number = generations.create(TWO, "ann", "second")
    generations.log_step(number, {"name": "store"})
    generations.confirm(number)
    generations.prune(keep=1)


def test_power_cut_at_every_operation_leaves_a_whole_confirmed_generation(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        generations = with_one(tmp_path / "count")
        disk = Disk(patch)
        apply_two(generations)
        total = disk.count
        assert disk.at_commit is not None
        unsynced, folders = disk.at_commit
        assert not unsynced, "content is committed before it is on the disk"
        assert not folders & {"generations", "files"}, "names are committed before they are on the disk"
    assert total > 40
    seen = set()
    for stop in range(total):
        folder = tmp_path / str(stop)
        generations = with_one(folder)
        with monkeypatch.context() as patch:
            disk = Disk(patch, stop)
            with pytest.raises(PowerCut):
                apply_two(generations)
        disk.lose_unsynced(folder)
        after = Generations(folder)
        after.prepare()
        way_back.refresh_second_copy(after)
        after.mark_interrupted()
        found = way_back.recover(after)
        assert found.fault is None, (stop, found)
        assert found.snapshot in (ONE, TWO), stop
        seen.add(found.number)
        assert after.load(found.number).meta["outcome"] == "confirmed", stop
        assert not [entry for entry in after.entries() if entry["outcome"] in ("applying", "damaged")], stop
        assert not list(folder.rglob("generations/.*")), stop
        used = after.numbers()
        number = after.create(TWO, "ann", "again")
        assert number > max(used), stop
        after.confirm(number)
        assert way_back.recover(after).snapshot == TWO, stop
    assert seen == {1, 2}


def test_power_cut_during_the_very_first_apply_leaves_a_fresh_box_or_the_new_one(tmp_path, monkeypatch):
    def first(generations):
        generations.prepare()
        generations.confirm(generations.create(ONE, "ann", ""))

    with monkeypatch.context() as patch:
        disk = Disk(patch)
        first(Generations(tmp_path / "count"))
    for stop in range(disk.count):
        with monkeypatch.context() as patch, pytest.raises(PowerCut):
            cut = Disk(patch, stop)
            first(Generations(tmp_path / str(stop)))
        cut.lose_unsynced(tmp_path / str(stop))
        after = Generations(tmp_path / str(stop))
        after.prepare()
        after.mark_interrupted()
        found = way_back.recover(after)
        assert found.fault is None and found.snapshot in (None, ONE), stop


def test_power_cut_while_the_second_copy_is_made_into_a_generation(tmp_path, monkeypatch):
    for stop in range(45):
        folder = tmp_path / str(stop)
        generations = with_one(folder)
        (folder / "generations/000001/snapshot.json").write_text("{}")
        with monkeypatch.context() as patch:
            Disk(patch, stop)
            with contextlib.suppress(PowerCut):
                way_back.recover(generations)
        after = Generations(folder)
        after.prepare()
        after.mark_interrupted()
        assert way_back.recover(after).snapshot == ONE, stop


def descent(revision: Revision) -> dict:
    return {"id": revision.id, "digest": revision.digest, "parent": "", "number": 2, "desk": "lb1"}


def lineage_of(generations: Generations, *ids: str) -> tuple[Revision, ...]:
    return (*generations.lineage(), *(Revision(id * 32, digest(TWO)) for id in ids))


def test_power_cut_leaves_the_old_lineage_or_the_new_one_as_the_confirmed_revision_says(tmp_path, monkeypatch):
    """That the desk has confirmed is the decision for both boxes of a pair: it must fall in one write."""

    def apply_in_pair(generations):
        lineage = lineage_of(generations, "a")
        number = generations.create(TWO, "ann", "second", descent=descent(lineage[-1]))
        generations.confirm(number, lineage=lineage)

    with monkeypatch.context() as patch:
        generations = with_one(tmp_path / "count")
        disk = Disk(patch)
        apply_in_pair(generations)
    old, new = with_one(tmp_path / "old").lineage(), generations.lineage()
    assert [one.id for one in new] == [digest(ONE)[:32], "a" * 32]
    seen = set()
    for stop in range(disk.count):
        generations = with_one(tmp_path / str(stop))
        with monkeypatch.context() as patch, pytest.raises(PowerCut):
            cut = Disk(patch, stop)
            apply_in_pair(generations)
        cut.lose_unsynced(tmp_path / str(stop))
        after = Generations(tmp_path / str(stop))
        after.prepare()
        after.mark_interrupted()
        assert after.lineage() == {1: old, 2: new}[after.confirmed_number()], stop
        seen.add(after.confirmed_number())
    assert seen == {1, 2}


def test_a_lineage_that_is_lost_or_of_another_revision_leaves_the_revision_itself(tmp_path):
    generations = with_one(tmp_path)
    assert generations.lineage() == (Revision(digest(ONE)[:32], digest(ONE)),)
    lineage = lineage_of(generations, "a")
    generations.confirm(generations.create(TWO, "ann", "", descent=descent(lineage[-1])), lineage=lineage)
    for text in ("", "\x00" * 50, f"{'b' * 32} {'c' * 64}\n"):
        (tmp_path / "lineage").write_text(text)
        assert generations.lineage() == lineage[-1:]
    (tmp_path / "lineage").unlink()
    assert generations.lineage() == lineage[-1:]
    assert Generations(tmp_path / "new").lineage() == ()


def test_a_box_takes_over_the_name_that_the_other_one_has_for_the_same_configuration(tmp_path):
    generations = with_one(tmp_path)
    other = (Revision("e" * 32, "f" * 64), Revision("d" * 32, digest(ONE)))
    generations.adopt(other, "lb1")
    assert generations.lineage() == other and generations.load(1).meta["pair"]["parent"] == "f" * 64


def test_the_history_tells_what_was_not_chosen(tmp_path):
    generations = with_one(tmp_path)
    mine, theirs = lineage_of(generations, "a", "b"), lineage_of(generations, "c")
    for head in range(2, 4):
        number = generations.create(TWO, "ann", "", descent=descent(mine[head - 1]))
        generations.confirm(number, lineage=mine[:head])
    generations.confirm(generations.create(TWO, "pair", "", descent=descent(theirs[-1])), lineage=theirs)
    generations.not_chosen(theirs)
    assert [entry["outcome"] for entry in generations.entries()] == ["confirmed", *["not chosen"] * 2, "confirmed"]


def test_a_generation_holds_what_was_reviewed(tmp_path):
    generations = with_one(tmp_path)
    found = generations.load(1)
    assert found.snapshot == ONE and set(found.files) >= {"nftables.conf", "ldirectord.cf"}
    assert found.meta["user"] == "ann" and found.meta["comment"] == "first"
    assert oct((tmp_path / "generations/000001/snapshot.json").stat().st_mode)[-3:] == "600"


def test_a_torn_last_line_of_the_log_is_left_out(tmp_path):
    generations = with_one(tmp_path)
    generations.log_step(1, {"name": "store"})
    with (tmp_path / "generations/000001/steps.jsonl").open("a") as log:
        log.write('{"name": "li')
    assert generations.entry(1)["steps"] == [{"name": "store"}]


def test_the_oldest_go_but_never_the_confirmed_one(tmp_path):
    generations = with_one(tmp_path)
    for _ in range(5):
        generations.end(generations.create(TWO, "ann", ""), "rolled back", 0.1)
    generations.prune(keep=3)
    assert generations.numbers() == [1, 4, 5, 6]
    assert generations.create(TWO, "ann", "") == 7


def test_a_number_is_never_used_twice_even_if_its_folder_is_gone(tmp_path):
    generations = with_one(tmp_path)
    number = generations.create(TWO, "ann", "")
    os.rename(tmp_path / f"generations/{number:06}", tmp_path / "elsewhere")
    assert generations.create(TWO, "ann", "") == number + 1


@pytest.mark.parametrize("text", ["", "{", "[]", '{"outcome": 1}', "\x00" * 100, "PAIR"])
def test_damaged_records_are_listed_as_such(tmp_path, text):
    generations = with_one(tmp_path)
    record = tmp_path / "generations/000001/meta.json"
    record.write_text(json.dumps(json.loads(record.read_text()) | {"pair": {"id": 1}}) if text == "PAIR" else text)
    assert generations.entry(1)["outcome"] == "damaged"
    with pytest.raises(Damaged):
        generations.load(1)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", "null", json.dumps({"number": 9, "snapshot": {}, "digest": "0"})]
)
def test_a_damaged_second_copy_counts_as_none(tmp_path, text):
    generations = with_one(tmp_path)
    (tmp_path / "confirmed.json").write_text(text)
    assert way_back.recover(generations).number == 1
    way_back.refresh_second_copy(generations)
    (tmp_path / "confirmed").unlink()
    assert way_back.recover(generations).snapshot == ONE


def test_a_confirmation_is_taken_back(tmp_path):
    generations = Generations(tmp_path)
    generations.prepare()
    generations.confirm(generations.create(ONE, "ann", ""))
    generations.confirm(generations.create(FACTORY, "ann", ""))
    generations.confirm_again(1)
    assert way_back.recover(generations).snapshot == ONE
    generations.confirm_again(None)
    assert generations.confirmed_number() is None
