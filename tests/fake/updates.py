"""The updates of the applier in memory: two slots, and what becomes of them. Part of appliance.py.

appliance.box.update.incoming = "0.3.0"                    # what every bundle that comes in holds
appliance.box.update.refuse = ApplierRefused("bundle-signature", "…")
appliance.box.update.sticks = [fake_updates.stick_bundle()]
appliance.box.update.present = False                       # a box without slots
appliance.box.update.fails = "the web page answers with 502"   # what is installed does not come up
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from tests.fake import run as fake_run
from tests.fake.part import Part

from applier.kept.faults import now
from applier.update import bundle as update_bundle
from applier.update.record import Kind, Record, State
from applier.wire.errors import ApplierDown, ApplierRefused
from applier.wire.shapes import (
    BundleReview,
    BundleSource,
    InstallStarted,
    Nothing,
    SlotConfiguration,
    SlotName,
    SlotStatus,
    UpdateJob,
    UpdateState,
)

SLOTS: tuple[SlotName, ...] = ("A", "B")
INSTALL_SECONDS = 12.0  # where the box is not instant
RESTART_SECONDS = 6.0
IMAGE = 58_000_000  # bytes


def stick_bundle(version: str = "0.2.0", problem: str = "", number: int = 1) -> BundleSource:
    return {
        "source": f"usb:{number:016x}",
        "name": f"fairlead-{version}.raucb",
        "stick": "sdb1",
        "size": IMAGE + 500_000,
        "version": "" if problem else version,
        "build": "" if problem else "2026-02-01T00:00:00Z",
        "problem": problem,
    }


@dataclass
class FakeUpdate:
    """Everything that can be arranged."""

    present: bool = True
    version: str = "0.1.0"  # runs
    booted: str = "A"
    other: str = ""  # the version in the other slot
    other_configuration: SlotConfiguration | None = None
    installed: dict[str, tuple[str, str]] = field(default_factory=dict)  # slot: when, by whom
    incoming: str = "0.2.0"
    refuse: ApplierRefused | None = None
    sticks: list[BundleSource] = field(default_factory=lambda: [stick_bundle()])
    fails: str = ""
    job: UpdateJob | None = None
    record: Record | None = None
    restarts: list[str] = field(default_factory=list)
    up_again: float = 0.0
    _job_began: float = 0.0

    @property
    def other_slot(self) -> str:
        return "B" if self.booted == "A" else "A"

    @property
    def installing(self) -> bool:
        return self.job is not None and self.job["state"] == "running"

    def restarting(self) -> bool:
        return time.monotonic() < self.up_again

    def begin(self, user: str, instant: bool) -> str:
        text = "Checking the whole bundle; nothing is written yet"
        job: UpdateJob = {
            "id": f"job-{self.incoming}",
            "user": user,
            "version": self.incoming,
            "slot": self.other_slot,
            "state": "running",
            "percent": 0,
            "message": text,
        }
        self.job = job
        self._job_began = time.monotonic()
        self.advance(INSTALL_SECONDS if instant else 0.0)
        return job["id"]

    def advance(self, elapsed: float | None = None) -> None:
        """Bring the install to where it is after so many seconds."""
        job = self.job
        if job is None or job["state"] != "running":
            return
        elapsed = time.monotonic() - self._job_began if elapsed is None else elapsed
        job["percent"] = min(100, int(100 * elapsed / INSTALL_SECONDS))
        if job["percent"] >= 25:
            job["message"] = f"Writing to slot {self.other_slot}"
        if job["percent"] == 100:
            job |= {"state": "done", "message": f"Version {self.incoming} is in slot {self.other_slot}."}
            self.other, self.other_configuration = self.incoming, None
            self.installed[self.other_slot] = (now(), job["user"])
            self.record = self._record("update", "installed", self.other_slot, self.incoming, job["user"])

    def go(self, slot: str, user: str, instant: bool, configuration: SlotConfiguration) -> None:
        """Restart into that slot, and see what becomes of it."""
        self.restarts.append(slot)
        self.up_again = 0.0 if instant else time.monotonic() + RESTART_SECONDS
        self.job = None
        if slot == self.booted:
            return
        record = self.record
        if record is None or record.state != "installed":
            record = self._record("return", "trying", slot, self.other, user)
        if self.fails:
            self.record = record.now("failed", self.fails)
            return
        self.record = record.now("good")
        self.version, self.other = self.other, self.version
        self.other_configuration, self.booted = configuration, slot

    def _record(self, kind: Kind, state: State, slot: str, version: str, user: str) -> Record:
        return Record(slot, version, self.booted, self.version, user, kind, state, now())


class FakeUpdates(Part):
    """The methods of applier.wire.client.Client that are about updates."""

    def slots(self) -> UpdateState:
        with self._updates() as u:
            return {
                "present": u.present,
                "slots": [_slot(u, name, self._configuration()) for name in SLOTS] if u.present else [],
                "limit": 300 << 20 if u.present else 0,
                "job": copy.copy(u.job),
                "outcome": u.record.to_data() if u.record else None,
                "restart_seconds": 21.4,
            }

    def update_sources(self) -> list[BundleSource]:
        with self._updates() as u:
            _need_calm(u)
            return copy.deepcopy(u.sticks)

    def update_check(self, source: str) -> BundleReview:
        with self._updates() as u:
            _need_calm(u)
            _admit(u)
            older = update_bundle.order(u.incoming) < update_bundle.order(u.version)
            notes = [f"This is an older version than the one that runs ({u.version})."] if older else []
            return {
                "source": source,
                "version": u.incoming,
                "build": "2026-02-01T00:00:00Z",
                "size": IMAGE,
                "slot": u.other_slot,
                "replaces": u.other,
                "older": older,
                "notes": notes,
            }

    def update_install(self, source: str, user: str) -> InstallStarted:
        with self._updates() as u:
            _need_calm(u)
            if reason := self._busy():
                raise ApplierRefused("busy", reason)
            _admit(u)
            return {"job": u.begin(user, self._instant())}

    def update_forget(self) -> Nothing:
        with self._updates() as u:
            _need_calm(u)
            return {}

    def update_seen(self) -> Nothing:
        with self._updates() as u:
            if u.record:
                u.record = replace(u.record, seen=True)
            return {}

    def boot_slot(self, slot: str, user: str) -> Nothing:
        with self._updates() as u:
            _need_calm(u)
            _need_slots(u)
            if slot == u.booted:
                raise ApplierRefused("slot-runs", f"The box runs from slot {slot} already.")
            if not u.other:
                raise ApplierRefused("slot-empty", f"Slot {slot} holds nothing that can be started.")
            self._restart(u, slot, user)
            return {}

    def reboot(self, user: str) -> Nothing:
        with self._updates() as u:
            _need_calm(u)
            self._restart(u, u.booted, user)
            return {}

    # --- what appliance.py knows ---

    @contextmanager
    def _updates(self) -> Iterator[FakeUpdate]:
        with self._box() as box:
            box.update.advance()
            yield box.update

    def _restart(self, u: FakeUpdate, slot: str, user: str) -> None:
        with self._box() as box:
            u.go(slot, user, self._instant(), self._configuration())
            box.started = max(time.monotonic(), u.up_again)

    def _configuration(self) -> SlotConfiguration:
        with self._box() as box:
            entry = box.generations[0] if box.generations else None
        if entry is None:
            return {"number": 1, "created": now(), "comment": ""}
        return {"number": entry["number"], "created": entry["created"], "comment": entry["comment"]}

    def _busy(self) -> str | None:
        with self._box() as box:
            return fake_run.busy(box)

    def _instant(self) -> bool:
        with self._box() as box:
            return box.instant


def check_up(update: FakeUpdate) -> None:
    if update.restarting():
        raise ApplierDown("The applier cannot be reached: the box restarts.")


def _slot(u: FakeUpdate, name: SlotName, configuration: SlotConfiguration) -> SlotStatus:
    booted = name == u.booted
    version = u.version if booted else u.other
    installed, user = u.installed.get(name, ("", ""))
    failed = u.record is not None and u.record.state == "failed" and u.record.slot == name
    return {
        "name": name,
        "booted": booted,
        "next": booted,
        "version": version,
        "good": bool(version) and not failed and (booted or u.record is None or u.record.state != "installed"),
        "can_start": bool(version) and not failed,
        "installed": installed,
        "user": user,
        "configuration": configuration if booted else u.other_configuration,
    }


def _need_slots(u: FakeUpdate) -> None:
    if not u.present:
        text = "This box does not run from a disk with two slots, so it cannot be updated here."
        raise ApplierRefused("no-slots", text)


def _need_calm(u: FakeUpdate) -> None:
    if u.job and u.installing:
        raise ApplierRefused("busy", f"Right now version {u.job['version']} is being installed.")


def _admit(u: FakeUpdate) -> None:
    _need_slots(u)
    if u.refuse is not None:
        raise u.refuse
