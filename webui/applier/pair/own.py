"""What this box says of itself: what the other one is told twice a second, and what this one's pages show."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from applier.base.paths import Paths
from applier.host.host import Host
from applier.kept.generations import Damaged, Generations
from applier.pair import client
from applier.pair.beat import LINEAGE, MAX_WORDS, Beat
from applier.pair.fitness import Lacks
from applier.pair.roles import FAULTY, LEADS, STANDS_BY, Role
from lbconfig.target import Target

NOT_RUNNING = "the floater does not run"


class Core(Protocol):
    """What of the daemon it needs."""

    paths: Paths
    host: Host
    generations: Generations
    running: Target
    confirmed: int | None


def beat(core: Core, hostname: str, now: float, lacks: Lacks, lineage: Sequence[str], connections: int = 0) -> Beat:
    """`now`: on CLOCK_BOOTTIME."""
    role = client.role(core.host, core.paths) or Role(FAULTY, now, NOT_RUNNING)
    return Beat(
        hostname,
        role.role,
        max(0.0, now - role.since),
        role.reason[:MAX_WORDS],
        core.paths.version[:MAX_WORDS],
        core.running.number or 0,
        core.running.digest,
        tuple(lineage),
        role.role in (LEADS, STANDS_BY),
        connections,
        int(time.time()),
        lacks,
    )


class Ancestors:
    """The digests of what was confirmed on this box, the newest first; read anew with each revision only."""

    def __init__(self) -> None:
        self._known: tuple[int | None, tuple[str, ...]] = (None, ())

    def __call__(self, core: Core) -> tuple[str, ...]:
        number, known = self._known
        if number != core.confirmed or not known:
            self._known = (core.confirmed, tuple(self._read(core.generations)))
        return self._known[1]

    @staticmethod
    def _read(generations: Generations) -> list[str]:
        found: list[str] = []
        for number in reversed(generations.numbers()):
            try:
                if len(found) < LINEAGE and generations.entry(number)["outcome"] == "confirmed":
                    found.append(generations.snapshot_digest(number))
            except Damaged:
                break  # nobody knows what came before it
        return found
