"""A box that checks, and beside it a real server of every kind; all in network namespaces, nothing of it booted.

    box 10.2.0.1, fd00:2::1 --- bridge --- servers 10.2.0.11 …, fd00:2::11 …

The box has ldirectord and our modules as the developer image has them. There is no IPVS: a check is tried as the
applier tries it for an admin, which asks every server once by the functions that watch it later.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

from board.lab.build import TOP
from board.machines.wait import until
from tests.peers import certificates
from tests.peers.room import CLEAN, ENDS, Room

from applier.host.host import HostError, Output
from applier.service import trial
from applier.wire import shapes
from lbconfig.model.snapshot import HealthCheck, Interface, Network, Protocol, RealServer, Snapshot, VirtualService

SERVERS = Path(__file__).parent / "servers"
OVERLAY = TOP / "overlay"
NETWORK = Network(interfaces=(Interface("lan", addresses=("10.2.0.1/24", "fd00:2::1/64")),))
PINGS = (OVERLAY / "etc/sysctl.d/fairlead.conf").read_text().split("ping_group_range = ")[1].splitlines()[0]
STARTS = 120.0  # seconds until a server listens, on a busy machine

# Of each server, where it listens; its files and how it is started are in a folder of that name.
LISTENS = {
    "dovecot": (("tcp", 110), ("tcp", 143), ("tcp", 993), ("tcp", 995)),
    "freeradius": (("udp", 1812),),
    "kamailio": (("tcp", 5060), ("tcp", 5070), ("udp", 5060), ("udp", 5070)),
    "leafnode": (("tcp", 119),),
    "mariadb": (("tcp", 3306),),
    "nginx": (("tcp", 80), ("tcp", 443)),
    "nsd": (("tcp", 53), ("udp", 53)),
    "opensmtpd": (("tcp", 25), ("tcp", 587)),
    "postgresql": (("tcp", 5432),),
    "redis": (("tcp", 6379),),
    "slapd": (("tcp", 389), ("tcp", 636)),
    "vsftpd": (("tcp", 21),),
}


class Neighbour(Room):
    """A room on the bridge."""

    def settle(self, device: str, number: int) -> None:
        four, six = address(number)
        self.ip("address", "add", f"{four}/24", "dev", device)
        self.ip("-6", "address", "add", f"{six}/64", "dev", device, "nodad")
        self.ip("link", "set", device, "up")


class Box(Neighbour):
    """What the applier sees of a box: it can run commands there."""

    def __init__(self, tree: Path) -> None:
        super().__init__("box", SERVERS / "box", OVERLAY, tree)
        self.ip("link", "add", "lan", "type", "bridge")
        self.settle("lan", 1)
        line = f"echo {PINGS} >/proc/sys/net/ipv4/ping_group_range"
        subprocess.run(self.beside("sh", "-c", line), timeout=30, check=True)

    def command(self, argv: list[str], stdin: str = "", timeout: float = 30) -> Output:
        """As applier.host.host does it. Files that the command names are taken along."""
        for word in argv:
            if word.startswith("/") and Path(word).is_file():
                place = self.root / word[1:]
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(word, place)
        try:
            done = subprocess.run(
                self.inside(*argv), input=stdin, capture_output=True, text=True, timeout=timeout, env=CLEAN, check=False
            )
        except subprocess.TimeoutExpired:
            raise HostError(argv[0], None, f"no end after {timeout} s") from None
        return Output(done.returncode, done.stdout, done.stderr)

    def trust(self, authority: Path) -> None:
        """Let OpenSSL find this certificate among those of the authorities."""
        words = ["openssl", "x509", "-noout", "-hash", "-in", authority]
        digest = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
        shutil.copy(authority, self.root / f"etc/ssl/certs/{digest}.0")


class Server(Neighbour):
    """A real server with its wire to the box. It listens some time later."""

    def __init__(self, name: str, number: int, box: Box, certificates: Path, tree: Path) -> None:
        super().__init__(name, SERVERS / name, SERVERS / "common", certificates, tree)
        self.addresses = address(number)
        self._box, self._far = box, f"lan{number}"
        box.ip("link", "add", self._far, "type", "veth", "peer", "name", "eth0", "netns", str(self.first))
        box.ip("link", "set", self._far, "master", "lan", "up")
        self.settle("eth0", number)
        self.log = self.root / "start.log"
        with self.log.open("w") as log:
            self._start = subprocess.Popen(
                self.inside("sh", "/start"), env=CLEAN, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def wait(self) -> None:
        until(f"{self.name} to listen", self._listens, STARTS, expected=())

    def _listens(self) -> bool:
        if self._start.poll() is not None:
            raise OSError(f"{self.name} ended by itself:\n{self.log.read_text(errors='replace')[-2000:]}")
        return all(self.listens(*place) for place in LISTENS[self.name])

    def signal(self, number: signal.Signals) -> None:
        super().signal(number)
        if number is signal.SIGCONT:
            self._start.send_signal(number)  # nsenter stops when what it has started is stopped

    def close(self) -> str:
        # The kernel takes away the wires of an ended network some time later; the next server needs the name now.
        self._box.ip("link", "del", self._far)
        said = super().close()
        self._start.wait(ENDS)
        return said


class Lab:
    """The box and all servers, started side by side; gone when it is closed."""

    def __init__(self, folder: Path, base: Path, tree: Path) -> None:
        certificates.make(folder)
        self.certificates, self.tree = folder, tree
        self._open = contextlib.ExitStack()
        self.servers: dict[str, Server] = {}
        self.box = self._open.enter_context(contextlib.closing(Box(base)))
        self.box.trust(folder / "etc/ssl/lab/ca.pem")

    def __enter__(self) -> Lab:
        with self._open:
            self._open.callback(self._close)
            self._start()
            self._open = self._open.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _start(self) -> None:
        for number, name in enumerate(LISTENS, 11):
            self.servers[name] = Server(name, number, self.box, self.certificates, self.tree)
        for server in self.servers.values():
            server.wait()

    def ask(
        self, name: str, port: int, check: HealthCheck, protocol: Protocol = Protocol.TCP, six: bool = False
    ) -> shapes.Trial:
        """What the box finds when it tries this check of this server."""
        real = RealServer(1, self.servers[name].addresses[six], port)
        vip = address(100)[six]
        service = VirtualService(1, "tried", vip, port, protocol, check=check, real_servers=(real,))
        [found] = trial.ask(self.box, Snapshot((service,), NETWORK), 1)
        return found

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """All servers are there and do nothing: the kernel takes connections for them, nobody answers."""
        for server in self.servers.values():
            server.stop()
        try:
            yield
        finally:
            for server in self.servers.values():
                server.signal(signal.SIGCONT)

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """The machines are up, and no server runs on them."""
        for server in self.servers.values():
            server.end_processes()
        try:
            yield
        finally:
            self._close()
            self._start()

    def _close(self) -> None:
        while self.servers:
            self.servers.popitem()[1].close()


def address(number: int) -> tuple[str, str]:
    """Of IPv4 and of IPv6."""
    return f"10.2.0.{number}", f"fd00:2::{number}"
