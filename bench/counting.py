"""How many instructions a guest has run: a plugin of QEMU counts them into a file (programs/instructions.c).

Counts hold on any machine, unlike seconds: the guest runs the same instructions wherever it is emulated. What differs
from run to run is how many packets come with one interrupt, and how the hashes of the kernel fall, seeded at each boot.
"""

from __future__ import annotations

import mmap
import re
import struct
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench import compiled, head

_PAIR = struct.Struct("QQ")
_LAST_VERSION = 8  # of QEMU, with the plugin API that the plugin is made for


class CannotCount(OSError):
    """The text says what this machine's QEMU lacks."""


@dataclass(frozen=True)
class Counts:
    """Instructions of the guest's kernel and of its programs."""

    kernel: float
    programs: float

    @property
    def all(self) -> float:
        return self.kernel + self.programs

    def __sub__(self, other: Counts) -> Counts:
        return Counts(self.kernel - other.kernel, self.programs - other.programs)

    def times(self, factor: float) -> Counts:
        return Counts(self.kernel * factor, self.programs * factor)


def per_unit(load: Counts, seconds: float, idle: Counts, idle_seconds: float, units: int) -> Counts:
    """What one connection or packet costs: of all instructions during `seconds`, without what runs anyway in that time.

    Raises ValueError where nothing was done or no time passed.
    """
    if units <= 0 or seconds <= 0 or idle_seconds <= 0:
        raise ValueError(f"nothing to count: {units} units in {seconds:g} s, idle for {idle_seconds:g} s")
    return (load - idle.times(seconds / idle_seconds)).times(1 / units)


def plugin_words(file: Path, places: bool = False) -> tuple[str, ...]:
    """Words for QEMU. Raises CannotCount, and CannotCompile."""
    check_version(head.first_line("qemu-system-x86_64", "--version"))
    return "-plugin", f"{compiled.library('instructions')},out={file}{',places=on' if places else ''}"


def check_version(text: str) -> None:
    """`text` as `qemu-system-x86_64 --version` prints it. Raises CannotCount."""
    found = re.search(r"version (\d+)", text)
    if not found:
        raise CannotCount(f"QEMU does not say its version: {text[:80]!r}")
    if int(found[1]) > _LAST_VERSION:
        raise CannotCount(
            f"QEMU {found[1]} has another plugin API: instructions can be counted with QEMU 4.2 to {_LAST_VERSION}.2"
        )


class Counting:
    """The counts of a machine that was started with `plugin_words`; it must have one processor."""

    def __init__(self, file: Path) -> None:
        with file.open("rb") as opened:
            self.map = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)

    def read(self) -> Counts:
        return Counts(*_PAIR.unpack_from(self.map, 0))

    def places(self) -> Counter[int]:
        """Address in the kernel -> instructions run from there."""
        pairs = _PAIR.iter_unpack(self.map[_PAIR.size :])
        return Counter({address: count for address, count in pairs if count})


class Symbols:
    """The functions of a guest's kernel, and where they begin."""

    def __init__(self, starts: Mapping[int, str]) -> None:
        self.starts = sorted(starts)
        self.names = [starts[one] for one in self.starts]

    @classmethod
    def of(cls, kallsyms: str) -> Symbols:
        """From the text of /proc/kallsyms, which shows addresses while kernel.kptr_restrict is 0."""
        lines = (line.split() for line in kallsyms.splitlines())
        return cls({int(address, 16): name for address, kind, name, *_ in lines if kind in "tTwW"})

    def by_function(self, places: Mapping[int, float]) -> dict[str, float]:
        """Of `Counting.places`; what lies before all functions is "?"."""
        found: defaultdict[str, float] = defaultdict(float)
        for address, count in places.items():
            place = bisect_right(self.starts, address) - 1
            found[self.names[place] if place >= 0 else "?"] += count
        return found
