"""Whether guests run on the processor itself (KVM) or on an emulated one (TCG).

/dev/kvm tells little: there are hosts, themselves guests, where it can be opened and a guest hangs or is slower than an
emulated one. So a guest is asked, twice: a boot sector writes one byte to a port, on which QEMU ends with a code of its
own; and the lab's own kernel starts until it finds no root. (On one such host the boot sector answers in one to nine
seconds, and the kernel stands still for ever.) That is done once for each start of the host; the answer lies in
build/accelerator until then, and FAIRLEAD_ACCEL overrides it. Before the lab's image is built, machines are emulated.

With KVM a guest has the host's processor and a clock of its own (see board.machines.machine). What has not been seen: a
machine that goes back to a saved moment by KVM, because no host where KVM works was at hand.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path

from board.lab.build import TOP

KEPT = TOP / "build/accelerator"
DEVICE = Path("/dev/kvm")
KVM, TCG = "kvm", "tcg"
KERNELS = TOP / "build/lab"
# Seconds. Where KVM works the boot sector answers in 0.3 and the kernel in about one; emulated they take 0.5 and 3.6.
LIMIT = 3.0
PORT = 0xF4
ANSWER = 0x10
# mov al, ANSWER; out PORT, al; then on the spot for ever
CODE = bytes((0xB0, ANSWER, 0xE6, PORT, 0xEB, 0xFE))
SECTOR = CODE.ljust(510, b"\0") + b"\x55\xaa"
EXIT = ANSWER << 1 | 1  # what isa-debug-exit makes of it


def accelerator() -> str:
    """What QEMU is told after -accel: FAIRLEAD_ACCEL, or what works here."""
    given = os.environ.get("FAIRLEAD_ACCEL")
    if given:
        return given
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        return TCG
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    found = _kept(boot)
    kernel = max(KERNELS.glob("base-*/vmlinuz"), key=lambda path: path.stat().st_mtime, default=None)
    if found is None:
        if kernel is None:
            return TCG
        found = KVM if answers(KVM, LIMIT) and starts(KVM, kernel, LIMIT) else TCG
        _keep(boot, found)
    return found


def starts(accelerator: str, kernel: Path, limit: float) -> bool:
    """Whether this kernel gives up within `limit` seconds because it has no root; QEMU ends with it."""
    words = [
        *_quiet(accelerator, 128), "-no-reboot", "-kernel", str(kernel), "-append", "console=ttyS0 quiet panic=-1",
        "-serial", "stdio",
    ]  # fmt: skip
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return False
    return b"Kernel panic" in done.stdout


def _quiet(accelerator: str, memory: int) -> list[str]:
    """QEMU with a guest of so many MiB that ends with this process."""
    processor = "host" if accelerator == KVM else "qemu64,cx16=off"  # as board.machines.machine has it
    return [
        "setpriv", "--pdeathsig=KILL", "qemu-system-x86_64", "-accel", accelerator, "-cpu", processor,
        "-m", str(memory), "-nodefaults", "-no-user-config", "-display", "none",
    ]  # fmt: skip


def answers(accelerator: str, limit: float) -> bool:
    """Whether a guest on this accelerator answers within `limit` seconds."""
    with tempfile.NamedTemporaryFile(prefix="fairlead-probe-") as disk:
        disk.write(SECTOR)
        disk.flush()
        words = [
            *_quiet(accelerator, 16),
            "-drive", f"file={disk.name},format=raw,snapshot=on",
            "-device", f"isa-debug-exit,iobase={PORT},iosize=1",
        ]  # fmt: skip
        try:
            # A guest that hangs is killed by `run` and cannot keep it waiting.
            done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=limit, check=False)
        except subprocess.TimeoutExpired:
            return False
    return done.returncode == EXIT


def _kept(boot: str) -> str | None:
    """The answer of this start of the host, if it was asked already."""
    try:
        kept = json.loads(KEPT.read_text())
    except (OSError, ValueError):
        return None
    return kept["accelerator"] if kept["boot"] == boot else None


def _keep(boot: str, found: str) -> None:
    """Several tests may ask at the same time: the file is there whole or not at all."""
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=KEPT.parent, prefix="accelerator-", delete=False) as file:
        json.dump({"boot": boot, "accelerator": found}, file)
    Path(file.name).rename(KEPT)
