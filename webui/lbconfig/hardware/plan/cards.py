"""What a card does by itself: how many packets it keeps, what it merges, when it calls for the CPU."""

from __future__ import annotations

from collections.abc import Iterator

from lbconfig.hardware.actions import Action, Ethtool
from lbconfig.hardware.facts import Card, Machine
from lbconfig.model.tuning import Power, Tuning

RING = 1024  # descriptors: 0.7 ms of the smallest packets at 1 Gbit/s
RING_FAST = 2048  # from 10 Gbit/s on
FAST = 10_000  # Mbit/s
LRO = "large-receive-offload"
ETHTOOL = "ethtool(8)"


def rings(machine: Machine, tuning: Tuning) -> Iterator[Action]:
    """Never smaller than they are, unless an admin chose that."""
    for card in machine.cards:
        ring, wish = card.ring, tuning.card(card.name)
        most = (ring.most_rx, ring.most_tx)
        if not any(most):
            continue
        usual = RING_FAST if card.speed >= FAST else RING
        present = (ring.rx, ring.tx)
        wanted = tuple(
            min(wished, limit) if wished else max(now, min(usual, limit))
            for wished, now, limit in zip((wish.rx_ring, wish.tx_ring), present, most, strict=True)
        )
        yield Action(
            card.name,
            f"room for {wanted[0]} packets that come in and {wanted[1]} that go out",
            _ring(card, wanted),
            "You chose so."
            if wish.rx_ring or wish.tx_ring
            else "A burst that comes while the CPU is elsewhere waits in the card; without room it is lost.",
            f"{ETHTOOL}, -G; {_SCALING_RINGS}",
            done=wanted == present,
            undo=_ring(card, present),
            reshapes=True,
        )


_SCALING_RINGS = "Linux, Documentation/networking/device_drivers/ethernet/intel/ixgbe.rst"


def _ring(card: Card, sizes: tuple[int, ...]) -> Ethtool:
    words = [word for way, size in zip(("rx", "tx"), sizes, strict=True) if size for word in (way, str(size))]
    return Ethtool(("-G", card.name, *words))


def offloads(machine: Machine, tuning: Tuning) -> Iterator[Action]:
    """GRO stays as it is: what it merges is cut again into the same packets when it leaves."""
    for card in machine.cards:
        if LRO in card.offloads and LRO not in card.fixed:
            yield Action(
                card.name,
                "packets are not merged by the card (LRO off)",
                Ethtool(("-K", card.name, "lro", "off")),
                "Merged packets are larger than the next link takes, and the card does not remember where to cut.",
                "Linux, Documentation/networking/device_drivers/ethernet/intel/ixgbe.rst, LRO",
                done=not card.offloads[LRO],
                undo=Ethtool(("-K", card.name, "lro", "on")),
            )


def coalescing(machine: Machine, tuning: Tuning) -> Iterator[Action]:
    """Adaptive, where the card can: at rest at once, under load in batches. For latency it is left as it is."""
    for card in machine.cards:
        # A card that delays nothing (virtio) says "off" and takes the word without doing anything.
        able = card.coalescing.adaptive_rx is not None and bool(card.coalescing.rx_usecs or card.coalescing.adaptive_rx)
        if able and tuning.power is Power.BALANCED:
            yield Action(
                card.name,
                "interrupts follow the load (adaptive)",
                Ethtool(("-C", card.name, "adaptive-rx", "on")),
                "At rest each packet is told at once; under load many share one interrupt, and the CPU forwards.",
                f"{ETHTOOL}, -C; Linux, Documentation/networking/net_dim.rst",
                done=bool(card.coalescing.adaptive_rx),
                undo=Ethtool(("-C", card.name, "adaptive-rx", "off")),
            )
