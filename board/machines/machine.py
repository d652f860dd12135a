"""A virtual machine, driven from the host without root.

    with Machine("director", folder, image, nics=[UserNetwork()]) as director:
        director.succeed("ipvsadm -Ln")

It starts the layers of the developer image, or, given a firmware, whatever is on its disk.

Commands run through QEMU's guest agent, as root, and every wait has a deadline in seconds.
"""

from __future__ import annotations

import fcntl
import os
import shlex
import shutil
import socket
import struct
import subprocess
import termios
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from board.lab.build import Image
from board.machines.accelerator import KVM, TCG, accelerator
from board.machines.channel import Agent, ChannelError, Done, Monitor
from board.machines.link import LinkEnd, Plug
from board.machines.spent import BOOTING, GOING_BACK, retried, spent
from board.machines.wait import PATIENCE, WaitedInVain, until
from board.pc import layout

DIRECTOR = ("app", "python", "base")  # layers, the topmost first
WORLD = ("world", "base")
BOOT = 240.0  # seconds that a boot may take
COMMAND = 120.0  # seconds that a command in the guest may take
AGENT = 90.0  # seconds in which a machine that runs already answers
PANIC = "Kernel panic - not syncing"
DATA_LABEL = "FAIRLEAD-DATA"
DISK_GROWTH = 64  # MiB by which a machine's disk is larger than the disk image
OVMF = Path("/usr/share/OVMF")
# A line to a UNIX socket, and the line that answers it. To load Python for that takes the one slow processor a second.
EXCHANGE = r"""
socket(A, AF_UNIX, SOCK_STREAM, 0) && connect(A, pack_sockaddr_un($ARGV[0])) or die "$!\n";
syswrite A, scalar <STDIN>;
$_ = <A>;
/\n/ or die "no whole answer\n";
print;
"""
OPEN_AGENT = "fairlead.guest-agent=all"  # a word for the kernel: without it the agent runs no commands
# norandmaps: QEMU keeps translated code by its address in memory and in the process. Where each process has its
# libraries elsewhere, a start takes a third longer, and a page of libc gathers so many translations that it takes
# seconds to write on it once the kernel has given it to somebody else. The last two: memory is cleared, and copies to
# programs are checked, by instructions that all have to be emulated; without them a boot takes 3 to 6 % less time.
QUICK_START = "norandmaps mitigations=off init_on_alloc=0 hardened_usercopy=off"


def fell_before_init(console: str) -> bool:
    """Whether the kernel fell while nothing but itself was running yet: in start_kernel, but not in its idle loop."""
    if "Attempted to kill init" in console:  # a warning of an earlier moment may have a trace, too
        return False
    return "Attempted to kill the idle task" in console or (
        " start_kernel+" in console and "cpu_startup_entry" not in console
    )


class GuestPanic(Exception):
    """The guest's kernel gave up. That is no failure of what is tested, and is reported as what it is."""


class CommandFailed(AssertionError):
    """A command in the guest ended otherwise than expected."""


class Machine:
    # QEMU never lets the processor's own counter go back: after `go_back` it would jump forward by all the time since
    # `save`, and gunicorn, for one, would take its worker for dead. Who measures speed never goes back, and takes
    # "tsc": this one is asked for at every packet, and is a device that QEMU emulates. With KVM it is kvm-clock.
    clock = "hpet"
    # The plainest processor is the quickest to emulate: 12 % less time to boot than "max" takes. Its cmpxchg16b now and
    # then spoils the flags behind it, and the kernel falls in the middle of its allocator.
    processor = "qemu64,cx16=off"

    def __init__(
        self,
        name: str,
        folder: Path,
        image: Image | None = None,
        layers: tuple[str, ...] = DIRECTOR,
        nics: tuple[Plug, ...] = (),
        data: Path | None = None,
        memory: int = 512,
        cpus: int = 1,
        firmware: str = "",
        devices: tuple[str, ...] = (),
        may_panic: bool = False,
        writes: Path | None = None,
        kernel_words: str = "",
        cards: Mapping[int, str] | None = None,
    ) -> None:
        """`folder` takes sockets and logs (a short path: UNIX sockets allow 107 characters); memory in MiB.

        `firmware`: "bios" or "uefi" to start from the disk `data` instead of from the layers. `devices` are more
        words for QEMU. `may_panic`: the kernel giving up is part of the story. `writes`: an empty file in which all
        that is written to the disk `data`, a raw one, is noted (see tests.lab.writes). `kernel_words`: more for the
        kernel of a machine that starts from the layers; what comes later counts. `cards`: QEMU's name of the network
        card behind the nic of this number, where it is not the one of virtual machines.
        """
        self.name = name
        self.folder = folder
        self.image = image
        self.layers = layers
        self.nics = nics
        self.data = data
        self.memory = memory
        self.cpus = cpus
        self.firmware = firmware
        self.devices = devices
        self.may_panic = may_panic
        self.writes = writes
        self.kernel_words = kernel_words
        self.cards = cards or {}
        self.console_log = folder / f"{name}.console"
        self.process: subprocess.Popen | None = None
        self.started = 0.0
        self._agent: Agent | None = None
        self._monitor: Monitor | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    # --- power ---

    def start(self) -> None:
        """Turn on; returns at once. The console log goes on where it was."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.started = time.monotonic()
        self.log_offset = self.console_log.stat().st_size if self.console_log.exists() else 0
        with (self.folder / f"{self.name}.qemu").open("a") as output:
            # A group of its own, so that Ctrl-C is not for QEMU; no session of its own, because Linux shares the
            # processors among sessions first (sched(7), autogroup), and nobody's `nice` would count.
            self.process = subprocess.Popen(
                self.command_line(), stdin=subprocess.DEVNULL, stdout=output, stderr=output, process_group=0
            )
        self._monitor = until("QEMU's monitor", self._connect_monitor, PATIENCE, 0.05)
        for nic in self.nics:
            if isinstance(nic, LinkEnd):
                nic.plugged_in(self._must_run)

    @property
    def running(self) -> subprocess.Popen:
        """QEMU's process, of a machine that has been turned on."""
        if self.process is None:
            raise ChannelError(f"{self.name} is off")
        return self.process

    def start_over(self) -> None:
        """Push the reset button. By `kill` a machine that listens (Link) would lose its cables for good."""
        self.leave_agent()
        self.log_offset = self.console_log.stat().st_size
        self.started = time.monotonic()
        self.monitor.ask("system_reset")

    def kill(self) -> None:
        """Cut the power: nothing in the guest gets a chance to finish. Also fine when it is off."""
        for channel in (self._agent, self._monitor):
            if channel:
                channel.close()
        self._agent = self._monitor = None
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    @spent(BOOTING)
    def stop(self, timeout: float = 30) -> None:
        """Turn off in order; cuts the power after `timeout` seconds."""
        try:
            self.agent().send({"execute": "guest-exec", "arguments": {"path": "poweroff"}})
            self.running.wait(timeout)
        except (OSError, subprocess.TimeoutExpired):
            pass  # its end must not depend on what state the guest is in
        self.kill()

    @property
    def runs_on(self) -> str:
        """What QEMU is told after -accel. A plugin that counts instructions sees only emulated ones."""
        return TCG if "-plugin" in self.devices else accelerator()

    def command_line(self) -> list[str]:
        # GRUB writes where it runs. With QEMU's own cache of translated code, 1 GiB, it takes three minutes instead of
        # one to load a kernel after a few restarts.
        runs_on = "tcg,tb-size=128" if self.firmware and self.runs_on == TCG else self.runs_on
        processor = "host" if self.runs_on == KVM else self.processor
        words: list[str | Path] = [
            "setpriv", "--pdeathsig=KILL",  # no machine outlives the program that started it
            "qemu-system-x86_64", "-name", self.name, "-accel", runs_on, "-cpu", processor,
            "-smp", str(self.cpus), "-m", str(self.memory), "-nodefaults", "-no-user-config", "-display", "none",
            *self.started_from(),
            "-chardev", f"socket,id=console,path={self.path('tty')},server=on,wait=off,"
            f"logfile={self.console_log},logappend=on",
            "-serial", "chardev:console",
            "-qmp", f"unix:{self.path('qmp')},server=on,wait=off",
            "-device", "virtio-serial-pci",
            "-chardev", f"socket,id=agent,path={self.path('agent')},server=on,wait=off",
            "-device", "virtserialport,chardev=agent,name=org.qemu.guest_agent.0",
            "-device", "virtio-rng-pci",
        ]  # fmt: skip
        if self.data:
            words += self.data_disk(self.data)
            if self.firmware:
                words[-1] = f"{words[-1]},bootindex=1"  # whatever else is plugged in
        for number, nic in enumerate(self.nics):
            mac = f"52:54:00:{sum(self.name.encode()) % 256:02x}:00:{number:02x}"
            words += ["-netdev", nic.netdev(f"net{number}")]
            # A real card asks its cable how fast it is; virtio's is told.
            card = self.cards.get(number) or "virtio-net-pci,speed=1000,duplex=full"
            words += ["-device", f"{card},netdev=net{number},id=nic{number},mac={mac},romfile="]
        return [str(word) for word in (*words, *self.devices)]

    def started_from(self) -> list[str | Path]:
        if self.firmware == "uefi":
            variables = self.path("vars.qcow2")  # a format that can keep a saved moment
            if not variables.exists():
                make_overlay(OVMF / "OVMF_VARS_4M.fd", variables)
            code = f"if=pflash,format=raw,readonly=on,file={OVMF / 'OVMF_CODE_4M.fd'}"
            return ["-drive", code, "-drive", f"if=pflash,format=qcow2,file={variables}"]
        if self.firmware == "bios":
            return []
        # With KVM, kvm-clock goes back with the machine; each look at QEMU's hpet would leave the guest.
        asked = "kvm-clock" if self.runs_on == KVM and self.clock == "hpet" else self.clock
        clock = "clocksource=tsc tsc=reliable" if asked == "tsc" else f"clocksource={asked}"
        kernel = f"console=ttyS0 quiet {QUICK_START} {clock} {OPEN_AGENT}"
        kernel = f"{kernel} fairlead.layers={','.join(self.layers)}"
        kernel = f"{kernel} {self.kernel_words}".rstrip()
        if self.image is None:
            raise ValueError(f"{self.name} has neither an image nor firmware to start from a disk")
        words: list[str | Path] = ["-kernel", self.image.kernel, "-initrd", self.image.initramfs, "-append", kernel]
        for layer in self.layers:
            words += self.disk(layer, f"file={self.image.layers[layer]},format=raw,readonly=on")
        return words

    @staticmethod
    def disk(name: str, drive: str) -> list[str]:
        return ["-drive", f"if=none,id={name},{drive}", "-device", f"virtio-blk-pci,drive={name},serial={name}"]

    def data_disk(self, file: Path) -> list[str]:
        return self.disk("data", self.data_drive(file))

    def data_drive(self, file: Path) -> str:
        if self.writes is None:
            return f"file={file},format={'qcow2' if file.suffix == '.qcow2' else 'raw'}"
        parts = {"file": file, "log": self.writes}
        raw = (f"{part}.driver=raw,{part}.file.driver=file,{part}.file.filename={path}" for part, path in parts.items())
        return f"driver=blklogwrites,{','.join(raw)}"

    def path(self, kind: str) -> Path:
        return self.folder / f"{self.name}.{kind}"

    # --- commands ---

    def execute(self, command: str | list[str], timeout: float = COMMAND, stdin: bytes = b"") -> Done:
        """Run a command, an argument list or a line for sh. Raises ChannelError, GuestPanic."""
        argv = ["sh", "-c", command] if isinstance(command, str) else command
        try:
            return self.agent().run(argv, timeout, stdin)
        except OSError:
            self.leave_agent()
            self.check_alive()
            raise

    def succeed(self, command: str | list[str], timeout: float = COMMAND, stdin: bytes = b"") -> str:
        """Its output; raises CommandFailed when the exit code is not 0."""
        done = self.execute(command, timeout, stdin)
        if done.exit:
            raise CommandFailed(f"{self.name}: {shown(command)}: exit code {done.exit}\n{done.output}{done.errors}")
        return done.output

    def exchange(self, path: str, line: str, timeout: float = COMMAND) -> str:
        """The line with which the program behind this UNIX socket answers a line. Raises CommandFailed."""
        return self.succeed(["perl", "-MSocket", "-e", EXCHANGE, path], timeout, f"{line}\n".encode())

    def fail(self, command: str | list[str], timeout: float = COMMAND) -> str:
        """Its output and errors; raises CommandFailed when the exit code is 0."""
        done = self.execute(command, timeout)
        if not done.exit:
            raise CommandFailed(f"{self.name}: {shown(command)} succeeded\n{done.output}{done.errors}")
        return done.output + done.errors

    def wait_until_succeeds(self, command: str | list[str], timeout: float = PATIENCE, interval: float = 0.3) -> str:
        """Its output of the first time that the exit code is 0."""
        return until(
            f"{self.name}: {shown(command)}", lambda: (self.succeed(command),), timeout, interval,
            (CommandFailed, OSError),
        )[0]  # fmt: skip

    def read(self, path: str) -> str:
        return self.succeed(["cat", path])

    def write(self, path: str, text: str) -> None:
        self.succeed(["tee", path], stdin=text.encode())

    @spent(BOOTING)
    def wait_for_agent(self, timeout: float = BOOT) -> float:
        """Wait until commands can be run; seconds since the start.

        On an emulated processor a kernel falls now and then (seen once in some hundred starts) before it has started
        any process. That tells nothing about what is tested: it is counted as a retry, and tried once more.
        """
        try:
            until(f"{self.name}: the guest agent", self.agent, timeout, 0.1)
        except GuestPanic as panic:
            if not fell_before_init(self.console):
                raise
            retried(f"turned on once more after: {panic}")
            self.start_over()
            until(f"{self.name}: the guest agent", self.agent, timeout, 0.1)
        return time.monotonic() - self.started

    def agent(self) -> Agent:
        """The agent, connected. Raises OSError while there is none, GuestPanic when there never will be."""
        if self._agent is None:
            self.check_alive()
            self._agent = Agent(self.path("agent"))
        return self._agent

    def leave_agent(self) -> None:
        """QEMU takes one connection at a time."""
        if self._agent:
            self._agent.close()
            self._agent = None

    # --- what one sees and does from outside ---

    @property
    def console(self) -> str:
        """Everything that the console showed since the last start."""
        with self.console_log.open("rb") as file:
            file.seek(self.log_offset)
            return file.read().decode(errors="replace")

    def wait_for_console(self, text: str, timeout: float = PATIENCE) -> str:
        """The console's output when it has `text` in it."""

        def look() -> str:
            self.check_alive()
            return self.console if text in self.console else ""

        try:
            return until(f"{self.name}: {text!r} on the console", look, timeout)
        except WaitedInVain:
            raise WaitedInVain(
                f"{self.name}: no {text!r} on the console within {timeout:g} s; its end:\n{self.console[-1500:]}"
            ) from None

    def type(self, text: str) -> None:
        """Type on the serial console; returns when the machine has taken it in."""
        with socket.socket(socket.AF_UNIX) as terminal:
            terminal.connect(str(self.path("tty")))
            terminal.sendall(text.encode())
            # QEMU reads no more than the serial port has room for, and drops the rest when the connection ends.
            until(f"{self.name}: {text!r} taken in", lambda: unread(terminal) == 0, PATIENCE, 0.02)

    def set_link(self, number: int, up: bool) -> None:
        """Plug the cable of network card `number` in or out."""
        self.monitor.ask("set_link", name=f"nic{number}", up=up)

    def written(self) -> int:
        """Bytes that the machine has written to its disk since it was turned on."""
        blocks = self.monitor.ask("query-blockstats")
        return sum(one["stats"]["wr_bytes"] for one in blocks if one.get("device") == "data")

    @spent(GOING_BACK)
    def save(self, moment: str) -> None:
        """Keep the whole state, memory and disk, inside the disk's file (needs a qcow2 disk)."""
        self.monitor.human(f"savevm {moment}")

    @spent(GOING_BACK)
    def go_back(self, moment: str) -> None:
        """The state as it was at `save`, and running; turns the machine on for it if need be.

        The kernel of a disk image goes by the processor's counter (see `clock`), so its QEMU begins anew each time.
        """
        if self.firmware or self.process is None or self.process.poll() is not None:
            self.kill()
            self.start()
        self.leave_agent()
        self.monitor.human(f"loadvm {moment}")
        self.console_log.open("a").close()
        self.log_offset = self.console_log.stat().st_size
        until(f"{self.name}: the guest agent", self.agent, AGENT, 0.1)

    @property
    def monitor(self) -> Monitor:
        if self._monitor is None:
            raise ChannelError(f"{self.name} is off")
        return self._monitor

    def check_alive(self) -> None:
        """Raises GuestPanic, or ChannelError when QEMU has ended."""
        if not self.may_panic and self.console_log.exists() and PANIC in self.console:
            raise GuestPanic(f"{self.name}: {self.console[self.console.index(PANIC) :][:300]}")
        if self.process is None or self.process.poll() is not None:
            output = self.path("qemu")
            raise ChannelError(f"{self.name} is off; QEMU said: {output.read_text()[-500:] if output.exists() else ''}")

    def _must_run(self) -> None:
        """Raises RuntimeError."""
        if self.running.poll() is not None:
            raise RuntimeError(f"{self.name}: QEMU ended: {self.path('qemu').read_text()[-500:]}")

    def _connect_monitor(self) -> Monitor:
        self._must_run()
        return Monitor(self.path("qmp"))


def unread(connection: socket.socket) -> int:
    """0 when the other end of a UNIX socket has read all that was sent (SIOCOUTQ, which is TIOCOUTQ)."""
    return struct.unpack("i", fcntl.ioctl(connection, termios.TIOCOUTQ, bytes(4)))[0]


def shown(command: str | list[str]) -> str:
    return command if isinstance(command, str) else shlex.join(command)


def make_data_disk(path: Path, megabytes: int = 256) -> Path:
    """An empty data partition with blocks of the size that a real box's has."""
    path.unlink(missing_ok=True)
    with path.open("wb") as file:
        file.truncate(megabytes << 20)
    # Debian keeps it where an ordinary user does not look.
    mke2fs = shutil.which("mke2fs", path=f"{os.environ['PATH']}:/usr/sbin:/sbin") or "mke2fs"
    subprocess.run([mke2fs, "-q", "-t", "ext4", "-b", "4096", "-L", DATA_LABEL, "-m", "0", path], check=True)
    return path


def make_overlay(raw: Path, path: Path, size: int = 0) -> Path:
    """A qcow2 disk with the content of a raw one, that can be saved and brought back. `size` in bytes, 0: the same."""
    backing = raw.name if raw.parent == path.parent else raw  # both may be copied to another folder
    command: list[str | Path] = ["qemu-img", "create", "-q", "-f", "qcow2", "-b", backing, "-F", "raw", path]
    command += [str(size)] if size else []
    subprocess.run(command, check=True)
    return path


def flash(image: Path, path: Path, growth: int = DISK_GROWTH) -> Path:
    """A disk that the image was written to, larger than the image by `growth` MiB."""
    return make_overlay(image, path, image.stat().st_size + (growth << 20))


def opened(image: Path, path: Path) -> Path:
    """A copy of a disk image whose guest agent runs commands; so does a disk that the copy is installed on."""
    subprocess.run(["cp", "--sparse=always", image, path], check=True)
    words = path.with_suffix(".env")
    words.write_text(f"# GRUB Environment Block\nWORDS={OPEN_AGENT} {QUICK_START}\n".ljust(1024, "#"))
    subprocess.run(["mcopy", "-i", f"{path}@@{layout.offset('efi')}", words, "::/grub/kernel.env"], check=True)
    return path
