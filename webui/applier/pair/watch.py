"""What a box of a pair does by itself: it leads only once it is ready, and tells the other one what that has missed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from applier.base.paths import Paths
from applier.host.host import Host, HostError
from applier.kept.loop import Loop
from applier.kept.turn import Turn
from applier.pair import client, messages, ready, roles
from applier.pair.errands import Errands
from applier.pair.learning import Learning
from applier.pair.messages import Course
from applier.pair.peer import Peer
from applier.pair.ready import SILENT, Seen
from applier.pair.telling import tell_peer
from applier.parts.pair import daemons, link
from applier.wire.errors import ApplierRefused
from lbconfig.capacity.figures import read_totals
from lbconfig.target import Target

log = logging.getLogger("applier")

EVERY = 1.0  # seconds between two looks
TOTALS = Path("/proc/net/ip_vs_stats")
ASTRAY = 5.0  # seconds between two looks at where the link sends to, while the other box is not heard
APART = 5.0  # seconds without a beat, after which the other box may have missed connections


class Core(Protocol):
    """What is needed of the daemon."""

    host: Host
    paths: Paths
    running: Target
    peer: Peer
    turn: Turn
    errands: Errands

    @property
    def loaded(self) -> bool: ...

    def established(self) -> int: ...


class Watch:
    def __init__(self, core: Core, clock: Callable[[], float]) -> None:
        self._core = core
        self._clock = clock
        self._held: float | None = None  # when the box was first seen held because it is not ready
        self._received = -1  # bytes over the link
        self._heard = 0.0  # when they last became more
        self._why = ""  # the box is held, as the log was told
        self._learning = Learning(core, clock)
        self._apart = True
        self._looked = 0.0  # when it was looked where the link sends to
        self._course: Course | None = None  # of the size of messages
        self._counted: tuple[float, int] | None = None  # when, and how many connections there had been by then
        self.loop = Loop("the pair", self.tick, lambda: core.host.sleep(EVERY))

    @property
    def told(self) -> bool:
        """Whether the other box is heard, and was told all connections since it was away last."""
        return not self._apart

    def tick(self) -> None:
        if not self._core.running.in_pair:
            self._held, self._apart, self._course, self._counted = None, True, None, None
            self._learning.forget()
            return
        self._let_lead()
        self._tell()
        self._find_again()
        if self._core.loaded and not self._core.turn.taken:
            self._size_messages()

    def _let_lead(self) -> None:
        """Release the hold that the box was started with, once it is ready. Nobody else's hold."""
        core, now = self._core, self._clock()
        if roles.hold_reason(core.host.read(core.paths.hold) or "") != ready.NOT_YET:
            self._held = None
            self._learning.forget()
            return
        if self._held is None:
            self._held, self._received, self._why = now, -1, ""
        why = ready.missing(self._seen(now, self._held))
        beat = core.peer.beat if self._is_fresh(now, SILENT) else None
        if not why and beat is not None and beat.role == roles.LEADS:
            why = self._learning.missing()
        if not why:
            client.release(core.host, core.paths)
            log.info("the box may lead %.1f s after it was held", now - self._held)
        elif why != self._why:
            self._why = why
            log.info("the box is held: %s", why)

    def _seen(self, now: float, held: float) -> Seen:
        core, running = self._core, self._core.running
        over_link = link.peer(core.host)
        received = over_link.received if over_link else 0
        if received > self._received:
            self._heard = now if self._received >= 0 else held
            self._received = received
        beat = core.peer.beat if self._is_fresh(now, SILENT) else None
        return Seen(
            loaded=core.loaded and core.host.read(core.paths.nftables) == running.rules,
            checked=not running.has_checks or core.host.read(core.paths.first_round) is not None,
            daemons=not daemons.differ(daemons.running(core.host), daemons.wanted(link.wanted(running.pair_conf))),
            waited=now - held,
            silent=now - self._heard,
            told=beat is not None,
            behind=beat is not None and running.digest in beat.lineage[1:] and beat.lineage[0] != running.digest,
        )

    def _tell(self) -> None:
        """All connections, to a box that has come back: the kernel tells only those that speak from now on.

        Its first beat says that its table is there, and what is told belongs to services.
        """
        fresh = self._is_fresh(self._clock(), APART)
        if fresh and self._apart and self._core.loaded:
            tell_peer(self._core)  # where that fails, the next look tries it again
            self._apart = False
        self._apart = self._apart or not fresh

    def _find_again(self) -> None:
        """The other box, where the link sends to an address at which that takes nothing."""
        core, now = self._core, self._clock()
        if self._is_fresh(now, APART) or now - self._looked < ASTRAY or core.turn.taken:
            return
        self._looked = now
        conf = core.running.pair_conf
        if not link.strayed(core.host, conf):
            return
        try:
            with core.turn.take("the link to the other box is led back to its address"):
                link.lead_back(core.host, conf)
        except ApplierRefused:
            return  # somebody was quicker; some seconds later it is tried again
        log.warning("the link to the other box sent to another address than the configuration says; it is led back")

    def _size_messages(self) -> None:
        """By the new connections a second. Whoever changes the system has the kernel's threads to himself."""
        rate = self._rate()
        if rate is None:
            return
        if self._course is None:
            self._course = Course(daemons.sends_large(self._core.host))
        course = messages.after(self._course, self._clock(), rate)
        if course.large != self._course.large:
            core, link_now = self._core, link.wanted(self._core.running.pair_conf)
            try:
                with core.turn.take("the other box is told of connections in messages of another size"):
                    daemons.resize(core.host, daemons.wanted(link_now), course.large)
            except ApplierRefused:
                return  # somebody was quicker; a second later it is tried again
            log.info("%.0f new connections a second: told in %s messages", rate, "large" if course.large else "small")
            tell_peer(core)
        self._course = course

    def _rate(self) -> float | None:
        """New connections a second since the last look; None where there is nothing to compare."""
        text, now = self._core.host.read(TOTALS), self._clock()
        if text is None:
            return None  # IPVS is not loaded
        try:
            total = read_totals(text).connections
        except ValueError as error:
            raise HostError(f"read {TOTALS}", None, str(error)) from None
        before, self._counted = self._counted, (now, total)
        # The counter begins anew where somebody resets it.
        return None if before is None or now <= before[0] else max(0, total - before[1]) / (now - before[0])

    def _is_fresh(self, now: float, seconds: float) -> bool:
        heard = self._core.peer.heard
        return heard is not None and now - heard < seconds
