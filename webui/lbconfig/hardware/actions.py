"""What the plan is made of: one thing to write, with its object, its reason, and the way back."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Write:
    """Of a file below /proc or /sys."""

    path: str
    value: str

    def __str__(self) -> str:
        return f"{self.path} = {self.value}"


@dataclass(frozen=True, slots=True)
class Ethtool:
    """What stands behind the name of the program: ("-L", "eth0", "combined", "2")."""

    arguments: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join(("ethtool", *self.arguments))


@dataclass(frozen=True, slots=True)
class Action:
    object: str  # "eth0", "CPU 0", "interrupt 27"
    what: str  # in words, as it should be: "2 queues"
    do: Write | Ethtool
    reason: str
    source: str
    done: bool = False  # it is so already
    undo: Write | Ethtool | None = None  # None: what was before is not known
    reshapes: bool = False  # the card makes its queues and interrupts anew: the rest has to be planned again
