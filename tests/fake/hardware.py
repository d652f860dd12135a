"""A pretended machine of a small shop: four CPUs, an igb card with four queues, an r8169 with one.

Part of appliance.py.

appliance.box.machine.machine = dataclasses.replace(appliance.box.machine.machine, …)   # another one
appliance.box.machine.refused["ethtool -G eth0 rx 1024 tx 1024"] = "Operation not permitted"
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tests.fake import run as fake_run
from tests.fake.part import Part

from applier.hardware.verbs import describe
from applier.wire.errors import ApplierRefused
from applier.wire.shapes_machine import MachineStatus
from lbconfig.hardware.actions import Ethtool, Write
from lbconfig.hardware.cpu_lists import parse_list, parse_mask
from lbconfig.hardware.facts import (
    IO_APIC,
    MSI,
    MSI_X,
    Card,
    Coalescing,
    Cpu,
    Interrupt,
    Machine,
    Queues,
    Ring,
    Softnet,
)
from lbconfig.hardware.findings.interrupts import ENDED
from lbconfig.hardware.plan.cards import LRO
from lbconfig.hardware.plan.whole import plan
from lbconfig.hardware.settings import TABLE_SIZE, wanted
from lbconfig.model.tuning import Tuning

if TYPE_CHECKING:
    from tests.fake.appliance import Box

ALL = (0, 1, 2, 3)


def sample() -> Machine:
    """As it comes out of the shop: tuned but for a disk's interrupt and the rings of a card."""
    igb = Card(
        "eth0", "igb", "0000:03:00.0", 0, True, 1000, "full",
        queues=Queues(4, 4, 4, 4, combined=True, settable=True),
        ring=Ring(256, 256, 4096, 4096),
        coalescing=Coalescing(3, 3),
        offloads={"generic-receive-offload": True, "large-receive-offload": False},
        fixed=frozenset({"large-receive-offload"}),
        interrupts=(28, 29, 30, 31),
        rps=((),) * 4,
        xps=((0,), (1,), (2,), (3,)),
        counters={"rx_packets": 48_211_934, "rx_missed_errors": 0, "rx_dropped": 12},
        threaded=False,
    )  # fmt: skip
    realtek = Card(
        "eth1", "r8169", "0000:05:00.0", 0, True, 1000, "full",
        ring=Ring(256, 256, 256, 256),
        interrupts=(33,),
        rps=(ALL,),
        counters={"rx_packets": 31_007_112, "rx_missed_errors": 0, "rx_dropped": 0},
        threaded=False,
    )  # fmt: skip
    queues = tuple(
        Interrupt(28 + cpu, MSI_X, (f"eth0-TxRx-{cpu}",), tuple(9_000_000 * (one == cpu) for one in ALL), (cpu,))
        for cpu in ALL
    )
    machine = Machine(
        cpus=tuple(Cpu(n, 0, n, 0, "performance", "intel_pstate", 85, "C1E", 100) for n in ALL),
        memory=7872,
        interrupts=(
            Interrupt(9, IO_APIC, ("acpi",), (3, 0, 0, 0), ALL),
            Interrupt(26, MSI, ("ahci[0000:00:17.0]",), (41_870, 0, 0, 0), (0,)),
            *queues,
            Interrupt(33, MSI, ("eth1",), (22_410_031, 0, 0, 0), (0,)),
        ),
        cards=(igb, realtek),
        softnet=tuple(Softnet(n, 19_000_000, 0, 3 * n, 9_000_000, 40_000) for n in ALL),
        product="Supermicro X11SCL-F",
        clocksource="tsc",
        clocksources=("tsc", "hpet", "acpi_pm"),
        command_line="quiet",
    )
    return replace(machine, settings={one.key: one.value for one in wanted(machine)})


@dataclass
class FakeMachine:
    """Everything that can be arranged."""

    machine: Machine = field(default_factory=sample)
    refused: dict[str, str] = field(default_factory=dict)
    tuned: list[tuple[str, str]] = field(default_factory=list)  # object and user, of each time that somebody asked
    wish: Tuning = field(default_factory=Tuning)  # that it was tuned by last

    def follow(self, tuning: Tuning) -> None:
        """As an apply with other choices does."""
        if tuning != self.wish:
            self.wish = tuning
            self.tune(tuning)

    def tune(self, tuning: Tuning, of: str = "") -> None:
        """Carry out what is planned, as far as this machine understands it: settings, interrupts, rings, steering."""
        if not of:
            self.machine = replace(self.machine, processes=self.machine.processes - ENDED)
            usual = {one.key: one.value for one in wanted(self.machine, tuning.settings) if one.key != TABLE_SIZE}
            self.machine = replace(self.machine, settings={**self.machine.settings, **usual})
        for action in plan(self.machine, tuning):
            if of in ("", action.object) and not action.done and str(action.do) not in self.refused:
                self.machine = _after(self.machine, action.do)


def _after(machine: Machine, do: Write | Ethtool) -> Machine:
    if isinstance(do, Write) and do.path.startswith("/proc/irq/"):
        number, home = int(do.path.split("/")[3]), parse_list(do.value)
        lines = (replace(one, cpus=home) if one.number == number else one for one in machine.interrupts)
        return replace(machine, interrupts=tuple(lines))
    name = do.arguments[1] if isinstance(do, Ethtool) else do.path.split("/")[4]
    return replace(machine, cards=tuple(_card_after(one, do) if one.name == name else one for one in machine.cards))


def _card_after(card: Card, do: Write | Ethtool) -> Card:
    if isinstance(do, Ethtool):
        words = do.arguments
        if words[0] == "-K":
            return replace(card, offloads={**card.offloads, LRO: False})
        if words[0] != "-G":
            return card
        sizes = dict(zip(words[2::2], map(int, words[3::2]), strict=True))
        return replace(card, ring=replace(card.ring, **sizes))
    way, queue = do.path.split("/")[6].split("-")
    masks = list(card.rps if way == "rx" else card.xps)
    masks[int(queue)] = parse_mask(do.value)
    return replace(card, rps=tuple(masks)) if way == "rx" else replace(card, xps=tuple(masks))


class FakeHardware(Part):
    """The methods of applier.wire.client.Client that are about the hardware."""

    def hardware(self) -> MachineStatus:
        with self._box() as box:
            box.machine.follow(box.snapshot.tuning)
            return describe(box.machine.machine, box.snapshot.tuning, box.machine.refused)

    def tune(self, object: str = "", user: str = "") -> MachineStatus:
        with self._box() as box:
            _refuse(box)
            box.machine.tuned.append((object, user))
            box.machine.tune(box.snapshot.tuning, object)
            return describe(box.machine.machine, box.snapshot.tuning, box.machine.refused)


def _refuse(box: Box) -> None:
    if box.update.installing:
        raise ApplierRefused("busy", "Right now an update is being installed; wait until that has ended.")
    if reason := fake_run.busy(box):
        raise ApplierRefused("busy", reason)
