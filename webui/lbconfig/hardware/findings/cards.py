"""Cards and their links: drivers, offloads that hurt forwarding, cables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from lbconfig.hardware.facts import Machine
from lbconfig.hardware.findings.finding import COSTS, LOOK, Finding, distance, listed, number, percent, used

LRO = "large-receive-offload"
# A link goes down now and then without fault: when the ring or the queues are set, or the switch restarts. As often
# as this since the start of the box, it is the cable, the transceiver or the port.
LINK_LOST = 10
# Copper of 1 Gbit/s may spoil one bit in 10^10 (IEEE 802.3, 40.1), a long frame in 800,000 at the very worst; a link
# that is well spoils none for days. Ten times that worst is a fault; below ten frames it is chance.
BAD_FRAMES, FEWEST_BAD = 1e-5, 10
SLOW = 1000  # Mbit/s; what has been usual since 2005


class Virtual(NamedTuple):
    card: str  # what to choose instead of the emulated one
    where: str


# Drivers of cards that a hypervisor pretends, register by register.
EMULATED = frozenset({"e1000", "e1000e", "8139too", "8139cp", "pcnet32", "ne2k-pci", "tulip", "igb"})
BETTER = {
    "vmware": Virtual("VMXNET3", "in the settings of the virtual machine, as adapter type"),
    "hyper-v": Virtual(
        "Network Adapter", "in the settings of the virtual machine, instead of the Legacy Network Adapter"
    ),
    "virtualbox": Virtual("Paravirtualized Network (virtio-net)", "in the machine's network settings, as adapter type"),
    "xen": Virtual("netfront (type vif)", "in the configuration of the guest"),
}
VIRTIO = Virtual("virtio (virtio-net-pci)", "in the settings of the virtual machine, as model of the card")


def emulated(machine: Machine) -> Iterator[Finding]:
    if not machine.hypervisor:
        return
    better = BETTER.get(machine.hypervisor, VIRTIO)
    for card in machine.cards:
        # A real card that is passed through to the guest has the same driver, but several queues with MSI-X.
        if card.driver not in EMULATED or (card.driver in ("igb", "e1000e") and card.queues.most_rx > 2):
            continue
        yield Finding(
            "emulated-card",
            COSTS,
            card.name,
            f"{card.name} ({card.driver}) is a card that the hypervisor pretends, register by register.",
            "Each access to a register stops the virtual machine until the hypervisor has answered it; a card made for "
            "guests shares memory with it instead, and has several queues.",
            "Linux, Documentation/driver-api/virtio/virtio.rst; R. Russell, virtio: towards a de-facto standard for "
            "virtual I/O devices, 2008",
            f"Choose {better.card} {better.where}, and start the box again.",
        )


def without_driver(machine: Machine) -> Iterator[Finding]:
    for place in machine.driverless:
        yield Finding(
            "no-driver",
            COSTS,
            place,
            f"A network card at PCI place {place} has no driver here.",
            "The box cannot use it: there is no interface of it.",
            "the list of cards in docs/hardware.md",
            "Put in a card of the list, or tell us the card's numbers: an update can bring its driver.",
        )


def merged_on_receipt(machine: Machine) -> Iterator[Finding]:
    """LRO: the card glues segments together, and what it has glued cannot be forwarded as it came."""
    for card in machine.cards:
        if not card.offloads.get(LRO):
            continue
        fixed = LRO in card.fixed
        yield Finding(
            "lro",
            COSTS,
            card.name,
            f"{card.name} merges packets as they come in (LRO), and this box forwards them.",
            "A merged packet is larger than the next link takes and has lost the borders that the sender chose: it is "
            "dropped, and connections through the box crawl. Intel warns of low throughput or even a kernel panic.",
            "README of Intel's ixgbe driver, “Disable LRO if enabling ip forwarding or bridging”; Linux, "
            "dev_disable_lro()",
            "The driver has it switched on for good: load it with its parameter against LRO, or use another card."
            if fixed
            else "Switches LRO off. (GRO, which does the same in a way that can be undone, stays on.)",
            button=not fixed,
        )


def half_duplex(machine: Machine) -> Iterator[Finding]:
    for card in used(machine):
        if card.duplex == "half":
            speed = f" at {card.speed} Mbit/s" if card.speed else ""
            yield Finding(
                "half-duplex",
                COSTS,
                card.name,
                f"The link of {card.name} is half duplex{speed}: it sends or receives, never both.",
                "Collisions and late collisions lose frames as soon as there is load. Usually one end of the cable was "
                "set by hand and the other was not told.",
                "IEEE 802.3, clause 28 (a partner that does not negotiate is taken for half duplex)",
                "Set both ends to negotiate, the port of the switch most of all, and try another cable.",
            )


def slow_link(machine: Machine) -> Iterator[Finding]:
    for card in used(machine):
        if 0 < card.speed < SLOW and card.duplex != "half":
            yield Finding(
                "slow-link",
                COSTS,
                card.name,
                f"The link of {card.name} has {card.speed} Mbit/s.",
                f"All that goes through this card shares {card.speed} Mbit/s. Forwarding with NAT sends requests and "
                "answers through the box.",
                "the card's own word",
                "Try another cable (100 Mbit/s needs two pairs, a gigabit all four), then another port of the switch.",
            )


def lost_links(machine: Machine) -> Iterator[Finding]:
    for card in machine.cards:
        if card.link_lost >= LINK_LOST:
            yield Finding(
                "link-lost",
                COSTS,
                card.name,
                f"The link of {card.name} was lost {card.link_lost} times since the start.",
                "Each time nothing gets through for some seconds: the ends negotiate, and the switch may wait up to "
                "30 s more before it forwards.",
                "IEEE 802.1D, 17.14: twice the forward delay of 15 s",
                "Change the cable or the transceiver, then the port of the switch. Have the switch treat the port as "
                "an edge port (“portfast”).",
            )


def bad_frames(machine: Machine) -> Iterator[Finding]:
    for card in machine.cards:
        bad = max(card.counters.get(name, 0) for name in ("rx_crc_errors", "rx_frame_errors"))
        whole = card.counters.get("rx_packets", 0) + bad
        if bad < FEWEST_BAD or bad < BAD_FRAMES * whole:
            continue
        yield Finding(
            "bad-frames",
            COSTS,
            card.name,
            f"{number(bad)} of {number(whole)} frames came spoiled to {card.name} ({percent(bad / whole)}).",
            "Each of them is lost, and its sender notices after 200 ms at the earliest.",
            "Linux, Documentation/networking/statistics.rst (rx_crc_errors); include/net/tcp.h, TCP_RTO_MIN",
            "Change the cable or the transceiver; clean the plugs of a fibre; then try another port of the switch.",
        )


def cards_apart(machine: Machine) -> Iterator[Finding]:
    """Cards with a link at different NUMA nodes: what comes in by one and goes out by the other crosses over."""
    nodes = {cpu.node for cpu in machine.cpus}
    placed = [card for card in used(machine) if card.node in nodes]
    by_node = {node: [card.name for card in placed if card.node == node] for node in {card.node for card in placed}}
    if len(nodes) < 2 or len(by_node) < 2:
        return
    first = max(by_node, key=lambda node: (len(by_node[node]), -node))
    for node in sorted(by_node.keys() - {first}):
        yield Finding(
            "remote-card",
            LOOK,
            listed(by_node[node]),
            f"{listed(by_node[node])} sits at NUMA node {node}, and {listed(by_node[first])} at node {first}.",
            "A packet that comes in by one and goes out by the other crosses from one processor to the other, with its "
            f"buffers{distance(machine, first, node)}.",
            "the firmware's table of distances (ACPI SLIT)",
            f"Put the cards into slots of the same processor; the board's manual says which are those of node {first}.",
        )


CHECKS = (
    emulated,
    without_driver,
    merged_on_receipt,
    half_duplex,
    slow_link,
    lost_links,
    bad_frames,
    cards_apart,
)
