"""What this box says of itself: what the other one is told twice a second, and what this one's pages show."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from applier.base.paths import Paths
from applier.host.host import Host
from applier.pair import client
from applier.pair.beat import LINEAGE, MAX_WORDS, Beat
from applier.pair.fitness import Observed
from applier.pair.roles import FAULTY, Role
from lbconfig.agreement import Lineage
from lbconfig.target import Target

NOT_RUNNING = "the floater does not run"
COUNTING = 5.0  # seconds for which a number of connections is told


class Core(Protocol):
    """What of the daemon it needs."""

    paths: Paths
    host: Host
    running: Target
    confirmed: int | None

    @property
    def ready(self) -> bool: ...

    @property
    def lineage(self) -> Lineage: ...

    def connections(self) -> int: ...


def digest(running: Target, confirmed: int | None, lineage: Sequence[str]) -> str:
    """Of what runs, as the box that applied it has written it.

    Another version may write the same configuration in other words, and has another digest of it then. `lineage`: the
    newest first.
    """
    return lineage[0] if lineage and running.number is not None and running.number == confirmed else running.digest


class Own:
    """Makes the beat of this box, for the other one and for its own pages alike."""

    def __init__(self, core: Core, clock: Callable[[], float]) -> None:
        self.observed = Observed()  # by lookout.py, every two seconds
        self._core = core
        self._clock = clock
        self._counted = (float("-inf"), 0)

    def beat(self, hostname: str) -> Beat:
        core, now = self._core, self._clock()
        role = client.role(core.host, core.paths) or Role(FAULTY, now, NOT_RUNNING)
        lineage = tuple(one.digest for one in reversed(core.lineage[-LINEAGE:]))
        return Beat(
            hostname=hostname,
            role=role.role,
            since=max(0.0, now - role.since),
            reason=role.reason[:MAX_WORDS],
            version=core.paths.version[:MAX_WORDS],
            revision=core.running.number or 0,
            digest=digest(core.running, core.confirmed, lineage),
            lineage=lineage,
            ready=core.ready,
            connections=self._connections(now),
            time=int(time.time()),
            lacks=self.observed.lacks,
        )

    def _connections(self, now: float) -> int:
        """The number that was counted last, for some seconds: the whole table is read for it."""
        if now - self._counted[0] > COUNTING:
            self._counted = now, self._core.connections()
        return self._counted[1]
