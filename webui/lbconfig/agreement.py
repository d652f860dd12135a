"""How two boxes come to run one configuration: the protocol of a pair, as a function of states.

Each box tells the other its whole state, twice a second and whenever it changes (`Said`), and acts on what the other
one said last. So a message that is lost, comes twice or comes late is no case of its own: the next one says it again,
and one that is older than what was heard already is dropped.

The box at which an admin applies is the *desk* of that change. Its peer tries the change first; then the desk tries it
too; then the desk decides by writing it down, and only that makes the peer confirm. Until then either of them goes back
when the other one fails, goes back, restarts or falls silent. A peer that missed the decision is *behind*, and follows
when it hears of it. Two boxes that were changed while they were apart are *forked*: both run on, and somebody chooses.

`hear`, `pass_time` and the others take the state of a box and return the next one with what is to be done, in this
order: what is `Confirm`ed is on the disk before the other box hears of it. Seconds are of a clock that never jumps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

BEAT = 0.5  # seconds from one message to the next where nothing changes
SILENT = 10.0  # seconds without a word after which a change is given up
TOGETHER = 30.0  # the same for a change of the path between the boxes itself
DOUBT = 60.0  # seconds that a peer which tried a change waits for a desk that has fallen silent
AGAIN = 60.0  # seconds after which a box tries once more to follow, where it failed
REFUSALS = 8
ID_LENGTH = 32  # hexadecimal digits of a revision's id
KNOWN = 1000  # revisions that a box remembers to have had


@dataclass(frozen=True, slots=True)
class Revision:
    id: str  # made anew for every change
    digest: str  # of the snapshot


Lineage = tuple[Revision, ...]  # what a box has had, one made from the other; the last one is confirmed


# The changes that a box last gave up or turned down, and why, the newest last. More than one: the other box may still
# ask for one of them, as it has not heard of that yet.
Refusals = tuple[tuple[str, str], ...]


class Standing(StrEnum):
    """How a box stands to the other one."""

    IN_STEP = "in step"
    TWIN = "twin"  # the same configuration, made at both while they were apart
    BEHIND = "behind"
    AHEAD = "ahead"
    FORKED = "forked"


class Part(StrEnum):
    """What a box does in a change."""

    DESK = "desk"
    PEER = "peer"
    ALONE = "alone"  # the desk of a change that somebody wants without the other box
    FOLLOWER = "follower"  # it brings itself to what the other one has


class Stage(StrEnum):
    ASKS = "asks"  # the desk: nothing has been done yet
    TAKEN = "taken"  # the peer of a change of the path between them: it tries in a moment
    TRIES = "tries"
    WAITS = "waits"  # it runs, and is not confirmed


@dataclass(frozen=True, slots=True)
class Job:
    """A change that is under way at a box."""

    part: Part
    revision: Revision
    lineage: Lineage  # with the revision, as it is once the change is confirmed
    stage: Stage
    since: float  # when it entered the stage
    within: float  # seconds that an admin has for confirming; 0: nobody is asked
    together: bool = False  # it changes the path between the boxes: both try at once


@dataclass(frozen=True, slots=True)
class Said:
    """What a box tells the other one of itself."""

    epoch: int  # how often it has started
    number: int  # of the message, since then
    lineage: Lineage
    job: Job | None
    refused: Refusals = ()
    proved: str = ""  # the change whose confirmation arrived at this box
    chosen: bool = False  # of two forks, this one's is to stay


@dataclass(frozen=True, slots=True)
class Box:
    """A box, as far as the agreement goes. Across a restart only `index`, `epoch` and `lineage` live on."""

    index: int  # 0, 1: of two that are equally right, 0 goes first
    epoch: int
    lineage: Lineage
    number: int = 0
    job: Job | None = None
    refused: Refusals = ()
    proved: str = ""
    chosen: bool = False
    other: Said | None = None  # what was heard last
    heard: float = 0.0  # when
    failed: tuple[str, float] = ("", 0.0)  # the revision that this box could not follow to, and when

    def silent(self, now: float) -> bool:
        return self.other is None or now - self.heard > SILENT


@dataclass(frozen=True, slots=True)
class Try:
    """Do all steps of a revision, up to checking whether they took; `tried` is to be called with the outcome."""

    revision: Revision
    follows: bool = False  # the other box runs it already: nobody is asked to confirm


@dataclass(frozen=True, slots=True)
class GoBack:
    """Undo what was tried, or stop trying it."""

    revision: Revision
    why: str


@dataclass(frozen=True, slots=True)
class Confirm:
    """Write to the disk that this is what the box runs; its last one is the revision that is kept with the others."""

    lineage: Lineage


@dataclass(frozen=True, slots=True)
class Tell:
    """Send the `message` to the other box."""


Deed = Try | GoBack | Confirm | Tell
Next = tuple[Box, Sequence[Deed]]


class Refused(Exception):
    """A change cannot begin; the text says why."""


def standing(mine: Lineage, theirs: Lineage) -> Standing:
    if mine[-1] == theirs[-1]:
        return Standing.IN_STEP
    if mine[-1] in theirs:
        return Standing.BEHIND
    if theirs[-1] in mine:
        return Standing.AHEAD
    return Standing.TWIN if mine[-1].digest == theirs[-1].digest else Standing.FORKED


def why_not(box: Box | Said, revision: str) -> str:
    """Why a box gave up or turned down a change; "": it did not, or long ago."""
    return dict(box.refused).get(revision, "")


def _refuses(box: Box, revision: str, why: str) -> Box:
    return replace(box, refused=(*box.refused, (revision, why))[-REFUSALS:])


def stands(box: Box) -> Standing | None:
    """How it stands to what was last heard of the other one; None: nothing was heard."""
    return standing(box.lineage, box.other.lineage) if box.other else None


def restarted(index: int, epoch: int, lineage: Lineage) -> Box:
    """A box that starts, with what its disk tells; `epoch` is one more than the last time."""
    return Box(index, epoch, lineage[-KNOWN:])


def begin(
    box: Box, revision: Revision, within: float, now: float, *, alone: bool = False, together: bool = False
) -> Next:
    """An admin applies at this box; `alone`: he said that the other box need not take part. Raises Refused."""
    if box.job:
        raise Refused("another change is under way")
    if alone:
        if not box.silent(now):
            raise Refused("the other box is there: it takes part")
        part, stage = Part.ALONE, Stage.TRIES
    else:
        if box.silent(now):
            raise Refused("the other box is away")
        if stands(box) is not Standing.IN_STEP:
            raise Refused(f"the boxes are not in step: this one is {stands(box)}")
        part, stage = Part.DESK, Stage.ASKS
    lineage = (*box.lineage, revision)[-KNOWN:]
    box = replace(box, job=Job(part, revision, lineage, stage, now, within, together))
    return box, ([Try(revision)] if alone else []) + [Tell()]


def tried(box: Box, revision: str, why: str, now: float) -> Next:
    """This box has tried a revision; `why` it failed, and it is back where it was; "": it runs, and is verified."""
    job = box.job
    if job is None or job.revision.id != revision or job.stage is not Stage.TRIES:
        return box, []
    if why:
        failed = (revision, now) if job.part is Part.FOLLOWER else box.failed
        return replace(_refuses(box, revision, why), job=None, failed=failed), [Tell()]
    if job.part is Part.FOLLOWER or (job.part is Part.ALONE and not job.within):
        return _confirmed(box, job)
    return _react(replace(box, job=replace(job, stage=Stage.WAITS, since=now)), [Tell()], now)


def proved(box: Box, revision: str, now: float) -> Next:
    """The admin has shown at this box that he reaches it: the change may stay."""
    if box.job is None or box.job.revision.id != revision:
        return box, []
    return _react(replace(box, proved=revision), [Tell()], now)


def give_up(box: Box, why: str) -> Next:
    """The admin at this box wants the change undone."""
    return _gone_back(box, box.job, why) if box.job and box.job.part is not Part.FOLLOWER else (box, [])


def choose(box: Box) -> Next:
    """Of two forks, that of this box stays, and the other one follows. Raises Refused."""
    if stands(box) is not Standing.FORKED or box.job:
        raise Refused("there is nothing to choose")
    return replace(box, chosen=True), [Tell()]


def hear(box: Box, said: Said, now: float) -> Next:
    """The other box has told its state; what is older than what was heard already is dropped."""
    if box.other and (said.epoch, said.number) <= (box.other.epoch, box.other.number):
        return box, []
    return _react(replace(box, other=said, heard=now), [], now)


def pass_time(box: Box, now: float) -> Next:
    """To be called at every beat."""
    return _react(box, [Tell()], now)


def connected(box: Box) -> Box:
    """The other box has come by a new connection, on which everything is in its order: it may have started to count
    anew, as one does that went back to an earlier moment."""
    return replace(box, other=replace(box.other, epoch=-1, number=-1)) if box.other else box


def not_confirmed(box: Box, why: str, now: float) -> Next:
    """What a `Confirm` asks for could not be written down, and the box is back where it was. `box`: as before it."""
    job = box.job
    if job is None:
        return box, []
    failed = box.failed if job.part in (Part.DESK, Part.ALONE) else (job.revision.id, now)
    return replace(_refuses(box, job.revision.id, why), job=None, proved="", failed=failed), [Tell()]


def message(box: Box) -> tuple[Box, Said]:
    """What is sent for a `Tell`; each one has a number of its own."""
    box = replace(box, number=box.number + 1)
    return box, Said(box.epoch, box.number, box.lineage, box.job, box.refused, box.proved, box.chosen)


def _react(box: Box, deeds: Sequence[Deed], now: float) -> Next:
    box, more = _at_work(box, box.job, now) if box.job else _at_rest(box, now)
    told = [deed for deed in (*deeds, *more) if not isinstance(deed, Tell)]
    return box, told + ([Tell()] if len(told) < len(deeds) + len(more) else [])


def _confirmed(box: Box, job: Job) -> Next:
    return replace(box, lineage=job.lineage, job=None, proved="", chosen=False), [Confirm(job.lineage), Tell()]


def _gone_back(box: Box, job: Job, why: str) -> Next:
    begun = job.stage in (Stage.TRIES, Stage.WAITS)
    box = replace(_refuses(box, job.revision.id, why), job=None, proved="")
    return box, ([GoBack(job.revision, why)] if begun else []) + [Tell()]


def _at_rest(box: Box, now: float) -> Next:
    """Take part in what the other one has begun, or come into step with it."""
    other = box.other
    if other is None or box.silent(now):
        return box, []
    job, where = other.job, standing(box.lineage, other.lineage)
    if job and job.part is Part.DESK:
        return _asked(box, job, now)
    if job:
        return box, []
    if box.chosen and where is not Standing.FORKED:
        box = replace(box, chosen=False)
    first = box.index == 0
    if where is Standing.TWIN and not first:
        return replace(box, lineage=other.lineage), [Confirm(other.lineage), Tell()]
    follows = where is Standing.BEHIND or (where is Standing.FORKED and other.chosen and not (first and box.chosen))
    head = other.lineage[-1]
    if not follows or (box.failed[0] == head.id and now - box.failed[1] < AGAIN):
        return box, []
    job = Job(Part.FOLLOWER, head, other.lineage, Stage.TRIES, now, 0)
    return replace(box, job=job, chosen=False), [Try(job.revision, follows=True), Tell()]


def _asked(box: Box, job: Job, now: float) -> Next:
    id = job.revision.id
    if why_not(box, id) or job.stage is not Stage.ASKS:
        return box, []
    if standing(box.lineage, job.lineage[:-1]) is not Standing.IN_STEP:
        return _refuses(box, id, "it is not in step"), [Tell()]
    mine = replace(job, part=Part.PEER, stage=Stage.TAKEN if job.together else Stage.TRIES, since=now)
    return replace(box, job=mine), ([] if job.together else [Try(job.revision)]) + [Tell()]


def _at_work(box: Box, job: Job, now: float) -> Next:
    match job.part:
        case Part.DESK if box.other:
            return _at_desk(box, job, box.other, now)
        case Part.PEER if box.other:
            return _as_peer(box, job, box.other, now)
        case Part.ALONE if job.stage is Stage.WAITS:
            return _end_of_waiting(box, job, now) or (box, [])
        case _:
            return box, []


def _at_desk(box: Box, job: Job, other: Said, now: float) -> Next:
    id = job.revision.id
    theirs = other.job if other.job and other.job.revision.id == id else None
    if now - max(box.heard, job.since if job.together else 0) > (TOGETHER if job.together else SILENT):
        return _gone_back(box, job, "the other box went away")
    if why := why_not(other, id):
        return _gone_back(box, job, f"the other box: {why}")
    if job.stage is Stage.ASKS:
        if other.job and other.job.part is Part.DESK and box.index == 1:
            return _gone_back(box, job, "a change at the other box was first")
        if theirs and (job.together or theirs.stage is Stage.WAITS):
            return replace(box, job=replace(job, stage=Stage.TRIES, since=now)), [Try(job.revision), Tell()]
        return box, []
    if theirs is None:
        return _gone_back(box, job, "the other box has started anew")
    if job.stage is Stage.WAITS and theirs.stage is Stage.WAITS:
        return _end_of_waiting(box, job, now) or (box, [])
    return box, []


def _end_of_waiting(box: Box, job: Job, now: float) -> Next | None:
    """The decision, or that nobody made it in time; None: it may still be made."""
    at_other = box.other is not None and job.part is Part.DESK and box.other.proved == job.revision.id
    if not job.within or box.proved == job.revision.id or at_other:
        return _confirmed(box, job)
    if now - job.since > job.within:
        return _gone_back(box, job, "nobody confirmed it in time")
    return None


def _as_peer(box: Box, job: Job, other: Said, now: float) -> Next:
    id = job.revision.id
    if job.stage is Stage.WAITS and any(one.id == id for one in other.lineage):
        return _confirmed(box, job)
    if other.job is None or other.job.revision.id != id:
        why = why_not(other, id)
        return _gone_back(box, job, f"the other box: {why}" if why else "the other box gave it up")
    if job.stage is Stage.TAKEN and now - job.since > 2 * BEAT:
        return replace(box, job=replace(job, stage=Stage.TRIES, since=now)), [Try(job.revision), Tell()]
    if now - box.heard > (TOGETHER if job.together else job.within + DOUBT):
        return _gone_back(box, job, "the other box fell silent")
    return box, []
