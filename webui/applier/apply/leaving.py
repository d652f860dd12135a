"""A pair ends: one box leaves it, and the other one goes on alone with all that floated.

Each of the two makes an ordinary change of its own. The box that leaves is held first, so it takes over nothing while
the election ends; and the two have agreed before either begins, because the link between them goes with the change.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from applier.apply.review import admit
from applier.apply.runs import RunRecord
from applier.apply.verbs import Applies
from applier.base.paths import Paths
from applier.host.host import Host
from applier.kept.generations import Generations
from applier.kept.pair_hold import Hold
from applier.kept.turn import Held, Turn
from applier.pair import standing
from applier.pair.errands import Errands
from applier.pair.joining import record
from applier.pair.roles import LEADS
from applier.pair.standing import Pair
from applier.wire.errors import ApplierRefused
from applier.wire.shapes import ApplyStarted, RunState
from lbconfig.leaving import leaving, staying
from lbconfig.model.pair import PairBox
from lbconfig.model.snapshot import Snapshot
from lbconfig.render import files_digest, render
from lbconfig.target import Target
from lbconfig.validate.cards import Card

log = logging.getLogger("applier")

AGREES = 20.0  # seconds that the other box may take to say yes
ANSWERED = 2.0  # seconds for that to arrive, before its link goes


class Seen(Protocol):
    """What knows how the pair stands, and moves the lead (pair/verbs.py)."""

    def boxes(self) -> tuple[PairBox, PairBox] | None: ...
    def seen(self, boxes: tuple[PairBox, PairBox]) -> Pair: ...
    def hand_over(self, boxes: tuple[PairBox, PairBox], why: str) -> None: ...
    def kept_hold(self) -> Hold | None: ...
    def hold_to_leave(self, user: str) -> None: ...
    def forget_hold(self) -> None: ...


class Core(Protocol):
    """What is needed of the daemon."""

    paths: Paths
    host: Host
    turn: Turn
    generations: Generations
    running: Target
    confirmed: int | None
    errands: Errands

    def target(self, number: int | None, snapshot: Snapshot, was: int | None = None) -> Target: ...
    def leases(self) -> Mapping[str, str]: ...
    def cards(self) -> Sequence[Card]: ...


class Leavings:
    def __init__(self, core: Core, applies: Applies, pairs: Seen) -> None:
        self._core = core
        self._applies = applies
        self._pairs = pairs

    # --- verbs -----------------------------------------------------------------------------------

    def pair_leave(self, user: str) -> ApplyStarted:
        """This box leaves the pair, and the other one goes on alone."""
        core = self._core
        with core.turn.take(f"this box leaves the pair, as {user} asked") as held:
            boxes = self._in_a_pair()
            seen, new = self._pairs.seen(boxes), self._new(leaving)
            if seen.heard is not None:
                if seen.own.role == LEADS:
                    self._pairs.hand_over(boxes, f"{user} takes {boxes[0].name} out of the pair")
                self._agree(boxes[0].name, user)
            elif not self._has_begun():
                words = (
                    f"{seen.name} is not heard, so nobody would go on with the services. Switch this box off instead."
                )
                raise ApplierRefused("peer-away", words)
            return self._begin(held, new, user, f"left the pair with {seen.name}")

    def pair_alone(self, user: str) -> ApplyStarted:
        """This box goes on alone. The other one leaves the pair, if it is there."""
        core = self._core
        with core.turn.take(f"this box goes on without the other one, as {user} asked") as held:
            boxes = self._in_a_pair()
            seen, new = self._pairs.seen(boxes), self._new(staying)
            if self._has_begun():
                words = f"{boxes[0].name} has begun to leave the pair. Let it leave, or release it first."
                raise ApplierRefused("leaving", words)
            if seen.heard is not None:
                if seen.own.role != LEADS:
                    raise standing.not_leading(seen)
                core.errands.ask("peer_leaves", {"user": user}, AGREES)
            return self._begin(held, new, user, f"goes on without {seen.name}")

    # --- errands of the other box --------------------------------------------------------------------

    def peer_stays(self, user: str) -> dict[str, Any]:
        """The other box leaves: go on alone. Answers before it begins."""
        with self._core.turn.take(f"this box goes on without the other one, as {user} asked") as held:
            boxes = self._in_a_pair()
            seen = self._pairs.seen(boxes)
            if seen.own.role != LEADS:
                raise standing.not_leading(seen)
            new = self._new(staying)
            self._begin(held, new, user, f"{seen.name} left the pair", later=ANSWERED)
        return {}

    def peer_leaves(self, user: str) -> dict[str, Any]:
        """The other box goes on alone: leave. Answers before it begins."""
        with self._core.turn.take(f"this box leaves the pair, as {user} asked") as held:
            boxes = self._in_a_pair()
            seen = self._pairs.seen(boxes)
            if seen.own.role == LEADS:
                raise ApplierRefused("both-lead", f"{seen.own.hostname} leads as well; wait until that is settled.")
            new = self._new(leaving)
            self._pairs.hold_to_leave(user)
            self._begin(held, new, user, f"{seen.name} goes on without it", later=ANSWERED)
        return {}

    # ---------------------------------------------------------------------------------------------

    def _in_a_pair(self) -> tuple[PairBox, PairBox]:
        boxes = self._pairs.boxes()
        if boxes is None:
            raise ApplierRefused("no-pair", "This box is in no pair.")
        return boxes

    def _new(self, becomes: Callable[[Snapshot, int], Snapshot]) -> Snapshot:
        """What the box becomes, once it was looked at. ApplierRefused where it could not run that."""
        core, running = self._core, self._core.running
        if running.box is None:
            raise ApplierRefused("no-pair", "This box is in no pair.")
        new = becomes(running.snapshot, running.box)
        files = files_digest(render(new))
        admit(new, running.snapshot, files, core.confirmed, core.confirmed, "", core.leases(), core.cards())
        return new

    def _agree(self, own: str, user: str) -> None:
        """Have the other box go on alone. ApplierRefused where it does not, or nobody knows."""
        self._pairs.hold_to_leave(user)
        try:
            self._core.errands.ask("peer_stays", {"user": user}, AGREES)
        except ApplierRefused as refused:
            if refused.code == "peer-away":
                words = f"{own} stays held, as the other box may be alone now: leave again, or release it."
                raise ApplierRefused(refused.code, f"{refused.message} {words}") from None
            self._pairs.forget_hold()
            raise

    def _has_begun(self) -> bool:
        """Whether this box was about to leave, and it is not known what the other one does."""
        hold = self._pairs.kept_hold()
        return hold is not None and hold.leaves

    def _begin(self, held: Held, new: Snapshot, user: str, comment: str, later: float = 0.0) -> ApplyStarted:
        """`later`: so many seconds, for an answer to arrive.

        Nobody is asked to confirm it: if one box went back and the other did not, the two would fight for addresses.
        A box that could not leave stays held for the same reason.
        """
        core, applies = self._core, self._applies
        number = applies.store(new, user, comment, "")
        run = RunRecord.of(f"apply-{number}-{secrets.token_hex(4)}", user, number)
        target = core.target(number, new)

        def work() -> RunState:
            if later:
                core.host.sleep(later)
            outcome = applies.carry_out(target, run)
            if outcome == "done":
                self._forget()
            return outcome

        applies.begin(held, run, work)
        return {"apply": run.id, "secret": "", "confirm_within": 0}

    def _forget(self) -> None:
        """The key by which the other box knew this one, so no revision of the pair comes back by mistake."""
        paths = self._core.paths
        try:
            record.forget(paths)
            for path in (paths.pair_key, paths.pair_hold):
                path.unlink(missing_ok=True)
        except OSError as error:
            log.error("what was kept of the pair: %s", error)
