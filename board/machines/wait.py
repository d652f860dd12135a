"""Waiting with a deadline, and looking for what must be there. Whoever does so in vain says what he saw last."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import TypeVar

from board.machines.spent import waited

Seen = TypeVar("Seen")
PATIENCE = 90.0  # seconds for what a quiet machine does within ten; a busy one takes many times longer


def found(pattern: str, text: str) -> str:
    """The first group of a pattern that must be in the text."""
    match = re.search(pattern, text)
    assert match, f"no {pattern!r} in {text[-2000:]!r}"
    return match[1]


class WaitedInVain(AssertionError):
    """The deadline passed. The text tells what was waited for, for how long, and what was seen last."""


def until(
    what: str,
    look: Callable[[], Seen],
    timeout: float = PATIENCE,
    interval: float = 0.2,
    expected: tuple[type[Exception], ...] = (OSError,),
) -> Seen:
    """Call `look` until it gives something true, and return that. All times in seconds.

    Exceptions of the `expected` kinds count as "not yet"; others pass through.
    """
    start = time.monotonic()
    last: object = "nothing"
    while True:
        try:
            seen = look()
        except expected as error:
            last = f"{type(error).__name__}: {error}"
        else:
            if seen:
                waited(what, time.monotonic() - start, timeout)
                return seen
            last = seen
        if time.monotonic() - start > timeout:
            raise WaitedInVain(f"waited {timeout:g} s for {what}; seen last: {last!r:.2000}")
        time.sleep(interval)
