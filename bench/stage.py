"""The lab that most parts measure in: the director, and one guest that plays clients and up to six real servers.

Every way to the servers (direct routing, NAT, tunnel) is a service of its own at a VIP of its own, one for each number
of servers, so that one apply sets up all of them and nothing changes between two figures. The box is configured as an
admin does it, its firewall and all; nothing is checked, so that no health check comes between. The servers take the
script that the box offers for them; what leaves them from a VIP goes past the director, to the client itself.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import compiled
from bench.load import Log, collect, parse
from bench.settings import Settings
from tests.lab.director import Director, wish
from tests.lab.fixtures import Lab, boot, make_lab
from tests.lab.world import SERVERS as OF_THE_WORLD
from tests.lab.world import World

from balancing import server_setup
from lbconfig.snapshot import CheckKind, Forwarding, HealthCheck, RealServer, Scheduler, Snapshot, VirtualService

PORT = 8000  # of `serve`, and of all services
PIPE = 8001  # of `pipe serve`
WAYS = {"NAT": Forwarding.NAT, "DR": Forwarding.DIRECT, "TUN": Forwarding.TUNNEL}
MOST_SERVERS = 6
CLIENTS = 4  # each with an address of its own: 10.1.0.10 to .13
PAGE = 628  # bytes: the page of LISA 2001
ROUTER = "10.2.0.254"  # the client's own leg in the servers' network
TICKS = os.sysconf("SC_CLK_TCK")
SERVERS = tuple(f"10.2.0.{10 + number}" for number in range(1, MOST_SERVERS + 1))
# One more real server, as board/lab/world makes its three.
ONE_MORE = (
    "ip netns add {name}; ip link add v-{name} type veth peer name eth0 netns {name}; "
    "ip link set v-{name} master servers up; ip -n {name} link set lo up; ip -n {name} link set eth0 up; "
    "ip -n {name} addr add {address}/24 dev eth0; ip -n {name} route add default via 10.2.0.1"
)
# The answers of a VIP go to the client past the director, whichever way those of NAT take.
PAST = "ip -n {name} rule add from 10.1.0.0/24 lookup 100; ip -n {name} route add default via {router} table 100"
# What LISA 2001 set by hand on the client, and what many short connections need.
CLIENT = "ip netns exec client sysctl -qw net.ipv4.ip_local_port_range='1024 65000'"


def vip(way: str, count: int) -> str:
    return f"10.1.0.{100 + 20 * list(WAYS).index(way) + count}"


def services(counts: tuple[int, ...], ports: tuple[int, ...] = (PORT,)) -> Snapshot:
    """One for each way, number of servers and port."""
    places = [(way, count, port) for way in WAYS for count in counts for port in ports]
    return wish(*(service(number, *place) for number, place in enumerate(places, 1)))


def service(number: int, way: str, count: int, port: int) -> VirtualService:
    return VirtualService(
        number, f"{way.lower()}-{count}-{port}", vip(way, count), port, scheduler=Scheduler.RR, forwarding=WAYS[way],
        check=HealthCheck(CheckKind.OFF),
        real_servers=tuple(
            RealServer(number * 100 + place, address, port) for place, address in enumerate(SERVERS[:count])
        ),
    )  # fmt: skip


@dataclass(frozen=True)
class Loaded:
    """A load, and what it cost: seconds of the host's processors for each second of the load."""

    log: Log
    director: float
    world: float


@dataclass
class Stage:
    lab: Lab
    say: Callable[[str], None]

    @property
    def director(self) -> Director:
        return self.lab.director

    @property
    def world(self) -> World:
        return self.lab.world

    def prepare(self, snapshot: Snapshot, servers: int) -> None:
        """Apply it, and make so many real servers for it, which serve."""
        world = self.world
        compiled.bring(world, "load", "serve", "pipe")
        world.give_servers_a_router()
        world.succeed(CLIENT)
        self.director.apply(snapshot)
        for number, address in enumerate(SERVERS[:servers], 1):
            name = f"rs{number}"
            if number > len(OF_THE_WORLD):
                world.succeed(f"set -e; {ONE_MORE.format(name=name, address=address)}")
            world.succeed(f"set -e; ip -n {name} route replace default via 10.2.0.1")
            world.succeed(f"set -e; {PAST.format(name=name, router=ROUTER)}")
        self.serve(servers)
        for number, address in enumerate(SERVERS[:servers], 1):  # the script looks whether something listens
            world.write(f"/run/world/rs{number}.sh", server_setup.script(server_setup.setup_of(snapshot, address)))
            world.succeed(f"ip netns exec rs{number} sh /run/world/rs{number}.sh")

    def serve(self, servers: int, per_second: int = 0) -> None:
        """Start `serve` and `pipe` on so many servers, in place of those that ran before."""
        self.world.succeed("for file in /run/bench/*.pid; do [ -e $file ] && kill $(cat $file) && rm $file; done; true")
        for number in range(1, servers + 1):
            for words, name in ((f"serve {PORT} {per_second}", "serve"), (f"pipe serve {PIPE}", "pipe")):
                self.world.succeed(
                    f"ip netns exec rs{number} /run/bench/{words} >/run/bench/{name}{number}.log 2>&1 & "
                    f"echo $! >/run/bench/{name}{number}.pid"
                )
        for number in range(1, servers + 1):
            self.world.wait_until_succeeds(f"ip netns exec rs{number} ss -Hlnt | grep -q :{PORT}", 20)

    def load(
        self, *places: str, seconds: float, rate: float = 0, at_once: int = 0, size: int = PAGE, timeout: float = 1.0
    ) -> Loaded:
        """CLIENTS clients that begin together; `rate` and `at_once` are of all of them. `places`: "address:port"."""
        how = f"-r {rate / CLIENTS:g}" if rate else f"-c {max(1, at_once // CLIENTS)}"
        clients = "".join(
            f"ip netns exec client /run/bench/load {how} -s {seconds:g} -t {timeout * 1000:g} -b $begin "
            f"-f 10.1.0.{10 + number} /{size} {' '.join(places)} >/run/bench/client{number}.log & "
            for number in range(CLIENTS)
        )
        before = self.used(), time.monotonic()
        self.world.succeed(f"begin=$(($(date +%s) + 1)); {clients} wait", seconds + 60)
        took = time.monotonic() - before[1]
        director, world = (after - base for after, base in zip(self.used(), before[0], strict=True))
        logs = [parse(line) for line in self.world.succeed("cat /run/bench/client*.log").splitlines()]
        return Loaded(collect(logs), director / took, world / took)

    def used(self) -> tuple[float, float]:
        """Seconds of processor that QEMU has used for the director, and for the world."""
        return cpu_seconds(self.director.process.pid), cpu_seconds(self.world.process.pid)


def cpu_seconds(process: int) -> float:
    """Of all its threads, in user and system mode (proc_pid_stat(5), fields 14 and 15)."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


@contextmanager
def stage(settings: Settings, cpus: int = 1, world_cpus: int = 1, devices: tuple[str, ...] = ()) -> Iterator[Stage]:
    """Both machines, booted. `cpus` are the director's, `devices` more words for its QEMU."""
    folder = Path(tempfile.mkdtemp(prefix="fairlead-"))
    lab = make_lab(folder, settings.image)
    lab.director.cpus, lab.director.devices, lab.world.cpus = cpus, devices, world_cpus
    try:
        with lab.world, lab.director:
            boot(lab)
            yield Stage(lab, settings.say)
    finally:
        shutil.rmtree(folder)
