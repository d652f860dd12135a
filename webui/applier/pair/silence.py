"""How long the applier has been silent although it could have spoken (decision 135).

A flood leaves the box's own programs little of the processor, and whoever gets none says nothing. A box that takes over
is flooded as well, so that is no reason to hand over; a program that is dead, hangs or runs in circles is.
"""

from __future__ import annotations

import contextlib
import os
from typing import NamedTuple

_STATE, _USER, _SYSTEM, _START = 0, 11, 12, 19  # proc(5), /proc/PID/stat, counted from the field behind the name
_TICKS = os.sysconf("SC_CLK_TCK")  # a second


class Work(NamedTuple):
    """What a process is at."""

    start: int  # tells it from a later one with the same number
    used: float  # seconds of the processor, in all its life
    wants: bool  # one of its threads runs, or waits for the processor


def of_process(number: int, folder: str = "/proc") -> Work | None:
    """What the process is at now; None: there is none."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        whole = _fields(f"{folder}/{number}/stat")
        wants = any(_wants(f"{folder}/{number}/task/{thread}/stat") for thread in os.listdir(f"{folder}/{number}/task"))
        return Work(int(whole[_START]), (int(whole[_USER]) + int(whole[_SYSTEM])) / _TICKS, wants)
    return None


class Silence:
    """Begins with the last word of a process, at `since`; times are in seconds."""

    def __init__(self, process: int, since: float) -> None:
        self.process = process
        self.seconds = 0.0  # that count
        self._looked = since
        self._before: Work | None = None

    def look(self, work: Work | None, now: float) -> None:
        """Count the time since the last look. `work`: what the process is at."""
        passed, before = now - self._looked, self._before
        if before is not None and work is not None and work.wants and work.start == before.start:
            passed = min(passed, work.used - before.used)
        self.seconds += passed
        self._looked, self._before = now, work


def _wants(path: str) -> bool:
    """Of one thread; it may have ended."""
    with contextlib.suppress(OSError):
        return _fields(path)[_STATE] == "R"
    return False


def _fields(path: str) -> list[str]:
    """Those behind the name, which may have spaces and parentheses of its own."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()
