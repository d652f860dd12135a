"""How interrupts come to the CPUs: by which controller, shared with whom, moved by whom."""

from __future__ import annotations

from collections.abc import Iterator

from lbconfig.hardware.facts import IO_APIC, XT_PIC, Card, Interrupt, Machine
from lbconfig.hardware.findings.finding import BOX, COSTS, LISA, LOOK, Finding, listed, used

# Lines of the board itself. They stay at the old controller on some healthy boards, and carry no packets.
BOARD = frozenset({"timer", "cascade", "rtc0", "i8042", "acpi", "floppy", "parport0", "ttyS0", "serial"})
# Words of the kernel's command line that switch a controller off.
WITHOUT_APIC = ("noapic", "nolapic", "disableapic", "acpi=off", "pci=noacpi", "acpi=noirq")
WITHOUT_MSI = ("pci=nomsi",)
# Drivers of cards that have no message-signalled interrupts at all, so nothing is lost by their line.
# PCI cards of before 2004, and what hypervisors make of them.
ONLY_LINES = frozenset(
    {"e1000", "8139too", "8139cp", "pcnet32", "ne2k-pci", "tulip", "e100", "natsemi", "via-rhine", "3c59x", "sis900"}
)


# Programs that set again what the plan has set, and that nobody misses where the plan does their work. (thermald is
# none of them: it keeps the machine from melting.)
ENDED = frozenset({"irqbalance", "irqbalance-ng", "tuned", "numad", "power-profiles-daemon"})


def old_controller(machine: Machine) -> Iterator[Finding]:
    """XT-PIC: the two 8259 of 1984, which know one CPU and fifteen lines."""
    lines = [one for one in machine.interrupts if one.kind == XT_PIC and not set(one.devices) <= BOARD]
    if not lines:
        return
    cards = [card.name for card in used(machine) if set(card.interrupts) & {one.number for one in lines}]
    word = _word(machine, WITHOUT_APIC)
    devices = listed(dict.fromkeys(name for one in lines for name in one.devices))
    yield Finding(
        "xt-pic",
        COSTS if cards else LOOK,
        BOX,
        f"Interrupts come by the old controller (XT-PIC): {devices}.",
        "It gives every interrupt to the first CPU, and devices share its few lines: with an IO-APIC in its place the "
        "LISA 2001 director answered 7,400 requests/s instead of 6,600 with two real servers, and 8,300 instead of "
        "7,200 with four.",
        f"{LISA}, Sharing IRQs (figure 19)",
        f"Take the word {word} off the kernel's command line."
        if word
        else "In the firmware's set-up switch the APIC on (“APIC mode”, “IO-APIC”, “MPS table”), and ACPI as well.",
    )


def line_of_a_card(machine: Machine) -> Iterator[Finding]:
    """An IO-APIC line where the card could send messages (MSI, MSI-X)."""
    word = _word(machine, WITHOUT_MSI)
    for card in used(machine):
        kinds = {one.kind for one in _own(machine, card)}
        if kinds != {IO_APIC} or not card.driver or card.driver in ONLY_LINES:
            continue
        yield Finding(
            "no-msi",
            COSTS,
            card.name,
            f"{card.name} ({card.driver}) interrupts by a line of the IO-APIC, although such cards can send messages "
            "(MSI-X).",
            "A line carries one queue, so one CPU takes every packet; it can be shared with other devices; and the "
            "driver has to ask the card after each interrupt whether it was meant.",
            "Linux, Documentation/PCI/msi-howto.rst, “Why use MSIs?”",
            f"Take the word {word} off the kernel's command line."
            if word
            else "In the firmware's set-up switch MSI on for the slot, or put the card into another one.",
        )


def shared_lines(machine: Machine) -> Iterator[Finding]:
    """A card and another device behind one line."""
    owners = {number: card for card in machine.cards for number in card.interrupts}
    for one in machine.interrupts:
        groups = _groups(one, machine.cards, owners.get(one.number))
        cards = [name for name, is_card in groups.items() if is_card]
        if len(groups) < 2 or not cards:
            continue
        yield Finding(
            "shared-interrupt",
            COSTS,
            f"interrupt {one.number}",
            f"{listed(groups)} share interrupt {one.number} ({one.kind}).",
            "For every packet the kernel calls the handlers of all of them. Without sharing, the LISA 2001 director "
            "went from 6,600 to 7,400 requests/s with two real servers, and from 7,200 to 8,300 with four.",
            f"{LISA}, Sharing IRQs (figure 19)",
            "Put the card into another slot, or switch off in the firmware's set-up what is not needed (USB, sound, "
            "serial ports, a second disk controller). A card with MSI shares nothing.",
        )


def meddlers(machine: Machine) -> Iterator[Finding]:
    """Programs that move interrupts while the box runs."""
    for name in sorted(machine.processes & ENDED):
        yield Finding(
            "meddler",
            COSTS,
            name,
            f"{name} runs. It moves interrupts or settings that this box has put in their places.",
            "A queue that is moved leaves the CPU whose caches hold its connections, and may come to lie on the same "
            "CPU as another one; it happens again every few seconds.",
            "irqbalance(1): it looks every 10 s; " + "Linux, Documentation/core-api/irq/irq-affinity.rst",
            f"Ends {name} and puts everything back in its place.",
            button=True,
        )


CHECKS = (old_controller, line_of_a_card, shared_lines, meddlers)


def _own(machine: Machine, card: Card) -> list[Interrupt]:
    return [one for number in card.interrupts if (one := machine.interrupt(number))]


def _groups(one: Interrupt, cards: tuple[Card, ...], owner: Card | None) -> dict[str, bool]:
    """Who shares the line, and whether it is a card; several handlers of one card are one."""
    groups: dict[str, bool] = {}
    for device in one.devices:
        card = next((card for card in cards if _belongs(device, card)), None)
        groups[card.name if card else device] = card is not None
    if owner and owner.name not in groups and len(groups) > 1:
        # Its driver registered another name than the interface has now ("virtio0", "0000:03:00.0").
        name = next((device for device in groups if not groups[device]), "")
        groups = {
            owner.name if device == name else device: is_card or device == name for device, is_card in groups.items()
        }
    return groups


def _belongs(device: str, card: Card) -> bool:
    return (
        device == card.name
        or device.startswith((f"{card.name}-", f"{card.name}:"))
        or bool(card.bus and card.bus in device)
    )


def _word(machine: Machine, words: tuple[str, ...]) -> str:
    given = machine.command_line.split()
    return next((word for word in words if word in given), "")
