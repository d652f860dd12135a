"""Who does the work: for each CPU its share of the packets, and the queues and disks that interrupt it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from lbconfig.hardware.facts import Card, Interrupt, Machine
from lbconfig.hardware.findings.finding import handler
from lbconfig.hardware.queue_names import TX, Queue, queue_of

# What a CPU does for a device.
TAKES: Final = "takes"
SENDS: Final = "sends"
HELPS: Final = "helps"
OTHER: Final = "other"


@dataclass(frozen=True, slots=True)
class Work:
    device: str  # "eth0", "ahci[0000:00:17.0]"
    # TAKES: packets in (and out); SENDS: only out; HELPS: by RPS; OTHER: no packets
    kind: Literal["takes", "sends", "helps", "other"]
    queue: int | None = None  # None: the device has a single one


@dataclass(frozen=True, slots=True)
class Seat:
    """A CPU and what falls to it, since the start."""

    cpu: int
    node: int
    core: int
    share: float  # of all packets of the box, 0 to 1
    packets: int
    dropped: int
    squeezed: int
    work: tuple[Work, ...]


def layout(machine: Machine) -> tuple[Seat, ...]:
    """In the order of the CPUs."""
    counted = {one.cpu: one for one in machine.softnet}
    total = sum(one.processed for one in machine.softnet)
    works: dict[int, list[Work]] = {number: [] for number in machine.numbers}
    for number, work in _works(machine):
        if number in works and work not in works[number]:
            works[number].append(work)
    seats = []
    for cpu in machine.cpus:
        one = counted.get(cpu.number)
        packets, dropped, squeezed = (one.processed, one.dropped, one.squeezed) if one else (0, 0, 0)
        share = packets / total if total else 0.0
        seats.append(Seat(cpu.number, cpu.node, cpu.core, share, packets, dropped, squeezed, tuple(works[cpu.number])))
    return tuple(seats)


def _works(machine: Machine) -> list[tuple[int, Work]]:
    found, taken = [], set()
    for card in machine.cards:
        alone = len(card.interrupts) == 1
        for number in card.interrupts:
            one = machine.interrupt(number)
            cpu = handler(machine, one) if one else None
            taken.add(number)
            if one is not None and cpu is not None:
                found += [(cpu, _of_card(card, queue)) for queue in _queues(one, alone)]
        for queue, cpus in enumerate(card.rps):
            shown = queue if len(card.rps) > 1 else None
            found += [(cpu, Work(card.name, HELPS, shown)) for cpu in cpus]
    for one in machine.interrupts:
        # What has never come is no work; the board's own few are none either.
        if one.number not in taken and one.total and one.number > 15 and one.devices:
            cpu = handler(machine, one)
            found += [(cpu, Work(", ".join(one.devices), OTHER))] if cpu is not None else []
    return found


def _queues(one: Interrupt, alone: bool) -> list[Queue]:
    return [queue for name in one.devices if (queue := queue_of(name, alone)) is not None]


def _of_card(card: Card, queue: Queue) -> Work:
    several = card.queues.rx > 1 or card.queues.tx > 1
    return Work(card.name, SENDS if queue.way == TX else TAKES, queue.number if several else None)
