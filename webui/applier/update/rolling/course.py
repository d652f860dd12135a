"""How far the update of both boxes of a pair is, and what is to be done next. Pure.

The box at which it was begun, the desk, does all that is to be done; it leads then, and the other box restarts first.
What was done is never remembered but seen: which version runs, what the other slot holds, who leads. So whatever is
lost, done twice, or done meanwhile by somebody else, the next step follows from how the two boxes are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from applier.pair.roles import HELD, LEADS, STANDS_BY
from applier.wire.shapes_rolling import Choice, Rolling, RollingStep, State

RETURNS = 1800.0  # seconds: three tries of a slot, each with the boot of a large server and the patience of bootcheck
SETTLES = 120.0  # seconds to be in step and to know the connections
MOVES = 60.0  # seconds until somebody leads who should
WATCHED = 60.0  # seconds that the updated box is seen to lead before the other one restarts
WATCH_ENDS = 600.0  # seconds within which that has to come true, where the link between the two comes and goes
AWAY = 10.0  # seconds without an answer, where one is due at any time
JUST_NOW = 1.0  # seconds since an answer, where the desk itself stops leading or restarts because of it
GONE = 120.0  # seconds without an answer while nothing depends on it yet
INSTALLED = 3600.0  # seconds for sending, and for writing on a slow disk
FEW = 20  # connections that come and go between two looks
TRANSIENT = frozenset({"busy", "overloaded", "peer-away"})  # what is refused for these is asked again


class Phase(StrEnum):
    SENDS = "sends"
    INSTALLS = "installs"
    RESTARTS = "restarts"  # the other box
    LEARNS = "learns"  # the other box, what it missed
    HANDS_OVER = "hands-over"
    WATCHES = "watches"
    OWN = "own"  # the desk restarts
    BACK = "back"  # the other box, to the version before
    DONE = "done"
    WENT_BACK = "went-back"
    LEFT = "left"  # as it is


class Deed(StrEnum):
    SEND = "send"
    INSTALL_PEER = "install-peer"
    INSTALL_OWN = "install-own"
    RESTART_PEER = "restart-peer"
    HAND_OVER = "hand-over"
    RESTART_OWN = "restart-own"
    HAND_BACK = "hand-back"
    RETURN_PEER = "return-peer"


OF_DEGREE = ("connections", "worse", "faults")  # doubts that somebody may accept
OF_PEER = (Deed.SEND, Deed.INSTALL_PEER, Deed.RESTART_PEER, Deed.HAND_BACK, Deed.RETURN_PEER)
OVER = (Phase.DONE, Phase.WENT_BACK, Phase.LEFT)
CHANGES_NOTHING = (Phase.SENDS, Phase.INSTALLS)  # no box has left its version


@dataclass(frozen=True, slots=True)
class Course:
    id: str  # also the name of the bundle at the other box
    pair: str  # its id
    desk: int  # which box of the pair it is
    names: tuple[str, str]  # of the desk and of the other box
    version: str
    source: str  # of the bundle, at the desk
    size: int  # bytes of the bundle
    digest: str  # of the bundle
    user: str
    since: str
    phase: Phase = Phase.SENDS
    jobs: tuple[str, str] = ("", "")  # installs of the desk and of the other box; empty: not begun
    stopped: str = ""  # why it does not go on; empty: it does
    doubt: str = ""  # what kind of reason that is
    accepted: tuple[str, ...] = ()  # doubts despite which somebody has told it to go on

    @property
    def over(self) -> bool:
        return self.phase in OVER

    @property
    def active(self) -> bool:
        """Whether it goes on by itself."""
        return not self.over and not self.stopped


@dataclass(frozen=True, slots=True)
class Half:
    """What one box tells of its slots."""

    version: str  # runs
    good: bool  # it is marked good
    other: str  # the version in the other slot that can start; empty: none
    trial: str = ""  # the state of the last update; empty: there was none
    trial_version: str = ""
    trial_sentence: str = ""
    job: str = ""  # the last install since the applier was started
    job_state: str = ""
    job_message: str = ""
    percent: int = 0
    received: int = 0  # bytes of the bundle
    faults: tuple[tuple[str, str], ...] = ()  # code and sentence
    left: bool = False  # somebody has ended the update there

    def holds(self, version: str) -> bool:
        """Whether the version runs, or waits for a restart into it."""
        return self.version == version or (
            self.other == version and (self.trial, self.trial_version) == ("installed", version)
        )


@dataclass(frozen=True, slots=True)
class Seen:
    """Both boxes, as the desk sees them now."""

    waited: float  # seconds in this phase
    own: Half
    peer: Half | None  # its last answer; None: there was none since the applier was started
    silent: float  # seconds since that
    own_role: str
    peer_role: str  # empty: it is not heard
    in_step: bool
    ready: bool  # the other box, to lead
    told: bool  # whether the other box was told all connections since it came back
    own_connections: int
    peer_connections: int
    worse: str  # what the other box lacks and this one does not, as a sentence; empty: nothing
    steady: float  # seconds for which it has answered without a gap
    failed: tuple[str, str] | None = None  # code and sentence of the last deed's refusal


class Next(NamedTuple):
    course: Course
    deed: Deed | None = None


def after(course: Course, seen: Seen) -> Next:
    """What is to be done now."""
    if not course.over and seen.peer is not None and seen.peer.left:
        return Next(replace(course, phase=Phase.LEFT, stopped="", doubt=""))
    if not course.active:
        return Next(course)
    if seen.failed is not None and (seen.failed[0] not in TRANSIENT or seen.waited > _PATIENCE[course.phase]):
        return _stop(course, "refused", seen.failed[1])
    return _NEXT[course.phase](course, seen)


def resumed(course: Course) -> Course:
    """What is left of it when the desk's applier is started anew."""
    if course.active and course.phase in CHANGES_NOTHING:
        why = f"{course.names[0]} was restarted before both boxes had version {course.version}. Upload it again."
        return _stop(course, "restarted", why).course
    return course


def choices(course: Course, own: Half | None, peer: Half | None, alone: bool = False) -> tuple[Choice, ...]:
    """What an admin can decide now. `alone`: at the other box, which does not hear the desk."""
    if course.over:
        return ()
    if alone:
        return ("leave",)  # the desk hears of it when it is back
    if not course.stopped:
        return ("stop",)
    if course.phase in CHANGES_NOTHING:
        return ("leave",)
    found: list[Choice] = []
    if not any(half is not None and _failed(course, half) for half in (own, peer)):
        found.append("go-on")
    if own and own.version != course.version and peer and peer.version == course.version and peer.other:
        found.append("go-back")
    return (*found, "leave")


def chosen(course: Course, choice: Choice, user: str) -> Course:
    """What an admin has decided; one of choices()."""
    if choice == "stop":
        return _stop(course, "asked", f"{user} has stopped the update.").course
    if choice == "leave":
        return replace(course, phase=Phase.LEFT, stopped="", doubt="")
    if choice == "go-back":
        return replace(course, phase=Phase.BACK, stopped="", doubt="", accepted=())
    if course.phase in (Phase.WATCHES, Phase.OWN) and course.doubt not in OF_DEGREE:
        course = replace(course, phase=Phase.LEARNS)  # who leads may be another one by now
    return replace(course, stopped="", doubt="", accepted=(*course.accepted, course.doubt))


# --- the phases ------------------------------------------------------------------------------------------


def _sends(course: Course, seen: Seen) -> Next:
    peer = seen.peer
    if peer is None or seen.silent > GONE:
        return _wait(course, seen, GONE, _unheard(course))
    if peer.holds(course.version) or peer.received == course.size:
        return _to(course, Phase.INSTALLS)
    return Next(course, Deed.SEND)


def _installs(course: Course, seen: Seen) -> Next:
    halves = (seen.own, seen.peer)
    for half, job, name in zip(halves, course.jobs, course.names, strict=True):
        if half is None or half.holds(course.version) or not job:
            continue
        if half.job != job:
            return _stop(course, "install", f"{name} was restarted while version {course.version} was installed.")
        if half.job_state == "failed":
            return _stop(course, "install", f"{name}: {half.job_message}")
    if seen.peer is None or seen.silent > GONE:
        return _wait(course, seen, GONE, _unheard(course))
    if seen.peer.holds(course.version) and seen.own.holds(course.version):
        return _to(course, Phase.RESTARTS)
    if not seen.peer.holds(course.version) and not course.jobs[1]:
        if seen.peer.received != course.size:
            return _to(course, Phase.SENDS)  # it was restarted, and has lost what had come
        return Next(course, Deed.INSTALL_PEER)
    if not seen.own.holds(course.version) and not course.jobs[0]:
        return Next(course, Deed.INSTALL_OWN)
    return _wait(course, seen, INSTALLED, f"Version {course.version} could not be installed on both boxes in time.")


def _restarts(course: Course, seen: Seen) -> Next:
    own, other = course.names
    peer = seen.peer
    late = f"{other} has not come up with version {course.version} within {RETURNS / 60:.0f} minutes."
    if peer is None or seen.silent > AWAY:
        return _wait(course, seen, RETURNS, late)
    if peer.version == course.version:
        return _to(course, Phase.LEARNS) if peer.good else _wait(course, seen, RETURNS, late)
    if _failed(course, peer):
        return _stop(course, "failed", f"{other}: {peer.trial_sentence}")
    if not peer.holds(course.version):  # it is on its way
        return _wait(course, seen, RETURNS, late)
    if seen.peer_role == LEADS:
        return _stop(course, "roles", f"{other} leads by now, so it was not restarted. Hand over to {own} first.")
    if seen.own_role != LEADS:
        return _wait(course, seen, MOVES, f"{own} does not lead, so {other} was not restarted.")
    return Next(course, Deed.RESTART_PEER)


def _learns(course: Course, seen: Seen) -> Next:
    own, other = course.names
    if seen.peer is None or seen.silent > AWAY or not seen.peer_role:
        return _wait(course, seen, SETTLES, _unheard(course))
    if seen.peer.version != course.version:
        return _stop(course, "failed", _left_again(course, seen.peer))
    if not seen.in_step:
        return _wait(course, seen, SETTLES, f"{other} runs version {course.version}, but is not in step with {own}.")
    if seen.peer_role == LEADS:
        return _to(course, Phase.HANDS_OVER)
    if not seen.ready or seen.peer_role != STANDS_BY:
        why = "is held" if seen.peer_role == HELD else "is not ready to lead"
        return _wait(course, seen, SETTLES, f"{other} runs version {course.version}, but {why}.")
    known = seen.told and knows_enough(seen)
    if not known and "connections" not in course.accepted:
        count = f"{seen.peer_connections:,} of {seen.own_connections:,}"
        return _wait(course, seen, SETTLES, f"{other} knows only {count} connections.", "connections")
    return _to(course, Phase.OWN if seen.own.version == course.version else Phase.HANDS_OVER)


def _hands_over(course: Course, seen: Seen) -> Next:
    own, other = course.names
    if seen.own_role == LEADS:
        if seen.peer is None or seen.silent > JUST_NOW or not seen.peer_role:
            return _wait(course, seen, MOVES, _unheard(course))
        if seen.peer.version != course.version:
            return _stop(course, "failed", _left_again(course, seen.peer))
        return Next(course, Deed.HAND_OVER)
    if seen.peer_role == LEADS:
        return _to(course, Phase.WATCHES)
    return _wait(course, seen, MOVES, f"{own} has handed over, but {other} does not lead.")


def _watches(course: Course, seen: Seen) -> Next:
    """A silence says nothing of the version: it is waited for, and the watch begins anew after it."""
    own, other = course.names
    if seen.own_role == LEADS:
        return _stop(course, "roles", f"{own} leads again, so it was not restarted.")
    if seen.peer is None or seen.silent > AWAY or not seen.peer_role:
        if seen.silent > MOVES:
            why = f"{other} was to lead with version {course.version}, but has not answered for {MOVES:.0f} seconds."
            return _stop(course, "watch", why)
        return _wait(course, seen, WATCH_ENDS, _unsteady(course), "watch")
    if seen.peer.version != course.version:
        return _stop(course, "watch", _left_again(course, seen.peer))
    if seen.peer_role != LEADS:
        return _stop(course, "watch", f"{other} was to lead with version {course.version}, but does not.")
    if seen.worse and "worse" not in course.accepted:
        return _stop(course, "worse", f"{other} lacks what {own} has: {seen.worse}")
    new = new_faults(seen)
    if new and "faults" not in course.accepted:
        return _stop(course, "faults", f"{other} has a fault that {own} has not: {new[0]}")
    if min(seen.waited, seen.steady) >= WATCHED:
        return _to(course, Phase.OWN)
    return _wait(course, seen, WATCH_ENDS, _unsteady(course), "watch")


def _own(course: Course, seen: Seen) -> Next:
    own, other = course.names
    half = seen.own
    if half.version == course.version:
        if not half.good:
            return _wait(course, seen, RETURNS, f"{own} runs version {course.version}, but its checks do not end.")
        if not seen.in_step or seen.silent > AWAY:
            why = f"{other} does not answer" if seen.silent > AWAY else f"is not in step with {other}"
            late = f"{own} runs version {course.version}, but {why}."
            return _wait(course, seen, RETURNS, late)
        return _to(course, Phase.DONE)
    if _failed(course, half):
        return _stop(course, "failed", f"{own}: {half.trial_sentence}")
    if not half.holds(course.version):
        late = f"{own} was to restart into version {course.version}, and has not."
        return _wait(course, seen, RETURNS, late)
    unheard = seen.peer is None or seen.silent > JUST_NOW or not seen.peer_role
    if unheard or seen.peer_role != LEADS or seen.own_role == LEADS:
        why = f"{own} was not restarted, because {other} does not {'answer' if unheard else 'lead'}."
        return _wait(course, seen, MOVES, why, "roles")
    return Next(course, Deed.RESTART_OWN)


def _back(course: Course, seen: Seen) -> Next:
    own, other = course.names
    peer = seen.peer
    late = f"{other} has not come back with its version before within {RETURNS / 60:.0f} minutes."
    if peer is None or seen.silent > AWAY or not seen.peer_role:
        return _wait(course, seen, RETURNS, late)
    if peer.version != course.version:
        done = peer.good and seen.in_step
        return _to(course, Phase.WENT_BACK) if done else _wait(course, seen, RETURNS, late)
    if peer.trial == "trying" and peer.trial_version != course.version:
        return _wait(course, seen, RETURNS, late)
    if seen.peer_role == LEADS:
        if seen.own_role == STANDS_BY:
            return Next(course, Deed.HAND_BACK)
        return _wait(course, seen, MOVES, f"{own} cannot lead, so {other} was not restarted.")
    if seen.own_role != LEADS:
        return _wait(course, seen, MOVES, f"{own} does not lead, so {other} was not restarted.")
    return Next(course, Deed.RETURN_PEER)


_NEXT: Mapping[Phase, Callable[[Course, Seen], Next]] = {
    Phase.SENDS: _sends,
    Phase.INSTALLS: _installs,
    Phase.RESTARTS: _restarts,
    Phase.LEARNS: _learns,
    Phase.HANDS_OVER: _hands_over,
    Phase.WATCHES: _watches,
    Phase.OWN: _own,
    Phase.BACK: _back,
}
# Seconds for which what is refused for the moment is asked again.
_PATIENCE: Mapping[Phase, float] = {
    Phase.SENDS: INSTALLED,
    Phase.INSTALLS: GONE,
    Phase.RESTARTS: RETURNS,
    Phase.LEARNS: SETTLES,
    Phase.HANDS_OVER: MOVES,
    Phase.WATCHES: WATCHED,
    Phase.OWN: MOVES,
    Phase.BACK: RETURNS,
}


def _to(course: Course, phase: Phase) -> Next:
    return Next(replace(course, phase=phase))


def _stop(course: Course, doubt: str, why: str) -> Next:
    return Next(replace(course, stopped=why.strip(), doubt=doubt))


def _wait(course: Course, seen: Seen, seconds: float, why: str, doubt: str = "late") -> Next:
    return _stop(course, doubt, why) if seen.waited > seconds else Next(course)


def _failed(course: Course, half: Half) -> bool:
    """Whether the version did not come up there."""
    return half.version != course.version and (half.trial, half.trial_version) == ("failed", course.version)


def _left_again(course: Course, peer: Half) -> str:
    return f"{course.names[1]} runs version {peer.version} again. {peer.trial_sentence}"


def _unheard(course: Course) -> str:
    return f"{course.names[1]} does not answer over the pair link."


def _unsteady(course: Course) -> str:
    return f"{course.names[1]} could not be watched for {WATCHED:.0f} seconds without a gap: its link comes and goes."


def knows_enough(seen: Seen) -> bool:
    """Whether the other box knows 99 % of the connections; a few come and go between two looks."""
    return seen.own_connections - seen.peer_connections <= max(FEW, seen.own_connections // 100)


def new_faults(seen: Seen) -> list[str]:
    """Sentences of faults that the other box has, and this one has not."""
    known = {code for code, _ in seen.own.faults}
    return [sentence for code, sentence in seen.peer.faults if code not in known] if seen.peer else []


# --- for people ------------------------------------------------------------------------------------------


def sentence(course: Course, own_percent: int | None, peer: Half | None) -> str:
    """What happens now, or how it ended."""
    own, other = course.names
    version = course.version
    if course.stopped:
        return course.stopped
    sent = 100 * peer.received // max(course.size, 1) if peer else 0
    percents = (own_percent or 0, peer.percent if peer else 0)
    return {
        Phase.SENDS: f"The bundle is sent to {other}: {sent} %.",
        Phase.INSTALLS: f"Version {version} is installed: {own} {percents[0]} %, {other} {percents[1]} %.",
        Phase.RESTARTS: f"{other} restarts into version {version}; {own} leads.",
        Phase.LEARNS: f"{other} runs version {version} and learns all connections.",
        Phase.HANDS_OVER: f"{own} hands over to {other}.",
        Phase.WATCHES: f"{other} leads with version {version}, and is watched for {WATCHED:.0f} seconds.",
        Phase.OWN: f"{own} restarts into version {version}; {other} leads.",
        Phase.BACK: f"{other} goes back to its version before.",
        Phase.DONE: f"Both boxes run version {version}.",
        Phase.WENT_BACK: f"{other} went back to its version before.",
        Phase.LEFT: "The update was ended, and the boxes were left as they were.",
    }[course.phase]


def told(course: Course, here: bool, own: Half | None, peer: Half | None, alone: bool) -> Rolling:
    """For the pages. `here`: of the desk; `alone`: as for choices()."""
    ended: Mapping[Phase, State] = {Phase.DONE: "done", Phase.WENT_BACK: "went-back", Phase.LEFT: "left"}
    words = sentence(course, own.percent if own else None, peer)
    if alone and course.active and course.phase is not Phase.OWN:
        words = f"{words} {course.names[0]}, which does the rest, is not heard at the moment."
    return {
        "id": course.id,
        "version": course.version,
        "user": course.user,
        "since": course.since,
        "desk": course.names[0],
        "here": here,
        "state": ended.get(course.phase) or ("stopped" if course.stopped else "running"),
        "sentence": words,
        "steps": steps(course),
        "choices": [*choices(course, own, peer, alone)],
    }


def nothing() -> Rolling:
    """Both boxes were never updated as one act."""
    return {
        "id": "",
        "version": "",
        "user": "",
        "since": "",
        "desk": "",
        "here": False,
        "state": "none",
        "sentence": "",
        "steps": [],
        "choices": [],
    }


def steps(course: Course) -> list[RollingStep]:
    """The way from the bundle to the end, and how far it is."""
    own, other = course.names
    words = {
        Phase.SENDS: f"Send the bundle to {other}",
        Phase.INSTALLS: "Install it on both boxes",
        Phase.RESTARTS: f"Restart {other} into version {course.version}",
        Phase.LEARNS: f"Tell {other} all connections",
        Phase.HANDS_OVER: f"Hand over to {other}",
        Phase.WATCHES: f"Watch {other} for {WATCHED:.0f} seconds",
        Phase.OWN: f"Restart {own} into version {course.version}",
    }
    if course.phase in (Phase.BACK, Phase.WENT_BACK):
        words = {Phase.BACK: f"Restart {other} into its version before"}
    order = list(words)
    if course.phase is Phase.LEFT:
        return []
    at = order.index(course.phase) if course.phase in order else len(order)
    now: RollingStep = {"words": "", "state": "stopped" if course.stopped else "now"}
    return [
        {"words": text, "state": "done" if place < at else now["state"] if place == at else "later"}
        for place, text in enumerate(words.values())
    ]
