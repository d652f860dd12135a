"""What a finding is, and the questions about a machine that several of them ask."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from lbconfig.hardware.cpu_lists import list_text
from lbconfig.hardware.facts import Card, Interrupt, Machine
from lbconfig.hardware.queue_names import TX, queue_of

COSTS: Final = "costs"  # it costs speed or packets
LOOK: Final = "look"  # it may; somebody should look

BOX = "the box"

LISA = "O'Rourke and Keefe, Performance Evaluation of Linux Virtual Server, LISA 2001"
SCALING = "Linux, Documentation/networking/scaling.rst"

# A queue that gets less than this share of its card's interrupts does not count as busy: a stray broadcast is no load.
BUSY = 0.01


@dataclass(frozen=True, slots=True)
class Finding:
    code: str  # "shared-interrupt"
    severity: Literal["costs", "look"]
    object: str  # "eth0", "interrupt 16", "CPU 0", BOX
    what: str  # what is so, in a sentence or two
    cost: str  # what it costs, with a figure where one is known
    source: str  # of what `cost` says
    mend: str  # what the button does, or what a person has to do
    button: bool = False  # whether applying the plan again fixes it
    # Whether somebody can do something about it, on the box or around it. What nobody can change on a machine of that
    # kind is told on the page of the hardware, and disturbs no overview.
    actionable: bool = True


def used(machine: Machine) -> tuple[Card, ...]:
    """Cards with a link: what is wrong with a port that nothing is plugged into costs nothing."""
    return tuple(card for card in machine.cards if card.link)


def home(machine: Machine, card: Card) -> tuple[int, ...]:
    """The CPUs that are near the card: those of its NUMA node, or all where nobody can tell."""
    near = tuple(cpu.number for cpu in machine.cpus if cpu.node == card.node)
    return near or machine.numbers


def cores(machine: Machine, numbers: Iterable[int]) -> int:
    """How many cores these CPUs are; hyper-threads of one core count once."""
    wanted = set(numbers)
    return len({(cpu.package, cpu.core) for cpu in machine.cpus if cpu.number in wanted})


def handler(machine: Machine, one: Interrupt) -> int | None:
    """The CPU that an interrupt goes to; None: it may go to several, and none has come.

    One that may go to several goes to one of them anyway (the kernel gives it a vector of one CPU); the counts
    tell which.
    """
    if len(one.cpus) == 1:
        return one.cpus[0]
    if not one.total:
        return None
    counts = {cpu: count for cpu, count in zip(machine.numbers, one.counts, strict=False) if cpu in one.cpus}
    return max(counts, key=counts.__getitem__) if any(counts.values()) else None


def receiving(machine: Machine, card: Card) -> Iterator[Interrupt]:
    """The interrupts of a card that bring packets in."""
    for number in card.interrupts:
        one = machine.interrupt(number)
        if one is None:
            continue
        queues = [queue_of(name, alone=len(card.interrupts) == 1) for name in one.devices]
        known = [queue for queue in queues if queue is not None]
        if not known or any(queue.way != TX for queue in known):
            yield one


def spread(card: Card) -> tuple[int, ...]:
    """The CPUs that RPS gives the card's packets to."""
    return tuple(sorted({cpu for cpus in card.rps for cpu in cpus}))


def listed(names: Iterable[object]) -> str:
    """ "a", "a and b", "a, b and c"."""
    words = [str(name) for name in names]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def cpus_text(numbers: Iterable[int]) -> str:
    """ "CPU 3", "CPUs 0-3,8"."""
    known = sorted(set(numbers))
    return f"CPU{'s' * (len(known) != 1)} {list_text(known)}"


def percent(share: float) -> str:
    """Of a share of 1; small ones keep two digits that say something."""
    return f"{share * 100:.2g} %"


def number(value: int) -> str:
    return f"{value:,}"


def distance(machine: Machine, here: int, there: int) -> str:
    """What the board says of the way between two NUMA nodes, as the end of a sentence; "" where it says nothing."""
    try:
        near, far = machine.distances[here][here], machine.distances[here][there]
    except IndexError:
        return ""
    return f": the board calls that a distance of {far}, where its own memory has {near}" if far > near > 0 else ""
