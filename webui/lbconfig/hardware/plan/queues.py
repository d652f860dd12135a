"""Queues, and where their packets are worked on: one queue a core, its interrupt at home there; RPS for the rest."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lbconfig.hardware.actions import Action, Ethtool, Write
from lbconfig.hardware.cpu_lists import list_text, mask_text
from lbconfig.hardware.facts import XT_PIC, Card, Interrupt, Machine
from lbconfig.hardware.placement import Placement, place, quietest
from lbconfig.hardware.queue_names import queue_of
from lbconfig.model.tuning import Tuning

SCALING = "Linux, Documentation/networking/scaling.rst"
AFFINITY = "Linux, Documentation/core-api/irq/irq-affinity.rst"
LISA_SMP = "LISA 2001: 7,200 replies/s with one CPU, 10,000 with two, 13,019 with four (2.4, direct routing)"
LISA_IRQ = "LISA 2001, Sharing IRQs: 7,200 to 8,300 requests/s by an interrupt that no SCSI controller shares"
# Drivers of disks whose interrupts can be moved; those of NVMe's and virtio's queues belong to the kernel.
_STORAGE = re.compile(r"ahci|ata_piix|nvme|megasas|mpt\dsas|aacraid|aic7xxx|sata|ioc\d|vmw_pvscsi|virtio\d+-req")


def counts(machine: Machine, tuning: Tuning) -> Iterator[Action]:
    """One a core, as far as the card has them; never more than there are CPUs."""
    for one in place(machine, tuning) if tuning.spread else ():
        queues = one.card.queues
        if not queues.settable:
            continue
        ways = _ways(one.card, one.queues)
        reason = "Each core works on packets of its own; a second queue on a core, or on its hyper-thread, only waits."
        yield Action(
            one.card.name,
            f"{one.queues} queue{'s' * (one.queues != 1)}",
            Ethtool(("-L", one.card.name, *ways)),
            reason if not tuning.card(one.card.name).queues else "You chose so.",
            f"{SCALING}, RSS; {LISA_SMP}",
            done=ways == _ways_now(one.card),
            undo=Ethtool(("-L", one.card.name, *_ways_now(one.card))),
            reshapes=True,
        )


def _ways(card: Card, number: int) -> tuple[str, ...]:
    if card.queues.combined:
        return "combined", str(number)
    return "rx", str(min(number, card.queues.most_rx)), "tx", str(min(number, card.queues.most_tx))


def _ways_now(card: Card) -> tuple[str, ...]:
    if card.queues.combined:
        return "combined", str(max(card.queues.rx, card.queues.tx))
    return "rx", str(card.queues.rx), "tx", str(card.queues.tx)


def interrupts(machine: Machine, tuning: Tuning) -> Iterator[Action]:
    """Each at the home of its queue. A machine with one CPU has nothing to choose."""
    if not tuning.spread or len(machine.cpus) < 2:
        return
    seen: set[int] = set()
    for one in place(machine, tuning):
        for number, queue in _queues_of(machine, one.card).items():
            line = machine.interrupt(number)
            if line is None or number in seen or not _movable(line):
                continue
            seen.add(number)
            home = one.homes[queue % len(one.homes)]
            yield _move(
                line, home,
                f"{_named(one.card, line)} on CPU {home}",
                f"A queue of {one.card.name} stays on its CPU: its packets find their data in the cache there.",
                f"{SCALING}, RSS IRQ Configuration; {AFFINITY}",
            )  # fmt: skip


def _named(card: Card, line: Interrupt) -> str:
    return f"{card.name} ({', '.join(line.devices)})" if (card.name,) != line.devices else card.name


def _queues_of(machine: Machine, card: Card) -> dict[int, int]:
    """Interrupt number -> its queue, counted from 0; some drivers (tg3) begin with 1."""
    alone = len(card.interrupts) == 1
    found = {}
    for place_, number in enumerate(card.interrupts):
        line = machine.interrupt(number)
        named = [queue.number for device in (line.devices if line else ()) if (queue := queue_of(device, alone))]
        found[number] = named[0] if named else place_
    ranks = sorted(set(found.values()))
    return {irq: ranks.index(queue) for irq, queue in found.items()}


def storage(machine: Machine, tuning: Tuning) -> Iterator[Action]:
    """Off the CPUs that have the most queues. One that a card shares moves with the card."""
    placements = place(machine, tuning)
    if not tuning.spread or len(machine.cpus) < 2 or not any(one.card.interrupts for one in placements):
        return
    home = quietest(machine, placements)
    taken = {number for one in placements for number in one.card.interrupts}
    for line in machine.interrupts:
        if line.number not in taken and _movable(line) and any(_STORAGE.match(name) for name in line.devices):
            yield _move(
                line, home,
                f"{', '.join(line.devices)} on CPU {home}",
                "A disk's interrupt does not come between the packets of a busy queue.",
                LISA_IRQ,
            )  # fmt: skip


def _movable(line: Interrupt) -> bool:
    """Without an affinity that can be read there is none that can be written (Xen, Hyper-V)."""
    return not line.managed and line.kind != XT_PIC and bool(line.cpus)


def _move(line: Interrupt, home: int, what: str, reason: str, source: str) -> Action:
    path = f"/proc/irq/{line.number}/smp_affinity_list"
    undo = Write(path, list_text(line.cpus))
    return Action(f"interrupt {line.number}", what, Write(path, str(home)), reason, source, line.cpus == (home,), undo)


def receiving(machine: Machine, tuning: Tuning) -> Iterator[Action]:
    """RPS: where a card has fewer queues than there are cores, each queue hands packets on to a share of them."""
    if not tuning.spread or len(machine.cpus) < 2:
        return
    for one in place(machine, tuning):
        for queue, present in enumerate(one.card.rps):
            share = _share(one, queue, len(one.card.rps))
            alone = len(share) < 2
            path = f"/sys/class/net/{one.card.name}/queues/rx-{queue}/rps_cpus"
            yield Action(
                one.card.name,
                f"what receive queue {queue} takes in "
                + ("stays where it came in" if alone else f"is worked on by CPUs {list_text(share)}"),
                Write(path, mask_text(() if alone else share)),
                "There is a queue for each core; to hand packets on would only cost."
                if alone
                else "The card has fewer queues than there are cores: one core would do all the work.",
                f"{SCALING}, RPS; {LISA_SMP}",
                done=present == (() if alone else share),
                undo=Write(path, mask_text(present)),
            )


def _share(one: Placement, queue: int, queues: int) -> tuple[int, ...]:
    """Every core belongs to one queue; the queue's own home is among them."""
    others = [number for number in one.cpus if number not in one.homes[:queues]]
    return tuple(sorted({one.homes[queue % len(one.homes)], *others[queue::queues]}))


def sending(machine: Machine, tuning: Tuning) -> Iterator[Action]:
    """XPS: a CPU sends by the queue that is at home there, or on its core; two never wait for the same one."""
    if not tuning.spread or len(machine.cpus) < 2:
        return
    for one in place(machine, tuning):
        if len(one.card.xps) < 2:
            continue
        users = _users(machine, one, len(one.card.xps))
        for queue, present in enumerate(one.card.xps):
            path = f"/sys/class/net/{one.card.name}/queues/tx-{queue}/xps_cpus"
            yield Action(
                one.card.name,
                f"transmit queue {queue} is used by CPU{'s' * (len(users[queue]) != 1)} {list_text(users[queue])}",
                Write(path, mask_text(users[queue])),
                "A CPU that has a transmit queue of its own does not wait for another's lock.",
                f"{SCALING}, XPS",
                done=present == users[queue],
                undo=Write(path, mask_text(present)),
            )


def _users(machine: Machine, one: Placement, queues: int) -> list[tuple[int, ...]]:
    """By queue; every CPU uses one."""
    homes = {home: queue for queue, home in reversed([*enumerate(one.homes[:queues])])}
    cores = {(cpu.package, cpu.core): homes[cpu.number] for cpu in machine.cpus if cpu.number in homes}
    users: list[list[int]] = [[] for _ in range(queues)]
    for place_, cpu in enumerate(machine.cpus):
        users[homes.get(cpu.number, cores.get((cpu.package, cpu.core), place_ % queues))].append(cpu.number)
    return [tuple(one) for one in users]
