"""The one door to the system: the only module that runs a command or touches the kernel.

Live is the real thing. Everything above it (network.py, firewall.py, director.py …) works on anything that answers as
Host does; tests have a recording that does.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import select
import shutil
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol, cast

from applier.host.ipvs_netlink import NetlinkError, is_last
from applier.host.neighbours import LiveNeighbours

COMMAND_TIMEOUT = 20.0  # seconds, for commands that answer at once on an idle box
NETLINK_TIMEOUT = 10.0
ENDING = 5.0  # seconds for a program whose input has ended
UNMOUNTING = 10.0  # seconds for a file system that is in use to be so no longer
# PERLIO: without it ldirectord loads itself and all its modules a second time.
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "HOME": "/", "PERLIO": "perlio"}
PROC_SYS = Path("/proc/sys")
PUBLIC, FOR_ITS_GROUP, PRIVATE = 0o644, 0o640, 0o600  # who may read a file
_NETLINK_GENERIC = 16
_BUFFER = 1 << 20
LONGEST_SAID = 4 << 20  # bytes of a line of a program that runs beside; it may have no rights, and be somebody else's


class HostError(Exception):
    """The system did not do what it was asked for. `exit` is None where it was not a command's end."""

    def __init__(self, command: str, exit: int | None, stderr: str) -> None:
        words = " ".join(stderr.split()) or "it gave no reason"
        super().__init__(f"{command}: {words}" if exit is None else f"{command} ended with {exit}: {words}")
        self.command = command
        self.exit = exit
        self.stderr = stderr


class OutOfTime(HostError):
    """A file goes on for longer than somebody would read it."""


@dataclass(frozen=True, slots=True)
class Output:
    exit: int
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    group: int
    argv: tuple[str, ...]


class Program(Protocol):
    """One that runs beside, and is talked to by lines. It ends when its input does, so also when we end."""

    def say(self, line: str) -> None:
        """HostError where it has ended."""

    def lines(self, seconds: float) -> Iterator[str]:
        """What it says, until it ends. HostError where it says nothing for so long."""

    def end(self) -> None:
        """And wait for it."""


class Neighbours(Protocol):
    """The cards of some interfaces, by which neighbours are asked."""

    def ask(self, interface: str, frame: bytes) -> None:
        """Send a question; one that cannot be sent is lost."""

    def answers(self, seconds: float) -> Iterator[tuple[str, str, float]]:
        """What comes meanwhile: interface, the address that somebody has there, and when, on CLOCK_BOOTTIME."""

    def close(self) -> None: ...


class Host(Protocol):
    def command(self, argv: Sequence[str], stdin: str = "", timeout: float = COMMAND_TIMEOUT) -> Output:
        """Run it to its end, whatever that is. HostError if it cannot be run or does not end in time."""

    def start(self, argv: Sequence[str]) -> Program:
        """A program that runs beside. HostError if it cannot be run."""

    def ask(self, path: Path, line: str, timeout: float) -> str:
        """Say a line to who listens at this UNIX socket; the line that comes back. HostError where none does."""

    def netlink(self, request: bytes) -> list[bytes]:
        """Send one generic netlink request; the datagrams of the answer."""

    def read(self, path: Path) -> str | None:
        """The text of a file; None if there is none."""

    def lines(self, path: Path, seconds: float) -> Iterator[bytes]:
        """The lines of a file one by one. HostError where it cannot be read, OutOfTime after so many seconds."""

    def setting(self, key: str) -> str | None:
        """A kernel setting, its words joined by one blank; None if this kernel has none of that name."""

    def set(self, key: str, value: str) -> None:
        """Write a kernel setting, e.g. ("net/ipv4/ip_forward", "1")."""

    def put(self, path: Path, text: str | None, mode: int = PUBLIC) -> None:
        """Replace a file of the running state in one piece; None removes it."""

    def names(self, folder: Path) -> list[str]:
        """What is in a folder, in order; empty if there is none."""

    def tell(self, path: Path, text: str) -> None:
        """Write into a file of the kernel's below /proc or /sys, as it stands there."""

    def add_service(self, folder: Path, template: Path) -> None:
        """Make a runit service folder with links to what is in the template."""

    def remove_service(self, folder: Path) -> None: ...

    def connect(self, address: str, port: int, timeout: float) -> str:
        """Try a TCP connection: "open", "refused", or why not, in words."""

    def certificate(self, address: str, port: int, timeout: float) -> str:
        """The fingerprint (SHA-256, as "AB:CD:…") of what a TLS server shows, or why there is none, in words."""

    def send(self, interface: str, frame: bytes) -> None:
        """Put a whole Ethernet frame on the wire."""

    def neighbours(self, interfaces: Collection[str]) -> Neighbours:
        """To be closed. HostError where an interface is not there."""

    def multicast(self, interface: str, group: str, port: int, datagrams: Sequence[bytes]) -> None:
        """Send datagrams over UDP to all of an IPv4 group that are one hop away by this interface."""

    def processes(self) -> list[Process]:
        """All that run (zombies do not)."""

    def kill_group(self, group: int) -> None: ...

    def end(self, pid: int) -> None:
        """Ask a process to end, as a shutdown does."""

    def now(self) -> float:
        """Seconds on a clock that only goes forward."""

    def sleep(self, seconds: float) -> None: ...


def run(
    host: Host,
    argv: Sequence[str],
    stdin: str = "",
    timeout: float = COMMAND_TIMEOUT,
    accept: Sequence[int] = (0,),
) -> Output:
    """Run a command that has to succeed."""
    output = host.command(argv, stdin, timeout)
    if output.exit not in accept:
        raise HostError(" ".join(argv), output.exit, output.stderr or output.stdout)
    return output


def wait_until(host: Host, what: str, seconds: float, probe: Callable[[], str | None], pause: float = 0.25) -> None:
    """Until the probe returns None; it returns what it saw otherwise. HostError with the last of that."""
    deadline = host.now() + seconds
    while (seen := probe()) is not None:
        if host.now() >= deadline:
            raise HostError(what, None, f"not within {seconds:g} seconds; seen last: {seen}")
        host.sleep(pause)


def unmount(host: Host, folder: Path, timeout: float = COMMAND_TIMEOUT) -> None:
    """HostError when it is still in use after UNMOUNTING seconds; `timeout`: seconds to write what waits for the disk.

    A process that another thread is just starting holds for a moment what this one has open, also after it is closed
    here; then the kernel calls the file system busy.
    """

    def refused() -> str | None:
        output = host.command(["umount", str(folder)], timeout=timeout)
        return None if output.exit == 0 else " ".join(output.stderr.split()) or f"exit code {output.exit}"

    wait_until(host, f"umount {folder}", UNMOUNTING, refused)


class LiveProgram:
    """Its errors go where ours go: into the log."""

    def __init__(self, argv: Sequence[str]) -> None:
        self._name = " ".join(argv)
        environment = ENVIRONMENT | {"PYTHONPATH": str(Path(__file__).parents[2])}
        self._process = subprocess.Popen(list(argv), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        # With these two pipes they are never None.
        self._input = cast(IO[bytes], self._process.stdin)
        self._output = cast(IO[bytes], self._process.stdout)

    def say(self, line: str) -> None:
        try:
            os.write(self._input.fileno(), f"{line}\n".encode())
        except OSError as error:
            raise HostError(self._name, None, f"it cannot be told anything: {error.strerror}") from None

    def lines(self, seconds: float) -> Iterator[str]:
        output, rest = self._output.fileno(), b""
        while select.select([output], [], [], seconds)[0]:
            more = os.read(output, _BUFFER)
            *whole, rest = (rest + more).split(b"\n")
            yield from (line.decode(errors="replace") for line in whole)
            if not more:
                return
            if len(rest) > LONGEST_SAID:
                raise HostError(self._name, None, f"it said more than {LONGEST_SAID} bytes in one line")
        raise HostError(self._name, None, f"it said nothing for {seconds:g} seconds")

    def end(self) -> None:
        with self._process as process:
            self._input.close()
            try:
                process.wait(ENDING)
            except subprocess.TimeoutExpired:
                process.kill()


class Live:
    def command(self, argv: Sequence[str], stdin: str = "", timeout: float = COMMAND_TIMEOUT) -> Output:
        name = " ".join(argv)
        try:
            done = subprocess.run(
                list(argv),
                input=stdin,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout,
                env=ENVIRONMENT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise HostError(name, None, f"it did not end within {timeout:g} seconds") from None
        except OSError as error:
            raise HostError(name, None, f"it cannot be run: {error.strerror}") from None
        return Output(done.returncode, done.stdout, done.stderr)

    def start(self, argv: Sequence[str]) -> Program:
        try:
            return LiveProgram(argv)
        except OSError as error:
            raise HostError(" ".join(argv), None, f"it cannot be run: {error.strerror}") from None

    def ask(self, path: Path, line: str, timeout: float) -> str:
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(timeout)
                connection.connect(str(path))
                # Broken: it refused before it had read all, and says why.
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    connection.sendall(f"{line}\n".encode())
                with connection.makefile(errors="replace") as answer:
                    said = answer.readline()
        except OSError as error:
            raise HostError(f"{path.name}: {line}", None, error.strerror or str(error)) from None
        if not said.endswith("\n"):
            raise HostError(f"{path.name}: {line}", None, "it closed the connection")
        return said.rstrip("\n")

    def netlink(self, request: bytes) -> list[bytes]:
        datagrams: list[bytes] = []
        try:
            with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_GENERIC) as connection:
                connection.settimeout(NETLINK_TIMEOUT)
                connection.bind((0, 0))
                connection.send(request)
                while not datagrams or not is_last(datagrams[-1]):
                    datagrams.append(connection.recv(_BUFFER))
        except (OSError, NetlinkError) as error:
            raise HostError("netlink", None, str(error)) from None
        return datagrams

    def read(self, path: Path) -> str | None:
        try:
            with open(path, "rb", buffering=0) as file:  # of small files, some are read each second
                return file.read().decode(errors="replace")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise HostError(f"read {path}", None, error.strerror or str(error)) from None

    def lines(self, path: Path, seconds: float) -> Iterator[bytes]:
        end = time.monotonic() + seconds
        try:
            with path.open("rb") as file:
                for line in file:
                    yield line
                    if time.monotonic() > end:
                        raise OutOfTime(f"read {path}", None, f"it takes longer than {seconds:g} seconds")
        except OSError as error:
            raise HostError(f"read {path}", None, error.strerror or str(error)) from None

    def setting(self, key: str) -> str | None:
        text = self.read(PROC_SYS / key)
        return None if text is None else " ".join(text.split())

    def set(self, key: str, value: str) -> None:
        try:
            (PROC_SYS / key).write_text(value)
        except OSError as error:
            raise HostError(f"setting {key} = {value}", None, error.strerror or str(error)) from None

    def put(self, path: Path, text: str | None, mode: int = PUBLIC) -> None:
        try:
            if text is None:
                path.unlink(missing_ok=True)
                return
            path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            temporary = path.with_name(f".{path.name}.new")
            temporary.unlink(missing_ok=True)
            try:
                # Nobody reads it in between who may not read it afterwards.
                with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as file:
                    os.fchmod(file.fileno(), mode)
                    file.write(text)
                temporary.replace(path)
            finally:
                temporary.unlink(missing_ok=True)  # half of it would keep the room that it could not get
        except OSError as error:
            raise HostError(f"write {path}", None, error.strerror or str(error)) from None

    def names(self, folder: Path) -> list[str]:
        try:
            return sorted(os.listdir(folder))
        except OSError:
            return []

    def tell(self, path: Path, text: str) -> None:
        try:
            path.write_text(text)
        except OSError as error:
            raise HostError(f"write {text} to {path}", None, error.strerror or str(error)) from None

    def add_service(self, folder: Path, template: Path) -> None:
        # runit does not look at names that begin with a dot, so it never sees half a folder.
        temporary = folder.with_name(f".{folder.name}.new")
        try:
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir(parents=True)
            for entry in sorted(template.iterdir()):
                (temporary / entry.name).symlink_to(entry)
            temporary.rename(folder)
        except OSError as error:
            raise HostError(f"make the service {folder}", None, error.strerror or str(error)) from None

    def remove_service(self, folder: Path) -> None:
        # runsvdir ends the supervisor of a folder that is gone from under its name.
        gone = folder.with_name(f".{folder.name}.gone")
        try:
            shutil.rmtree(gone, ignore_errors=True)
            folder.rename(gone)
        except FileNotFoundError:
            return
        except OSError as error:
            raise HostError(f"remove the service {folder}", None, error.strerror or str(error)) from None

    def connect(self, address: str, port: int, timeout: float) -> str:
        try:
            socket.create_connection((address, port), timeout).close()
        except ConnectionRefusedError:
            return "refused"
        except TimeoutError:
            return f"nothing came back within {timeout:g} seconds"
        except OSError as error:
            return (error.strerror or str(error)).lower()
        return "open"

    def certificate(self, address: str, port: int, timeout: float) -> str:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # it is looked at, and not trusted
        try:
            with socket.create_connection((address, port), timeout) as plain, context.wrap_socket(plain) as secure:
                digest = hashlib.sha256(secure.getpeercert(binary_form=True) or b"").digest()
        except OSError as error:
            return (error.strerror or str(error)).lower()
        return digest.hex(":").upper()

    def send(self, interface: str, frame: bytes) -> None:
        try:
            with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as raw:
                raw.bind((interface, 0))
                raw.send(frame)
        except OSError as error:
            raise HostError(f"send by {interface}", None, error.strerror or str(error)) from None

    def neighbours(self, interfaces: Collection[str]) -> Neighbours:
        try:
            return LiveNeighbours(interfaces)
        except OSError as error:
            names = ", ".join(sorted(interfaces))
            raise HostError(f"ask the neighbours at {names}", None, error.strerror or str(error)) from None

    def multicast(self, interface: str, group: str, port: int, datagrams: Sequence[bytes]) -> None:
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                # Bound to it, nothing leaves by another one, whatever the routes say.
                sender.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
                sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)
                sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)
                sender.connect((group, port))
                for one in datagrams:
                    sender.send(one)
        except OSError as error:
            raise HostError(f"send by {interface}", None, error.strerror or str(error)) from None

    def processes(self) -> list[Process]:
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                # A process may end while we look at it.
                with contextlib.suppress(OSError, ValueError, IndexError):
                    # proc_pid_stat(5): pid (name) state parent group …; a name may hold blanks and brackets
                    state, _, group = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
                    argv = (entry / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
                    if state not in "ZX":
                        words = tuple(word.decode(errors="replace") for word in argv)
                        found.append(Process(int(entry.name), int(group), words))
        return found

    def kill_group(self, group: int) -> None:
        if group <= 1 or group == os.getpgrp():
            raise HostError("kill", None, f"process group {group} is not one to end")
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, 9)

    def end(self, pid: int) -> None:
        if pid <= 1 or pid == os.getpid():
            raise HostError("kill", None, f"process {pid} is not one to end")
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)

    def now(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
