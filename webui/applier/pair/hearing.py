"""Which paths between the two boxes are alive: on each the other box is asked for its own address, with ARP or NDP.

keepalived cannot say it: who leads hears nothing of one that stands by, and one path is enough for it. Whoever is asked
here answers from its kernel, whatever its programs do.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol

from applier.base.frames import question
from applier.host.host import Host, HostError
from applier.kept.loop import Loop
from applier.pair.asking import mac_of
from applier.wire.shapes_pair import PathStatus
from lbconfig.pair import Heartbeat, heartbeats
from lbconfig.target import Target

EVERY = 1.5  # seconds between two looks
ANSWERS = 0.75  # seconds that an answer may take
AGAIN = 0.25  # seconds after which it is asked once more; a frame may be lost
# Seconds without an answer, after which a path is silent: one look may have come to nothing. Two boxes that are cut off
# from each other on all paths are to say so within five.
SILENT = 4.0


class Core(Protocol):
    """What of the daemon it needs."""

    host: Host
    running: Target


class Hearing:
    def __init__(self, core: Core, clock: Callable[[], float]) -> None:
        self._core = core
        self._clock = clock
        self._lock = threading.Lock()
        self._since = 0.0  # when it began to ask
        self._answered: dict[Heartbeat, float] = {}
        self._paths: tuple[Target | None, tuple[Heartbeat, ...]] = (None, ())  # of what runs
        # A card may be away for long.
        self.loop = Loop(
            "the paths to the other box", self.look, lambda: time.sleep(EVERY), (HostError, ValueError), logging.WARNING
        )

    def paths(self) -> tuple[Heartbeat, ...]:
        running, (of, found) = self._core.running, self._paths
        if running is not of:
            pair, box = running.snapshot.pair, running.box
            found = () if pair is None or box is None else heartbeats(pair, box)
            self._paths = running, found
        return found

    def look(self) -> None:
        """Ask on all of them; one that is not there keeps none of the others from being asked."""
        paths, host = self.paths(), self._core.host
        with self._lock:
            if not paths or not self._since:
                self._since = self._clock()
            self._answered = {path: when for path, when in self._answered.items() if path in paths}
        found: dict[Heartbeat, bytes] = {}
        for path in paths:
            mac = mac_of(host, path.interface)
            if mac:
                found[path] = question(mac, path.address, path.peer)
        if not found:
            return
        neighbours = host.neighbours({path.interface for path in found})
        try:
            for _ in range(round(ANSWERS / AGAIN)):
                for path, frame in found.items():
                    neighbours.ask(path.interface, frame)
                for interface, address, when in neighbours.answers(AGAIN):
                    for path in [one for one in found if (one.interface, one.peer) == (interface, address)]:
                        del found[path]
                        with self._lock:
                            self._answered[path] = when
                if not found:
                    return
        finally:
            neighbours.close()

    def shown(self) -> list[PathStatus]:
        """The pair cable first."""
        now = self._clock()
        with self._lock:
            since, answered = self._since, dict(self._answered)
        return [
            {
                "interface": path.interface,
                "address": path.peer,
                "cable": path.cable,
                "silent": round(max(0.0, now - answered.get(path, since)), 1) if since else 0.0,
                "ever": path in answered,
                "alive": now - answered.get(path, since) <= SILENT,
            }
            for path in self.paths()
        ]
