"""The power goes at any moment of an apply, and the disk loses of its cache what it likes.

One machine makes changes while QEMU notes each write to its disk. From these notes come the disks that a cut at any
moment may leave, and a machine starts from each. FAIRLEAD_APPLY_CUTS=200 (make apply-cuts COUNT=200) for so many.
"""

import os
import random
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from board.machines.director import Director
from board.machines.lab import BALANCED, GIVEN_IMAGE
from board.machines.link import Forward, UserNetwork, free_port
from board.machines.machine import make_data_disk
from board.machines.updating import set_up
from tests.lab.fixtures import thorough
from tests.lab.interruption import begin, changed, ended, stands, told
from tests.lab.writes import Writes

from lbconfig.model.snapshot import Snapshot

COUNT = int(os.environ.get("FAIRLEAD_APPLY_CUTS", "3"))
CHANGES = max(2, COUNT // 10)
SEED = int(os.environ.get("FAIRLEAD_SEED", "5"))
HURRIED = 12  # seconds after which a change that nobody confirms goes back
LONGEST = 150.0  # seconds that a change may take with its way back

pytestmark = [
    thorough,
    pytest.mark.timeout(600 + 150 * CHANGES + 120 * COUNT),
    pytest.mark.skipif(bool(GIVEN_IMAGE), reason="looks at a disk that has nothing but /data (make power-cuts IMAGE=)"),
]


@dataclass
class Change:
    way: str
    before: Snapshot
    wished: Snapshot
    begins: int  # bytes of the log
    ends: int
    history: list[tuple[int, dict[str, str]]]  # bytes of the log, and what was committed then

    def told_done(self, rows: dict[str, str]) -> bool:
        """Whether the history already said that the change is confirmed."""
        return "confirmed" in [outcome for number, outcome in rows.items() if number not in self.history[0][1]]


@pytest.fixture
def writer(image):
    """A machine without anybody around it, before its first start."""
    folder = Path(tempfile.mkdtemp(prefix="fairlead-"))
    disk = make_data_disk(folder / "data.img", 128)
    forward = Forward(free_port(), "10.0.2.15", 443)
    nics = (UserNetwork((forward,)), UserNetwork(), UserNetwork())
    director = Director("writer", folder, image, nics=nics, data=disk)
    director.url = f"https://127.0.0.1:{forward.host_port}"
    try:
        yield director
    finally:
        director.kill()
        shutil.rmtree(folder)


def follow(director: Director, log: Path, before: Snapshot, chance: random.Random, number: int) -> Change:
    """Make a change and note what was committed when."""
    way = "unconfirmed" if number % 3 == 2 else "page"
    size = log.stat().st_size
    seen = [(size, told(director))]
    wished = begin(director, changed(chance, number), way, HURRIED)
    deadline = time.monotonic() + LONGEST
    while not ended(director):
        assert time.monotonic() < deadline
        rows = told(director)
        seen.append((log.stat().st_size, rows))
    rows = told(director)
    seen.append((log.stat().st_size, rows))
    return Change(way, before, wished, size, log.stat().st_size, seen)


def test_any_moment_boots_what_was_confirmed(writer, image, capsys):
    chance = random.Random(SEED)
    writer.start()
    writer.wait_until_up()
    set_up(writer)
    writer.apply(BALANCED)
    before = stands(writer)
    writer.succeed("sync")
    writer.kill()
    base = writer.folder / "base.img"
    shutil.copy(writer.data, base)

    writer.writes = writer.folder / "writes"
    writer.writes.touch()
    writer.start()
    writer.wait_until_up()
    changes = []
    for number in range(1, CHANGES + 1):
        change = follow(writer, writer.writes, before, chance, number)
        before = stands(writer)
        assert before == (change.wished if change.way == "page" else change.before)
        changes.append(change)
    writer.kill()

    writes = Writes(writer.writes, base)
    disk = writer.folder / "left.img"
    heir = Director("heir", writer.folder, image, nics=writer.nics, data=disk)
    outcomes, lost = {"new": 0, "old": 0}, 0
    for number in range(COUNT):
        change = changes[number % CHANGES]
        count = writes.at(change.ends)
        if number % 5:  # each fifth: as soon as it is over
            count = chance.randint(writes.at(change.begins), count)
        lost += writes.left_by_a_cut(count, disk, chance)
        with heir:
            heir.wait_until_started()
            running, now = stands(heir), told(heir)
        assert running in ((change.before, change.wished) if change.way == "page" else (change.before,)), count
        outcomes["new" if running == change.wished else "old"] += 1
        committed = [rows for size, rows in change.history if writes.at(size) <= count]
        for rows in committed:
            assert rows.keys() <= now.keys(), "a committed revision is gone"
            assert running == change.wished or not change.told_done(rows), "what was told to be confirmed is gone"
        assert change.history[0][1].items() <= now.items()
    with capsys.disabled():
        print(
            f"\n{COUNT} cuts at {CHANGES} changes, of {len(writes.entries)} writes and flushes, {lost} pieces of 4 KiB "
            f"lost: {outcomes['old']} times what ran before, {outcomes['new']} times the new configuration"
        )
