"""Queues against CPUs: whether the work of receiving is spread as far as card and processor allow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from lbconfig.hardware.facts import Card, Interrupt, Machine
from lbconfig.hardware.findings.finding import (
    BUSY,
    COSTS,
    LISA,
    LOOK,
    SCALING,
    Finding,
    cores,
    cpus_text,
    distance,
    handler,
    home,
    listed,
    number,
    percent,
    receiving,
    spread,
    used,
)

# The share of all packets on one CPU from which on the others do not matter: with two CPUs an even spread is 0.5, and
# a box with a few heavy connections reaches 0.8.
ONE_CPU = 0.9
# Packets since the start before that is judged: a box that has not worked yet has taken its few packets on one CPU.
WORKED = 1_000_000
CPUS_OF_LISA = (
    "One CPU does all of the work. The LISA 2001 director with direct routing and four real servers gave some 7,200 "
    "replies/s on one CPU, 10,000 on two, 13,019 on four."
)


def one_queue(machine: Machine) -> Iterator[Finding]:
    """A card with a single queue whose packets nobody spreads over the CPUs."""
    for card in used(machine):
        near = cores(machine, home(machine, card))
        if near < 2 or card.queues.rx > 1 or card.queues.most_rx > 1 or len(spread(card)) > 1:
            continue
        more = " In the hypervisor's settings give the card more queues, one per CPU." if machine.hypervisor else ""
        yield Finding(
            "one-queue",
            COSTS,
            card.name,
            f"{card.name} ({card.driver or 'no driver named'}) has one queue for {near} cores, and its "
            "packets are not spread by the kernel either (RPS).",
            CPUS_OF_LISA,
            f"{LISA}; {SCALING}, RPS",
            f"Lets the kernel spread the packets over the cores (RPS).{more}",
            button=True,
        )


def unused_queues(machine: Machine) -> Iterator[Finding]:
    """Fewer queues than the card has and the cores near it could serve."""
    for card in used(machine):
        queues = card.queues
        useful = min(queues.most_rx, cores(machine, home(machine, card)))
        if queues.rx >= useful or not queues.settable:
            continue
        yield Finding(
            "queues-unused",
            COSTS,
            card.name,
            f"{card.name} uses {queues.rx} of its {queues.most_rx} queues; {useful} cores could serve one each.",
            CPUS_OF_LISA
            if queues.rx == 1
            else "The cores without a queue take no packets; those with one are full first.",
            f"{LISA}; {SCALING}, RSS" if queues.rx == 1 else f"{SCALING}, RSS: as many queues as cores",
            "Uses as many queues as there are cores for them. The link of the card is down for a moment.",
            button=True,
        )


def too_many_queues(machine: Machine) -> Iterator[Finding]:
    for card in used(machine):
        queues, many = card.queues, len(machine.cpus)
        if queues.rx <= many or not queues.settable:
            continue
        yield Finding(
            "queues-over",
            LOOK,
            card.name,
            f"{card.name} uses {queues.rx} queues for {many} CPU{'s' * (many > 1)}.",
            "Several queues interrupt the same CPU: more interrupts for the same packets, and buffers for each queue "
            "in the cache that they share. How much depends on the card.",
            f"{SCALING}, RSS: the lowest number of queues that no CPU drops packets with",
            "Uses one queue per CPU. The link of the card is down for a moment.",
            button=True,
        )


def queues_together(machine: Machine) -> Iterator[Finding]:
    """Several busy queues of a card on one CPU, while another one near it has none."""
    for card in used(machine):
        near = home(machine, card)
        busy = _busy(machine, card)
        if len(busy) < 2 or card.queues.rx > len(near):
            continue
        places = Counter(cpu for one in busy if (cpu := handler(machine, one)) is not None)
        crowded = sorted(cpu for cpu, many in places.items() if many > 1)
        free = [cpu for cpu in near if cpu not in places]
        if not crowded or not free:
            continue
        most = crowded[0]
        yield Finding(
            "queues-together",
            COSTS,
            card.name,
            f"{places[most]} busy queues of {card.name} interrupt CPU {most}, and none {cpus_text(free)}.",
            "One CPU does the work of several, and is full while others idle. " + CPUS_OF_LISA.partition(". ")[2],
            f"{LISA}; {SCALING}, RSS IRQ configuration",
            "Gives each queue a CPU of its own."
            if not all(one.managed for one in busy)
            else "The kernel itself has placed them (managed interrupts): use fewer queues, or another driver.",
            button=not all(one.managed for one in busy),
        )


def remote_queues(machine: Machine) -> Iterator[Finding]:
    """Queues that interrupt a CPU of another NUMA node than their card's, while the near one has room."""
    nodes = {cpu.number: cpu.node for cpu in machine.cpus}
    for card in used(machine):
        near = home(machine, card)
        if card.node not in nodes.values() or len(near) == len(nodes) or card.queues.rx > len(near):
            continue
        handling = {cpu for one in receiving(machine, card) if (cpu := handler(machine, one)) is not None}
        far = sorted((handling - set(near)) & nodes.keys())
        if not far:
            continue
        yield Finding(
            "remote-queue",
            COSTS,
            card.name,
            f"{card.name} is at NUMA node {card.node}, but interrupts {cpus_text(far)}.",
            f"Every packet crosses from one processor to the other{distance(machine, card.node, nodes[far[0]])}.",
            "the firmware's table of distances (ACPI SLIT); " + SCALING + ", RPS: CPUs of the interrupt's node",
            f"Moves its queues to the CPUs of node {card.node}.",
            button=True,
        )


def one_cpu(machine: Machine) -> Iterator[Finding]:
    """All packets went to one CPU by one of a card's queues: the card does not tell the connections apart."""
    total = sum(one.processed for one in machine.softnet)
    if len(machine.cpus) < 2 or total < WORKED:
        return
    most = max(machine.softnet, key=lambda one: one.processed)
    cards = [card.name for card in used(machine) if _all_in_one_queue(machine, card)]
    if most.processed < ONE_CPU * total or not cards:
        return
    yield Finding(
        "one-cpu",
        LOOK,
        f"CPU {most.cpu}",
        f"CPU {most.cpu} has taken {percent(most.processed / total)} of the {number(total)} packets since the start: "
        f"nearly all came by one queue of {listed(cards)}.",
        CPUS_OF_LISA,
        LISA,
        "The card sorts packets by addresses and ports: a single tunnel, PPPoE or very few clients all go into one "
        "queue. If there are many clients, the card needs newer firmware, or another driver. (Queues that were set "
        "later than the packets came change the figure only slowly.)",
    )


def _all_in_one_queue(machine: Machine, card: Card) -> bool:
    counts = [one.total for one in receiving(machine, card)]
    return len(counts) > 1 and len(spread(card)) < 2 and max(counts) >= ONE_CPU * sum(counts) > 0


CHECKS = (one_queue, unused_queues, too_many_queues, queues_together, remote_queues, one_cpu)


def _busy(machine: Machine, card: Card) -> list[Interrupt]:
    found = list(receiving(machine, card))
    total = sum(one.total for one in found)
    return [one for one in found if one.total and one.total >= BUSY * total]
