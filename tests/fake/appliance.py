"""An applier in memory: for the web UI's tests and for `make dev`. It changes nothing anywhere.

It validates, renders and compares with the real lbconfig; only the box behind it is invented. All Fake objects
of a process share one `box`, so that a test can arrange it:

    appliance.reset(instant=True)                      # a sample box of which every apply ends at once
    appliance.box.down.add(("10.2.0.12", 80))          # a dead real server
    appliance.box.fault("data-full", "The data partition is full.")
    appliance.box.failing_step = "ldirectord-start"    # the next applies fail there and are put back
    appliance.box.reachable = False                    # every call raises ApplierDown
    appliance.box.finish(); appliance.box.expire()          # an apply runs on to where it waits; its time is over
    appliance.box.setup_done = True                    # somebody has set the box up; no code is active
    appliance.reset(snapshot=FACTORY, confirmed=None)  # a box fresh from the factory
"""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from tests.fake import kernel as fake_kernel
from tests.fake import run as fake_run
from tests.fake.capacity import FakeCapacity, FakeCapacityState
from tests.fake.drift import FakeDrift, FakeDriftState
from tests.fake.hardware import FakeHardware, FakeMachine
from tests.fake.joining import FakeJoining, FakeJoiningState, agreed_key
from tests.fake.pair import FakePair, FakePairState
from tests.fake.pair import usual as usual_pair
from tests.fake.recovery import FakeBelongings, FakeRecovery
from tests.fake.rolling import FakeRolling, FakeRollingState
from tests.fake.sample import sample_snapshot
from tests.fake.updates import FakeUpdate, FakeUpdates, check_up

from applier.apply.pending import Ask
from applier.apply.review import admit, parse, review
from applier.apply.runs import ALONE, RunRecord
from applier.service import doctor, health
from applier.wire.errors import ApplierDown, ApplierRefused
from applier.wire.shapes import (
    ApplyStarted,
    CodeChecked,
    CodeMade,
    Diagnosis,
    Event,
    Fault,
    GenerationEntry,
    Nothing,
    Review,
    RoomMade,
    RuleCounter,
    RunStatus,
    SetupOpen,
    Status,
    Trial,
)
from lbconfig.diff.cutoff import USUAL, cutoff
from lbconfig.model import canonical
from lbconfig.model.canonical import digest
from lbconfig.model.snapshot import (
    FallbackCheck,
    Snapshot,
    to_data,
)
from lbconfig.render import render

SETUP_CODE = "TEST-CODE-2222"


@dataclass
class Box:
    """Everything that can be arranged."""

    snapshot: Snapshot = field(default_factory=sample_snapshot)
    confirmed: int | None = 3
    instant: bool = False
    reachable: bool = True
    down: set[tuple[str, int]] = field(default_factory=lambda: {("10.2.0.12", 80)})
    faults: list[Fault] = field(default_factory=list)
    failing_step: str | None = None
    refuse: ApplierRefused | None = None  # what every check and apply is refused with
    setup_done: bool = False
    setup_code: str = SETUP_CODE
    run: RunRecord | None = None
    generations: list[GenerationEntry] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)
    started: float = field(default_factory=time.monotonic)
    update: FakeUpdate = field(default_factory=FakeUpdate)
    drift: FakeDriftState = field(default_factory=FakeDriftState)
    machine: FakeMachine = field(default_factory=FakeMachine)
    capacity: FakeCapacityState = field(default_factory=FakeCapacityState)
    pair: FakePairState | None = field(default_factory=usual_pair)
    recovery: FakeBelongings = field(default_factory=FakeBelongings)
    joining: FakeJoiningState = field(default_factory=FakeJoiningState)
    rolling: FakeRollingState = field(default_factory=FakeRollingState)
    change: fake_run.Change | None = None
    cards: tuple[str, ...] | None = None  # in the box; None: whatever its configuration names

    def __post_init__(self) -> None:
        if self.confirmed is not None and not self.generations:
            self.generations = [self._old_generation(number) for number in range(self.confirmed, 0, -1)]

    def fault(self, code: str, message: str) -> None:
        self.faults.append({"code": code, "message": message, "since": fake_run.now()})

    def finish(self) -> None:
        """Let a run that is under way end now, or come to where it waits to be confirmed."""
        with self.lock:
            fake_run.advance(self, float("inf"))

    def expire(self) -> None:
        """Let the time to confirm be over."""
        with self.lock:
            if self.run is None or self.run.deadline is None:
                raise LookupError("nothing waits to be confirmed")
            self.run.deadline.until = 0.0

    def _old_generation(self, number: int) -> GenerationEntry:
        steps = RunRecord.of(str(number), "admin", number, ALONE)
        for step in steps.steps:
            step.state, step.seconds = "done", 0.05
        return {
            "number": number,
            "user": "admin",
            "comment": ("first set-up", "mail added", "names added")[number % 3 - 1],
            "created": f"2026-01-{number % 28 + 1:02}T09:30:00Z",
            "outcome": "confirmed",
            "seconds": 0.6,
            "steps": [step.to_data() for step in steps.steps],
            "text": canonical.text(self.snapshot),
            "files": render(self.snapshot),
        }


box = Box()


def reset(**settings: Any) -> Box:
    """A box as new for all Fake objects; settings are the fields of Box."""
    box.joining.close()
    vars(box).update(vars(Box(**settings)))
    return box


class Fake(FakeUpdates, FakeRecovery, FakeDrift, FakeHardware, FakeCapacity, FakePair, FakeJoining, FakeRolling):
    """The methods of applier.wire.client.Client."""

    def status(self, known: Collection[str] = ()) -> Status:
        with self._box() as b:
            runs = digest(b.snapshot)
            return {
                "version": b.update.version,
                "generation": b.run.generation if b.run and b.run.state == "waiting" else b.confirmed,
                "confirmed": b.confirmed,
                "snapshot": None if runs in known else to_data(b.snapshot),
                "digest": runs,
                "box": 0 if b.snapshot.pair else None,
                "running": health.Told()(
                    b.snapshot, fake_kernel.entries(b), checked_for=3600.0, downs=fake_kernel.downs(b)
                ),
                "interfaces": fake_kernel.interfaces(b),
                "faults": _faults(b),
                "setup_code_active": not b.setup_done,
                "apply": b.run.to_data() if b.run else None,
                "start": None,
                "data": {"total": 1_000_000_000, "free": 900_000_000},
                "uptime": round(time.monotonic() - b.started, 1),
                "update": b.update.record.to_data() if b.update.record else None,
                "drift": b.drift.to_data(),
                "load": b.capacity.load(),
                "pair": b.pair.line() if b.pair else None,
            }

    def check(self, snapshot: Snapshot | dict[str, object]) -> Review:
        with self._box() as b:
            _refuse(b)
            seen = health.Told()(b.snapshot, fake_kernel.entries(b), checked_for=3600.0)
            new, present = _parse(snapshot), fake_kernel.present(b)
            found = review(new, b.snapshot, b.confirmed, seen=seen, present=present, key=_key(b))
            return b.pair.reviewed(found) if b.pair else found

    def apply(
        self,
        snapshot: Snapshot | dict[str, object] | str,
        digest: str,
        base: int | None,
        user: str,
        comment: str = "",
        client: str = "",
        confirm_within: int | None = None,
    ) -> ApplyStarted:
        with self._box() as b:
            _refuse(b)
            if b.update.installing:
                raise ApplierRefused("busy", "Right now an update is being installed; wait until that has ended.")
            if reason := fake_run.busy(b):
                raise ApplierRefused("busy", reason)
            new = _parse(snapshot)
            present = fake_kernel.present(b)
            files = admit(new, b.snapshot, digest, base, b.confirmed, client, present=present, key=_key(b))
            found = cutoff(b.snapshot, new)
            within = confirm_within or (USUAL if found.asks else 0)
            return fake_run.start(b, new, files, user, comment, Ask.of(found, within) if within else None)

    def progress(self) -> RunStatus | None:
        with self._box() as b:
            return b.run.to_data() if b.run else None

    def confirm(self, apply: str = "", secret: str = "", user: str = "") -> RunStatus:
        with self._box() as b:
            return fake_run.decide(b, True, apply, secret, user)

    def roll_back(self, apply: str = "", secret: str = "", user: str = "") -> RunStatus:
        with self._box() as b:
            return fake_run.decide(b, False, apply, secret, user)

    def diagnose(self, service: int) -> Diagnosis:
        """As if the servers in `box.down` had closed ports, and nothing else were wrong."""
        with self._box() as b:
            wanted = next((one for one in b.snapshot.enabled_services if one.id == service), None)
            if wanted is None:
                raise ApplierRefused("unknown-service", "The box does not run this service. Apply the draft first.")
            closed = [one for one in wanted.real_servers if (one.address, one.port) in b.down]
            return {
                "looked_at": doctor.looked_at(wanted),
                "findings": [doctor.closed_port(one.address, one.port, "refused") for one in closed],
            }

    def try_check(self, snapshot: Snapshot | dict[str, object], service: int) -> list[Trial]:
        """The servers in `box.down` are down."""
        with self._box() as b:
            wanted = next(one for one in _parse(snapshot).services if one.id == service)
            checked = wanted.fallback.check is not FallbackCheck.OFF
            fallback = wanted.fallback_server if checked else None
            return [
                {
                    "server": one.address,
                    "port": one.port,
                    "fallback": one is fallback,
                    "state": "down" if (one.address, one.port) in b.down else "up",
                    "seconds": 0.012,
                    "message": "500 Can't connect (Connection refused)" if (one.address, one.port) in b.down else "",
                    "sent": f"GET http://{one.address}:{one.port}/",
                    "received": "200 OK",
                }
                for one in (*wanted.real_servers, *([fallback] if fallback else []))
            ]

    def events(self) -> list[Event]:
        """That each server which is down has left."""
        with self._box() as b:
            return [event for downs in fake_kernel.downs(b).values() for event in downs.values()]

    def rule_counters(self) -> list[RuleCounter]:
        """The same on every call, so that screens can be compared."""
        with self._box() as b:
            return [
                {
                    "id": rule.id,
                    "packets": 1240 // place,
                    "bytes": 74400 // place,
                    "over": 17 if rule.limit.rate else 0,
                }
                for place, rule in enumerate((one for one in b.snapshot.firewall.rules if one.enabled), start=1)
            ]

    def generations(self) -> list[GenerationEntry]:
        with self._box() as b:
            entries = copy.deepcopy(b.generations)
        for entry in entries:
            entry.pop("text", None)
            entry.pop("files", None)
        return entries

    def generation(self, number: int, files: bool = False) -> GenerationEntry:
        with self._box() as b:
            for entry in b.generations:
                if entry["number"] == number:
                    found = copy.deepcopy(entry)
                    if not files:
                        found.pop("files", None)
                    return found
        raise ApplierRefused("unknown-generation", f"There is no revision {number}.")

    def setup_open(self) -> SetupOpen:
        with self._box() as b:
            return {"open": not b.setup_done}

    def setup_check(self, code: str) -> CodeChecked:
        with self._box() as b:
            return {"valid": not b.setup_done and code == b.setup_code}

    def setup_done(self, code: str) -> Nothing:
        if not self.setup_check(code)["valid"]:
            raise ApplierRefused("wrong-code", "This is not the set-up code that the console shows.")
        box.setup_done = True
        return {}

    def make_room(self) -> RoomMade:
        with self._box() as b:
            b.faults = [fault for fault in b.faults if fault["code"] != "data-full"]
        return {"freed": 8_000_000, "free": 908_000_000}

    def new_setup_code(self) -> CodeMade:
        with self._box() as b:
            b.setup_done = False
            return {"code": b.setup_code}

    def _box(self) -> _Held:
        if not box.reachable:
            raise ApplierDown("The applier cannot be reached at /run/fairlead/applier.sock: Connection refused.")
        check_up(box.update)
        return _Held(box)


class _Held:
    """The box, locked, and with its run brought up to now."""

    def __init__(self, held: Box) -> None:
        self.held = held

    def __enter__(self) -> Box:
        self.held.lock.acquire()
        if self.held.run is not None:
            fake_run.advance(self.held)
        return self.held

    def __exit__(self, *_: object) -> None:
        self.held.lock.release()


def _faults(b: Box) -> list[Fault]:
    record = b.update.record
    failed: list[Fault] = (
        [{"code": "update-failed", "message": record.fault, "since": record.since}] if record and record.fault else []
    )
    return failed + copy.deepcopy(b.faults)


def _key(b: Box) -> str:
    """By which a pair knows the box; it is the first one of any that it runs."""
    return b.snapshot.pair.boxes[0].key if b.snapshot.pair else agreed_key(b)


def _refuse(b: Box) -> None:
    if b.refuse is not None:
        raise b.refuse


def _parse(snapshot: Snapshot | dict[str, object] | str) -> Snapshot:
    return parse(to_data(snapshot) if isinstance(snapshot, Snapshot) else snapshot)
