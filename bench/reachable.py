"""Whether the box can be reached while it is flooded: with and without what it keeps for itself, in one run.

    python -m bench.reachable

A cable between the clients and the director carries, beside their own packets, as many packets of a flood as the
director takes in (tests/lab/flood.c): its one emulated processor has nothing left. Meanwhile an admin on another card
asks for the overview again and again, and a client for a page of a real server, as fast as they are answered:

    none            no flood
    syn to a VIP    connections that nobody means, from 131,072 addresses: IPVS makes an entry for each (NAT)
    udp, closed     datagrams to ports where nobody listens
    syn to the UI   connections to the web page's port, from addresses that may reach it

The ways: "without" is as a plain system has it, packets in softirqs and every process by itself; the others add the
parts of the reservation (docs/decisions/0028) one by one.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from board.lab.build import build
from tests.lab import updating
from tests.lab.director import VIP, Director, service
from tests.lab.fixtures import Lab, boot
from tests.lab.flood import Flood, flooded_lab, wish_flooded

from lbconfig.snapshot import CheckKind, HealthCheck

GROUP = "/sys/fs/cgroup/services/cgroup.procs"
ALONE = "/sys/fs/cgroup/cgroup.procs"
MOVE = "cat {} | while read -r one; do echo $one >{} 2>/dev/null; done; true"
THREADS = "for card in /sys/class/net/eth*/threaded; do echo {} >$card; done"
FLOODS = {
    "none": (),
    "syn to a VIP": ("syn", f"{VIP}:80"),
    "udp, closed": ("udp", f"{VIP}:0"),
    "syn to the UI": ("syn", "10.1.0.1:443"),
}
ALLOWED = "10.64.0.0/10"  # senders that may reach the web page
BEGUN = 3.0  # seconds until a flood is well under way
LONGEST = 500.0  # seconds that a flood may last


@dataclass(frozen=True)
class Way:
    threads: bool  # packets of each card in a thread of its own
    group: bool  # all services in the group of processes that has a share of its own

    def take(self, director: Director) -> None:
        director.succeed(THREADS.format(int(self.threads)))
        director.succeed(MOVE.format(*((ALONE, GROUP) if self.group else (GROUP, ALONE))))


WAYS = {
    "without": Way(False, False),
    "threads": Way(True, False),
    "share": Way(False, True),
    "threads and share": Way(True, True),
}


@dataclass(frozen=True)
class Settings:
    ways: tuple[str, ...] = tuple(WAYS)
    floods: tuple[str, ...] = tuple(FLOODS)
    requests: int = 20  # of the admin
    patience: float = 60.0  # seconds after which no further one is begun
    rounds: int = 1


@dataclass(frozen=True)
class Row:
    way: str
    flood: str
    seconds: tuple[float, ...]  # that the overview took
    served: int  # of the client's requests
    asked: int
    packets: float  # of the flood that the director took in a second
    log: int  # bytes that the log grew
    tracked: int  # entries of connection tracking at the end
    connections: int  # entries of IPVS
    slab: float  # MiB that the kernel's tables have grown


def run(settings: Settings) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="fairlead-") as folder, flooded_lab(Path(folder), build()) as (lab, flood):
        boot(lab)
        updating.set_up(lab.director)
        lab.director.apply(wish_flooded(service(1, "site", check=HealthCheck(CheckKind.OFF))))
        page = updating.Page(lab.director)
        lab.world.get(f"{VIP}:80/", 3)
        for _ in range(settings.rounds):
            for way in settings.ways:
                WAYS[way].take(lab.director)
                for name in settings.floods:
                    yield measure(lab, flood, page, way, name, settings)


def measure(lab: Lab, flood: Flood, page: updating.Page, way: str, name: str, settings: Settings) -> Row:
    log, _, _, slab = facts(lab.director)
    if FLOODS[name]:
        more = {"sources": ALLOWED} if name == "syn to the UI" else {}
        flood.begin(*FLOODS[name], seconds=LONGEST, **more)
        time.sleep(BEGUN)
    seconds = overview(page, settings)
    answers = lab.world.get(f"{VIP}:80/name", 10)
    sent, took = flood.stop() if FLOODS[name] else (0, 1.0)
    after = facts(lab.director)
    served = sum(not answer.startswith("error") for answer in answers)
    return Row(
        way, name, seconds, served, len(answers), sent / took, after[0] - log, *after[1:3], (after[3] - slab) / 1024
    )


def overview(page: updating.Page, settings: Settings) -> tuple[float, ...]:
    found: list[float] = []
    began = time.monotonic()
    while len(found) < settings.requests and (not found or time.monotonic() - began < settings.patience):
        start = time.monotonic()
        with page.opener.open(f"{page.url}/", timeout=LONGEST) as answer:
            answer.read()
        found.append(time.monotonic() - start)
    return tuple(found)


def facts(director: Director) -> tuple[int, int, int, int]:
    """Bytes in the log, tracked connections, connections of IPVS, KiB of the kernel's tables."""
    said = director.succeed(
        "cat /var/log/messages* | wc -c; cat /proc/sys/net/netfilter/nf_conntrack_count; "
        "grep -c . /proc/net/ip_vs_conn; awk '/^Slab/ { print $2 }' /proc/meminfo",
        LONGEST,
    )
    log, tracked, connections, slab = map(int, said.split())
    return log, tracked, connections - 1, slab


def main() -> None:
    print("way                flood           median s  longest s  of   served  packets/s  log KiB  tracked  IPVS  MiB")
    for row in run(Settings()):
        print(
            f"{row.way:18} {row.flood:15} {statistics.median(row.seconds):8.2f} {max(row.seconds):10.2f} "
            f"{len(row.seconds):3}  {row.served:3}/{row.asked:2} {row.packets:10.0f} {row.log / 1024:8.1f} "
            f"{row.tracked:8} {row.connections:5} {row.slab:4.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
