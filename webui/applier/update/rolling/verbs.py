"""Both boxes of a pair get a new version as one act: carried out here, decided in course.py.

The desk looks at both boxes, asks the other one for its part, and writes down how far it is before it does anything.
The other box has a copy of that, for its pages, and so that nothing else is changed there meanwhile.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import logging
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Protocol

from applier.base.paths import Paths
from applier.host.host import Host
from applier.kept import storage
from applier.kept.faults import Faults, now
from applier.kept.loop import Loop
from applier.kept.turn import Turn
from applier.pair import fitness, standing
from applier.pair.errands import Errands
from applier.pair.fitness import Lacks
from applier.pair.roles import LEADS
from applier.pair.standing import Pair
from applier.pair.verbs import NO_PAIR, Pairs
from applier.pair.watch import Watch
from applier.update.rolling import course as courses
from applier.update.rolling import record
from applier.update.rolling.course import Course, Deed, Half, Phase, Seen
from applier.update.rolling.receiving import PIECE, Receiving
from applier.update.verbs import Updates
from applier.wire.errors import ApplierRefused
from applier.wire.shapes import Nothing
from applier.wire.shapes_rolling import Choice, Rolling
from lbconfig.model.pair import PairBox
from lbconfig.target import Target

log = logging.getLogger("applier")

EVERY = 2.0  # seconds between two looks
SENDING = 10.0  # seconds for which pieces are sent between two looks, each of which costs a slow box as much as a piece
SOON = 10.0  # seconds that the other box may take for an answer
LONG = 60.0  # the same where it looks into a bundle, hands over, or chooses what starts next
LISTENS = 30.0  # seconds without a word of the desk, after which this box may be changed again
BLOCK = 1 << 20  # bytes
# What an admin asks for, and is refused while both boxes are being updated.
NOT_MEANWHILE = frozenset(
    {
        "apply",
        "repair",
        "restore",
        "pair_choose",
        "pair_drill",
        "pair_hand_over",
        "pair_hold",
        "update_check",
        "update_install",
        "update_forget",
        "boot_slot",
    }
)
# Faults that say nothing about the version.
ELSEWHERE = ("pair-", "update-", "data-full")


class Core(Protocol):
    """What of the daemon it needs."""

    paths: Paths
    host: Host
    turn: Turn
    faults: Faults
    running: Target
    pairs: Pairs
    pair_watch: Watch
    errands: Errands
    updates: Updates


class RollingUpdate:
    def __init__(self, core: Core, clock: Callable[[], float]) -> None:
        self._core = core
        self._clock = clock
        self._lock = threading.RLock()  # of what is kept; nothing is waited for with it
        self._kept: Course | None = None
        self._entered = 0.0  # when it came into its phase
        self._peer: Half | None = None  # as the other box answered last
        self._answered = float("-inf")  # when that was; at the other box: when the desk asked last
        self._started = clock()  # a silence is no older than this applier
        self._steady = 0.0  # since when the other box has answered without a gap
        self._failed: tuple[str, str] | None = None
        self._acknowledged = False  # the other box knows that it is over
        self._receiving = Receiving(core.paths)
        self._installing = ("", "")  # at the other box: the update and its job
        self.loop = Loop("the update of both boxes", self.tick, lambda: core.host.sleep(EVERY))

    def start(self) -> None:
        """Go on with what is on the disk."""
        found = record.load(self._core.paths.pair_update)
        with self._lock:
            self._kept, self._entered = found, self._clock()
            course = self._course
            if course is not None and self._is_desk(course):
                self._kept = courses.resumed(course)

    # --- verbs -----------------------------------------------------------------------------------

    def pair_update(self) -> Rolling:
        """The update of both boxes that is under way, or the last one."""
        course = self._course
        if course is None:
            return courses.nothing()
        return courses.told(course, self._is_desk(course), *self._halves(course), self._is_alone(course))

    def pair_update_ready(self) -> Nothing:
        """Refuse what pair_update_start would refuse without a look at the bundle: asked before it is uploaded."""
        self.refuse_meanwhile("pair_update_start")
        self._may_begin()
        return {}

    def _may_begin(self) -> tuple[tuple[PairBox, PairBox], Pair]:
        """This box and the other one, and how they are; this box leads, and the other one is there and in step."""
        boxes = self._core.pairs.in_a_pair()
        seen = self._core.pairs.seen(boxes)
        if seen.own.role != LEADS:
            elsewhere = f" Update both boxes at {boxes[1].name}." if _leads(seen) else ""
            raise ApplierRefused("not-leading", f"{boxes[0].name} does not lead.{elsewhere}")
        refusal = standing.refusal(seen)
        if refusal is not None:
            raise refusal
        return boxes, seen

    def pair_update_start(self, source: str, user: str) -> Rolling:
        """Bring both boxes to the version of this bundle."""
        core = self._core
        self.refuse_meanwhile("pair_update_start")
        with core.turn.take(f"{user} begins to update both boxes"):
            boxes, seen = self._may_begin()
            version = core.updates.update_check(source)["version"]
            if version == core.paths.version and seen.heard is not None and seen.heard.version == version:
                raise ApplierRefused("version-runs", f"Both boxes run version {version} already.")
            with core.updates.opened(source) as path:
                size, digest = _sum(path)
            course = Course(
                secrets.token_hex(16), self._pair(), self._own_place(), (boxes[0].name, boxes[1].name), version, source,
                size, digest, user, now(),
            )  # fmt: skip
            # Whether it knows this at all, and may be updated, is asked before anything is written down.
            self._ask_for_look(course)
            with self._lock:
                self._peer, self._failed = None, None
                self._become(course)
        log.info("user %s updates both boxes to version %s", user, version)
        return self.pair_update()

    def pair_update_choose(self, choice: Choice, user: str) -> Rolling:
        """Stop it, go on, go back or leave the boxes as they are; at either box."""
        course = self._course
        if course is None:
            raise ApplierRefused("no-update", "Both boxes are not being updated.")
        if not self._is_desk(course):
            try:
                self._ask("peer_update_choose", LONG, id=course.id, choice=choice, user=user)
            except ApplierRefused as refused:
                if refused.code != "peer-away" or choice != "leave":
                    raise
                # Nobody else is there to end it.
            if choice == "leave":
                self._choose(course.id, choice, user)
        else:
            self._choose(course.id, choice, user)
        return self.pair_update()

    # --- verbs of the other box ------------------------------------------------------------------

    def peer_update_look(self, course: Mapping[str, object], half: Mapping[str, object]) -> dict[str, Any]:
        """The desk tells how far it is and how it is itself, and hears how this box is."""
        try:
            told, desk = record.read_course(course), record.read_half(half)
        except record.Wrong as error:
            raise ApplierRefused("bad-field", f"The update of both boxes: {error}.") from None
        if told.pair != self._pair() or told.desk == self._own_place():
            raise ApplierRefused("bad-field", "The update of both boxes: desk: is not the box that asks.")
        if not self._core.updates.slots()["present"]:
            name = told.names[1]
            raise ApplierRefused("no-slots", f"{name} does not run from a disk with two slots, so it is not updated.")
        with self._lock:
            kept = self._course
            if kept is not None and kept.active and self._is_desk(kept):
                raise ApplierRefused("busy", "Both boxes are being updated from here.")
            left = kept is not None and kept.id == told.id and kept.phase is Phase.LEFT
            if not left and told != kept:
                self._become(told)
            self._peer, self._answered = desk, self._clock()
        return asdict(replace(self._half(told), left=left and not told.over))

    def peer_update_piece(self, id: str, offset: int, data: str) -> dict[str, Any]:
        """A piece of the bundle, as base64; answers how many bytes are here now."""
        course = self._of_desk(id)
        try:
            piece = base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            raise ApplierRefused("bad-field", "The update of both boxes: data: is not base64.") from None
        limit = self._core.updates.limit
        return {"have": self._receiving.take(id, course.size, course.digest, limit, offset, piece)}

    def peer_update_install(self, id: str) -> dict[str, Any]:
        """Install the bundle that has come; answers the name of the job."""
        course = self._of_desk(id)
        source, updates = f"upload:{id}", self._core.updates
        if self._installing[0] == id:
            return {"job": self._installing[1]}  # the answer to that was lost
        found = updates.update_check(source)["version"]
        if found != course.version:
            raise ApplierRefused("bundle-refused", f"The bundle holds version {found} and not {course.version}.")
        self._installing = (id, updates.update_install(source, course.user)["job"])
        return {"job": self._installing[1]}

    def peer_update_restart(self, id: str, version: str) -> Nothing:
        """Start the version in the other slot. Never where this box leads: its clients would notice."""
        course, name = self._of_desk(id), self._own_name()
        seen = self._core.pairs.seen(self._core.pairs.in_a_pair())
        if seen.own.role == LEADS:
            raise ApplierRefused("leads", f"{name} leads, so it was not restarted.")
        slots = self._core.updates.slots()["slots"]
        other = next((one for one in slots if not one["booted"]), None)
        if other is None or (version and other["version"] != version) or not other["version"]:
            held = other["version"] if other and other["version"] else "nothing"
            words = f"{name} was to start {f'version {version}' if version else 'its version before'}"
            raise ApplierRefused("slot-empty", f"{words}, and its other slot holds {held}.")
        self._core.updates.boot_slot(other["name"], course.user)
        return {}

    def peer_update_hand_over(self, id: str) -> Nothing:
        """Let the desk lead again."""
        course = self._of_desk(id)
        self._hand_over(course)
        return {}

    def peer_update_choose(self, id: str, choice: Choice, user: str) -> Nothing:
        """What an admin has decided at the other box."""
        course = self._course
        if course is None or course.id != id or not self._is_desk(course):
            raise ApplierRefused("no-update", "This update of both boxes is not known here.")
        self._choose(id, choice, user)
        return {}

    # --- for the daemon --------------------------------------------------------------------------

    def refuse_meanwhile(self, verb: str) -> None:
        """ApplierRefused for what would get in the way of an update of both boxes."""
        course = self._course
        if course is None or not course.active or verb not in (*NOT_MEANWHILE, "pair_update_start"):
            return
        if self._is_desk(course) or self._clock() - self._answered <= LISTENS:
            words = f"Right now both boxes are being updated to version {course.version}"
            raise ApplierRefused("busy", f"{words} by {course.user}; wait until that has ended, or stop it.")

    def tick(self) -> None:
        """Look at both boxes, and do what is next; in a box without a pair, nothing."""
        course, boxes = self._course, self._core.pairs.boxes()
        if course is None or boxes is None or not self._is_desk(course):
            return
        if course.over and self._acknowledged:
            return
        self._look(course)
        seen = self._seen(course, boxes)
        with self._lock:
            if self._course is not course:
                return  # an admin has chosen meanwhile
            self._failed = None
            following = courses.after(course, seen)
            if following.course != course:
                self._become(following.course)
        if following.deed is not None:
            self._do(following.course, following.deed, boxes)

    # --- looking ---------------------------------------------------------------------------------

    def _look(self, course: Course) -> None:
        try:
            half = record.read_half(self._ask_for_look(course))
        except ApplierRefused as refused:
            if refused.code != "peer-away":
                log.warning("the update of both boxes: %s", refused)
            return
        except record.Wrong as error:
            log.warning("the update of both boxes: the other box: %s", error)
            return
        with self._lock:
            now = self._clock()
            if now - self._answered > courses.AWAY:
                self._steady = now
            self._peer, self._answered = half, now
            self._acknowledged = course.over and self._course is course

    def _seen(self, course: Course, boxes: tuple[PairBox, PairBox]) -> Seen:
        core, clock = self._core, self._clock()
        pair = core.pairs.seen(boxes)
        heard = pair.heard
        return Seen(
            waited=clock - self._entered,
            own=self._half(course),
            peer=self._peer,
            silent=clock - max(self._answered, self._started),
            own_role=pair.own.role,
            peer_role=heard.role if heard else "",
            in_step=standing.step(pair) == "in step",
            ready=heard is not None and heard.ready,
            told=core.pair_watch.told,
            own_connections=pair.own.connections,
            peer_connections=heard.connections if heard else 0,
            worse=_worse(pair),
            steady=clock - self._steady,
            failed=self._failed,
        )

    def _half(self, course: Course) -> Half:
        """This box. Raises ApplierRefused where its slots cannot be read."""
        core = self._core
        state = core.updates.slots()
        booted = next((one for one in state["slots"] if one["booted"]), None)
        other = next((one for one in state["slots"] if not one["booted"]), None)
        job, outcome = state["job"], state["outcome"]
        faults = [(one["code"], record.line(one["message"])) for one in core.faults.to_data()]
        return Half(
            version=core.paths.version,
            good=booted is not None and booted["good"],
            other=other["version"] if other and other["can_start"] else "",
            trial=outcome["state"] if outcome else "",
            trial_version=outcome["version"] if outcome else "",
            trial_sentence=record.line(outcome["sentence"]) if outcome else "",
            job=job["id"] if job else "",
            job_state=job["state"] if job else "",
            job_message=record.line(job["message"]) if job else "",
            percent=job["percent"] if job else 0,
            received=self._receiving.received(course.id),
            faults=tuple(one for one in faults if not one[0].startswith(ELSEWHERE))[: record.MOST_FAULTS],
        )

    # --- doing -----------------------------------------------------------------------------------

    def _do(self, course: Course, deed: Deed, boxes: tuple[PairBox, PairBox]) -> None:
        """What becomes of it is seen by the next look; only a refusal is told."""
        core, id = self._core, course.id
        if deed is not Deed.SEND:
            log.info("the update of both boxes: %s", deed)
        try:
            match deed:
                case Deed.SEND:
                    self._send(course)
                case Deed.INSTALL_PEER:
                    self._begun(course, 1, self._ask("peer_update_install", LONG, id=id).get("job"))
                case Deed.INSTALL_OWN:
                    self._begun(course, 0, core.updates.update_install(course.source, course.user)["job"])
                case Deed.RESTART_PEER:
                    self._ask("peer_update_restart", LONG, id=id, version=course.version)
                case Deed.HAND_OVER:
                    self._hand_over(course)
                case Deed.RESTART_OWN:
                    core.updates.boot_slot(self._other_slot(), course.user)
                case Deed.HAND_BACK:
                    self._ask("peer_update_hand_over", LONG, id=id)
                case Deed.RETURN_PEER:
                    self._ask("peer_update_restart", LONG, id=id, version="")
        except ApplierRefused as refused:
            log.warning("the update of both boxes: %s: %s", deed, refused)
            name = course.names[int(deed in courses.OF_PEER)]
            said = refused.message if name in refused.message else f"{name}: {refused.message}"
            self._failed = (refused.code, said)

    def _send(self, course: Course) -> None:
        """As many pieces as go until the next look, or an admin has chosen otherwise."""
        have, end = self._peer.received if self._peer else 0, self._core.host.now() + SENDING
        with self._core.updates.opened(course.source) as path:
            try:
                with path.open("rb") as file:
                    while have < course.size and self._core.host.now() < end and self._course == course:
                        file.seek(have)
                        data = base64.b64encode(file.read(PIECE)).decode()
                        answer = self._ask("peer_update_piece", SOON, id=course.id, offset=have, data=data)
                        have = _place(answer.get("have"), course.size)
                        self._note_received(have)
            except OSError as error:
                words = f"The bundle cannot be read: {error.strerror or error}."
                raise ApplierRefused("bundle-unreadable", words) from None

    def _note_received(self, have: int) -> None:
        with self._lock:
            if self._peer is not None:
                self._peer = replace(self._peer, received=have)

    def _hand_over(self, course: Course) -> None:
        core = self._core
        with core.turn.take(f"both boxes are being updated by {course.user}"):
            core.pairs.hand_over(core.pairs.in_a_pair(), f"both boxes are updated by {course.user}")

    def _begun(self, course: Course, box: int, job: object) -> None:
        """An install has begun."""
        jobs = list(course.jobs)
        jobs[box] = str(job)[: record.LONGEST]
        with self._lock:
            if self._course is course:
                self._become(replace(course, jobs=(jobs[0], jobs[1])))

    # ---------------------------------------------------------------------------------------------

    def _ask_for_look(self, course: Course) -> dict[str, Any]:
        return self._ask("peer_update_look", SOON, course=asdict(course), half=asdict(self._half(course)))

    def _halves(self, course: Course) -> tuple[Half | None, Half | None]:
        """The desk and the other box, as far as this one knows."""
        own, peer = self._half(course), self._peer
        return (own, peer) if self._is_desk(course) else (peer, own)

    def _is_alone(self, course: Course) -> bool:
        """Whether the desk is the other box, and has not been heard of for a while."""
        return not self._is_desk(course) and self._clock() - self._answered > LISTENS

    def _ask(self, verb: str, within: float, **arguments: object) -> dict[str, Any]:
        return self._core.errands.ask(verb, arguments, within)

    def _choose(self, id: str, choice: Choice, user: str) -> None:
        with self._lock:
            course = self._course
            if course is None or course.id != id or course.phase is Phase.LEFT:
                return  # the desk has told already
            allowed = courses.choices(course, *self._halves(course), self._is_alone(course))
            if choice not in allowed:
                words = f"The update of both boxes cannot do that now. Possible: {', '.join(allowed) or 'nothing'}."
                raise ApplierRefused("not-possible", words)
            self._become(courses.chosen(course, choice, user))
        log.info("user %s at the update of both boxes: %s", user, choice)

    def _become(self, course: Course) -> None:
        """Written down first. ApplierRefused where that is not possible."""
        with self._lock:
            before = self._kept
            try:
                record.save(self._core.paths.pair_update, course)
            except OSError as error:
                raise ApplierRefused(*storage.of_error(error, self._core.paths)) from None
            self._kept = course
            if before is None or (before.id, before.phase, before.stopped) != (course.id, course.phase, course.stopped):
                self._entered, self._acknowledged = self._clock(), False
                log.info("the update of both boxes: %s %s", course.phase, course.stopped)

    def _of_desk(self, id: str) -> Course:
        """The update that the other box is the desk of."""
        course = self._course
        if course is None or course.id != id or self._is_desk(course) or not course.active:
            raise ApplierRefused("no-update", "This update of both boxes is not under way here.")
        return course

    def _is_desk(self, course: Course) -> bool:
        return course.desk == self._own_place()

    def _own_place(self) -> int:
        """Which box of the pair this is. Raises ApplierRefused."""
        box = self._core.running.box
        if box is None:
            raise ApplierRefused("no-pair", NO_PAIR)
        return box

    def _pair(self) -> str:
        pair = self._core.running.snapshot.pair
        return pair.id if pair is not None and self._core.running.in_pair else ""

    @property
    def _course(self) -> Course | None:
        """What is kept, as long as the box is in the pair that it is about."""
        kept = self._kept
        return kept if kept is not None and kept.pair == self._pair() else None

    def _own_name(self) -> str:
        return self._core.pairs.in_a_pair()[0].name

    def _other_slot(self) -> str:
        return next((one["name"] for one in self._core.updates.slots()["slots"] if not one["booted"]), "")


def _leads(seen: Pair) -> bool:
    return seen.heard is not None and seen.heard.role == LEADS


def _worse(seen: Pair) -> str:
    """What the other box lacks and this one does not."""
    if seen.heard is None:
        return ""
    own, peer = Lacks(*seen.own.lacks), Lacks(*seen.heard.lacks)
    return " ".join(fitness.counted(peer)) if peer > own else ""


def _sum(path: Path) -> tuple[int, str]:
    total, size = hashlib.sha256(), 0
    try:
        with path.open("rb") as file:
            while block := file.read(BLOCK):
                total.update(block)
                size += len(block)
    except OSError as error:
        raise ApplierRefused("bundle-unreadable", f"The bundle cannot be read: {error.strerror or error}.") from None
    return size, total.hexdigest()


def _place(have: object, size: int) -> int:
    if type(have) is not int or not 0 <= have <= size:
        raise ApplierRefused("bad-field", f"The other box has received {str(have)[:20]} bytes of {size}.")
    return have
