"""Tells the floater once a second that the applier is alive, and whether the other box could lead at once.

The floater holds the addresses whatever becomes of the applier; but nobody else of this box would notice that a box
leads on of which nothing can be seen or changed any more (decision 113). A thread that says so could go on for ever
beside others that hang, so the word comes from what does the work: it is said as long as those come round
(decision 121).

It counts by its own rounds for how long they do not. Whatever keeps the processor from the applier keeps it from these
as well, so an applier that is only slow is not taken for one that hangs (decision 135).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from applier.base.paths import Paths
from applier.host.host import Host, HostError
from applier.kept.loop import Loop
from applier.kept.turn import Turn
from applier.pair import client
from applier.pair.lookout import Lookout
from applier.wire.client import ApplierDown, ApplierRefused, Client
from lbconfig.target import Target

log = logging.getLogger("applier")

EVERY = 1.0  # seconds; the floater waits for ten times as long
SOON = 2.0  # seconds within which each of them usually comes round
ASKS, ANSWERS = 2.0, 10.0  # seconds between two questions of the applier to itself, and for the answer


class Core(Protocol):
    """What of the daemon it needs."""

    paths: Paths
    host: Host
    running: Target
    turn: Turn


class Work(NamedTuple):
    """What has to come round, and within how many seconds it does at the latest, if it gets any processor."""

    loop: Loop
    within: float


def answers(paths: Paths) -> Loop:
    """Asks the applier itself by its socket, as everybody does, for as long as it takes until there is an answer."""

    def ask() -> None:
        applier = Client(paths.socket, ANSWERS)
        while True:
            try:
                applier.progress()
            except ApplierRefused as refused:
                if refused.code != "overloaded":
                    return
            except ApplierDown:
                pass  # it may not listen yet
            else:
                return
            time.sleep(ASKS)

    return Loop("the applier's own question", ask, lambda: time.sleep(ASKS))


class Pulse:
    def __init__(self, core: Core, lookout: Lookout, work: Sequence[Work]) -> None:
        self._core = core
        self._lookout = lookout
        self._work = work
        self._relieved = False  # whether the other box could lead, when all was well last
        self._rounds = [(one.loop.came, 0.0) for one in work]  # when each came round, and the seconds counted since
        self._stuck = ""  # as the log was told
        # The floater may be being started, or ended.
        self.loop = Loop("the pulse", self.tick, lambda: time.sleep(EVERY), (HostError,), logging.INFO)

    def tick(self) -> None:
        """Say it; in a box without a pair, nothing."""
        core = self._core
        if not core.running.in_pair:
            return
        # What hangs may hear nothing of the other box any more, which is no reason to believe that it is away.
        if all(one.loop.late <= SOON for one in self._work):
            self._relieved = self._lookout.relieved
        self._rounds = [
            (one.loop.came, seconds + EVERY if one.loop.came == came else 0.0)
            for one, (came, seconds) in zip(self._work, self._rounds, strict=True)
        ]
        stuck = next(
            (one for one, (_, seconds) in zip(self._work, self._rounds, strict=True) if seconds > one.within), None
        )
        if stuck is None:
            self._stuck = ""
            client.alive(core.host, core.paths, self._relieved and not core.turn.taken)
        elif stuck.loop.name != self._stuck:
            self._stuck = stuck.loop.name
            log.error("%s: no end for %.0f s; the floater is told nothing any more", stuck.loop.name, stuck.loop.late)
