"""Updates: a signed bundle goes into the slot that does not run, and the box starts from it when it is told to.

RAUC checks the signature and mounts what it verified (bundle.py, and `rauc mount` here); the slot is written by
write.py; which slot starts is disk/bootstate.py's; whether what started is good, bootcheck.py finds out.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from applier.base.paths import Paths
from applier.disk.bootstate import BootStateError
from applier.disk.disks import Places
from applier.host.host import Host, HostError, run, unmount
from applier.kept.faults import now
from applier.kept.turn import Held, Turn, beside
from applier.update import bundle as update_bundle
from applier.update import least_version
from applier.update import record as update_record
from applier.update import write as update_write
from applier.update.bundle import Bundle
from applier.update.record import Kind, Record, State
from applier.update.slots import SLOTS, Slots
from applier.update.spool import Spool
from applier.update.sticks import Sticks
from applier.wire.errors import ApplierRefused
from applier.wire.shapes import BundleReview, BundleSource, InstallStarted, Nothing, UpdateJob, UpdateState

log = logging.getLogger("applier")

Ended = Literal["done", "failed"]

MODULES = ("loop", "dm_verity")  # what mounting a bundle needs of the kernel
GRACE = 3.0  # seconds in which the page that waits for the restart gets to who asked for it
TIMEOUT = 120.0  # seconds for a mount from a slow stick
OVERHEAD = 1.02  # a bundle is larger than its image: hashes, signature, a small file system
# How far the percentage is when each part of an install begins.
CHECK, WRITE, READ_BACK, END = 0, 25, 70, 100


@dataclass(slots=True)
class Install:
    id: str
    user: str
    version: str
    slot: str
    state: Literal["running"] | Ended = "running"
    percent: int = 0
    message: str = "Opening the bundle"

    def to_data(self) -> UpdateJob:
        return {
            "id": self.id,
            "user": self.user,
            "version": self.version,
            "slot": self.slot,
            "state": self.state,
            "percent": self.percent,
            "message": self.message,
        }

    def end(self, state: Ended) -> None:
        """With its last message; whoever sees the state may install again."""
        log.info("version %s of %s for slot %s: %s: %s", self.version, self.user, self.slot, state, self.message)
        self.state = state

    def fail(self, error: BaseException) -> Ended:
        """By a mistake of ours."""
        self.message = f"The applier has failed: {error!r}. The box runs as before."
        return "failed"

    def part(self, message: str, begin: int, end: int, size: int) -> Callable[[int], None]:
        """Say what is done now; what it returns takes the bytes that are done of so many."""
        self.message, self.percent = message, begin

        def progress(done: int) -> None:
            self.percent = begin + (end - begin) * min(done, size) // max(size, 1)

        return progress


class Updates:
    def __init__(self, paths: Paths, host: Host, turn: Turn, faults: Callable[[], list[str]]) -> None:
        """`faults`: codes of what is wrong now."""
        self.restart_seconds: float | None = None
        self._paths = paths
        self._host = host
        self._turn = turn
        self._faults = faults
        self._slots = Slots(paths, host)
        self._spool = Spool(paths)
        self._sticks = Sticks(host, Places(run=paths.run))
        self._job: Install | None = None
        self._looking = threading.Lock()  # one at a time mounts sticks, or takes an upload

    def start(self) -> None:
        """Tidy up what a killed applier or a power cut left behind."""
        self._unmount()
        self._sticks.clear()
        self._spool.clear()
        for slot in SLOTS:
            shutil.rmtree(self._paths.slots / f".{slot}.gone", ignore_errors=True)

    @property
    def installing(self) -> bool:
        return self._job is not None and self._job.state == "running"

    @property
    def limit(self) -> int:
        """Bytes that a bundle may have; 0 where the box has no slots. Raises ApplierRefused."""
        return int(self._room() * OVERHEAD) if self._slots.present else 0

    @property
    def record(self) -> Record | None:
        return update_record.load(self._paths.update_record)

    # --- verbs -------------------------------------------------------------------------------------

    def slots(self) -> UpdateState:
        job = self._job.to_data() if self._job else None  # first: one that is done has left its record
        present, record = self._slots.present, self.record
        try:
            return {
                "present": present,
                "slots": self._slots.status() if present else [],
                "limit": self.limit,
                "job": job,
                "outcome": record.to_data() if record else None,
                "restart_seconds": self.restart_seconds,
            }
        except BootStateError as error:
            raise ApplierRefused("slots-unreadable", f"The slots cannot be read: {error}.") from None

    def update_sources(self) -> list[BundleSource]:
        with self._alone():
            return self._sticks.bundles()

    def update_check(self, source: str) -> BundleReview:
        self._need_slots()
        with self._alone(), self._opened(source) as path:
            bundle = self._admit(source, path)
        slot = self._slots.other
        return {
            "source": source,
            "version": bundle.version,
            "build": bundle.build,
            "size": bundle.size,
            "slot": slot,
            "replaces": self._slots.version(slot),
            "older": self._is_older(bundle),
            "notes": self._notes(bundle),
        }

    @contextlib.contextmanager
    def opened(self, source: str) -> Iterator[Path]:
        """The bundle, for whoever sends it elsewhere."""
        with self._alone(), self._opened(source) as path:
            yield path

    def update_install(self, source: str, user: str) -> InstallStarted:
        self._need_slots()
        with self._turn.take(lambda: f"an update is being installed by {user}") as held:  # it may take an hour
            with self._alone(), self._opened(source) as path:
                bundle = self._admit(source, path)
            job = Install(secrets.token_hex(4), user, bundle.version, self._slots.other)
            self._job = job
            held.hand_on(job.id, lambda: self._run(job, source, bundle), job.fail, job.end)
            return {"job": job.id}

    def update_forget(self) -> Nothing:
        with self._alone():
            self._spool.clear()
        return {}

    def update_seen(self) -> Nothing:
        record = self.record
        if record and record.fault:
            self._save(replace(record, seen=True))
        return {}

    def boot_slot(self, slot: str, user: str) -> Nothing:
        self._need_slots()
        if slot == self._slots.booted:
            raise ApplierRefused("slot-runs", f"The box runs from slot {slot} already.")
        version = self._slots.version(slot)
        if not version:
            raise ApplierRefused("slot-empty", f"Slot {slot} holds nothing that can be started.")
        least_version.check(self._paths, version)
        with self._turn.take(f"the box is restarted by {user}") as held:
            try:
                self._save(self._departure(slot, version, user))
                self._slots.start_next(slot)
            except (OSError, BootStateError) as error:
                raise ApplierRefused("slots-unwritable", f"The next start cannot be chosen: {error}.") from None
            log.info("user %s restarts the box into slot %s, version %s", user, slot, version)
            self.restart(held)
        return {}

    def reboot(self, user: str) -> Nothing:
        """Also where a change hangs: it is taken back at the start, as after a power cut (decision 123)."""
        try:
            with self._turn.take(f"the box is restarted by {user}") as held:
                log.info("user %s restarts the box", user)
                self.restart(held)
        except ApplierRefused as refused:
            if not self._turn.overdue:
                raise
            log.warning("user %s restarts the box. %s", user, refused)
            self.restart(None)
        return {}

    # --- what is asked first -----------------------------------------------------------------------

    def _need_slots(self) -> None:
        if not self._slots.present:
            text = "This box does not run from a disk with two slots, so it cannot be updated here."
            raise ApplierRefused("no-slots", text)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        job = self._job
        if job and self.installing:
            raise ApplierRefused("busy", f"Right now version {job.version} is being installed.")
        with self._looking:
            yield

    @contextlib.contextmanager
    def _opened(self, source: str) -> Iterator[Path]:
        kind, _, name = source.partition(":")
        if kind == "usb":
            with self._sticks.opened(source) as path:
                yield path
        else:
            yield self._spool.take(name)

    def _admit(self, source: str, path: Path) -> Bundle:
        """ApplierRefused for what cannot be installed; an upload is forgotten then."""
        try:
            bundle = update_bundle.describe(self._host, path)
            least_version.check(self._paths, bundle.version)
            room = self._room()
            if bundle.size > room:
                words = f"{bundle.size / 1e6:.0f} MB, and a slot has {room / 1e6:.0f} MB"
                raise ApplierRefused("bundle-too-large", f"The bundle does not fit: it holds {words}.")
        except ApplierRefused:
            if source.startswith("upload:"):
                self._spool.clear()
            raise
        return bundle

    def _room(self) -> int:
        try:
            return update_write.room(self._slots.device(self._slots.other))
        except OSError as error:
            raise ApplierRefused("slots-unreadable", f"The slot cannot be read: {error}.") from None

    def _is_older(self, bundle: Bundle) -> bool:
        return update_bundle.order(bundle.version) < update_bundle.order(self._paths.version)

    def _notes(self, bundle: Bundle) -> list[str]:
        notes, runs = [], self._paths.version
        if bundle.version == runs:
            notes.append(f"This is the version that runs already ({runs}).")
        elif self._is_older(bundle):
            notes.append(
                f"This is an older version than the one that runs ({runs}). It may not be able to read the "
                "configuration of now; then it does not come up, and the box returns to this version by itself."
            )
        return notes

    # --- the install -------------------------------------------------------------------------------

    def _run(self, job: Install, source: str, bundle: Bundle) -> Ended:
        try:
            with self._opened(source) as path, self._image(path) as image:
                self._install(job, image, path, bundle)
            return "done"
        except ApplierRefused as refusal:
            job.message = refusal.message
        except (HostError, OSError, BootStateError) as error:
            job.message = f"Version {bundle.version} could not be installed: {error}. The box runs as before."
        finally:
            self._spool.clear()
        return "failed"

    def _install(self, job: Install, image: Path, path: Path, bundle: Bundle) -> None:
        size, device = bundle.size, self._slots.device(job.slot)
        checking = job.part("Checking the whole bundle; nothing is written yet", CHECK, WRITE, size)
        update_write.verify(image, path, size, bundle.digest, checking)
        writing = job.part(f"Writing to slot {job.slot}", WRITE, READ_BACK, size)
        self._slots.forget(job.slot)
        update_write.erase(device)
        update_write.write(image, path, device, writing)
        reading = job.part(f"Reading slot {job.slot} back", READ_BACK, END, size)
        if not update_write.reads_back(device, size, bundle.digest, reading):
            update_write.erase(device)
            text = "The disk returns other data than was written to it: replace it soon. The box runs as before."
            raise ApplierRefused("disk-error", text)
        self._slots.installed(job.slot, job.user)
        self._save(self._record("update", "installed", job.slot, bundle.version, job.user))
        job.percent = END
        job.message = f"Version {bundle.version} is in slot {job.slot}. It runs once the box is restarted into it."

    @contextlib.contextmanager
    def _image(self, path: Path) -> Iterator[Path]:
        """The bundle's image, mounted so that the kernel verifies each block that is read."""
        self._host.command(["modprobe", "-a", "-q", *MODULES])  # what is built in needs none
        run(self._host, ["rauc", f"--conf={update_bundle.CONF}", "mount", str(path)], timeout=TIMEOUT)
        try:
            yield self._mount_point / update_bundle.IMAGE
        finally:
            self._unmount()

    def _unmount(self) -> None:
        with contextlib.suppress(HostError):
            if self._mount_point.is_mount():
                unmount(self._host, self._mount_point)

    @property
    def _mount_point(self) -> Path:
        return self._paths.run / "rauc/bundle"

    # --- the restart -------------------------------------------------------------------------------

    def _departure(self, slot: str, version: str, user: str) -> Record:
        """What is written down before the box goes: after an install it is that one's trial."""
        record = self.record
        if record and (record.slot, record.state) == (slot, "installed"):
            return replace(record.now("trying"), known_faults=tuple(self._faults()))
        return self._record("return", "trying", slot, version, user)

    def _record(self, kind: Kind, state: State, slot: str, version: str, user: str) -> Record:
        return Record(
            slot,
            version,
            self._slots.booted,
            self._paths.version,
            user,
            kind,
            state,
            now(),
            known_faults=tuple(self._faults()),
        )

    def _save(self, record: Record) -> None:
        update_record.save(self._paths.update_record, record)

    def restart(self, held: Held | None) -> None:
        """The turn is kept: nothing may be changed any more. Unless the box does not go.

        None: somebody else has it, and does not end.
        """

        def go() -> bool:
            self._host.sleep(GRACE)
            run(self._host, ["reboot"])
            return True

        def tell(goes: bool) -> None:
            if not goes and held:
                held.give_back()

        if held:
            held.keep()
        beside("restart", go, lambda _: False, tell)
