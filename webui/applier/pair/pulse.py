"""Tells the floater once a second that the applier is alive, and whether the other box could lead at once.

The floater holds the addresses whatever becomes of the applier; but nobody else of this box would notice that a box
leads on of which nothing can be seen or changed any more (decision 113).
"""

from __future__ import annotations

import logging
import time
from typing import NoReturn, Protocol

from applier.base.paths import Paths
from applier.host.host import Host, HostError
from applier.pair import client
from applier.pair.lookout import Lookout
from lbconfig.target import Target

log = logging.getLogger("applier")

EVERY = 1.0  # seconds; the floater waits for ten times as long


class Core(Protocol):
    """What of the daemon it needs."""

    paths: Paths
    host: Host
    running: Target


class Pulse:
    def __init__(self, core: Core, lookout: Lookout) -> None:
        self._core = core
        self._lookout = lookout
        self._trouble = ""  # as the log was told

    def run(self) -> NoReturn:
        """For good, in a thread of its own that waits for nothing else; in a box without a pair it does nothing."""
        while True:
            try:
                self.tick()
                self._trouble = ""
            except HostError as error:
                if str(error) != self._trouble:  # the floater is being started, or ended
                    log.info("%s", error)
                self._trouble = str(error)
            # The next second may work; nobody else would start this thread again.
            except Exception:
                log.exception("the floater was not told that the applier is alive")
            time.sleep(EVERY)

    def tick(self) -> None:
        core = self._core
        if core.running.in_pair:
            client.alive(core.host, core.paths, self._lookout.relieved)
