"""How thoroughly a run of `make bench` measures; every part gets it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from bench.stage import Stages
from board.lab.build import Image

Picked = TypeVar("Picked")


@dataclass(frozen=True)
class Settings:
    quick: bool
    image: Image  # what the director, and other guests, are started from
    stages: Stages
    say: Callable[[str], None] = print  # progress, a line at a time

    @property
    def rounds(self) -> int:
        """How often each figure is taken."""
        return 2 if self.quick else 3

    @property
    def seconds(self) -> float:
        """Of one load."""
        return 3.0 if self.quick else 10.0

    @property
    def cores(self) -> int:
        """Of this machine, that we may use."""
        return len(os.sched_getaffinity(0))

    def pick(self, quick: Picked, full: Picked) -> Picked:
        """What a quick run takes of something, or a full one."""
        return quick if self.quick else full
