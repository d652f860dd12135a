"""What the other box sees otherwise: which servers answer it, and how long a question to it takes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from applier.kept.events import ALL, Downs, Events, Place
from applier.kept.loop import Loop
from applier.pair.errands import Errands
from applier.wire.errors import ApplierRefused
from lbconfig.model.snapshot import Snapshot
from lbconfig.target import Target

log = logging.getLogger("applier")

EVERY = 5.0  # seconds between two questions
WITHIN = 5.0  # seconds that an answer may take
MOST = 1000  # servers that are told
SHOWN = 10  # sentences
Server = tuple[int, str, int]  # service, address and port


class Core(Protocol):
    """What of the daemon it needs."""

    running: Target
    errands: Errands
    reasons: Events


class Seeing:
    def __init__(self, core: Core) -> None:
        self._core = core
        self._differed: frozenset[Server] = frozenset()
        self.lag: float | None = None  # seconds that the last question and its answer took; None: there was none
        self.lasting: frozenset[Server] = frozenset()  # servers that two looks saw differ
        self.loop = Loop("what the other box sees", lambda: self.look(time.monotonic), lambda: time.sleep(EVERY))

    def pair_sees(self) -> dict[str, object]:
        """The servers that are down as this box sees it; for the other one."""
        return {"downs": [list(one) for one in sorted(down(self._core.running.own, self._core.reasons.downs))[:MOST]]}

    def look(self, clock: Callable[[], float]) -> None:
        """Ask it; in a box without a pair, nobody."""
        core = self._core
        if not core.running.in_pair:
            self._forget()
            return
        begun = clock()
        try:
            there = _read(core.errands.ask("pair_sees", {}, WITHIN))
        except (ApplierRefused, ValueError) as error:
            log.debug("the other box was asked what it sees: %s", error)
            self._forget()
            return
        self.lag = clock() - begun
        here = down(core.running.own, core.reasons.downs)
        differ = here ^ there if len(there) < MOST else frozenset()
        # A server that just went down is so at one of the boxes first.
        self.lasting, self._differed = differ & self._differed, differ

    def _forget(self) -> None:
        self.lag, self._differed, self.lasting = None, frozenset(), frozenset()

    def sentences(self, own: str, peer: str) -> list[str]:
        """What to look at, for people."""
        snapshot, downs = self._core.running.own, self._core.reasons.downs
        return differences(snapshot, self.lasting, down(snapshot, downs), own, peer)[:SHOWN]


def down(snapshot: Snapshot, downs: Downs) -> frozenset[Server]:
    """The servers that a box's checks have taken out, each with its service."""
    found = set()
    for service in snapshot.enabled_services:
        gone = {place for place, event in downs.get(service.id, {}).items() if event["state"] in ("down", "aside")}
        for server in service.real_servers:
            place: Place = server.address, server.port
            if server.in_table and (place in gone or ALL in gone):
                found.add((service.id, *place))
    return frozenset(found)


def differences(
    snapshot: Snapshot, differ: Iterable[Server], here: frozenset[Server], own: str, peer: str
) -> list[str]:
    """A sentence for each server that one of the boxes sees and the other one does not."""
    names = {
        (service.id, server.address, server.port): f"{server.name or server.address} ({service.name})"
        for service in snapshot.enabled_services
        for server in service.real_servers
    }
    found = []
    for one in sorted(differ):
        answers, silent = (peer, own) if one in here else (own, peer)
        if one in names:
            found.append(f"{names[one]} answers {answers}, not {silent}: does its firewall let both boxes in?")
    return found


def _read(answer: Mapping[str, Any]) -> frozenset[Server]:
    """ValueError where it is nothing of the kind."""
    downs = answer.get("downs")
    if not isinstance(downs, list) or len(downs) > MOST:
        raise ValueError(f"downs: must be a list of at most {MOST}")
    found = set()
    for one in downs:
        if not isinstance(one, list) or [type(part) for part in one] != [int, str, int]:
            raise ValueError("downs: each must be a service, an address and a port")
        found.add((one[0], one[1], one[2]))
    return frozenset(found)
