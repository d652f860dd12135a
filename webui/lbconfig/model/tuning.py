"""What an admin may choose about the hardware; empty: the plan decides."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from lbconfig.model.network import INTERFACE


class Power(StrEnum):
    """How long a CPU may sleep between packets, and how fast it runs."""

    BALANCED = "balanced"  # full clock; no sleep that takes longer than 100 µs to end
    LATENCY = "latency"  # full clock; none that takes longer than 10 µs
    BOARD = "board"  # as the firmware and the kernel have it


@dataclass(frozen=True, slots=True)
class SettingChoice:
    """A value of the admin's instead of the one in the table (lbconfig/hardware/settings.py)."""

    key: str  # "net/core/somaxconn"
    value: str  # numbers, with a blank between them


@dataclass(frozen=True, slots=True)
class CardChoice:
    """Of a network card; 0: the plan decides."""

    name: str = field(metadata=INTERFACE)  # "eth0"
    queues: int = 0
    rx_ring: int = 0  # descriptors
    tx_ring: int = 0


@dataclass(frozen=True, slots=True)
class Tuning:
    settings: tuple[SettingChoice, ...] = ()
    cards: tuple[CardChoice, ...] = ()
    spread: bool = True  # queues, interrupts and packets are spread over the CPUs; False: as the kernel has them
    power: Power = Power.BALANCED

    def card(self, name: str) -> CardChoice:
        return next((one for one in self.cards if one.name == name), CardChoice(name))
