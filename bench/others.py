"""How much of this machine other programs took while something was measured: on a busy one that must be said."""

from __future__ import annotations

import os
import time
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")


class Others:
    """Use it as a context; afterwards `share` is theirs of all processors, from 0 to 1.

    Ours is everything in this process namespace. What the kernel does for our packets in interrupts counts as theirs.
    """

    share = 0.0

    def __enter__(self) -> Others:
        self._before = busy((PROC / "stat").read_text()), own(), time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        all_of_it, ours, began = self._before
        theirs = busy((PROC / "stat").read_text()) - all_of_it - (own() - ours)
        self.share = min(1.0, max(0.0, theirs / (os.cpu_count() or 1) / max(0.01, time.monotonic() - began)))


def busy(stat: str) -> float:
    """Seconds in which the processors did not idle, with those that a hypervisor took (proc_stat(5), first line)."""
    user, nice, system, _idle, _waiting, hard, soft, steal = map(int, stat.split()[1:9])
    return (user + nice + system + hard + soft + steal) / TICKS


def own() -> float:
    """Seconds of all processes that we see, and of those that they waited for (proc_pid_stat(5), 14 to 17)."""
    return sum(of_process(path) for path in PROC.glob("[0-9]*/stat"))


def of_process(path: Path) -> float:
    try:
        return sum(map(int, path.read_text().rpartition(")")[2].split()[11:15])) / TICKS
    except OSError:  # it has just ended, and is its parent's by now
        return 0.0
