"""Which CPU serves which queue of which card: the order of the CPUs, and who takes the next one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from lbconfig.hardware.facts import Card, Cpu, Machine
from lbconfig.model.tuning import Tuning


@dataclass(frozen=True, slots=True)
class Placement:
    """Of one card."""

    card: Card
    cpus: tuple[int, ...]  # that may serve it, one of each core, in the order of their use
    queues: int  # that it should have each way
    homes: tuple[int, ...]  # by queue in use: its CPU


def cores(machine: Machine, node: int = -1) -> tuple[Cpu, ...]:
    """The first CPU of each core: a hyper-thread beside it would share its arithmetic and its cache.

    `node`: only of that NUMA node, unless there is none of it; -1: of all.
    """
    first = {(cpu.package, cpu.core): cpu for cpu in reversed(machine.cpus)}
    found = [cpu for cpu in machine.cpus if first[cpu.package, cpu.core] == cpu]
    near = [cpu for cpu in found if cpu.node == node]
    return tuple(near or found)


def place(machine: Machine, tuning: Tuning) -> tuple[Placement, ...]:
    """Each queue takes the CPU that has the fewest so far, of the card's own node; enough queues go round in order."""
    load: Counter[int] = Counter()
    found = []
    for card in machine.cards:
        cpus = tuple(cpu.number for cpu in cores(machine, card.node))
        wish = tuning.card(card.name).queues
        if wish > len(cpus):  # the admin wants the hyper-threads, or the other node, as well
            cpus += tuple(number for number in machine.numbers if number not in cpus)
        most = max(card.queues.most_rx, card.queues.most_tx)
        queues = min(wish or len(cpus), most, len(machine.cpus))
        found.append(Placement(card, cpus, queues, _homes(cpus, max(card.queues.rx, card.queues.tx), load)))
    return tuple(found)


def _homes(cpus: tuple[int, ...], queues: int, load: Counter[int]) -> tuple[int, ...]:
    homes = []
    for queue in range(queues):
        least = min(cpus, key=lambda number: (load[number], cpus.index(number)))
        home = cpus[queue % len(cpus)] if queues >= len(cpus) else least
        load[home] += 1
        homes.append(home)
    return tuple(homes)


def quietest(machine: Machine, placements: tuple[Placement, ...]) -> int:
    """The CPU with the fewest queues, of equal ones the last: where storage does not wait for packets."""
    load = Counter(home for placement in placements for home in placement.homes)
    return min(machine.numbers, key=lambda number: (load[number], -number))
