"""A million connections in IPVS's table, made by a SYN flood: what each takes of memory, and what finding one costs.

    make bench ONLY=table

The flood comes from 131,072 addresses and any port, as fast as the director takes it in; its service forwards by direct
routing to a server that answers nothing, so each packet makes an entry that nobody closes. A half-open one lasts for
60 s: of an emulated processor that takes 10,000 packets a second the table ends at 600,000. So the flood is of packets
of connections whose beginning the box has not seen, which it is told to take (Policy.adopt); their entries are the same
and last as long as is asked for. The box's defence is off.

    packets/s      that the director took in while the table grew by this step: what is lost is longer chains
    instructions   of the kernel's functions that look in the table, for each packet of this step: whether it is of a
                   connection, by its client and by its server. None is found, so whole rows are walked through
    bytes          of an entry in its slab, and of all memory that the table took, divided by the entries
"""

from __future__ import annotations

import dataclasses
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.counting import Counting, Symbols
from bench.result import Picture, Result, Series, Table
from bench.settings import Settings
from board.machines.director import VIP, Director, service
from board.machines.flood import Flood, flooded_lab, wish_flooded
from board.machines.lab import boot

from bench import counting
from lbconfig.model.snapshot import CheckKind, FloodDefence, Forwarding, HealthCheck, Policy, Snapshot

BITS = (20, 12)  # the hash table has 2 to the power of that many rows
MEMORY = 1536  # MiB of the director
PATIENCE = 900.0  # seconds for each table
STEP = 500.0  # seconds for a fifth of it
COLUMNS = (
    "rows of the table", "connections", "packets/s", "instructions of looking", "bytes of an entry", "bytes in all",
)  # fmt: skip
LOOKING = ("ip_vs_conn_in_get", "__ip_vs_conn_in_get", "ip_vs_conn_out_get")  # of ip_vs_conn.c
BIGGER = (
    "ipvsadm -C; rmmod $(lsmod | awk '/^ip_vs_/ {{ print $1 }}') ip_vs && modprobe ip_vs conn_tab_bits={bits} && "
    "modprobe ip_vs_rr && cat /sys/module/ip_vs/parameters/conn_tab_bits"
)
# The list of all connections would take minutes; each server knows how many it has.
COUNT = 'ipvsadm -Ln | awk \'$1 == "->" && $2 != "RemoteAddress:Port" { all += $5 + $6 } END { print all + 0 }\''
# By another name where the kernel puts objects of one size together, but this one leads there.
ENTRY = "cat /sys/kernel/slab/ip_vs_conn/slab_size"


@dataclass(frozen=True)
class Row:
    bits: int
    connections: int  # in the table at the end of this step
    packets: float  # a second in this step
    looking: float  # instructions of LOOKING for each packet
    entry: int  # bytes of one in its slab
    whole: float  # bytes of all the memory that the table has taken, by connection


def run(settings: Settings) -> Result:
    rows = []
    for row in measured(settings):
        settings.say(
            f"{1 << row.bits} rows: {row.connections} connections, {row.packets:.0f} packets/s, {row.looking:.0f} "
            f"instructions of looking, {row.whole:.0f} B"
        )
        rows.append(row)
    cells = tuple(
        (1 << row.bits, row.connections, round(row.packets), round(row.looking), row.entry, round(row.whole))
        for row in rows
    )
    return Result(
        "table", "A million connections", "testlvs, 1999: a flood fills the director's table",
        (Table("What a connection takes, and what it costs to look through longer rows", COLUMNS, cells),),
        (picture(rows),),
        method="One emulated processor, direct routing to a server that does not answer, the box's defence off.",
    )  # fmt: skip


def picture(rows: list[Row]) -> Picture:
    series = []
    for bits in dict.fromkeys(row.bits for row in rows):
        these = [row for row in rows if row.bits == bits]
        x, y = tuple(row.connections for row in these), tuple(row.looking for row in these)
        series.append(Series(f"{1 << bits:,} rows", x, y))
    return Picture(
        "table", "Looking as the table fills", "connections in the table", "instructions a packet", tuple(series)
    )


def measured(settings: Settings) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="fairlead-") as folder:
        counts = Path(folder, "counts")
        words = counting.plugin_words(counts, places=True)
        with flooded_lab(Path(folder), settings.image, MEMORY, words) as (lab, flood):
            boot(lab)
            lab.director.succeed("sysctl -qw kernel.kptr_restrict=0")
            counted = Counting(counts)
            for bits in BITS:
                lab.director.succeed(BIGGER.format(bits=bits))
                lab.director.apply(undefended())
                lab.world.in_client("ping -c 1 10.1.0.1")
                yield from fill(lab.director, flood, counted, bits, settings.pick(200_000, 1_000_000))


def undefended() -> Snapshot:
    one = service(1, "direct", servers=("rs1",), check=HealthCheck(CheckKind.OFF))
    direct = dataclasses.replace(one, forwarding=Forwarding.DIRECT)
    return dataclasses.replace(
        wish_flooded(direct), policy=Policy(tcp_timeout=7200, adopt=True, flood_defence=FloodDefence.NEVER)
    )


def fill(director: Director, flood: Flood, counted: Counting, bits: int, wanted: int) -> Iterator[Row]:
    before, symbols = taken(director), Symbols.of(director.read("/proc/kallsyms"))
    step = wanted // 5
    began = time.monotonic()
    while (count := connections(director)) < wanted:
        if time.monotonic() - began > PATIENCE:
            return
        looked = looking(counted, symbols)
        flood.begin("ack", f"{VIP}:80", count=step, seconds=STEP)
        sent, took = flood.end()
        looked = looking(counted, symbols) - looked
        count, entry = connections(director), int(director.succeed(ENTRY))
        yield Row(
            bits, count, sent / took, looked / max(sent, 1), entry, (taken(director) - before) * 1024 / max(count, 1)
        )


def looking(counted: Counting, symbols: Symbols) -> float:
    found = symbols.by_function(counted.places())
    return sum(found.get(name, 0.0) for name in LOOKING)


def connections(director: Director) -> int:
    return int(director.succeed(COUNT, 120))


def taken(director: Director) -> int:
    """KiB that are not free."""
    return int(director.succeed("awk '/^MemTotal/ { all = $2 } /^MemAvailable/ { print all - $2 }' /proc/meminfo", 120))
