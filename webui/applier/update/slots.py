"""The two slots of the disk: what each holds, which one runs, and which one starts next."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import threading
from pathlib import Path

from applier.base import durable
from applier.base.paths import Paths
from applier.disk import bootstate
from applier.host.host import Host, HostError, unmount
from applier.kept.faults import now
from applier.kept.generations import Generations
from applier.wire.shapes import SlotConfiguration, SlotName, SlotStatus

SLOTS: tuple[SlotName, ...] = ("A", "B")
OPTIONS = "ro,nosuid,nodev,noexec"
VERSION = "usr/lib/fairlead/VERSION"
LONGEST = 64  # characters of a version


class Slots:
    def __init__(self, paths: Paths, host: Host) -> None:
        self._paths = paths
        self._host = host
        self._versions: dict[str, str] = {}  # reading one means to mount it
        self._reading = threading.Lock()  # what is mounted cannot be written

    @property
    def present(self) -> bool:
        """Whether the box runs from a disk with slots; a developer's layers have none."""
        return all(path.exists() for path in (*map(self.device, SLOTS), self._paths.boot_state))

    @property
    def booted(self) -> str:
        try:
            text = self._paths.slot_file.read_text().strip()
        except OSError:
            text = ""
        return text if text in SLOTS else "A"

    @property
    def other(self) -> str:
        return "B" if self.booted == "A" else "A"

    def device(self, slot: str) -> Path:
        return self._paths.disk / f"slot-{slot.lower()}"

    def data(self, slot: str) -> Path:
        """Where the slot keeps its configuration."""
        return self._paths.slots / slot

    def version(self, slot: str) -> str:
        """Empty: the slot holds nothing that can be started."""
        if slot == self.booted:
            return self._paths.version
        with self._reading:
            if slot not in self._versions:
                self._versions[slot] = self._read_version(slot)
            return self._versions[slot]

    def status(self) -> list[SlotStatus]:
        """Raises BootStateError."""
        state = bootstate.read(self._paths.boot_state)
        return [self._status(slot, state) for slot in SLOTS]

    # --- changes -----------------------------------------------------------------------------------

    def forget(self, slot: str) -> None:
        """Before it is written: it never starts, and its configuration is gone. Raises OSError, BootStateError."""
        with self._reading:
            self._versions[slot] = ""  # until it is whole nobody looks into it
        bootstate.set_primary(self.booted, self._paths.boot_state)
        bootstate.set_state(slot, "bad", self._paths.boot_state)
        self._drop_data(slot)

    def _drop_data(self, slot: str) -> None:
        folder, gone = self.data(slot), self._paths.slots / f".{slot}.gone"
        shutil.rmtree(gone, ignore_errors=True)
        with contextlib.suppress(FileNotFoundError):
            os.rename(folder, gone)
        durable.sync_folder(self._paths.slots)
        shutil.rmtree(gone, ignore_errors=True)

    def installed(self, slot: str, user: str) -> None:
        """It holds something whole, and may start if the running one does not. Raises OSError, BootStateError."""
        self._versions.pop(slot, None)
        notes = self._notes() | {slot: {"installed": now(), "user": user}}
        durable.replace(self._paths.slot_notes, json.dumps(notes, indent=1).encode() + b"\n")
        # To be first makes it fit to start; the running one stays the first until an admin says otherwise.
        for name in (slot, self.booted):
            bootstate.set_primary(name, self._paths.boot_state)

    def start_next(self, slot: str) -> None:
        """One that never came up takes along what the box has now, not what it had at an earlier try.

        Raises OSError, BootStateError.
        """
        if bootstate.read(self._paths.boot_state).on_trial(slot):
            self._drop_data(slot)
        bootstate.set_primary(slot, self._paths.boot_state)

    # --- details -----------------------------------------------------------------------------------

    def _status(self, slot: SlotName, state: bootstate.BootState) -> SlotStatus:
        note = self._notes().get(slot, {})
        version = self.version(slot)
        # What is on trial loses its folder before it starts the next time (start_next).
        keeps = version and (slot == self.booted or not state.on_trial(slot))
        return {
            "name": slot,
            "booted": slot == self.booted,
            "next": slot == bootstate.choose(state),
            "version": version,
            "good": state.slot(slot).good,
            "can_start": bool(version) and state.can_boot(slot),
            "installed": note.get("installed", ""),
            "user": note.get("user", ""),
            "configuration": self._configuration(slot) if keeps else None,
        }

    def _configuration(self, slot: str) -> SlotConfiguration | None:
        if not self.data(slot).is_dir():
            return None
        kept = Generations(self.data(slot) / "applier")
        number = kept.confirmed_number()
        if number is None:
            return {"number": 0, "created": "", "comment": ""}
        entry = kept.entry(number)
        return {"number": number, "created": entry["created"], "comment": entry["comment"]}

    def _notes(self) -> dict[str, dict[str, str]]:
        try:
            notes = json.loads(self._paths.slot_notes.read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        good = isinstance(notes, dict) and all(isinstance(note, dict) for note in notes.values())
        return notes if good else {}

    def _read_version(self, slot: str) -> str:
        folder = self._paths.run / "look" / f"slot-{slot.lower()}"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            mount = ["mount", "-t", "squashfs", "-o", OPTIONS, str(self.device(slot)), str(folder)]
            if self._host.command(mount).exit:
                return ""
            try:
                text = self._host.read(folder / VERSION) or ""
            finally:
                with contextlib.suppress(HostError):  # what was read is true anyway
                    unmount(self._host, folder)
        except (HostError, OSError):
            return ""
        text = text.strip()[:LONGEST]
        return text if text.isprintable() else ""
