"""A million connections in IPVS's table, made by a SYN flood: what each takes of memory, and what finding one costs.

    python -m bench.table

The flood comes from 131,072 addresses and any port, as fast as the director takes it in; its service forwards by direct
routing to a server that answers nothing, so each packet makes an entry that nobody closes. That lasts for 60 s
(SYN_RECV), which would bound the table at 60 s of flood; here the state that the kernel's secure_tcp gives to direct
routing keeps it for 120 s (SYNACK), and the box's defence is off.

    packets/s      that the director took in while the table grew by this step: what is lost is longer chains
    bytes          of an entry in its slab, and of all memory that the table took, divided by the entries
"""

from __future__ import annotations

import dataclasses
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from board.lab.build import build
from tests.lab.director import VIP, Director, service
from tests.lab.fixtures import boot
from tests.lab.flood import Flood, flooded_lab, wish_flooded

from lbconfig.snapshot import CheckKind, FloodDefence, Forwarding, HealthCheck, Policy, Snapshot

BIGGER = (
    "ipvsadm -C; rmmod $(lsmod | awk '/^ip_vs_/ {{ print $1 }}') ip_vs && modprobe ip_vs conn_tab_bits={bits} && "
    "modprobe ip_vs_rr && cat /sys/module/ip_vs/parameters/conn_tab_bits"
)
# The list of all connections would take minutes; each server knows how many it has.
COUNT = 'ipvsadm -Ln | awk \'$1 == "->" && $2 != "RemoteAddress:Port" { all += $5 + $6 } END { print all + 0 }\''
# By another name where the kernel puts objects of one size together, but this one leads there.
ENTRY = "cat /sys/kernel/slab/ip_vs_conn/slab_size"


@dataclass(frozen=True)
class Settings:
    connections: int = 1_000_000
    bits: tuple[int, ...] = (12, 20)  # the hash table has 2 to the power of that many rows
    memory: int = 1536  # MiB of the director
    patience: float = 200.0  # seconds for each


@dataclass(frozen=True)
class Row:
    bits: int
    connections: int  # in the table at the end of this step
    packets: float  # a second in this step
    entry: int  # bytes of one in its slab
    whole: float  # bytes of all the memory that the table has taken, by connection


def run(settings: Settings) -> Iterator[Row]:
    with (
        tempfile.TemporaryDirectory(prefix="fairlead-") as folder,
        flooded_lab(Path(folder), build(), settings.memory) as (lab, flood),
    ):
        boot(lab)
        for bits in settings.bits:
            lab.director.succeed(BIGGER.format(bits=bits))
            lab.director.apply(undefended())
            lab.director.succeed("sysctl -q -w net.ipv4.vs.secure_tcp=3")
            lab.world.in_client("ping -c 1 10.1.0.1")
            yield from fill(lab.director, flood, bits, settings)


def undefended() -> Snapshot:
    one = service(1, "direct", servers=("rs1",), check=HealthCheck(CheckKind.OFF))
    direct = dataclasses.replace(one, forwarding=Forwarding.DIRECT)
    return dataclasses.replace(wish_flooded(direct), policy=Policy(flood_defence=FloodDefence.NEVER))


def fill(director: Director, flood: Flood, bits: int, settings: Settings) -> Iterator[Row]:
    before = taken(director)
    step = settings.connections // 5
    began = time.monotonic()
    while (count := connections(director)) < settings.connections:
        if time.monotonic() - began > settings.patience:
            return
        flood.begin("syn", f"{VIP}:80", count=step, seconds=settings.patience)
        sent, took = flood.end()
        count, entry = connections(director), int(director.succeed(ENTRY))
        yield Row(bits, count, sent / took, entry, (taken(director) - before) * 1024 / max(count, 1))


def connections(director: Director) -> int:
    return int(director.succeed(COUNT, 120))


def taken(director: Director) -> int:
    """KiB that are not free."""
    return int(director.succeed("awk '/^MemTotal/ { all = $2 } /^MemAvailable/ { print all - $2 }' /proc/meminfo", 120))


def main() -> None:
    print("rows of the table  connections  packets/s  bytes of an entry  bytes in all")
    for row in run(Settings()):
        print(
            f"{1 << row.bits:17} {row.connections:12} {row.packets:10.0f} {row.entry:18} {row.whole:13.0f}", flush=True
        )


if __name__ == "__main__":
    main()
