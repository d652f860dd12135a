"""Looks at the pair all the time: tells faults, writes down who leads since when, and lets the fitter box lead."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from applier.kept.loop import Loop
from applier.pair import fitness, looking, standing
from applier.pair.fitness import Course, Lacks
from applier.pair.roles import FAULTY, HELD, LEADS
from applier.pair.standing import Pair
from applier.pair.verbs import Core, Pairs
from applier.wire.errors import ApplierRefused
from lbconfig.model.pair import PairBox

log = logging.getLogger("applier")

EACH = 0.5  # seconds; as often as the other box says something
REMEMBERED = 10.0  # seconds for which a reason counts that was heard or given


class Lookout:
    def __init__(self, core: Core, pairs: Pairs, clock: Callable[[], float]) -> None:
        self._core = core
        self._pairs = pairs
        self._clock = clock
        self._next_look = 0.0
        self._course = Course()
        self._not_before = 0.0  # the other box did not take the connections that it was told
        self._role = ""  # of this box, when it was looked at last
        self._told = (0.0, "")  # when and why the other box was held or could not lead
        self._since: dict[str, float] = {}  # of each trouble
        self.relieved = False  # this box leads, and the other one should as soon as this one cannot any more
        self.loop = Loop("how the pair stands", self.turn, lambda: time.sleep(EACH))

    def booted(self) -> None:
        """If the box leads already, it has begun to since its power-on (overlay/etc/sv/lead)."""
        self._role = HELD

    def turn(self) -> None:
        """Look once; in a box without a pair it does nothing."""
        boxes, now = self._pairs.boxes(), self._clock()
        if boxes is None:
            self._tell({}, now)
            self._role, self.relieved = "", False
            return
        seen = self._pairs.seen(boxes)
        self.note(seen)
        self.relieved = seen.own.role == LEADS and self._by_itself and standing.refusal(seen) is None
        self._tell(standing.troubles(seen), now)
        if now >= self._next_look:
            self._next_look = now + fitness.EVERY
            self._look(boxes, seen)

    # --- who leads since when ----------------------------------------------------------------------

    def note(self, seen: Pair) -> None:
        """Write down where the lead has moved since the last look."""
        now, peer = self._clock(), seen.heard
        if peer is not None and peer.role in (HELD, FAULTY):
            self._told = (now, peer.reason or f"{peer.hostname} could not lead")
        before, self._role = self._role, seen.own.role
        if before and before != LEADS == self._role:
            self._pairs.changes.note(seen.own.hostname, standing.why_leads(seen, _lately(self._told, now)))
        elif before == LEADS != self._role:
            self._pairs.changes.note(seen.name, standing.why_not(seen, _lately(self._pairs.asked, now)))

    # --- faults ------------------------------------------------------------------------------------

    def _tell(self, troubles: dict[str, str], now: float) -> None:
        """What has lasted is a fault; what is over is none."""
        self._since = {code: self._since.get(code, now) for code in troubles}
        for code, lasts in standing.LASTS.items():
            lasted = code in troubles and now - self._since[code] >= lasts
            self._core.faults.set(code, troubles[code] if lasted else None)

    # --- which one is fitter -----------------------------------------------------------------------

    @property
    def _by_itself(self) -> bool:
        """Whether the lead may move without an admin. What is being changed may move it, or wait for the other box."""
        pair = self._core.running.snapshot.pair
        return pair is not None and pair.hand_over_by_itself and not self._core.turn.taken

    def _look(self, boxes: tuple[PairBox, PairBox], seen: Pair) -> None:
        core, pairs = self._core, self._pairs
        try:
            pairs.keep_hold()
        except ApplierRefused as refusal:
            log.error("the hold of an admin: %s", refusal)
        faults = {fault["code"]: fault["message"] for fault in core.faults.to_data()}
        core.own.observed = looking.observe(core.host, core.paths, core.running.own, core.reasons.downs, faults)
        ready = standing.refusal(seen) is None
        own, peer = core.own.observed.lacks, Lacks(*seen.peer.lacks) if seen.peer and ready else None
        self._course = fitness.after(self._course, self._clock(), own, peer)
        led_since = self._clock() - seen.own.since
        if (
            peer is not None
            and self._by_itself
            and seen.own.role == LEADS
            and (own.able or self._clock() >= self._not_before)
            and fitness.due(self._course, own, led_since)
        ):
            self._hand_over(boxes, own, peer)

    def _hand_over(self, boxes: tuple[PairBox, PairBox], own: Lacks, peer: Lacks) -> None:
        """Whatever becomes of it, the next one is not tried before the other box was fitter for a while again."""
        why = fitness.reason(own, peer)
        try:
            with self._core.turn.take("the box is handing over to the fitter one of the pair"):
                self._course = Course()
                self._pairs.hand_over(boxes, why, at_any_price=bool(own.able))
        except ApplierRefused as refusal:
            log.warning("%s should lead (%s): %s", boxes[1].name, why, refusal)
            if refusal.code == "not-told":  # telling all of them again and again would be a load of its own
                self._not_before = self._clock() + fitness.USUAL.apart
        else:
            log.info("handed over to %s: %s", boxes[1].name, why)


def _lately(said: tuple[float, str], now: float) -> str:
    when, words = said
    return words if now - when <= REMEMBERED else ""
