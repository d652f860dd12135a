"""The two boxes of a pair, brought to one configuration: the agreement (lbconfig/agreement.py), carried out here.

What comes from the other box, from an admin and from the clock goes through the functions of the agreement, one at a
time. What is to be done then, the applies of this box do: they try a change, keep it or go back (share.py). Nobody is
told of a confirmation before it is on the disk.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol, cast

from applier.apply import review
from applier.apply.deadline import Clock
from applier.apply.share import Share
from applier.base.paths import Paths
from applier.host.host import Host, HostError
from applier.kept.faults import Faults
from applier.kept.generations import Damaged, Generations
from applier.kept.loop import Loop
from applier.kept.turn import Turn, beside
from applier.pair import client
from applier.pair.beat import read as read_beat
from applier.pair.joined import Joined
from applier.pair.joining.record import Record, root
from applier.pair.own import Own
from applier.pair.peer import Peer
from applier.pair.roles import HELD, LEADS, STANDS_BY, hold_reason
from applier.wire.errors import ApplierRefused
from applier.wire.shapes import Nothing, PairTold
from lbconfig import agreement
from lbconfig.agreement import (
    BEAT,
    SILENT,
    Box,
    Confirm,
    GoBack,
    Lineage,
    Next,
    Part,
    Revision,
    Said,
    Stage,
    Standing,
    Tell,
    Try,
)
from lbconfig.agreement_lines import (
    About,
    Content,
    Fetch,
    LineError,
    plain_content,
    plain_said,
    read_content,
    read_said,
)
from lbconfig.diff.pair import cuts_the_link, parts_them
from lbconfig.model import canonical
from lbconfig.model.lines import name_of
from lbconfig.model.snapshot import Snapshot
from lbconfig.pair import sides
from lbconfig.render import files_digest, render
from lbconfig.target import Target
from lbconfig.wanted.pair_link import LINK_PORT

log = logging.getLogger("applier")

FETCHING = 30.0  # seconds that the other box may take to send a configuration
LONGEST_WHY = 500  # characters of a reason that is told to the other box
OTHER = "the other box"  # as the agreement says it
FOLLOWS = "it follows the other box"  # why a box is held meanwhile


class Core(Protocol):
    """What the agreement needs of the daemon."""

    paths: Paths
    host: Host
    turn: Turn
    generations: Generations
    faults: Faults
    running: Target
    confirmed: int | None
    peer: Peer
    own: Own
    joined: Joined


class Tries(Protocol):
    """What tries a configuration of the other box's, in a thread of its own (verbs.py)."""

    def take_part(self, content: Content, revision: Revision, share: Share, within: float, follows: bool) -> None: ...
    def look_at(self, content: Content, revision: Revision, other: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Place:
    """Where this box is."""

    pair: str
    box: int
    own: str  # host names
    other: str


@dataclass(frozen=True, slots=True)
class Plan:
    """A change of both boxes that an admin has asked this one for."""

    revision: Revision
    new: Snapshot
    desk: str
    user: str
    comment: str


@dataclass(frozen=True, slots=True)
class Offer:
    """What the other box may fetch. `known`: the services of this are most likely known there."""

    about: About
    snapshot: Snapshot
    known: Snapshot | None

    def content(self, whole: bool) -> Content:
        named, services = canonical.parted(self.snapshot, None if whole else self.known)
        return Content(self.about, named, cast(list[Mapping[str, object]], services))


@dataclass(slots=True)
class Fetching:
    """A configuration that the other box is asked for. `whole`: a service was not known here by its name."""

    job: agreement.Job
    share: Share
    since: float
    whole: bool = False


@dataclass
class Ahead:
    """A configuration that both boxes are to try at once: it has to be here, and good, before they lose each other."""

    revision: Revision
    since: float
    whole: bool = False
    content: Content | None = None
    looked: bool = False
    why: str = ""  # it is not good


class Both:
    def __init__(self, core: Core, tries: Tries, clock: Clock) -> None:
        self._core = core
        self._tries = tries
        self._clock = clock
        self._lock = threading.RLock()
        self._news = threading.Condition(self._lock)
        self._told = 0  # how often there was something to tell
        self._place: Place | None = None
        self._since = float("-inf")  # when it began to listen, if it had begun before: the other one may be there
        self._box: Box | None = None
        self._share: Share | None = None  # in the change that is under way
        self._offer: Offer | None = None  # what the other box may fetch of it
        self._fetching: Fetching | None = None
        self._ahead: Ahead | None = None
        self._outcomes: deque[tuple[Revision, str]] = deque()  # of tries, as their threads told them
        self._wake = threading.Event()  # an outcome was told
        self._proved_by = ""
        self.loop = Loop("the agreement with the other box", self.tick, self._wait)

    # --- what the rest of the applier asks ------------------------------------------------------------

    @property
    def place(self) -> Place | None:
        """None: the box is in no pair, or has not come so far yet."""
        return self._place

    def started(self) -> None:
        """The box runs what it is to begin with."""
        if self._core.running.in_pair or self._core.joined.alone:
            self._since = self._clock()

    @property
    def ready(self) -> bool:
        """Whether this box may lead: its servers were checked, and it runs what both have agreed on."""
        box, core = self._box, self._core
        if box is None or box.job is not None or agreement.stands(box) is Standing.BEHIND:
            return False
        return not core.running.has_checks or core.paths.first_round.exists()

    @property
    def lineage(self) -> Lineage:
        """The revisions that led to what this box has confirmed."""
        box = self._box
        return box.lineage if box else self._core.generations.lineage()

    def silent(self) -> bool:
        """Whether the other box is away."""
        with self._lock:
            return self._box is None or self._box.silent(self._clock())

    def standing(self) -> Standing | None:
        """How this box stands to what was last heard of the other one; None: nothing was heard."""
        with self._lock:
            return agreement.stands(self._box) if self._box else None

    def makes(self, new: Snapshot) -> bool:
        """Whether it is the first configuration of the pair that this box was joined for."""
        found = self._core.joined.alone
        return found is not None and new.pair is not None and new.pair.id == found.id

    def plan(self, new: Snapshot, user: str, comment: str) -> Plan:
        """A change of both boxes, not begun yet. ApplierRefused where none can begin at this box now.

        For who has the turn to change the system.
        """
        with self._lock:
            self._attend()
            place, box = self._in_pair()
            now, beat = self._clock(), self._core.peer.beat
            if self._core.running.snapshot.pair is None and place.box == 1:
                raise ApplierRefused("not-the-desk", f"The pair is made at {place.other}. Apply the changes there.")
            if box.other is None and now - self._since < SILENT:
                raise ApplierRefused("busy", f"{place.own} has just started, and listens for {place.other}; try again.")
            if not box.silent(now):
                if box.job:
                    raise ApplierRefused("busy", f"Another change of {place.own} and {place.other} is under way.")
                refuse_unless_in_step(agreement.stands(box), place)
                if beat is not None and beat.role == LEADS and self._role() != LEADS:
                    raise ApplierRefused("not-the-desk", f"{place.other} leads. Apply the changes there.")
                if beat is not None:
                    with contextlib.suppress(OSError):  # the number would be another one there; it is for people
                        self._core.generations.skip_to(beat.revision)
            elif joined := self._core.joined.alone:
                raise ApplierRefused("peer-away", _unheard(joined))
            revision = Revision(secrets.token_hex(agreement.ID_LENGTH // 2), canonical.digest(new))
            return Plan(revision, new, place.own, user, comment)

    def begin(self, plan: Plan, number: int, apply: str, secret: str, within: int) -> Share:
        """ApplierRefused where it cannot begin any more."""
        with self._lock:
            place, box = self._in_pair()
            now, new, revision = self._clock(), plan.new, plan.revision
            alone, joined = box.silent(now), self._core.joined.alone
            if alone and joined:
                raise ApplierRefused("peer-away", _unheard(joined))
            share = Share(revision, place.other, self._tried, alone)
            files = files_digest(render(new))
            about = About(revision.id, files, number, plan.desk, plan.user, plan.comment, apply, secret)
            together = not alone and self._loses_the_other(new, joined)
            try:
                following = agreement.begin(box, revision, within, now, alone=alone, together=together)
            except agreement.Refused as error:
                raise ApplierRefused("busy", _sentence(str(error), place)) from None
            self._share, self._offer = share, Offer(about, new, self._core.running.snapshot)
            self._go(following)
            return share

    def _loses_the_other(self, new: Snapshot, joined: Record | None) -> bool:
        if joined and new.pair:
            return parts_them(new.pair, self._core.joined.place(joined))
        return cuts_the_link(self._core.running.snapshot, new)

    def prove(self, revision: str, user: str) -> bool:
        """The admin reaches this box. Whether there is anything that he can confirm by it."""
        with self._lock:
            if self._box is None or self._box.job is None or self._box.job.revision.id != revision:
                return False
            self._proved_by = user
            self._go(agreement.proved(self._box, revision, self._clock()))
            return True

    def give_up(self, revision: str, why: str) -> bool:
        """The admin takes the change back. Whether there is anything to take back."""
        with self._lock:
            if self._box is None or self._box.job is None or self._box.job.revision.id != revision:
                return False
            self._go(agreement.give_up(self._box, why))
            return True

    # --- verbs -----------------------------------------------------------------------------------------

    def pair_choose(self, user: str) -> Nothing:
        """Of two configurations that were made apart, that of this box stays, and the other box follows."""
        with self._lock:
            place, box = self._in_pair()
            try:
                following = agreement.choose(box)
            except agreement.Refused:
                words = f"{place.own} and {place.other} do not differ, so there is nothing to choose."
                raise ApplierRefused("nothing-to-choose", words) from None
            log.info("%s chose the configuration of %s", user, place.own)
            self._go(following)
        return {}

    def peer_says(self, beat: Mapping[str, object]) -> Nothing:
        """What the other box says of itself, for people."""
        try:
            said = read_beat(beat)
        except LineError as error:
            raise _wrong(error) from None
        with self._lock:
            if self._place:
                self._core.peer.says(said, self._clock())
        return {}

    def pair_connected(self) -> Nothing:
        """The other box has come by a new connection."""
        with self._lock:
            if self._box:
                self._box = agreement.connected(self._box)
        return {}

    def pair_hears(self, said: Mapping[str, object]) -> dict[str, bool]:
        """What the other box says. `known`: whether its lineage, where that was left out, is known here."""
        with self._lock:
            if self._box is None:
                return {"known": True}
            known = self._box.other.lineage if self._box.other else None
            if "lineage" not in said and known is None:
                return {"known": False}
            try:
                heard = read_said(said, known)
            except LineError as error:
                raise _wrong(error) from None
            heard = self._once_here(self._box, self._of_second(self._box, heard))
            self._go(agreement.hear(self._box, heard, self._clock()))
            self._turn_down()
            return {"known": True}

    def pair_tells(self, seen: int, lineage: str) -> PairTold | Nothing:
        """What to say to the other box, as soon as there is something new, or a beat is over.

        `seen`: as the last answer had it. `lineage`: the id of the newest revision of the lineage that the asker has.
        """
        with self._lock:
            if self._place:
                self._news.wait_for(lambda: self._told != seen, BEAT)
            place, wanted = self._place, self._wanted
            if place is None or self._box is None:
                return {}
            self._box, said = agreement.message(self._box)
            # To the other box, "the other box" is this one.
            said = replace(said, refused=tuple((id, why.replace(OTHER, place.other)) for id, why in said.refused))
            known = said.lineage if said.lineage[-1].id == lineage else None
            return {
                "pair": place.pair,
                "box": place.box,
                "seen": self._told,
                "said": plain_said(said, known),
                "beat": self._core.own.beat(place.own).to_data(),
                "fetch": wanted.id,
                "whole": wanted.whole,
            }

    def pair_content(self, id: str, whole: bool) -> dict[str, object]:
        """The configuration that the other box fetches; empty where this one has it no more.

        `whole`: with all services; else those that both boxes run are in it by their names.
        """
        with self._lock:
            found = self._offer
        if found is None or found.about.id != id:
            found = self._confirmed(id)
        return plain_content(found.content(whole)) if found else {}

    def pair_brings(self, content: Mapping[str, object]) -> Nothing:
        """A configuration that was fetched from the other box."""
        try:
            found = read_content(content)
        except LineError as error:
            raise _wrong(error) from None
        with self._lock:
            fetching, ahead = self._fetching, self._ahead
            if fetching and fetching.job.revision.id == found.about.id:
                if _can_be_read(found):
                    self._fetching = None
                    self._take_part(fetching, found)
                else:
                    fetching.whole = True
            elif ahead and ahead.revision.id == found.about.id and ahead.content is None:
                if _can_be_read(found):
                    ahead.content = found
                    self._look_at(ahead, found)
                else:
                    ahead.whole = True
        return {}

    @property
    def _wanted(self) -> Fetch:
        """The configuration that the other box is asked for; without an id: none."""
        if self._fetching:
            return Fetch(self._fetching.job.revision.id, self._fetching.whole)
        if self._ahead and self._ahead.content is None:
            return Fetch(self._ahead.revision.id, self._ahead.whole)
        return Fetch("", False)

    def _of_second(self, box: Box, heard: Said) -> Said:
        """What the second box says. Until the two are a pair, it changes nothing here: the pair is made at the first.

        An admin of this box has shown a code, and has applied nothing yet.
        """
        joined = self._core.joined.alone
        if joined is None or joined.box == 1:
            return heard
        takes_part = heard.job is not None and heard.job.part is Part.PEER
        return replace(heard, lineage=box.lineage, job=heard.job if takes_part else None)

    # --- what both boxes try at once -------------------------------------------------------------------

    def _once_here(self, box: Box, heard: Said) -> Said:
        """What the other box says, but for a change that both are to try at once and that is not here yet.

        The other box begins as soon as this one has taken it, and then nothing may come any more.
        """
        job = heard.job
        if box.job or job is None or job.part is not Part.DESK or not job.together or job.stage is not Stage.ASKS:
            self._ahead = self._ahead if box.job else None
            return heard
        if agreement.why_not(box, job.revision.id):
            return heard
        if self._ahead is None or self._ahead.revision != job.revision:
            self._ahead = Ahead(job.revision, self._clock())
        late = self._clock() - self._ahead.since > FETCHING
        return heard if self._ahead.looked or late else replace(heard, job=None)

    def _look_at(self, ahead: Ahead, content: Content) -> None:
        place = self._place

        def work() -> str:
            try:
                self._tries.look_at(content, ahead.revision, place.other if place else OTHER)
            except ApplierRefused as error:
                return error.in_full
            return ""

        def tell(why: str) -> None:
            ahead.looked, ahead.why = True, _line(why)

        name = f"pair-look-{ahead.revision.id[:8]}"
        beside(name, work, lambda error: f"The applier made a mistake: {error!r}.", tell)

    def _turn_down(self) -> None:
        """What both were to try at once, and what this box cannot run: nothing was touched at either."""
        ahead, box = self._ahead, self._box
        if ahead and ahead.why and box and box.job and box.job.revision == ahead.revision:
            self._ahead = None
            self._go(agreement.give_up(box, ahead.why))

    # --- the clock -------------------------------------------------------------------------------------

    def _wait(self) -> None:
        self._wake.wait(BEAT)
        self._wake.clear()

    def tick(self) -> None:
        """What time brings: to be called at every beat."""
        with self._lock:
            # With the turn taken, the box is being started, or it is not known yet what will be confirmed.
            if self._box or not self._core.turn.taken:
                self._attend()
            self._hear_outcomes()
            if self._box is None:
                return
            now = self._clock()
            if self._fetching and now - self._fetching.since > FETCHING:
                fetching, self._fetching = self._fetching, None
                why = f"It did not get the configuration from {fetching.share.other}."
                self._go(agreement.tried(self._box, fetching.job.revision.id, why, now))
            self._go(agreement.pass_time(self._box, now))
            self._tell_faults()
            self._hold()

    def _attend(self) -> None:
        """Be in the pair that is confirmed here."""
        core = self._core
        if self._box and self._box.job:
            return
        if core.running.number != core.confirmed:
            return  # it is not known yet what will be confirmed
        joined = core.joined.alone
        place = _joined_place(core.running, joined) if joined else _place(core.running)
        old, self._place = self._place, place
        if place is None:
            self._box = None
            if old:
                core.peer.forget()
                core.faults.clear("pair-forked", "pair-behind")
        elif self._box is None or old is None or (old.pair, old.box) != (place.pair, place.box):
            if old and old.pair != place.pair:
                core.peer.forget()  # what was heard was another box
            lineage = (root(joined),) if joined else core.generations.lineage()
            self._since = self._clock() if joined and old is None else self._since
            # Messages are in order as long as this number is larger after each start; on a new connection none is old.
            self._box = agreement.restarted(place.box, int(self._clock() * 1000), lineage) if lineage else None

    # --- what is to be done ----------------------------------------------------------------------------

    def _in_pair(self) -> tuple[Place, Box]:
        if self._place is None or self._box is None:
            raise ApplierRefused("no-pair", "The box is in no pair.")
        return self._place, self._box

    def _tried(self, revision: Revision, why: str) -> None:
        """By the thread that tries it, which must wait for nothing here: what follows may wait for it."""
        self._outcomes.append((revision, _line(why)))
        self._wake.set()

    def _hear_outcomes(self) -> None:
        while self._outcomes:
            revision, why = self._outcomes.popleft()
            if self._box:
                self._go(agreement.tried(self._box, revision.id, why, self._clock()))

    def _go(self, following: Next) -> None:
        """Do what the agreement says, in its order."""
        before = self._box
        box, deeds = following
        if before is None:
            return
        confirmed = False
        for deed in deeds:
            match deed:
                case Try(revision):
                    self._try(box, revision)
                case Confirm(lineage):
                    why = self._confirm(before, lineage)
                    if why:
                        box, _ = agreement.not_confirmed(before, why, self._clock())
                    confirmed = True
                case GoBack() | Tell():
                    pass  # below
        self._box = box
        if before.job and (box.job is None or box.job.revision != before.job.revision):
            self._end(before, box, confirmed)
        if any(isinstance(deed, Tell) for deed in deeds) and (before.job, before.lineage, before.refused) != (
            box.job,
            box.lineage,
            box.refused,
        ):
            self._told += 1
            self._news.notify_all()

    def _end(self, before: Box, box: Box, confirmed: bool) -> None:
        """The change is over at this box."""
        job, share = before.job, self._share
        self._fetching = None
        if share and job and not confirmed:
            place = self._place
            share.go_back(_sentence(agreement.why_not(box, job.revision.id) or "the change was given up", place))
        self._share, self._offer, self._ahead, self._proved_by = None, None, None, ""

    def _try(self, box: Box, revision: Revision) -> None:
        job, place = box.job, self._place
        if job is None or place is None:
            return
        if job.part in (Part.DESK, Part.ALONE):
            if self._share:
                self._share.let_try()
            return
        self._share = Share(revision, place.other, self._tried)
        self._share.let_try()
        fetching, ahead = Fetching(job, self._share, self._clock()), self._ahead
        if ahead and ahead.content and ahead.revision == revision:
            self._take_part(fetching, ahead.content)
        else:
            self._fetching = fetching

    def _take_part(self, fetching: Fetching, content: Content) -> None:
        job, share = fetching.job, fetching.share

        def work() -> None:
            follows = job.part is Part.FOLLOWER
            self._tries.take_part(content, job.revision, share, job.within, follows)

        def failed(error: BaseException) -> None:
            mistake = f"The applier made a mistake: {error!r}."
            share.ended(error.in_full if isinstance(error, ApplierRefused) else mistake)

        beside(f"pair-{job.revision.id[:8]}", work, failed, lambda _: None)

    def _confirm(self, before: Box, lineage: Lineage) -> str:
        """Write it down. Why that cannot be; "": it is."""
        if before.job is None:
            return self._adopt(lineage)
        if self._share is None:
            return "the change is not under way any more"
        lost = lineage if before.lineage[-1] not in lineage else ()
        why = self._share.confirm(lineage, self._proved_by)
        if lost and not why:
            self._mark(lost)
        return why

    def _adopt(self, lineage: Lineage) -> str:
        """Both boxes made the same configuration while they were apart: this one calls it as the other one does."""
        place = self._place
        try:
            self._core.generations.adopt(lineage, place.other if place else "")
        except (OSError, Damaged) as error:
            log.error("the lineage of the other box: %s", error)
            return f"{error}"
        return ""

    def _mark(self, lineage: Lineage) -> None:
        try:
            self._core.generations.not_chosen(lineage)
        except OSError as error:
            log.error("the history: %s", error)

    # --- what is told ----------------------------------------------------------------------------------

    def _confirmed(self, id: str) -> Offer | None:
        """What runs here, for a box that follows."""
        generations, number = self._core.generations, self._core.confirmed
        lineage = generations.lineage()
        if number is None or not lineage or lineage[-1].id != id:
            return None
        try:
            found = generations.load(number)
        except Damaged as error:
            log.error("%s", error)
            return None
        desk = found.meta["pair"]["desk"] if "pair" in found.meta else ""
        files = files_digest(render(found.snapshot))
        about = About(id, files, number, desk, found.meta["user"], found.meta["comment"], "", "")
        return Offer(about, found.snapshot, None)

    def _role(self) -> str:
        role = client.role(self._core.host, self._core.paths)
        return role.role if role else HELD

    def _tell_faults(self) -> None:
        place, box = self._place, self._box
        if place is None or box is None:
            return
        forked = agreement.stands(box) is Standing.FORKED
        self._core.faults.set(
            "pair-forked",
            f"{place.own} and {place.other} were changed while they were apart, and run different configurations. "
            "Choose which one stays."
            if forked
            else None,
        )
        failed = box.failed[0]
        behind = box.other is not None and bool(failed) and failed == box.other.lineage[-1].id != box.lineage[-1].id
        why = _sentence(agreement.why_not(box, failed), place)
        self._core.faults.set(
            "pair-behind",
            f"{place.own} could not follow {place.other}, and tries again each minute. {why}" if behind else None,
        )

    def _hold(self) -> None:
        """Who is behind follows before it may lead; but where the other box is away, an old configuration is better."""
        box, core = self._box, self._core
        if box is None:
            return
        follows = box.job is not None and box.job.part is Part.FOLLOWER
        due = not box.silent(self._clock()) and (follows or agreement.stands(box) is Standing.BEHIND)
        try:
            held = hold_reason(core.host.read(core.paths.hold) or "")
            if due and held is None and self._role() == STANDS_BY:
                client.hold(core.host, core.paths, FOLLOWS)
            elif held == FOLLOWS and not due:
                client.release(core.host, core.paths)
        except HostError as error:
            log.warning("%s", error)


def _place(running: Target) -> Place | None:
    both, pair = sides(running.own) if running.in_pair else None, running.snapshot.pair
    return Place(pair.id, both.number, both.own.name, both.peer.name) if both and pair else None


def _joined_place(running: Target, joined: Record) -> Place:
    return Place(joined.id, joined.box, running.own.network.hostname, joined.other)


def _unheard(joined: Record) -> str:
    return (
        f"{joined.other} is not heard at {joined.address}. A pair begins with both boxes: is it on, and does UDP port "
        f"{LINK_PORT} pass between the two?"
    )


def refuse_unless_in_step(standing: Standing | None, place: Place) -> None:
    """No change begins between two boxes of which one has still to become as the other one is."""
    both = f"{place.own} and {place.other}"
    words = {
        Standing.FORKED: f"{both} run different configurations, made while they were apart. Choose one of them first.",
        Standing.BEHIND: f"{place.own} does not run what {place.other} runs yet. It follows by itself; wait for that.",
        Standing.AHEAD: f"{place.other} does not run what {place.own} runs yet. It follows by itself; wait for that.",
        Standing.TWIN: f"{both} are about to agree on what they run; try again in a moment.",
    }
    if standing in words:
        raise ApplierRefused("not-in-step", words[standing])


def _can_be_read(content: Content) -> bool:
    """Whether this box knows each service that is there by its name alone."""
    services = content.snapshot.get("services")
    names = [one for one in services if isinstance(one, str)] if isinstance(services, list) else []
    return set(review.missing(names)) <= {name_of(one) for one in content.services}


def _line(text: str) -> str:
    """What the other box takes as a text, whatever a program of this one has said."""
    words = " ".join(text.split())
    return "".join(letter if letter.isprintable() else "?" for letter in words)[:LONGEST_WHY]


def _wrong(error: LineError) -> ApplierRefused:
    return ApplierRefused("bad-field", f"What the other box says is wrong: {error}.")


def _sentence(why: str, place: Place | None) -> str:
    """What the agreement says, with the other box's name; "": nothing."""
    said = why.replace(OTHER, place.other if place else OTHER).strip()
    if not said or said.endswith("."):
        return said
    return f"{said if why.startswith(OTHER) else said[0].upper() + said[1:]}."
