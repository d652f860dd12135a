"""What this box says of itself: what the other one is told twice a second, and what this one's pages show."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from applier.base.paths import Paths
from applier.host.host import Host
from applier.kept.generations import Generations
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
    """The digests of what the pair has confirmed, the newest first; read anew with each revision only."""

    def __init__(self) -> None:
        self._known: tuple[int | None, tuple[str, ...]] = (None, ())

    def __call__(self, core: Core) -> tuple[str, ...]:
        if self._known[0] != core.confirmed or not self._known[1]:
            lineage = core.generations.lineage()[-LINEAGE:]
            self._known = (core.confirmed, tuple(one.digest for one in reversed(lineage)))
        return self._known[1]
