"""What the network cards of a machine are plugged into."""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from board.machines.wait import PATIENCE, until

PIDFD_GETFD = 438  # its number on x86-64
CONNECTED = "03"  # in /proc/net/unix
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Forward:
    """A port of 127.0.0.1 on the host that leads to an address and port in the guest's network."""

    host_port: int
    address: str
    port: int


@dataclass(frozen=True)
class UserNetwork:
    """QEMU's own network 10.0.2.0/24 with a DHCP server; isolated but for the forwarded ports."""

    forwards: tuple[Forward, ...] = ()

    def netdev(self, name: str) -> str:
        ports = (f",hostfwd=tcp:127.0.0.1:{one.host_port}-{one.address}:{one.port}" for one in self.forwards)
        return f"user,id={name},restrict=on{''.join(ports)}"


@dataclass(frozen=True)
class Link:
    """A cable between two machines: a UNIX socket that one of them listens on.

    The listening machine must be started first and stay; the other one may come and go.
    """

    path: Path

    def listening_end(self) -> LinkEnd:
        return LinkEnd(self.path, True)

    def other_end(self) -> LinkEnd:
        return LinkEnd(self.path, False)


@dataclass(frozen=True)
class LinkEnd:
    path: Path
    listens: bool

    def netdev(self, name: str) -> str:
        server = "on" if self.listens else "off"
        return f"stream,id={name},server={server},addr.type=unix,addr.path={self.path}"

    def plugged_in(self, must_run: Callable[[], None]) -> None:
        """Tell the link that a program has started with this end: the other end does not stop for it from now on.

        `must_run` raises RuntimeError where that program has ended, and says why: else nobody would know.

        QEMU 7.2 leaves the socket that it accepts blocking. A machine that is starting takes no packets, and after some
        200 KB of them the machine at the other end stopped altogether until they were taken.
        """
        if self.listens:
            return

        def other_end() -> tuple[int, int] | None:
            must_run()
            return accepted(self.path)

        end = until("the link's other end", other_end, PATIENCE, 0.01)
        # The link works without it, too, where the host does not allow it.
        with contextlib.suppress(OSError):
            if end and os.readlink(f"/proc/{end[0]}/exe").endswith("qemu-system-x86_64"):
                set_non_blocking(*end)


def accepted(path: Path) -> tuple[int, int] | None:
    """The process that has accepted a connection at this UNIX socket, and its file descriptor."""
    found = set()
    for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
        words = line.split(maxsplit=7)
        if words[7:] == [str(path)] and words[5] == CONNECTED:
            found.add(f"socket:[{words[6]}]")
    for number in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):  # it has just been closed
            if os.readlink(number) in found:
                return int(number.parts[2]), int(number.name)
    return None


def set_non_blocking(process: int, number: int) -> None:
    """Do it to a file descriptor of another process; pidfd_getfd(2)."""
    with open(os.pidfd_open(process)) as of_process:
        own = _libc.syscall(PIDFD_GETFD, of_process.fileno(), number, 0)
    if own < 0:
        raise OSError(ctypes.get_errno(), "pidfd_getfd")
    os.set_blocking(own, False)
    os.close(own)


@dataclass(frozen=True)
class Cable:
    """Between two ports of the same machine, which both get it. (A Link would wait for itself when it is full.)"""

    number: int

    def netdev(self, name: str) -> str:
        return f"hubport,id={name},hubid={self.number}"


class Plug(Protocol):
    """Whatever a network card can be plugged into."""

    def netdev(self, name: str) -> str:
        """The words of QEMU's option -netdev."""


_held: list[socket.socket] = []


def free_port() -> int:
    """A port of 127.0.0.1 that nobody else is given while this program runs.

    Its socket stays bound and never listens. Who asks the kernel for any port gets another one; QEMU asks for this one
    and, as both let the address be used again (SO_REUSEADDR), may listen there, also after a restart.
    """
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    _held.append(holder)
    return holder.getsockname()[1]
