"""All that a machine wrote to its disk, in order, and the disk as a power cut at any moment may leave it.

QEMU's block driver `blklogwrites` notes every write and every flush in the format of the kernel's dm-log-writes
(Documentation/admin-guide/device-mapper/log-writes.rst; drivers/md/dm-log-writes.c). What was flushed is on the disk;
of what came after the last flush, a disk with a cache may have kept anything.
"""

from __future__ import annotations

import os
import random
import struct
import subprocess
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path

MAGIC = 0x6A736677736872
SUPER = struct.Struct("<QQQI")  # magic, version, number of entries, bytes of a sector
ENTRY = struct.Struct("<QQQQ")  # first sector, sectors, flags, bytes of a mark
FLUSH, FORCED, DISCARD = 1, 2, 4  # FORCED: on the disk before it is answered (FUA)
PIECE = 4096  # bytes of which a disk keeps all or nothing


@dataclass(frozen=True)
class Entry:
    place: int  # in the log, in bytes
    begin: int  # on the disk, in bytes
    length: int  # bytes; 0: a flush alone
    flags: int


class Writes:
    """The log of a machine that has been turned off. `before` is its disk as it was when the log began."""

    def __init__(self, log: Path, before: Path) -> None:
        """Raises ValueError when it is not such a log."""
        self.log, self.before = log, before
        self.entries = list(self._read())
        self.ends = [entry.place for entry in self.entries]

    def _read(self):
        size = self.log.stat().st_size
        with self.log.open("rb") as file:
            magic, version, _, sector = SUPER.unpack(file.read(SUPER.size))
            if (magic, version) != (MAGIC, 1):
                raise ValueError(f"{self.log}: no log of writes: {magic:#x}, version {version}")
            place = sector
            while place + ENTRY.size <= size:
                file.seek(place)
                first, sectors, flags, _ = ENTRY.unpack(file.read(ENTRY.size))
                if not sectors and not flags:
                    return  # one that was still under way when the machine was turned off
                yield Entry(place + sector, first * sector, 0 if flags & DISCARD else sectors * sector, flags)
                place += sector + (0 if flags & DISCARD else sectors * sector)

    def at(self, size: int) -> int:
        """How many entries there were when the log had so many bytes; some of the last may have been under way."""
        return bisect_right(self.ends, size)

    def left_by_a_cut(self, count: int, path: Path, chance: random.Random) -> int:
        """Write to `path` the disk after a cut behind so many entries; how many pieces were lost."""
        subprocess.run(["cp", "--sparse=always", self.before, path], check=True)
        done = self.entries[:count]
        flushed = max((number for number, entry in enumerate(done) if entry.flags & FLUSH), default=0)
        kept = chance.choice([0.0, 0.5, 0.9, 1.0])  # the share that a disk kept of what was in its cache
        lost = 0
        with self.log.open("rb") as log, path.open("r+b") as disk:
            for number, entry in enumerate(done):
                data = os.pread(log.fileno(), entry.length, entry.place)
                for begin in range(0, len(data), PIECE):
                    if number < flushed or entry.flags & FORCED or chance.random() < kept:
                        os.pwrite(disk.fileno(), data[begin : begin + PIECE], entry.begin + begin)
                    else:
                        lost += 1
        return lost
