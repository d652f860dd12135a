"""The pair's part of the snapshot: two boxes that are one director."""

from __future__ import annotations

from dataclasses import dataclass, field

from lbconfig.model.network import INTERFACE, Network
from lbconfig.model.tuning import Tuning


@dataclass(frozen=True, slots=True)
class PairBox:
    """What is one box's own. Everything else of a snapshot is the same on both."""

    network: Network
    tuning: Tuning
    cable: str = field(metadata=INTERFACE)  # the interface of the pair cable
    cable_address: str  # the box's own address there, "192.0.2.1/30"; `network` has it as well
    key: str  # the public one of WireGuard: 32 bytes as base64

    @property
    def name(self) -> str:
        """By which people know the box."""
        return self.network.hostname


@dataclass(frozen=True, slots=True)
class Pair:
    id: str  # 32 hex digits, made once for the two
    boxes: tuple[PairBox, PairBox]  # the first one and the second one
    advert: int = 250  # milliseconds between two advertisements of the box that leads
    hand_over_by_itself: bool = True  # to the peer, when that is fitter
