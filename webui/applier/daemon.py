"""The applier: `python3 -m applier.daemon`, as root.

It answers the verbs of protocol.py and brings the box to its confirmed generation when it starts. How a snapshot is
applied: apply/verbs.py.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import pwd
import signal
import threading
from collections.abc import Callable, Collection, Sequence

from applier.apply.both import Both
from applier.apply.deadline import Clock, boottime
from applier.apply.drift import Drift
from applier.apply.early import Early
from applier.apply.job import Tools
from applier.apply.leaving import Leavings
from applier.apply.peer_review import PeerReview
from applier.apply.review import missing, parse, review
from applier.apply.verbs import Applies
from applier.base.paths import Paths
from applier.capacity.verbs import Capacities
from applier.hardware.verbs import Tuner
from applier.host.host import PRIVATE, Host, HostError, Live
from applier.kept import events, pair_key, storage
from applier.kept.faults import Faults
from applier.kept.generations import Damaged, Generations
from applier.kept.recovery import Recovery
from applier.kept.setup_code import SetupCode
from applier.kept.turn import Turn
from applier.pair.along import Along
from applier.pair.drills import Drills
from applier.pair.errands import Errands
from applier.pair.joined import Joined
from applier.pair.joining.verbs import Joinings
from applier.pair.lookout import Lookout
from applier.pair.own import Own
from applier.pair.peer import Peer
from applier.pair.pulse import Pulse, Work, answers
from applier.pair.ready import SILENT
from applier.pair.roles import STANDS_BY
from applier.pair.verbs import Pairs
from applier.pair.watch import Watch
from applier.parts import firewall, own_certificate
from applier.service import doctor, trial
from applier.service.sight import Sight
from applier.start import Start
from applier.update.rolling.verbs import RollingUpdate
from applier.update.verbs import Updates
from applier.wire.errors import ApplierRefused
from applier.wire.protocol import FOR_PAIR, Request
from applier.wire.server import Server
from applier.wire.shapes import (
    CodeChecked,
    CodeMade,
    Diagnosis,
    Event,
    GenerationEntry,
    Nothing,
    Review,
    RoomMade,
    RuleCounter,
    RunningStatus,
    SetupOpen,
    Status,
    Trial,
)
from lbconfig.agreement import Lineage
from lbconfig.model.snapshot import FACTORY, Snapshot
from lbconfig.pair import keyed
from lbconfig.target import Target
from lbconfig.validate.cards import Card

log = logging.getLogger("applier")

WEB_USER, PAIR_USER = "fairlead-web", "fairlead-pair"
KEEP_IN_NEED = 10  # generations that are kept when room has to be made
# Seconds after which what does not come round is taken for dead. A hand-over is done by the lookout: the other box is
# told all connections three times, which may take an old kernel half a minute each, and counts them.
ANSWERED, AGREED, LOOKED = 30.0, 30.0, 150.0


class Applier:
    def __init__(self, paths: Paths, host: Host, clock: Clock = boottime) -> None:
        self.paths = paths
        self.host = host
        self._clock = clock
        self.generations = Generations(paths.state)
        self.faults = Faults()
        self.sight = Sight(paths, host, self.faults)
        self.setup_code = SetupCode(paths)
        self.running = Target(None, FACTORY)
        self.confirmed: int | None = None
        self.known_good = False  # whether the kernel was last seen to hold what runs
        self.reasons = events.Events(paths.events, self._name_of)
        self.turn = Turn()
        self.early = Early(paths, host, self.generations)
        self.applies = Applies(self, clock)
        self.peer = Peer()
        self.joined = Joined(self, clock)
        self.errands = Errands(self, clock)
        self.along = Along(self)
        self.own = Own(self, clock)
        self.both = Both(self, self.applies, clock)
        self.peer_review = PeerReview(self)
        self.drift = Drift(self, self.applies, clock)
        self.updates = Updates(paths, host, self.turn, self.faults.codes)
        self.recovery = Recovery(
            paths,
            host,
            self.generations,
            self.turn,
            lambda: self.running.own.network.hostname,
            self.updates.restart,
        )
        self.pair_watch = Watch(self, clock)
        self.tuner = Tuner(self)
        self.capacities = Capacities(self)
        self.pairs = Pairs(self, clock)
        self.drills = Drills(self, self.pairs)
        self.leavings = Leavings(self, self.applies, self.pairs)
        self.lookout = Lookout(self, self.pairs, clock)
        self.joinings = Joinings(
            self, forget=self.joined.forget, silent=self.both.silent, link=lambda: self.joined.link
        )
        self.answers = answers(paths)
        self.pulse = Pulse(
            self,
            self.lookout,
            (Work(self.answers, ANSWERED), Work(self.both.loop, AGREED), Work(self.lookout.loop, LOOKED)),
        )
        self.rolling = RollingUpdate(self, clock)
        self.beginning = Start(self)
        done_here: tuple[Callable[..., object], ...] = (
            self.status, self.missing, self.check, self.diagnose, self.try_check, self.rule_counters, self.events,
            self.generation, self.setup_open, self.setup_check, self.setup_done, self.new_setup_code, self.make_room,
        )  # fmt: skip
        done_by_parts: tuple[Callable[..., object], ...] = (
            self.applies.apply, self.applies.progress, self.applies.confirm, self.applies.roll_back,
            self.both.pair_choose, self.both.pair_connected, self.both.pair_tells, self.both.pair_hears,
            self.both.peer_says, self.both.pair_content, self.both.pair_brings,
            self.leavings.pair_leave, self.leavings.pair_alone, self.leavings.peer_stays, self.leavings.peer_leaves,
            self.along.pair_along, self.along.pair_offer, self.along.pair_bring,
            self.along.along_stamps, self.along.along_document,
            self.errands.pair_errands, self.errands.pair_asked, self.errands.pair_answered,
            self.drift.look, self.drift.repair,
            self.tuner.hardware, self.tuner.tune,
            self.updates.slots, self.updates.update_sources, self.updates.update_check, self.updates.update_install,
            self.updates.update_forget, self.updates.update_seen, self.updates.boot_slot, self.updates.reboot,
            self.recovery.certificate, self.recovery.page_key, self.recovery.restore, self.recovery.factory_reset,
            self.capacities.capacity, self.capacities.capacity_watch, self.capacities.capacity_between,
            self.capacities.capacity_stop,
            self.drills.pair_drills, self.drills.pair_drill,
            self.peer_review.peer_check, self.pairs.seeing.pair_sees, self.pairs.pair_knows,
            self.pairs.pair_retell,
            self.drills.drill_compare, self.drills.drill_done, self.drills.drill_back,
            self.pairs.pair, self.pairs.pair_hand_over, self.pairs.pair_hold, self.pairs.pair_release,
            self.joinings.pair_joining, self.joinings.pair_invite, self.joinings.pair_join, self.joinings.pair_forget,
            self.joinings.pair_probe, self.joinings.pair_replace, self.joined.pair_forgotten,
            self.rolling.pair_update, self.rolling.pair_update_ready, self.rolling.pair_update_start,
            self.rolling.pair_update_choose,
            self.rolling.peer_update_look, self.rolling.peer_update_piece, self.rolling.peer_update_install,
            self.rolling.peer_update_restart, self.rolling.peer_update_hand_over, self.rolling.peer_update_choose,
        )  # fmt: skip
        # Each is named once: a verb is the name of the method that does it, and its fields are the parameters.
        self.verbs = {method.__name__: method for method in (*done_here, *done_by_parts)}
        self.verbs["generations"] = self.list_generations  # self.generations is what keeps them

    @property
    def tools(self) -> Tools:
        return self.host, self.paths, self.generations

    @property
    def loaded(self) -> bool:
        """Whether the box has been brought up, and runs what was confirmed."""
        return self.beginning.over and self.running.number is not None and self.running.number == self.confirmed

    @property
    def relieved(self) -> bool:
        """Whether the other box of the pair would lead at once if this one did not."""
        beat, heard = self.peer.known
        fresh = heard is not None and self._clock() - heard < SILENT
        return fresh and beat is not None and beat.ready and beat.role == STANDS_BY

    @property
    def ready(self) -> bool:
        """Whether this box of a pair may lead."""
        return self.both.ready

    @property
    def lineage(self) -> Lineage:
        return self.both.lineage

    @property
    def agreement(self) -> Both:
        """With the other box of the pair."""
        return self.both

    @property
    def asks(self) -> Errands:
        """What the other box of the pair does for this one."""
        return self.errands

    @property
    def joined_with(self) -> tuple[str, str] | None:
        """The pair that this box was joined for and is not in yet, and the other box's host name."""
        found = self.joined.alone
        return (found.id, found.other) if found else None

    def handle(self, request: Request, uid: int) -> object:
        self.rolling.refuse_meanwhile(request.verb)
        return self.verbs[request.verb](**request.fields)

    # --- verbs -----------------------------------------------------------------------------------

    def status(self, known: Collection[str] = ()) -> Status:
        """`known`: digests of snapshots that the client has; if one of them runs, the answer is without it."""
        # First: an apply that is told as done has set `running` by then, so the two always fit together.
        apply = self.applies.record.to_data() if self.applies.record else None
        running = self.running
        self.sight.storage()
        self.sight.memory()
        update = self.updates.record
        self.faults.set("update-failed", update.fault if update else None)
        total, free = storage.usage(self.paths)
        begun = self.beginning.record
        seen = self._seen(running)
        return {
            "version": self.paths.version,
            "generation": running.number,
            "confirmed": self.confirmed,
            "snapshot": None if running.digest in known else running.data,
            "digest": running.digest,
            "box": running.place,
            "running": seen,
            "interfaces": self.sight.interfaces(),
            "faults": self.faults.to_data(),
            "setup_code_active": self.setup_code.active(),
            "apply": apply,
            "start": begun.to_data() if begun else None,
            "data": {"total": total, "free": free},
            "uptime": round(boottime(), 1),
            "update": update.to_data() if update else None,
            "drift": self.drift.to_data(),
            "load": self.capacities.load(),
            "pair": self.pairs.line(),
        }

    def missing(self, names: list[str]) -> list[str]:
        return missing(names)

    def check(self, snapshot: dict[str, object], services: Sequence[object] = ()) -> Review:
        new, running = parse(snapshot, services), self.running
        seen = self._seen(running)
        known = "table" not in self.faults.codes()
        shown, key = seen if known else None, self.key() if new.pair else ""
        found = review(new, running.snapshot, self.confirmed, self.leases(), shown, self.cards(), key)
        return self.peer_review.both(new, found)

    def diagnose(self, service: int) -> Diagnosis:
        running = self.running.own
        wanted = next((one for one in running.enabled_services if one.id == service), None)
        if wanted is None:
            raise ApplierRefused("unknown-service", "The box does not run this service. Apply the draft first.")
        try:
            return {"looked_at": doctor.looked_at(wanted), "findings": doctor.examine(self.host, running, wanted)}
        except HostError as error:
            raise ApplierRefused("no-diagnosis", f"The box cannot be asked: {error}.") from None

    def try_check(self, snapshot: dict[str, object], service: int, services: Sequence[object] = ()) -> list[Trial]:
        with trial.slot():
            return trial.ask(self.host, parse(snapshot, services), service)

    def rule_counters(self) -> list[RuleCounter]:
        return firewall.counters(self.host)

    def events(self) -> list[Event]:
        return self.reasons.newest()

    def list_generations(self) -> list[GenerationEntry]:
        return self.generations.entries()

    def generation(self, number: int, files: bool = False) -> GenerationEntry:
        if number not in self.generations.numbers():
            raise ApplierRefused("unknown-generation", f"There is no revision {number}.")
        try:
            _, text, texts = self.generations.whole(number)
        except Damaged as error:
            raise ApplierRefused("damaged-generation", f"{error}.") from None
        entry: GenerationEntry = {**self.generations.entry(number), "text": text}
        return entry | {"files": texts} if files else entry

    def setup_open(self) -> SetupOpen:
        return {"open": self.setup_code.active()}

    def setup_check(self, code: str) -> CodeChecked:
        return {"valid": self.setup_code.check(code)}

    def setup_done(self, code: str) -> Nothing:
        self.setup_code.done(code)
        log.info("the box was set up; the code is spent")
        return {}

    def new_setup_code(self) -> CodeMade:
        return {"code": self.setup_code.renew()}

    def make_room(self) -> RoomMade:
        """For a full data partition: spend the reserve, and forget all but the newest generations."""
        with self.turn.take("room is being made on the data partition"):
            try:
                before = storage.usage(self.paths)[1]
                storage.spend_reserve(self.paths)
                self.generations.prune(KEEP_IN_NEED)
                free = storage.usage(self.paths)[1]
            except OSError as error:
                raise ApplierRefused(*storage.of_error(error, self.paths)) from None
        log.info("room was made on the data partition: %d bytes", free - before)
        return {"freed": free - before, "free": free}

    # --- start -----------------------------------------------------------------------------------

    def start(self) -> None:
        """Bring the box to what was confirmed, and begin what goes on from there."""
        self.beginning.bring_up()
        self.joined.started()
        self.both.started()
        self.rolling.start()
        self.beginning.let_the_rest_start()

    def set_running(self, target: Target) -> None:
        self.running = target
        place = "" if target.place is None else f'"box":{target.place},'
        text = f'{{{place}"number":{json.dumps(target.number)},"snapshot":{target.text}}}\n'
        try:
            self.host.put(self.paths.running, text, PRIVATE)
        except HostError as error:
            log.error("%s", error)

    def key(self) -> str:
        """The public key by which a pair knows this box; empty where it has none that can be read."""
        try:
            return pair_key.public(self.host, self.paths)
        except HostError as error:
            log.warning("%s", error)
            return ""

    def target(self, number: int | None, snapshot: Snapshot, was: int | None = None) -> Target:
        """A configuration as this box has it. `was`: which box of its pair this one was when it was stored."""
        box = keyed(snapshot, self.key()) if snapshot.pair else None
        return Target(number, snapshot, box, was)

    def _name_of(self, service: int) -> str:
        return next((one.name for one in self.running.snapshot.services if one.id == service), f"service {service}")

    def _seen(self, running: Target) -> RunningStatus:
        calm = not self.turn.taken or self.updates.installing or self.applies.waiting
        return self.sight.services(running, self.reasons.downs, calm)

    def connections(self) -> int:
        """How many the kernel knows, those that are being closed among them."""
        return self.sight.connections()[0]

    def established(self) -> int:
        """How many of them are open, as far as their protocol says so: of TCP and SCTP."""
        return self.sight.connections()[1]

    def cards(self) -> tuple[Card, ...]:
        seen = self.sight.cards()
        names = {one.name for one in seen}
        return (*seen, *(one for one in self.capacities.lent() if seen and one.name not in names))

    def leases(self) -> dict[str, str]:
        return self.sight.leases(self.running)


def identity(user: str) -> tuple[set[int], int | None]:
    """Who may ask, and the group of the socket."""
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        return {0, os.getuid()}, None
    return {0, entry.pw_uid}, entry.pw_gid


def main() -> None:
    # The run script begins with less, so that health checks are loaded first.
    os.setpriority(os.PRIO_PROCESS, 0, 0)
    # Of a thousand services there are a hundred thousand objects that stay, and to look at all of them takes a small
    # box most of a second. What goes is freed without that; cycles are few, and found while they are young.
    gc.set_threshold(700, 10, 100)
    logging.basicConfig(level=logging.INFO, format="applier: %(levelname)s %(message)s")
    paths = Paths.from_environment()
    applier = Applier(paths, Live())
    uids, gid = identity(WEB_USER)
    pair_uids, pair_gid = identity(PAIR_USER)
    applier.tuner.load_balancer()  # before anybody asks for the table: the kernel would make it by itself
    server = Server(paths.socket, applier.handle, uids, gid)
    for_pair = Server(paths.pair_socket, applier.handle, pair_uids, pair_gid, FOR_PAIR)
    for number in (signal.SIGTERM, signal.SIGINT):
        # The system stays as it is: what runs goes on running without the applier.
        signal.signal(number, lambda *_: os._exit(0))
    threading.Thread(target=events.listen, args=(paths.told, applier.reasons), name="events", daemon=True).start()
    threading.Thread(target=applier.pulse.loop.run, name="pulse", daemon=True).start()
    threading.Thread(target=applier.start, name="start", daemon=True).start()
    threading.Thread(target=for_pair.serve, name="for-pair", daemon=True).start()
    loops = {
        "drift": applier.drift.loop,
        "pair": applier.pair_watch.loop,
        "both": applier.both.loop,
        "joined": applier.joined.loop,
        "hearing": applier.pairs.hearing.loop,
        "seeing": applier.pairs.seeing.loop,
        "lookout": applier.lookout.loop,
        "rolling": applier.rolling.loop,
        "certificate": own_certificate.loop(applier),
        "answers": applier.answers,
    }
    for name, loop in loops.items():
        threading.Thread(target=loop.run, name=name, daemon=True).start()
    server.serve()


if __name__ == "__main__":
    main()
