"""What the network cards of a machine are plugged into."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


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
