"""The steps of an apply as a page shows them: what was done first, and what was skipped behind “More”."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from applier.wire.shapes import StepStatus


@dataclass(frozen=True, slots=True)
class Steps:
    """`skipped` had nothing to change, or came after the step that failed."""

    shown: tuple[StepStatus, ...]
    skipped: tuple[StepStatus, ...] = ()


def told(steps: Iterable[StepStatus], ended: bool) -> Steps:
    """While it runs every step keeps its place; afterwards those that did something stand alone."""
    every = tuple(steps)
    if not ended:
        return Steps(every)
    return Steps(
        tuple(step for step in every if step["state"] != "skipped"),
        tuple(step for step in every if step["state"] == "skipped"),
    )
