"""How the pair stands, as the applier answers it, and who leads: handed over, held, released."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol, cast

from applier.base.paths import Paths
from applier.host.host import Host, HostError
from applier.kept import pair_hold, storage
from applier.kept.events import Events
from applier.kept.faults import Faults, now
from applier.kept.generations import Generations
from applier.kept.lead_changes import LeadChanges
from applier.kept.pair_hold import Hold, Moment
from applier.kept.turn import Turn
from applier.pair import client, fitness, standing
from applier.pair.beat import Beat
from applier.pair.errands import Errands
from applier.pair.fitness import Lacks
from applier.pair.hearing import Hearing
from applier.pair.own import Own
from applier.pair.peer import Peer
from applier.pair.ready import NOT_YET
from applier.pair.roles import HELD, LEADS, hands_over
from applier.pair.seeing import Seeing
from applier.pair.standing import Pair
from applier.pair.telling import knows_all, knows_enough, tell_peer
from applier.wire.errors import ApplierRefused
from applier.wire.shapes_pair import HoldStatus, PairBoxStatus, PairLine, PairState
from lbconfig.model.pair import PairBox
from lbconfig.target import Target

log = logging.getLogger("applier")

TELLS = 3  # times at the most that the other box is told all connections before it leads
KNOWS = 5.0  # seconds that it may take to count them
TAKES = 10.0  # seconds that the other box may take to lead; it takes less than one
LOOKS = 0.1  # seconds between two looks meanwhile
BOOT = "kernel/random/boot_id"
NO_PAIR = "This box is in no pair."


class Core(Protocol):
    """What of the daemon it needs."""

    paths: Paths
    host: Host
    generations: Generations
    faults: Faults
    turn: Turn
    reasons: Events
    running: Target
    confirmed: int | None
    peer: Peer
    own: Own
    errands: Errands

    def established(self) -> int: ...


class Pairs:
    def __init__(self, core: Core, clock: Callable[[], float], tell: Callable[[Core], object] = tell_peer) -> None:
        self.changes = LeadChanges(core.paths.lead_changes)
        self.hearing = Hearing(core, clock)
        self.seeing = Seeing(core)
        self.asked = (0.0, "")  # when and why this box was told last to hand over
        self._core = core
        self._clock = clock
        self._tell = tell

    # --- verbs -----------------------------------------------------------------------------------

    def pair(self) -> PairState:
        boxes = self.boxes()
        if boxes is None:
            return no_pair()
        seen = self.seen(boxes)
        both = [self._own_status(boxes[0], seen.own), _peer_status(boxes[1], seen)]
        refusal = standing.refusal(seen) if seen.own.role == LEADS else standing.not_leading(seen)
        snapshot = self._core.running.snapshot
        return {
            "boxes": both if self._core.running.box == 0 else both[::-1],
            "sentence": standing.sentence(seen),
            "good": standing.good(seen),
            "step": standing.step(seen),
            "clock": None if seen.clock is None else round(seen.clock, 1),
            "paths": self.hearing.shown(),
            "lag": None if self.seeing.lag is None else round(self.seeing.lag * 1000, 1),
            "differences": self.seeing.sentences(boxes[0].name, boxes[1].name),
            "hold": self._hold_status(),
            "refusal": refusal.message if refusal else "",
            "by_itself": snapshot.pair is not None and snapshot.pair.hand_over_by_itself,
            "changes": self.changes.newest(),
        }

    def pair_hand_over(self, user: str) -> PairState:
        """Let the other box lead. Answers once it does."""
        with self._core.turn.take(f"{user} is handing over to the other box of the pair"):
            boxes = self.in_a_pair()
            self.hand_over(boxes, f"{user} asked for it")
        log.info("%s has handed over to %s", user, boxes[1].name)
        return self.pair()

    def pair_hold(self, hours: int, user: str) -> PairState:
        """Keep this box from leading; where it leads, the other one does so first. `hours`: 0: until released."""
        core = self._core
        with core.turn.take(f"{user} is holding this box of the pair"):
            boxes = self.in_a_pair()
            hold = Hold(user, now(), hours, self.moment())
            if self._role() == LEADS:
                self.hand_over(boxes, f"held {hold.reason}")
            self._hold(hold)
        log.info("%s holds this box, %s", user, hold.reason)
        return self.pair()

    def pair_release(self, user: str) -> PairState:
        """Let this box lead again where the other one fails; nothing moves by itself."""
        core = self._core
        with core.turn.take(f"{user} is releasing this box of the pair"):
            boxes = self.in_a_pair()
            role = client.role(core.host, core.paths)
            if self.kept_hold() is None and (role is None or role.role != HELD):
                raise ApplierRefused("not-held", f"{boxes[0].name} is not held.")
            if self.kept_hold() is None and role is not None and _ends_by_itself(role.reason):
                text = f"Nobody holds {boxes[0].name} ({role.reason}); that ends by itself."
                raise ApplierRefused("not-held", text)
            self.forget_hold()
        log.info("%s has released this box", user)
        return self.pair()

    def pair_knows(self) -> dict[str, object]:
        """How many open connections this box has; for the other one, which has told it all of its own."""
        return {"established": self._core.established()}

    def pair_retell(self) -> dict[str, object]:
        """Tell the other box all connections, which has come back and asks for it; and how many of them are open."""
        self._obeyed(lambda: self._tell(self._core))
        return self.pair_knows()

    # --- for the daemon and its lookout --------------------------------------------------------------

    def line(self) -> PairLine | None:
        """What every page says; None: the box is in no pair."""
        boxes = self.boxes()
        if boxes is None:
            return None
        seen = self.seen(boxes)
        there = standing.is_edited_there(seen)
        return {
            "sentence": standing.sentence(seen),
            "good": standing.good(seen),
            "desk": boxes[1].name if there else "",
            "desk_addresses": _addresses(boxes[1]) if there else [],
        }

    def boxes(self) -> tuple[PairBox, PairBox] | None:
        """This box and the other one; None: it is in no pair."""
        running = self._core.running
        if running.snapshot.pair is None or running.box is None:
            return None
        both = running.snapshot.pair.boxes
        return both[running.box], both[1 - running.box]

    def seen(self, boxes: tuple[PairBox, PairBox]) -> Pair:
        core, clock = self._core, self._clock()
        mine, paths = core.own.beat(boxes[0].name), tuple(self.hearing.shown())
        peer, heard = core.peer.known
        if peer is None or heard is None:
            return Pair(mine, boxes[1].name, None, None, "", None, paths, core.turn.taken)
        silent = max(0.0, clock - heard)
        last = datetime.fromtimestamp(time.time() - silent, UTC)
        today = last.date() == datetime.now(UTC).date()
        words = f"{last:%H:%M} UTC" if today else f"{last:%Y-%m-%d %H:%M} UTC"
        ahead = peer.time + silent - time.time() if silent <= standing.AWAY else None
        return Pair(mine, boxes[1].name, peer, silent, words, ahead, paths, core.turn.taken)

    def hand_over(self, boxes: tuple[PairBox, PairBox], why: str, at_any_price: bool = True) -> None:
        """To the other box, and no connection is lost. Raises ApplierRefused.

        `at_any_price`: also where the other box does not know the connections, although it was told them.

        The floater releases this box by itself after two seconds: whatever becomes of the applier meanwhile, it can
        lead again where the other one does not.
        """
        core = self._core
        seen = self.seen(boxes)
        if seen.own.role != LEADS:
            raise standing.not_leading(seen)
        refusal = standing.refusal(seen)
        if refusal is not None:
            raise refusal
        self._tell_all(boxes, at_any_price)
        self.asked = (self._clock(), why)
        self._obeyed(lambda: client.hand_over(core.host, core.paths, why))
        end, told = core.host.now() + TAKES, False
        while not self._the_other_leads(boxes):
            if not told and self._role() != LEADS:
                told = True
                self._tell_the_last()
                end = core.host.now() + TAKES  # a large table may take longer than that
            if core.host.now() >= end:
                text = (
                    f"{boxes[1].name} did not take over within {TAKES:g} seconds; {boxes[0].name} leads where it can."
                )
                raise ApplierRefused("not-taken-over", text)
            core.host.sleep(LOOKS)
        if not told:
            self._tell_the_last()

    def _tell_the_last(self) -> None:
        """What came since the other box was told all, as soon as nothing comes here any more.

        A client who has just been connected repeats what he says for some seconds. Told later, the connections would
        be put back at the other box to what they were here.
        """
        try:
            self._tell(self._core)
        except HostError as error:
            # The other box leads, and knows all but what changed in this second.
            log.error("the other box was not told once more: %s", error)

    def kept_hold(self) -> Hold | None:
        """That an admin holds this box, unless its time is over."""
        hold = pair_hold.read(self._core.paths.pair_hold)
        return None if hold is None or hold.left(self.moment()) == 0 else hold

    def hold_to_leave(self, user: str) -> None:
        """Keep this box from leading, also after a restart: the other one may be alone. Raises ApplierRefused."""
        self._hold(Hold(user, now(), 0, self.moment(), leaves=True))

    def forget_hold(self) -> None:
        """Raises ApplierRefused."""
        core = self._core
        hold = pair_hold.read(core.paths.pair_hold)
        try:
            if core.paths.pair_hold.exists():
                pair_hold.remove(core.paths.pair_hold)
        except OSError as error:
            raise ApplierRefused(*storage.of_error(error, core.paths)) from None
        if hold is not None and hold.begun.boot != self.moment().boot:
            # A box that was restarted meanwhile may lead once it is ready, like any other (watch.py).
            self._obeyed(lambda: client.hold(core.host, core.paths, NOT_YET))
        else:
            self._obeyed(lambda: client.release(core.host, core.paths))

    def keep_hold(self) -> None:
        """Bring about what an admin wants: a restart forgets it, and its time may be over. Raises as forget_hold()."""
        core = self._core
        if not core.paths.pair_hold.exists():
            return
        hold, role = self.kept_hold(), client.role(core.host, core.paths)
        if hold is None:
            self.forget_hold()
        elif role is not None and (role.role, role.reason) != (HELD, hold.reason) and not hands_over(role.reason):
            self._obeyed(lambda: client.hold(core.host, core.paths, hold.reason))

    def moment(self) -> Moment:
        return Moment(self._core.host.setting(BOOT) or "", self._clock(), time.time())

    # ---------------------------------------------------------------------------------------------

    def _hold(self, hold: Hold) -> None:
        core = self._core
        try:
            pair_hold.write(core.paths.pair_hold, hold)
        except OSError as error:
            raise ApplierRefused(*storage.of_error(error, core.paths)) from None
        self._obeyed(lambda: client.hold(core.host, core.paths, hold.reason))

    def in_a_pair(self) -> tuple[PairBox, PairBox]:
        """This box and the other one, or ApplierRefused."""
        boxes = self.boxes()
        if boxes is None:
            raise ApplierRefused("no-pair", NO_PAIR)
        return boxes

    def _tell_all(self, boxes: tuple[PairBox, PairBox], at_any_price: bool) -> None:
        """And make sure that it arrived: nobody acknowledges the kernel's datagrams, and a buffer may overflow."""
        core = self._core
        for more in reversed(range(TELLS)):
            self._obeyed(lambda: self._tell(core))
            try:
                known = core.errands.ask("pair_knows", {}, KNOWS).get("established")
            except ApplierRefused as refused:
                log.warning("it is not known how many connections %s knows: %s", boxes[1].name, refused)
                return
            here = core.established()
            if type(known) is not int or knows_all(known, here) or (not more and knows_enough(known, here)):
                return
        words = f"{boxes[1].name} knows {known:,} of {here:,} connections, although it was told all of them"
        if not at_any_price:
            raise ApplierRefused("not-told", f"{words}; the others would end.")
        log.warning("%s", words)

    def _role(self) -> str:
        found = client.role(self._core.host, self._core.paths)
        return found.role if found else ""

    def _the_other_leads(self, boxes: tuple[PairBox, PairBox]) -> bool:
        seen = self.seen(boxes)
        return seen.own.role != LEADS and seen.heard is not None and seen.heard.role == LEADS

    @staticmethod
    def _obeyed(action: Callable[[], object]) -> None:
        try:
            action()
        except HostError as error:
            raise ApplierRefused("pair-error", f"It could not be done: {error}.") from None

    def _hold_status(self) -> HoldStatus | None:
        hold = self.kept_hold()
        if hold is None:
            return None
        left = hold.left(self.moment())
        return {
            "user": hold.user,
            "since": hold.since,
            "hours": hold.hours,
            "left": None if left is None else round(left, 1),
        }

    def _own_status(self, box: PairBox, said: Beat) -> PairBoxStatus:
        lacks = fitness.sentences(self._core.own.observed)
        return status_of(box.name, _addresses(box), said, 0.0, lacks) | {"own": True}


def _ends_by_itself(reason: str) -> bool:
    return reason == NOT_YET or hands_over(reason)


def _peer_status(box: PairBox, seen: Pair) -> PairBoxStatus:
    lacks = fitness.counted(Lacks(*seen.peer.lacks)) if seen.peer else []
    return status_of(box.name, _addresses(box), seen.peer, seen.silent, lacks)


def _addresses(box: PairBox) -> list[str]:
    """Where the page of that box alone is reached; not over the cable, to which only the boxes are joined."""
    own = (text for one in box.network.interfaces if one.on for text in one.addresses)
    return [text.partition("/")[0] for text in own if text != box.cable_address]


def status_of(
    hostname: str, addresses: list[str], said: Beat | None, heard: float | None, lacks: list[str]
) -> PairBoxStatus:
    """A box by what it said of itself so many seconds ago."""
    found: PairBoxStatus = {
        "hostname": hostname,
        "own": False,
        "addresses": addresses,
        "heard": None if heard is None else round(heard, 1),
        "role": "",
        "since": 0.0,
        "reason": "",
        "version": "",
        "revision": 0,
        "ready": False,
        "connections": 0,
        "lacks": lacks,
    }
    if said is None or heard is None:
        return found
    more = {
        "role": said.role,
        "since": round(said.since + heard, 1),
        "reason": said.reason,
        "version": said.version,
        "revision": said.revision,
        "ready": said.ready,
        "connections": said.connections,
    }
    return cast(PairBoxStatus, found | more)


def no_pair() -> PairState:
    """The answer of a box that is in none."""
    return {
        "boxes": [],
        "sentence": NO_PAIR,
        "good": True,
        "step": "",
        "clock": None,
        "paths": [],
        "lag": None,
        "differences": [],
        "hold": None,
        "refusal": NO_PAIR,
        "by_itself": False,
        "changes": [],
    }
