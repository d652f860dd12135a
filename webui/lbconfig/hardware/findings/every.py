"""What is wrong with a machine that forwards packets: the doctor of the hardware. Pure.

Each check is a function from the facts to findings. A machine without fault has none: a check that is unsure is
silent. What is counted is judged as a ratio since the start, never by one stray drop; the thresholds stand beside
the checks, with their reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lbconfig.hardware.facts import Machine
from lbconfig.hardware.findings import cards as findings_cards
from lbconfig.hardware.findings import counts as findings_counts
from lbconfig.hardware.findings import interrupts as findings_interrupts
from lbconfig.hardware.findings import processors as findings_processors
from lbconfig.hardware.findings import queues as findings_queues
from lbconfig.hardware.findings.finding import COSTS, Finding

Check = Callable[[Machine], Iterable[Finding]]

CHECKS: tuple[Check, ...] = (
    *findings_interrupts.CHECKS,
    *findings_queues.CHECKS,
    *findings_cards.CHECKS,
    *findings_counts.CHECKS,
    *findings_processors.CHECKS,
)


def findings(machine: Machine) -> tuple[Finding, ...]:
    """Those that cost first, otherwise in the order of the checks."""
    found = [one for check in CHECKS for one in check(machine)]
    return tuple(sorted(found, key=lambda one: one.severity != COSTS))
