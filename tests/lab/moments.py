"""Saved moments that all workers of one run share: whoever needs one first makes it, the others take a copy.

A boot of both machines, and an apply until every server is up, are most of what a second worker would do again.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from board.machines.lab import Lab
from board.machines.spent import GOING_BACK, spent

DISKS = ("*.img", "*.qcow2")  # moments are saved inside the latter
FACTS = "facts.json"


@contextlib.contextmanager
def shared(folder: Path) -> Iterator[Path]:
    """The folder of the moments, which every worker of the run names; the last worker that leaves removes it."""
    with folder.with_suffix(".users").open("w") as users:
        fcntl.flock(users, fcntl.LOCK_SH)
        try:
            yield folder
        finally:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)


@dataclass
class SharedLab(Lab):
    """A lab whose moments are those of the run: its disks are a copy of what lies in `kept`."""

    kept: Path = field(kw_only=True)

    def reach(self, moment: str, make: Callable[[Lab], None]) -> None:
        """Go to this moment. Only if no worker has been there, `make` brings both machines there, and it is saved.

        Whoever made it goes on with a copy as well, so that all workers test the same.
        """
        if moment not in self.moments:
            self.prepare(moment, make)
        self.go_back(moment)

    def prepare(self, moment: str, make: Callable[[Lab], None]) -> None:
        """Have this moment in the disks; both machines are off then."""
        self.kill()  # machines that run while another worker makes it would only slow that one down
        with self._alone():
            if moment not in self._facts()["moments"]:
                make(self)
                self.save(moment)
                self._keep(moment)
            self._take()

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """One worker at a time; the kernel lets the next one in if that one dies."""
        with self.kept.with_suffix(".lock").open("w") as lock:
            with spent(GOING_BACK):
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _facts(self) -> dict:
        facts = self.kept / FACTS
        return json.loads(facts.read_text()) if facts.exists() else {"moments": []}

    @spent(GOING_BACK)
    def _keep(self, moment: str) -> None:
        for machine in (self.director, self.world):
            machine.monitor.human("stop")  # QEMU writes what it still keeps of the disks' files
        self.kill()
        place = self.kept / moment
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        for disk in disks(self.director.folder):
            shutil.move(disk, place)
        before = self._facts()
        booted = {"first_boot": self.first_boot, "first_console": self.first_console}
        facts = {"moments": sorted(self.moments), "disks": moment, **booted}
        part = self.kept / f"{FACTS}.part"
        part.write_text(json.dumps(facts))
        part.replace(self.kept / FACTS)
        if "disks" in before:
            shutil.rmtree(self.kept / before["disks"])

    @spent(GOING_BACK)
    def _take(self) -> None:
        facts = self._facts()
        copied = disks(self.kept / facts["disks"])
        subprocess.run(["cp", "--sparse=always", "-t", self.director.folder, *copied], check=True)
        self.moments = set(facts["moments"])
        self.first_boot, self.first_console = facts["first_boot"], facts["first_console"]


def disks(folder: Path) -> list[Path]:
    return [disk for pattern in DISKS for disk in folder.glob(pattern)]
