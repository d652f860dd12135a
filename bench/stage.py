"""The lab that most parts measure in: an emulated director, with clients and real servers beside it (bench.neighbours).

Every way to the servers (direct routing, NAT, tunnel) is a service of its own at a VIP of its own, one for each number
of servers, so that one apply sets up all of them and nothing changes between two figures. The box is configured as an
admin does it, its firewall and all; nothing is checked, so that no health check comes between.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.load import Log, collect, parse
from bench.neighbours import CLIENTS, SERVERS, Failed, Neighbours, TapEnd, cpu_seconds
from board.lab import bench as layer
from board.lab.build import Image
from board.machines.director import Director, wish
from board.machines.lab import FIRMWARE, data_disk, flashed
from board.machines.link import Forward, UserNetwork, free_port

from lbconfig.model.snapshot import CheckKind, Forwarding, HealthCheck, RealServer, Scheduler, Snapshot, VirtualService

PORT = 8000  # of `serve`, and of most services
PIPE = 8001  # of `pipe serve`
PAGE = 628  # bytes: the page of LISA 2001
WAYS = {"NAT": Forwarding.NAT, "DR": Forwarding.DIRECT, "TUN": Forwarding.TUNNEL}


def vip(way: str, count: int) -> str:
    return f"10.1.0.{100 + 20 * list(WAYS).index(way) + count}"


def services(counts: Sequence[int], ways: Sequence[str] = tuple(WAYS), ports: Sequence[int] = (PORT,)) -> Snapshot:
    """One for each way, number of servers and port."""
    places = [(way, count, port) for way in ways for count in counts for port in ports]
    return wish(*(service(number, *place) for number, place in enumerate(places, 1)))


def service(number: int, way: str, count: int, port: int = PORT) -> VirtualService:
    return VirtualService(
        number, f"{way.lower()}-{count}-{port}", vip(way, count), port, scheduler=Scheduler.RR, forwarding=WAYS[way],
        check=HealthCheck(CheckKind.OFF),
        real_servers=tuple(
            RealServer(number * 100 + place, address, port) for place, address in enumerate(SERVERS[:count])
        ),
    )  # fmt: skip


@dataclass(frozen=True)
class Loaded:
    """A load, and what it cost: seconds of this machine's processors for each second of the load."""

    log: Log
    director: float
    servers: float


@dataclass
class Stage:
    director: Director
    near: Neighbours
    say: Callable[[str], None]

    def apply(self, snapshot: Snapshot) -> None:
        """Configure the box, and make the servers that it names; those of direct routing and tunnels get the VIPs."""
        self.director.apply(snapshot)
        for one in snapshot.services:
            for server in one.real_servers:
                number = SERVERS.index(server.address) + 1
                self.near.add_servers(number)
                if one.forwarding in (Forwarding.DIRECT, Forwarding.TUNNEL):
                    self.near.give_vip(number, one.address, one.forwarding is Forwarding.TUNNEL)

    def serve(self, per_second: int = 0) -> None:
        """Start a web server on every real server, instead of what ran there; each answers at most so often."""
        self.near.stop()
        self.near.serve("serve", PORT, per_second)
        time.sleep(0.3)

    def load(
        self, *places: str, seconds: float, rate: float = 0, at_once: int = 0, size: int = PAGE, timeout: float = 1.0
    ) -> Loaded:
        """CLIENTS clients that begin together; `rate` and `at_once` are of all of them. `places`: addresses.

        A server that is asked at its own address answers the client's leg in its network, without the director.
        """
        loading = self.begin(*places, seconds=seconds, rate=rate, at_once=at_once, size=size, timeout=timeout)
        return loading()

    def begin(
        self, *places: str, seconds: float, rate: float = 0, at_once: int = 0, size: int = PAGE, timeout: float = 1.0
    ) -> Callable[[], Loaded]:
        """Begin such a load; calling the answer waits for its end. Raises Failed then."""
        how = ("-r", f"{rate / CLIENTS:g}") if rate else ("-c", max(1, at_once // CLIENTS))
        source = "10.2.0.24" if places[0].startswith("10.2.") else "10.1.0.1"
        words = (*how, "-s", f"{seconds:g}", "-t", f"{timeout * 1000:g}", "-b", f"{time.time() + 0.5:.3f}")
        targets = [place if ":" in place else f"{place}:{PORT}" for place in places]
        before = self.used()
        clients = [
            self.near.start(
                "client", "load", *words, "-f", f"{source}{number}", f"/{size}", *targets, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True,
            )
            for number in range(CLIENTS)
        ]  # fmt: skip

        def ended() -> Loaded:
            said = [one.communicate(timeout=seconds + 4 * timeout + 60) for one in clients]
            director, servers = ((after - base) / seconds for after, base in zip(self.used(), before, strict=True))
            if any(one.returncode for one in clients):
                raise Failed(f"a client of {places}: {said}")
            return Loaded(collect([parse(output) for output, _ in said]), director, servers)

        return ended

    def used(self) -> tuple[float, float]:
        """Seconds of processor that QEMU has used for the director, and the servers' programs."""
        return cpu_seconds(self.director.running.pid), self.near.used()


class Stages:
    """Where the parts get their stage from; use it as a context. One that is shared is booted once for all parts."""

    def __init__(self, image: Image, say: Callable[[str], None], shared: bool) -> None:
        self.image, self.say, self.shared = image, say, shared
        self._open = ExitStack()
        self._kept: dict[int, Stage] = {}

    def __enter__(self) -> Stages:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Turn off what is kept: somebody needs the machine, or nobody knows in what state it is."""
        self._kept.clear()
        self._open.close()

    @contextmanager
    def take(self, cpus: int = 1) -> Iterator[Stage]:
        """A booted director with so many virtual processors, and whatever servers it was used with before."""
        try:
            if cpus not in self._kept:
                self.close()  # one at a time: they have the same addresses
                self._kept[cpus] = self._open.enter_context(booted(self.image, self.say, cpus))
            yield self._kept[cpus]
        except BaseException:
            self.close()
            raise
        if not self.shared:
            self.close()


@contextmanager
def booted(
    image: Image,
    say: Callable[[str], None],
    cpus: int = 1,
    devices: tuple[str, ...] = (),
    kernel_words: str = "",
    processor: str = "qemu64",
    given: bool = False,
) -> Iterator[Stage]:
    """A director that nobody has set up yet; no real server yet. `devices` are more words for QEMU.

    `given`: from the disk image of IMAGE=, whose kernel cannot be given words.
    """
    folder = Path(tempfile.mkdtemp(prefix="fairlead-"))
    forward = Forward(free_port(), "10.0.2.15", 443)
    cards = (UserNetwork((forward,)), TapEnd("tap-servers"), TapEnd("tap-clients"))
    disk, firmware = (flashed(folder), FIRMWARE) if given else (data_disk(folder), "")
    director = Director("director", folder, image, nics=cards, data=disk, cpus=cpus, firmware=firmware)
    director.layers = (*(name for name in (layer.NAME,) if name in image.layers), *director.layers)
    director.clock, director.devices, director.kernel_words = "tsc", devices, kernel_words
    director.processor = f"{processor},cx16=off"
    if layer.NAME in director.layers and not given:
        # HAProxy does not run without cmpxchg16b, and the kernel must not use it (see Machine.processor).
        director.processor, director.kernel_words = processor, f"{kernel_words} clearcpuid=cx16".strip()
    director.url = f"https://127.0.0.1:{forward.host_port}"
    try:
        with Neighbours() as near, director:
            say(f"the director is up after {director.wait_until_up():.0f} s")
            yield Stage(director, near, say)
    finally:
        shutil.rmtree(folder)
