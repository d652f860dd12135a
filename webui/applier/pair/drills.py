"""Drills: a hand-over to see how it goes, measured by the box that gives up the lead (decision 114)."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from typing import Protocol

from applier.base.paths import Paths
from applier.host.host import Host, HostError
from applier.kept import drills as kept
from applier.kept.drills import DrillList
from applier.kept.faults import now
from applier.kept.turn import Turn
from applier.pair import asking, client, standing
from applier.pair.asking import Asking
from applier.pair.drill import shown
from applier.pair.errands import Errands
from applier.pair.roles import LEADS, STANDS_BY
from applier.pair.verbs import Pairs
from applier.parts.pair import comparing
from applier.parts.pair.comparing import Table
from applier.wire.errors import ApplierRefused
from applier.wire.shapes import Nothing
from applier.wire.shapes_pair import Drill, DrillState
from lbconfig.model.pair import PairBox
from lbconfig.target import Target

log = logging.getLogger("applier")

ANSWERS = 10.0  # seconds that the addresses may take to answer once the other box leads
COMPARES = 60.0  # seconds that the other box may take to read its table
SETTLES = 30.0  # seconds until the boxes may hand over back
TELLS = 10.0  # seconds for a word to the other box
LOOKS = 0.5  # seconds between two tries meanwhile


class Core(Protocol):
    """What of the daemon it needs."""

    paths: Paths
    host: Host
    turn: Turn
    running: Target
    errands: Errands


class Drills:
    def __init__(self, core: Core, pairs: Pairs, read: Callable[[Host, int | None], Table] = comparing.read) -> None:
        self._core = core
        self._pairs = pairs
        self._read = read
        self._list = DrillList(core.paths.drills)
        self._running = ""

    # --- verbs -----------------------------------------------------------------------------------

    def pair_drills(self) -> DrillState:
        return {"running": self._running, "drills": [shown(one) for one in self._list.newest()]}

    def pair_drill(self, back: bool, user: str) -> DrillState:
        """Begin one. Refused where a hand-over would be. `back`: the other box hands over back afterwards."""
        boxes = self._pairs.in_a_pair()
        with self._core.turn.take(f"{user} is trying a hand-over") as held:
            seen = self._pairs.seen(boxes)
            refusal = standing.refusal(seen) if seen.own.role == LEADS else standing.not_leading(seen)
            if refusal is not None:
                raise refusal
            self._running = f"{boxes[0].name} hands over to {boxes[1].name}, asked for by {user}"
            log.info("a drill: %s", self._running)
            drill = _begun(boxes, user)

            def tell(found: Drill) -> None:
                self._list.note(found)
                self._running = ""
                log.info("the drill: %s", shown(found)["sentence"])
                self._tell_the_other(found)
                if back and not self._leads():
                    self._ask_back(boxes, user)

            held.hand_on("drill", lambda: self._measured(drill, boxes), lambda error: _failed(drill, error), tell)
        return self.pair_drills()

    # --- what the other box asks -----------------------------------------------------------------

    def drill_compare(self, connections: str, part: int) -> dict[str, object]:
        """What this box knows of connections that the other one had."""
        before = _numbers(connections)
        try:
            after = self._read(self._core.host, part)
        except HostError as error:
            raise ApplierRefused("pair-error", f"The connections cannot be read: {error}.") from None
        if not after.whole:
            raise ApplierRefused("pair-error", "There are more connections than can be compared.")
        known = comparing.compare(before, after)
        return {"open": known.open, "ending": known.ending, "missing": comparing.to_text(known.missing)}

    def drill_done(self, drill: object) -> Nothing:
        """What a drill of the other box has shown."""
        try:
            found = kept.read(drill)
        except ValueError as error:
            raise ApplierRefused("bad-field", f"The drill that the other box tells of is wrong: {error}.") from None
        self._list.note(found)
        return {}

    def drill_back(self, user: str) -> Nothing:
        """Begin one here."""
        self.pair_drill(False, user)
        return {}

    # ---------------------------------------------------------------------------------------------

    def _leads(self) -> bool:
        role = client.role(self._core.host, self._core.paths)
        return role is not None and role.role == LEADS

    def _measured(self, drill: Drill, boxes: tuple[PairBox, PairBox]) -> Drill:
        core = self._core
        try:
            before = self._read(core.host, None)
            ask = Asking(core.host, core.paths, asking.places(core.host, core.paths), core.running.own.network)
        except HostError as error:
            raise ApplierRefused("pair-error", f"The drill was not begun: {error}.") from None
        ask.start()
        try:
            self._pairs.hand_over(boxes, f"drill by {drill['user']}", at_any_price=False)
            ask.join(ANSWERS)
        finally:
            ask.stop()
            ask.join(ANSWERS)
        log.info("the drill: %s", ask.words)
        silence = ask.silence
        drill["silence"] = None if silence is None else round(silence * 1000, 1)
        if not ask.trouble:
            drill["unanswered"] = [place.address for place in ask.missing]
        return self._compared(drill, before)

    def _compared(self, drill: Drill, before: Table) -> Drill:
        core = self._core
        if not before.whole:
            return drill | {"failed": "there are more connections than can be compared"}
        asked = {"connections": comparing.to_text(before.open), "part": before.part}
        try:
            answer = core.errands.ask("drill_compare", asked, COMPARES)
            missing = comparing.from_text(answer["missing"])
            # What has been forgotten here as well is over: this box keeps its copies as long as the other one.
            still = self._read(core.host, before.part).open & missing
            after, ending = int(answer["open"]), int(answer["ending"])
        except (ApplierRefused, HostError) as error:
            return drill | {"failed": f"the connections were not compared: {_words(error)}"}
        except (ValueError, KeyError, TypeError):
            return drill | {"failed": "the connections were not compared: the other box has not said what it knows"}
        return drill | {
            "part": before.part,
            "before": len(before.open),
            "after": after,
            "ended": ending + len(missing) - len(still),
            "lost": len(still),
        }

    def _tell_the_other(self, drill: Drill) -> None:
        try:
            self._core.errands.ask("drill_done", {"drill": drill}, TELLS)
        except ApplierRefused as refused:
            log.warning("the other box does not know of the drill: %s", refused)

    def _ask_back(self, boxes: tuple[PairBox, PairBox], user: str) -> None:
        """Once this box stands by, and the other one has heard that."""
        core, end = self._core, self._core.host.now() + SETTLES
        self._running = f"{boxes[1].name} hands over back to {boxes[0].name}, asked for by {user}"
        refused = ApplierRefused("peer-not-ready", f"{boxes[0].name} does not stand by.")
        while core.host.now() < end:
            core.host.sleep(LOOKS)
            role = client.role(core.host, core.paths)
            if role is None or role.role != STANDS_BY:
                continue
            try:
                core.errands.ask("drill_back", {"user": user}, TELLS)
            except ApplierRefused as refusal:
                refused = refusal
                continue
            self._running = ""
            return
        self._running = ""
        self._list.note(_failed(_begun(boxes[::-1], user), refused))


def _begun(boxes: tuple[PairBox, ...], user: str) -> Drill:
    return {
        "id": secrets.token_hex(8),
        "when": now(),
        "user": user,
        "gave": boxes[0].name,
        "took": boxes[1].name,
        "failed": "",
        "silence": None,
        "unanswered": [],
        "part": 1,
        "before": 0,
        "after": 0,
        "ended": 0,
        "lost": 0,
    }


def _failed(drill: Drill, error: BaseException) -> Drill:
    said = error.message if isinstance(error, ApplierRefused) else "The applier has failed; its log says more."
    return drill | {"failed": " ".join(said.split())[: kept.LONGEST]}


def _words(error: Exception) -> str:
    said = error.message if isinstance(error, ApplierRefused) else str(error)
    return " ".join(said.split())[: kept.LONGEST - 60].rstrip(".")


def _numbers(text: str) -> frozenset[int]:
    try:
        return comparing.from_text(text)
    except ValueError as error:
        raise ApplierRefused("bad-field", f"connections {error}.") from None
