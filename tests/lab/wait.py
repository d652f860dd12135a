"""Waiting with a deadline. Whoever waits in vain says what he saw last."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Seen = TypeVar("Seen")


class WaitedInVain(AssertionError):
    """The deadline passed. The text tells what was waited for, for how long, and what was seen last."""


def until(
    what: str,
    look: Callable[[], Seen],
    timeout: float,
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
                return seen
            last = seen
        if time.monotonic() - start > timeout:
            raise WaitedInVain(f"waited {timeout:g} s for {what}; seen last: {last!r:.2000}")
        time.sleep(interval)
