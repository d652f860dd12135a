"""A box in memory that is the first one of a pair. Part of appliance.py.

appliance.box.pair = pair.sample()           # FAIRLEAD_FAKE_PAIR=1 make dev has it from the start
appliance.box.pair.silent = 700.0            # the other one was not heard for so long
appliance.box.pair.peer = replace(…)         # what it says of itself
"""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from tests.fake import run as fake_run
from tests.fake.part import Part

from applier.apply.peer_review import asked
from applier.pair import fitness, standing
from applier.pair.beat import Beat
from applier.pair.drill import shown
from applier.pair.fitness import Lacks, Observed
from applier.pair.hearing import SILENT
from applier.pair.roles import HELD, LEADS, STANDS_BY
from applier.pair.standing import Pair
from applier.pair.verbs import NO_PAIR, no_pair, status_of
from applier.wire.errors import ApplierRefused
from applier.wire.shapes import ApplyStarted, Nothing, Problem, Review
from applier.wire.shapes_pair import (
    AlongState,
    Brought,
    Drill,
    DrillState,
    HoldStatus,
    LeadChange,
    PairLine,
    PairState,
    PathStatus,
)
from lbconfig.leaving import leaving, staying
from lbconfig.model.snapshot import Snapshot
from lbconfig.render import render

if TYPE_CHECKING:
    from tests.fake.appliance import Box

NEW, OLD = "a" * 64, "b" * 64  # digests of configurations
OWN = Beat("lb1", LEADS, 7500.0, "", "0.2.0", 3, NEW, (NEW, OLD), True, 1240, 0)
PEER = replace(OWN, hostname="lb2", role=STANDS_BY, since=7400.0, connections=1238)


def _changes() -> list[LeadChange]:
    return [
        {"when": "2026-01-31T12:00:00Z", "leads": "lb1", "reason": "admin asked for it"},
        {"when": "2026-01-30T03:12:40Z", "leads": "lb2", "reason": "front: its network has no link or no address"},
    ]


def _paths() -> list[PathStatus]:
    return [
        {"interface": name, "address": address, "cable": cable, "silent": 0.5, "ever": True, "alive": True}
        for name, address, cable in (("eth2", "192.0.2.2", True), ("eth0", "192.168.10.22", False))
    ]


@dataclass
class FakePairState:
    """Everything that can be arranged."""

    own: Beat = OWN
    peer: Beat | None = PEER
    silent: float = 0.2
    clock: float = 0.1
    observed: Observed = field(default_factory=Observed)
    hold: HoldStatus | None = None
    changes: list[LeadChange] = field(default_factory=_changes)
    theirs: dict[str, str] | None = None  # the documents of the other box; by their names its stamps, too
    texts: dict[str, str] = field(default_factory=dict)
    drills: list[Drill] = field(default_factory=list)
    drilling: str = ""
    paths: list[PathStatus] = field(default_factory=_paths)
    differences: list[str] = field(default_factory=list)
    refuses: list[Problem] = field(default_factory=list)  # what the other box has against each change

    @property
    def seen(self) -> Pair:
        heard = self.peer is not None
        last = f"{time.strftime('%H:%M', time.gmtime(time.time() - self.silent))} UTC"
        silent = self.silent if heard else None
        return Pair(self.own, "lb2", self.peer, silent, last if heard else "", self.clock, tuple(self.between))

    @property
    def between(self) -> list[PathStatus]:
        """The paths as they are arranged; while the other box is away it answers on none of them."""
        if self.peer is None:
            return [{**path, "alive": False, "ever": False} for path in self.paths]
        if self.silent > SILENT:
            return [{**path, "alive": False, "silent": max(path["silent"], self.silent)} for path in self.paths]
        return copy.deepcopy(self.paths)

    def line(self) -> PairLine:
        there = standing.is_edited_there(self.seen)
        return {
            "sentence": standing.sentence(self.seen),
            "good": standing.good(self.seen),
            "desk": "lb2" if there else "",
            "desk_addresses": ["192.168.10.22"] if there else [],
        }

    def refusal(self) -> ApplierRefused | None:
        return standing.refusal(self.seen) if self.own.role == LEADS else standing.not_leading(self.seen)

    def hand_over(self, reason: str) -> None:
        refusal = self.refusal()
        if refusal is not None or self.peer is None:
            raise refusal or ApplierRefused("peer-away", "lb2 is not heard.")
        self.own = replace(self.own, role=STANDS_BY, since=0.0)
        self.peer = replace(self.peer, role=LEADS, since=0.0)
        self.changes.insert(0, {"when": fake_run.now(), "leads": self.peer.hostname, "reason": reason})

    def drill(self, user: str, back: bool = False) -> None:
        """It is over at once. `back`: it is the other box that hands over."""
        gave, took = ("lb2", "lb1") if back else ("lb1", "lb2")
        if back and self.peer is not None:
            self.own = replace(self.own, role=LEADS, since=0.0)
            self.peer = replace(self.peer, role=STANDS_BY, since=0.0)
        else:
            self.hand_over(f"drill by {user}")
        count = len(self.drills)
        self.drills.insert(
            0,
            {
                "id": str(count), "when": fake_run.now(), "user": user, "gave": gave, "took": took, "failed": "",
                "silence": 31.0, "unanswered": [], "part": 1, "before": 1240, "after": 1238, "ended": 2, "lost": 0,
            },
        )  # fmt: skip

    def drill_state(self) -> DrillState:
        return {"running": self.drilling, "drills": [shown(one) for one in self.drills]}

    def reviewed(self, found: Review) -> Review:
        """As both boxes see it."""
        if found["problems"]:
            return found

        def ask() -> dict[str, Any]:
            if self.silent > standing.AWAY:
                raise ApplierRefused("peer-away", "lb2 is not heard.")
            return {"problems": self.refuses, "files": "" if self.refuses else found["digest"]}

        return asked(found, "lb2", "lb1", ask)

    def to_data(self) -> PairState:
        seen, refusal = self.seen, self.refusal()
        counted = fitness.counted(Lacks(*self.peer.lacks)) if self.peer else []
        return {
            "boxes": [
                status_of("lb1", ["192.168.10.21"], seen.own, 0.0, fitness.sentences(self.observed)) | {"own": True},
                status_of("lb2", ["192.168.10.22"], seen.peer, seen.silent, counted),
            ],
            "sentence": standing.sentence(seen),
            "good": standing.good(seen),
            "step": standing.step(seen),
            "clock": seen.clock if seen.heard else None,
            "paths": self.between,
            "lag": 4.2 if seen.heard else None,
            "differences": [*self.differences],
            "hold": copy.deepcopy(self.hold),
            "refusal": refusal.message if refusal else "",
            "by_itself": True,
            "changes": copy.deepcopy(self.changes),
        }


def sample() -> FakePairState:
    return FakePairState()


def usual() -> FakePairState | None:
    return sample() if os.environ.get("FAIRLEAD_FAKE_PAIR") else None


class FakePair(Part):
    """The methods of applier.wire.client.Client that are about the pair."""

    def pair(self) -> PairState:
        with self._box() as b:
            return b.pair.to_data() if b.pair else no_pair()

    def pair_hand_over(self, user: str) -> PairState:
        with self._box() as b:
            state = _in_a_pair(b)
            state.hand_over(f"{user} asked for it")
            return state.to_data()

    def pair_drills(self) -> DrillState:
        with self._box() as b:
            return b.pair.drill_state() if b.pair else {"running": "", "drills": []}

    def pair_drill(self, back: bool, user: str) -> DrillState:
        with self._box() as b:
            state = _in_a_pair(b)
            state.drill(user)
            if back:
                state.drill(user, back=True)
            return state.drill_state()

    def pair_hold(self, hours: int, user: str) -> PairState:
        with self._box() as b:
            state, words = _in_a_pair(b), f"by {user}" + (f", for {hours} hour{'s' * (hours != 1)}" if hours else "")
            if state.own.role == LEADS:
                state.hand_over(f"held {words}")
            state.own = replace(state.own, role=HELD, reason=words, since=0.0)
            left = 3600.0 * hours if hours else None
            state.hold = {"user": user, "since": fake_run.now(), "hours": hours, "left": left}
            return state.to_data()

    def pair_release(self, user: str) -> PairState:
        with self._box() as b:
            state = _in_a_pair(b)
            if state.own.role != HELD:
                raise ApplierRefused("not-held", "lb1 is not held.")
            state.own, state.hold = replace(state.own, role=STANDS_BY, reason="", since=0.0), None
            return state.to_data()

    def pair_choose(self, user: str) -> Nothing:
        with self._box() as b:
            state = _in_a_pair(b)
            if state.peer is None or standing.step(state.seen) != "forked":
                raise ApplierRefused("nothing-to-choose", "lb1 and lb2 do not differ, so there is nothing to choose.")
            state.peer = replace(state.peer, digest=state.own.digest, lineage=state.own.lineage)
            return {}

    def pair_leave(self, user: str) -> ApplyStarted:
        with self._box() as b:
            state = _in_a_pair(b)
            if state.seen.heard is None:
                raise ApplierRefused("peer-away", "lb2 is not heard, so nobody would go on with the services.")
            return _end(b, leaving, user, "left the pair with lb2")

    def pair_alone(self, user: str) -> ApplyStarted:
        with self._box() as b:
            state = _in_a_pair(b)
            if state.seen.heard is not None and state.own.role != LEADS:
                raise standing.not_leading(state.seen)
            return _end(b, staying, user, "goes on without lb2")

    def pair_along(self, stamps: dict[str, str], trouble: str = "") -> AlongState:
        with self._box() as b:
            b.faults = [one for one in b.faults if one["code"] != "pair-along"]
            if trouble:
                b.fault("pair-along", trouble)
            state: AlongState = {
                "pair": "", "box": 0, "own": "", "other": "", "desk": True, "revision": b.confirmed,
                "theirs": None, "wanted": [],
            }  # fmt: skip
            if b.pair is None:
                return state
            more = {"pair": "0123456789abcdef" * 2, "own": "lb1", "other": "lb2", "theirs": b.pair.theirs}
            return cast(AlongState, state | more | {"desk": b.pair.own.role == LEADS})

    def pair_offer(self, name: str, text: str) -> Nothing:
        return {}

    def pair_bring(self, name: str) -> Brought:
        with self._box() as b:
            if name not in _in_a_pair(b).texts:
                raise ApplierRefused("not-offered", "The web pages of this box have not said yet what that is.")
            return {"text": _in_a_pair(b).texts[name]}


def _end(b: Box, becomes: Callable[[Snapshot, int], Snapshot], user: str, comment: str) -> ApplyStarted:
    new = becomes(b.snapshot, 0) if b.snapshot.pair else b.snapshot
    b.pair = None
    return fake_run.start(b, new, render(new), user, comment, None)


def _in_a_pair(b: Box) -> FakePairState:
    if b.pair is None:
        raise ApplierRefused("no-pair", NO_PAIR)
    return b.pair
