"""One apply from end to end: admitted, carried out step by step, confirmed or put back.

What can cut the admin off waits, after its last step and before it is confirmed, for a sign that he can still reach
the box; without one everything is undone. What waits is noted in /run (pending.py), so that a new daemon goes on
with it; on the disk its generation is not the confirmed one, so no boot ever loads it.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from applier.apply import pending
from applier.apply.both import Both
from applier.apply.deadline import Clock, Deadline, Decision
from applier.apply.early import Early
from applier.apply.engine import Engine
from applier.apply.job import Job, Tools
from applier.apply.pending import Ask, Pending
from applier.apply.review import admit, parse
from applier.apply.runs import (
    IN_A_PAIR,
    WAITING_SENTENCE,
    RunRecord,
    confirmed_sentence,
    in_vain_sentence,
    taken_back_sentence,
    waits_words,
)
from applier.apply.share import Share
from applier.apply.steps import APPLY, CONVERGE
from applier.base.paths import Paths
from applier.host.host import Host, HostError
from applier.kept import storage
from applier.kept.faults import Faults
from applier.kept.generations import Damaged, Descent, Generations
from applier.kept.turn import Held, Turn
from applier.pair.joining import record as joining
from applier.pair.peer import Peer
from applier.parts import web_server
from applier.wire.errors import ApplierRefused
from applier.wire.shapes import ENDED, ApplyStarted, Ending, RunState, RunStatus
from lbconfig.agreement import Revision
from lbconfig.agreement_lines import Content
from lbconfig.diff.cutoff import USUAL, cutoff
from lbconfig.model import canonical
from lbconfig.model.snapshot import FACTORY, Snapshot
from lbconfig.render import files_digest, render
from lbconfig.target import Target, joined
from lbconfig.validate.cards import Card

log = logging.getLogger("applier")

CHANGES = tuple(step for step in APPLY if step.name != "confirm")
PUT_BACK = "Everything was put back."
NOBODY_ASKED = Ask(0, (), (), ())
STARTED_ANEW = "The applier was started anew before both boxes of the pair had confirmed the changes."
CONFIRM = tuple(step for step in APPLY if step.name == "confirm")
SETTLE_SECONDS = 10.0  # so long `confirm` waits for the disk before it answers
HEAD_START = 2.0  # seconds: the page that follows the box must be in the browser before its way there may go


class Core(Protocol):
    """What an apply needs of the daemon."""

    paths: Paths
    host: Host
    turn: Turn
    generations: Generations
    early: Early
    faults: Faults
    running: Target
    confirmed: int | None
    known_good: bool  # whether the kernel was last seen to hold what runs

    both: Both
    peer: Peer

    @property
    def tools(self) -> Tools: ...

    def key(self) -> str: ...
    def target(self, number: int | None, snapshot: Snapshot, was: int | None = None) -> Target: ...
    @property
    def relieved(self) -> bool: ...

    def set_running(self, target: Target) -> None: ...

    def leases(self) -> Mapping[str, str]: ...
    def cards(self) -> Sequence[Card]: ...


@dataclass
class Course:
    """One apply on its way. `resumed`: by a daemon that did not do the steps itself, and so cannot undo them singly."""

    engine: Engine
    record: RunRecord
    before: Target
    target: Target
    resumed: bool = False
    share: Share | None = None  # in a change of both boxes of a pair


@dataclass(frozen=True)
class Waiting:
    record: RunRecord
    note: Pending
    deadline: Deadline
    settled: threading.Event
    share: Share | None = None


class Applies:
    def __init__(self, core: Core, clock: Clock) -> None:
        self.record: RunRecord | None = None
        self._core = core
        self._clock = clock
        self._waiting: Waiting | None = None

    @property
    def waiting(self) -> bool:
        return self._waiting is not None

    # --- verbs -----------------------------------------------------------------------------------

    def apply(
        self, snapshot: dict[str, object] | str, digest: str, base: int | None, user: str, comment: str, client: str,
        confirm_within: int | None, services: Sequence[object] = (),
    ) -> ApplyStarted:  # fmt: skip
        core = self._core
        new = parse(snapshot, services)
        with core.turn.take(f"the changes of {user} are being applied") as held:
            ran, key = core.running.snapshot, core.key() if new.pair else ""
            admit(new, ran, digest, base, core.confirmed, client, core.leases(), core.cards(), key)
            found = cutoff(core.running.snapshot, new)
            within = confirm_within or (USUAL if found.asks else 0)
            secret = secrets.token_urlsafe(24) if within else ""
            ask = Ask.of(found, within) if within else None
            if new.pair and (core.running.in_pair or core.both.makes(new)):
                name = self._begin_both(held, new, user, comment, client, ask, secret)
                return {"apply": name, "secret": secret, "confirm_within": within}
            number = self.store(new, user, comment, client)
            record = RunRecord.of(f"apply-{number}-{secrets.token_hex(4)}", user, number)
            record.ask = ask
            target = core.target(number, new)
            self.begin(held, record, lambda: self.carry_out(target, record, pending.hashed(secret)))
            return {"apply": record.id, "secret": secret, "confirm_within": within}

    def _begin_both(
        self, held: Held, new: Snapshot, user: str, comment: str, client: str, ask: Ask | None, secret: str
    ) -> str:
        """This box and the other one of its pair, or this one alone where the other one is away; the apply's name."""
        core = self._core
        plan = core.both.plan(new, user, comment)
        descent = core.generations.descent_of(plan.revision, plan.desk)
        number = self.store(new, user, comment, client, descent)
        record = RunRecord.of(f"apply-{number}-{secrets.token_hex(4)}", user, number)
        record.ask = ask
        hashed = pending.hashed(secret) if secret else ""
        try:
            share = core.both.begin(plan, number, record.id, hashed, ask.within if ask else 0)
        except ApplierRefused:
            with contextlib.suppress(OSError, Damaged):
                core.generations.end(number, "rolled back", 0.0)
            raise
        target = core.target(number, new)
        self.begin(held, record, lambda: self.carry_out(target, record, hashed, share), share)
        return record.id

    def take_part(self, content: Content, revision: Revision, share: Share, within: float, follows: bool) -> None:
        """Try what is applied at the other box of the pair, or what that one runs already. ApplierRefused: not here."""
        core, about = self._core, content.about
        beat = core.peer.beat
        # Another version writes the same in other words; and what is followed may be older than both boxes' versions.
        in_other_words = follows or (beat is not None and beat.version != core.paths.version)
        new = _sent(content, revision, share.other, in_other_words)
        what = f"the box follows {share.other}" if follows else f"the changes of {about.user} are being applied"
        with core.turn.take(what, wait=follows) as held:
            self._admit(new, content, share.other)
            with contextlib.suppress(OSError):  # a number more or less: it is for people
                core.generations.skip_to(about.number - 1)
            user, comment = ("pair", f"as {share.other} runs it") if follows else (about.user, about.comment)
            descent = core.generations.descent_of(revision, about.desk, about.number)
            number = self.store(new, user, comment, "", descent)
            record = RunRecord.of(about.apply or f"apply-{number}-{secrets.token_hex(4)}", user, number)
            record.ask = Ask.of(cutoff(core.running.snapshot, new), round(within)) if within else None
            target = core.target(number, new)
            self.begin(held, record, lambda: self.carry_out(target, record, about.secret, share), share)

    def look_at(self, content: Content, revision: Revision, other: str) -> None:
        """Whether this box could run what is applied at the other one. ApplierRefused: it could not."""
        self._admit(_sent(content, revision, other), content, other)

    def _admit(self, new: Snapshot, content: Content, other: str) -> None:
        core, files = self._core, content.about.files
        ran = core.running.snapshot
        if files_digest(render(new)) != files:
            words = f"The software of this box makes other files of the configuration than that of {other}."
            raise ApplierRefused("other-software", f"{words} Update both boxes to the same version.")
        admit(new, ran, files, core.confirmed, core.confirmed, "", core.leases(), core.cards(), core.key())

    def progress(self) -> RunStatus | None:
        """The last apply or repair; quick, so one may ask often."""
        record = self.record
        return record.to_data() if record else None

    def confirm(self, apply: str, secret: str, user: str) -> RunStatus:
        """Keep what waits. Answers when it is confirmed."""
        waiting = self._decide(apply, secret, user, "keep")
        waiting.settled.wait(SETTLE_SECONDS)
        return waiting.record.to_data()

    def roll_back(self, apply: str, secret: str, user: str) -> RunStatus:
        """Give up what waits. Answers at once: the way back may take the asker's connection."""
        return self._decide(apply, secret, user, "back").record.to_data()

    def _decide(self, apply: str, secret: str, user: str, kind: Literal["keep", "back"]) -> Waiting:
        """By the secret, which proves that one is who applied; or by the apply's id and one's name."""
        waiting = self._waiting
        if waiting is None or apply not in ("", waiting.record.id):
            raise ApplierRefused(
                "not-waiting", f"These changes are not waiting to be confirmed. {self._last_word(apply)}"
            )
        if secret and not pending.is_secret(secret, waiting.note.secret):
            raise ApplierRefused("wrong-secret", "This is not the link that the apply gave out.")
        if not secret and not (apply and user):
            raise ApplierRefused("wrong-secret", "Give the secret of the apply, or its id and who you are.")
        if not self._answer(waiting, kind, user or waiting.record.user):
            raise ApplierRefused("not-waiting", "It is too late: the time was over, or somebody else has decided.")
        return waiting

    def _answer(self, waiting: Waiting, kind: Literal["keep", "back"], user: str) -> bool:
        """Whether it came in time. In a pair both boxes have to hear of it."""
        if waiting.share is None:
            return waiting.deadline.decide(Decision(kind, user))
        both, revision = self._core.both, waiting.share.revision.id
        return both.prove(revision, user) if kind == "keep" else both.give_up(revision, taken_back_sentence(user))

    def _last_word(self, apply: str) -> str:
        record = self.record
        return record.message if record and record.state in ENDED and apply in ("", record.id) else ""

    # --- the way forward ---------------------------------------------------------------------------

    def store(self, new: Snapshot, user: str, comment: str, client: str, descent: Descent | None = None) -> int:
        """Its number. `descent`: what both boxes of a pair know it by."""
        core = self._core
        found = storage.trouble(core.paths)
        if found is None:
            try:
                core.generations.make_folder()
                box = core.target(None, new).box
                return core.generations.create(new, user, comment, client, box, descent)
            except OSError as error:
                found = storage.of_error(error, core.paths)
        core.faults.set(*found)
        raise ApplierRefused(*found)

    def begin(self, held: Held, record: RunRecord, action: Callable[[], RunState], share: Share | None = None) -> None:
        """In a thread of its own, to which the turn is handed on. `share`: of a pair, which hears of the end."""
        self.record = record

        def tell(ended: tuple[RunState, Waiting | None]) -> None:
            record.state, waiting = ended
            if waiting:
                waiting.settled.set()
            if share:
                share.ended("" if record.state == "done" else record.message.removesuffix(PUT_BACK).strip())

        held.hand_on(record.id, lambda: self._ended(record, action()), lambda e: self._fail(record, e), tell)

    def _fail(self, record: RunRecord, error: BaseException) -> tuple[RunState, Waiting | None]:
        """By a mistake of ours, at any point between what ran and what was to run."""
        record.message = f"The applier made a mistake: {error!r}. Restart the box; it loads the confirmed revision."
        self._core.faults.set("not-restored", record.message)
        return self._ended(record, "failed")

    def _ended(self, record: RunRecord, outcome: RunState) -> tuple[RunState, Waiting | None]:
        """The outcome, and what has waited for it."""
        waiting, self._waiting = self._waiting, None
        record.deadline = None
        return outcome, waiting

    def carry_out(self, target: Target, record: RunRecord, secret: str = "", share: Share | None = None) -> RunState:
        """`secret`: the hash of the one that was given out, where a confirmation is asked for."""
        core = self._core
        before = core.running
        course = Course(Engine(self._job(target, before), record), record, before, target, share=share)
        if share and not self._may_begin(course, share):
            return "rolled back"
        core.known_good = False  # until it is at its end
        log.info("generation %s of %s: begins", target.number, record.user)
        if record.ask is not None:
            core.host.sleep(HEAD_START)
        failure = course.engine.forward(CHANGES)
        if failure is None and (record.ask is not None or share):
            now, ask = self._clock(), record.ask or NOBODY_ASKED
            note = Pending(record.id, record.user, target.stored, core.confirmed, now, now + ask.within, secret, ask)
            if share:
                # A new daemon cannot go on with it: it does not know what was agreed.
                note = note.going_back(STARTED_ANEW)
            try:
                # The disk first: after a power cut nothing else knows that it was never confirmed.
                core.generations.end(target.stored, "waiting", course.engine.seconds())
                core.host.put(core.paths.pending, note.to_json())
            except (OSError, Damaged, HostError) as error:
                failure = f"It could not be recorded that the changes wait to be confirmed: {error}."
                record["confirm"].state, record["confirm"].detail = "failed", failure
            else:
                return self._wait(course, note)
        return self._finish(course, failure)

    def _may_begin(self, course: Course, share: Share) -> bool:
        """Wait for the other box to try it first, where it does; False: nothing was done, and nothing will be."""
        record = course.record
        record.message = f"{share.other} tries the changes first."
        if share.may_begin():
            record.message = ""
            return True
        course.engine.leave()
        record.message = f"{share.why} This box was not changed."
        with contextlib.suppress(OSError, Damaged):
            self._core.generations.end(course.target.stored, "rolled back", 0.0)
        log.warning("generation %s: not begun: %s", course.target.number, share.why)
        return False

    def _job(self, target: Target, before: Target) -> Job:
        core = self._core
        return Job(
            *core.tools,
            new=target,
            before=before,
            old=before.network,
            leaving=(before.own,),
            confirmed=core.confirmed,
            number=target.number,
            relieved=core.relieved,
            doubted=not core.known_good,
        )

    def _finish(self, course: Course, failure: str | None, user: str = "") -> RunState:
        """Confirm it, or put back what has failed."""
        core, record, target = self._core, course.record, course.target
        failure = failure or course.engine.forward(CONFIRM)
        if failure is not None:
            return self._put_back(course, failure, "rolled back")
        core.confirmed = target.number
        core.set_running(target)
        core.known_good = not course.resumed
        self._forget()
        with contextlib.suppress(HostError):
            web_server.forget(core.host, core.paths, course.before.snapshot.management)
        core.faults.clear("generation-missing", "not-restored", "start", "not-in-pair")
        if course.before.in_pair and not target.in_pair:
            with contextlib.suppress(OSError):
                joining.forget(core.paths)  # that may be there as long as the other box had not followed
        core.early.keep(course.engine.job)
        record.message = confirmed_sentence(target.number, user if user != record.user else "")
        if course.share and course.share.alone:
            record.message += f" {course.share.other} is away, and follows when it is back."
        self._tidy()
        return "done"

    def _tidy(self) -> None:
        try:
            self._core.generations.prune()
        except OSError as error:
            log.warning("old generations were not removed: %s", error)

    # --- waiting -----------------------------------------------------------------------------------

    def _wait(self, course: Course, note: Pending) -> RunState:
        core, record, share = self._core, course.record, course.share
        core.set_running(course.target)
        deadline = Deadline(note.begun, note.until, self._clock)
        self._waiting = Waiting(record, note, deadline, threading.Event(), share)
        if record.ask is None and share:
            record.message = f"Everything runs here. {share.other} has to come as far."
            core.turn.owned_by(f"the changes of {note.user} wait for {share.other}")
        else:
            record.message = WAITING_SENTENCE
            record.deadline = deadline
            core.turn.owned_by(lambda: waits_words(note.user, deadline.left()))
            log.info("generation %s waits %.0f s to be confirmed", note.number, deadline.left())
            record.state = "waiting"
        decision = share.wait() if share else deadline.wait()
        if decision.kind == "keep":
            if share:
                course.engine.job.lineage = share.lineage
            record.state = "running"
            core.turn.owned_by(f"the changes of {note.user} are being confirmed")
            return self._finish(course, None, decision.user)
        core.turn.owned_by(f"the changes of {note.user} are being taken back")
        record.state = "returning"
        record.message = why = share.why if share else _why(decision, note)
        # From here on a new daemon goes back at once, whatever time is left.
        with contextlib.suppress(HostError):
            core.host.put(core.paths.pending, note.going_back(why).to_json())
        return self._put_back(course, why, "not confirmed")

    def _put_back(self, course: Course, why: str, outcome: Ending) -> RunState:
        core, record = self._core, course.record
        waited = core.running is not course.before
        core.known_good = False
        course.engine.leave()
        left = course.engine.back()
        if left or course.resumed:
            left = self._settle(course.before, course.target)
            if course.resumed and not left:
                record.mark_undone()
        if waited:
            core.set_running(course.before)
        record.message = f"{why} {' '.join(left) or PUT_BACK}"
        outcome = "failed" if left else outcome
        core.faults.set("not-restored", f"{record.message} Restart the box." if left else None)
        with contextlib.suppress(OSError, Damaged):
            core.generations.end(course.target.stored, outcome, course.engine.seconds())
        self._forget()
        log.warning("generation %s: %s: %s", course.target.number, outcome, record.message)
        return outcome

    def _settle(self, before: Target, tried: Target) -> list[str]:
        """Undo did not succeed wholly: go to what ran before by the way of the boot. What is wrong even then."""
        core = self._core
        job = Job(
            *core.tools,
            new=before,
            before=tried,
            old=joined([tried.network, before.network]),
            leaving=(tried.own,),
            lenient=True,
        )
        record = RunRecord.of("settle", "system", before.number, [step.name for step in CONVERGE])
        Engine(job, record).forward(CONVERGE)
        left = [f"{error}." for error in job.troubles]
        try:
            if core.generations.confirmed_number() != core.confirmed:
                core.generations.confirm_again(core.confirmed)
        except (OSError, Damaged) as error:
            left.append(f"The next boot may load revision {tried.number}: {error}.")
        return left

    def _forget(self) -> None:
        core = self._core
        with contextlib.suppress(HostError):
            if core.host.read(core.paths.pending) is not None:
                core.host.put(core.paths.pending, None)

    # --- a new daemon ------------------------------------------------------------------------------

    def left_waiting(self) -> Pending | None:
        """What an earlier daemon of this boot left waiting, with time left and everything there to go on."""
        generations = self._core.generations
        note = self._note()
        if note is None or note.returning or note.until <= self._clock():
            return None
        try:
            outcome = generations.load(note.number).meta["outcome"]
            if note.before is not None:
                generations.load(note.before)
        except Damaged as error:
            log.error("what waits to be confirmed cannot be read: %s", error)
            return None
        return note if outcome == "waiting" and generations.confirmed_number() == note.before else None

    def take_up(self, note: Pending, held: Held) -> None:
        """Go on with it, in a thread that gets the turn. The kernel is left as it is."""
        core = self._core
        target = self._stored(note.number)
        before = Target(None, FACTORY) if note.before is None else self._stored(note.before)
        core.running, core.confirmed = target, note.before
        record = self._restored(note)
        course = Course(Engine(self._job(target, before), record), record, before, target, resumed=True)
        self.begin(held, record, lambda: self._wait(course, note))

    def _stored(self, number: int) -> Target:
        generation = self._core.generations.load(number)
        return self._core.target(number, generation.snapshot, generation.box)

    def close(self) -> None:
        """After the way back to the confirmed generation: what became of what waited, for whoever looks on."""
        note = self._note()
        self._forget()
        if note is None or note.number not in self._core.generations.numbers():
            return
        record = self._restored(note)
        if self._core.confirmed == note.number:
            record.state, record.message = "done", confirmed_sentence(note.number)
        else:
            record.state = "not confirmed"
            record.message = f"{note.returning or _why(Decision('over'), note)} {PUT_BACK}"
            record.mark_undone()
        self.record = record

    def _note(self) -> Pending | None:
        core = self._core
        try:
            text = core.host.read(core.paths.pending)
            return None if text is None else pending.read(text)
        except (HostError, ValueError) as error:
            log.error("%s cannot be read: %s", core.paths.pending, error)
            return None

    def _restored(self, note: Pending) -> RunRecord:
        """The record as it was, from the log of the generation."""
        record = RunRecord.of(note.apply, note.user, note.number)
        record.ask = note.ask
        logged = self._core.generations.entry(note.number)["steps"]
        for step in logged:
            record.note(step)
        for name in {*IN_A_PAIR} - {step["name"] for step in logged}:
            record.leave_out(name)
        return record


def _sent(content: Content, revision: Revision, other: str, in_other_words: bool = False) -> Snapshot:
    new = parse(content.snapshot, content.services)
    if canonical.digest(new) != revision.digest and not in_other_words:
        words = f"The configuration that {other} sent is not the one that it speaks of."
        raise ApplierRefused("digest-mismatch", words)
    return new


def _why(decision: Decision, note: Pending) -> str:
    if decision.kind == "over":
        return in_vain_sentence(note.ask.within)
    return taken_back_sentence(decision.user)
