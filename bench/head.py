"""What a run was made on: facts of the machine and the versions of what took part; no names of hosts, no paths."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from board.lab.build import Image
from board.machines.accelerator import accelerator

TOP = Path(__file__).parents[1]


@dataclass(frozen=True)
class Head:
    date: str  # UTC, to the minute
    command: str
    quick: bool
    processor: str
    cores: int
    memory: int  # MiB
    kernel: str  # of the machine that emulates
    accelerator: str  # what runs the guests' instructions
    emulator: str
    version: str  # of the tree that was measured
    guest: str = "unknown"  # the guests' kernel

    def facts(self) -> dict[str, str]:
        """What the report says of it, as pairs."""
        return {
            "date": f"{self.date} UTC",
            "command": f"`{self.command}`",
            "machine": f"{self.processor}, {self.cores} cores, {self.memory / 1024:.0f} GiB, Linux {self.kernel}",
            "guests": f"Linux {self.guest}; {self.emulator}, accelerator {self.accelerator}",
            "tree": self.version,
        }


def look(command: str, quick: bool, image: Image) -> Head:
    """Of this machine, now."""
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return Head(
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
        command=command,
        quick=quick,
        processor=processor(Path("/proc/cpuinfo").read_text()),
        cores=len(os.sched_getaffinity(0)),
        memory=pages * size >> 20,
        kernel=platform.release().partition("-")[0],
        accelerator=accelerator(),
        emulator=first_line("qemu-system-x86_64", "--version").partition(" (")[0],
        guest=next((image.kernel.parent / "tree/usr/lib/modules").iterdir()).name,
        version=first_line("git", "-C", str(TOP), "describe", "--always", "--dirty"),
    )


def processor(cpuinfo: str) -> str:
    """The model's name out of the text of /proc/cpuinfo."""
    for line in cpuinfo.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()


def first_line(*command: str) -> str:
    """What a program says first; "unknown" where it cannot be asked."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return next(iter(done.stdout.splitlines()), "unknown")
