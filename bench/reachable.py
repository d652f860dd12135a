"""Whether the box can be reached while it is flooded: with and without what it keeps for itself, in one run.

    make bench ONLY=reachable

A cable between the clients and the director carries, beside their own packets, as many packets of a flood as the
director takes in (board/machines/flood.c): its one emulated processor has nothing left. Meanwhile an admin on another
card
asks for the overview again and again, and then a client for a page of a real server:

    none            no flood
    syn to a VIP    connections that nobody means, from 131,072 addresses: IPVS makes an entry for each (NAT)
    udp, closed     datagrams to ports where nobody listens
    syn to the UI   connections to the web page's port, from addresses that may reach it

The ways: "without" is as a plain system has it, packets in softirqs, every process by itself, and memory for whoever
comes first, until the kernel's own 4 MiB are left; the others add the parts of the reservation (docs/decisions/0028).
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.result import Cell, Measured, Picture, Result, Series, Table
from bench.settings import Settings
from board.machines import updating
from board.machines.director import VIP, Director, service
from board.machines.flood import STRANGERS, Flood, flooded_lab, wish_flooded
from board.machines.lab import Lab, boot
from board.machines.machine import CommandFailed
from board.machines.wait import until

from lbconfig.hardware import share
from lbconfig.model.snapshot import CheckKind, HealthCheck

GROUP = "/sys/fs/cgroup/services/cgroup.procs"
ALONE = "/sys/fs/cgroup/cgroup.procs"
# Threads of the kernel stay where they are: they have no program.
MOVE = "cat {} | while read -r one; do readlink /proc/$one/exe >/dev/null && echo $one >{}; done 2>/dev/null; true"
THREADS = "for card in /sys/class/net/eth*/threaded; do echo {} >$card; done"
# Each keeps what the box has set, so that the other can put it back.
NO_MEMORY = (
    "cd /run; for one in low high; do cat /sys/fs/cgroup/services/memory.$one >bench-$one; done; "
    "sysctl -n net.ipv4.vs.amemthresh >bench-threshold; echo 0 >/sys/fs/cgroup/services/memory.low; "
    f"echo max >/sys/fs/cgroup/services/memory.high; sysctl -qw net.ipv4.vs.amemthresh={share.KERNELS_OWN}"
)
MEMORY = (
    "cd /run; [ -e bench-threshold ] || exit 0; for one in low high; do "
    "cat bench-$one >/sys/fs/cgroup/services/memory.$one; done; "
    'sysctl -qw net.ipv4.vs.amemthresh="$(cat bench-threshold)"; rm bench-*'
)
FLOODS: dict[str, tuple[str, str] | None] = {
    "none": None,
    "syn to a VIP": ("syn", f"{VIP}:80"),
    "udp, closed": ("udp", f"{VIP}:0"),
    "syn to the UI": ("syn", "10.1.0.1:443"),
}
ALLOWED = "10.64.0.0/10"  # senders that may reach the web page
BEGUN = 3.0  # seconds until a flood is well under way
LONGEST = 500.0  # seconds that a flood may last
REQUESTS = 20  # of the admin
SPACING = 3.0  # seconds at least between the beginnings of two: a flood lasts until memory is full
OK = 200  # of HTTP
AT_REST = 100  # connections in IPVS's table
RECOVERY = 240.0  # seconds that a box may take until it is at rest again
PATIENCE = REQUESTS * SPACING  # seconds after which no further one is begun
COLUMNS = (
    "way", "flood", "overview, s", "longest, s", "pages", "clients served", "packets/s", "log, KiB",
    "tracked connections", "connections in IPVS", "kernel's tables, MiB",
)  # fmt: skip
NOTE = (
    "Packets a second: of the flood, as many as the director took in. The last three: what its tables have at the end, "
    "and how much those have grown."
)
METHOD = (
    "One emulated processor, flooded between the frames of the clients by a cable that sends as fast as the director "
    f"takes frames in; for a minute an admin on another card asks for the overview, up to {REQUESTS} times, "
    f"{SPACING:g} s apart or as soon as he is answered; then a client asks 10 times for a page of a real server (NAT). "
    "That is long enough for a flood to fill the memory that there is for it. Each begins with a box at rest."
)


@dataclass(frozen=True)
class Way:
    threads: bool  # packets of each card in a thread of its own
    group: bool  # all services in the group of processes that has a share of the processor
    memory: bool  # what the services have in memory stays there, and the table gives way in time

    def take(self, director: Director) -> None:
        director.succeed(THREADS.format(int(self.threads)))
        director.succeed(MOVE.format(*((ALONE, GROUP) if self.group else (GROUP, ALONE))))
        director.succeed(MEMORY if self.memory else NO_MEMORY)


WAYS = {
    "without": Way(False, False, False),
    "memory": Way(False, False, True),
    "memory, threads": Way(True, False, True),
    "memory, share": Way(False, True, True),
    "all": Way(True, True, True),
}


@dataclass(frozen=True)
class Row:
    way: str
    flood: str
    seconds: tuple[float, ...]  # that the overview took
    pages: int  # of these that brought the page; nginx gives up after a minute
    instead: str  # what the others brought: "502: 20"
    served: int  # of the client's requests
    asked: int
    packets: float  # of the flood that the director took in a second
    log: int  # bytes that the log grew
    tracked: int  # entries of connection tracking at the end
    connections: int  # entries of IPVS
    slab: float  # MiB that the kernel's tables have grown


def run(settings: Settings) -> Result:
    rows = []
    for row in measured(settings):
        settings.say(
            f"{row.way}, {row.flood}: {statistics.median(row.seconds):.2f} s, longest {max(row.seconds):.2f}, "
            f"pages {pages(row)}, served {row.served} of {row.asked}, {row.packets:.0f} packets/s"
        )
        rows.append(row)
    title = "Seconds for the overview, and what became of the clients"
    return Result(
        "reachable",
        "Whether the box can be reached while it is flooded",
        "the list, 2000: a saturated director could not be reached any more",
        (Table(title, COLUMNS, tuple(cells(row) for row in rows), NOTE),),
        (picture(rows),),
        method=METHOD,
    )


def cells(row: Row) -> tuple[Cell, ...]:
    """In the order of COLUMNS."""
    return (
        row.way, row.flood, Measured(row.seconds), max(row.seconds),
        pages(row), f"{row.served} of {row.asked}", round(row.packets),
        round(row.log / 1024, 1), row.tracked, row.connections, round(row.slab, 1),
    )  # fmt: skip


def pages(row: Row) -> str:
    return f"{row.pages} of {len(row.seconds)}" + (f" ({row.instead})" if row.instead else "")


def picture(rows: list[Row]) -> Picture:
    floods = tuple(dict.fromkeys(row.flood for row in rows))
    series = []
    for way in dict.fromkeys(row.way for row in rows):
        seconds = [statistics.median(row.seconds) for row in rows if row.way == way]
        series.append(Series(way, floods, tuple(seconds)))
    return Picture("reachable", "The overview while packets flood in", "", "seconds (median)", tuple(series), "bars")


def measured(settings: Settings) -> Iterator[Row]:
    with (
        tempfile.TemporaryDirectory(prefix="fairlead-") as folder,
        flooded_lab(Path(folder), settings.image) as (lab, flood),
    ):
        boot(lab)
        updating.set_up(lab.director)
        lab.director.apply(wish_flooded(service(1, "site", check=HealthCheck(CheckKind.OFF))))
        page = updating.Page(lab.director)
        lab.world.get(f"{VIP}:80/", 3)
        # Without first: what it leaves behind (a full table, programs that have ended) must not be the others' burden.
        for way in settings.pick(("without", "all"), tuple(WAYS)):
            WAYS[way].take(lab.director)
            for name in FLOODS:
                wait_until_quiet(lab.director, page)
                yield measure(lab, flood, page, way, name)


def wait_until_quiet(director: Director, page: updating.Page) -> None:
    """Until the page is there and the table is empty again: each flood begins with a box at rest."""

    def quiet() -> bool:
        return facts(director)[2] < AT_REST and page.read(f"{page.url}/")[0] == OK

    until("a box at rest", quiet, RECOVERY, 3, (OSError, CommandFailed))


def measure(lab: Lab, flood: Flood, page: updating.Page, way: str, name: str) -> Row:
    log, _, _, slab = facts(lab.director)
    sent_by = FLOODS[name]
    if sent_by:
        flood.begin(*sent_by, seconds=LONGEST, sources=ALLOWED if name == "syn to the UI" else STRANGERS)
        time.sleep(BEGUN)
    seconds, statuses = overview(page)
    answers = lab.world.get(f"{VIP}:80/name", 10)
    sent, took = flood.stop() if sent_by else (0, 1.0)
    after = until("the tables' sizes", lambda: facts(lab.director), RECOVERY, 3, (OSError, CommandFailed))
    served = sum(not answer.startswith("error") for answer in answers)
    grown = (after[3] - slab) / 1024
    instead = ", ".join(f"{status}: {count}" for status, count in sorted(statuses.items()) if status != str(OK))
    found = (way, name, seconds, statuses[str(OK)], instead, served, len(answers))
    return Row(*found, sent / took, after[0] - log, *after[1:3], grown)


def overview(page: updating.Page) -> tuple[tuple[float, ...], Counter[str]]:
    """Seconds of each request, and how often which status of HTTP came, or "none" within a minute."""
    found: list[float] = []
    statuses: Counter[str] = Counter()
    began = time.monotonic()
    while len(found) < REQUESTS and (start := time.monotonic()) - began < PATIENCE:
        try:
            statuses[str(page.read(f"{page.url}/")[0])] += 1
        except OSError:
            statuses["none"] += 1
        found.append(time.monotonic() - start)
        time.sleep(max(0.0, SPACING - found[-1]))
    return tuple(found), statuses


def facts(director: Director) -> tuple[int, int, int, int]:
    """Bytes in the log, tracked connections, connections of IPVS, KiB of the kernel's tables."""
    said = director.succeed(
        "cat /var/log/messages* | wc -c; cat /proc/sys/net/netfilter/nf_conntrack_count; "
        "grep -c . /proc/net/ip_vs_conn; awk '/^Slab/ { print $2 }' /proc/meminfo",
        LONGEST,
    )
    log, tracked, connections, slab = map(int, said.split())
    return log, tracked, connections - 1, slab
