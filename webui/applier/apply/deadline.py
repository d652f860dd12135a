"""The timer of a change that waits to be confirmed, and the one decision that ends the waiting.

It counts on CLOCK_BOOTTIME: seconds since the kernel started, sleep included. Setting the clock of the day moves
nothing, and another process of the same boot can go on with the same moment.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

TICK = 0.5  # seconds between two looks at the clock

Clock = Callable[[], float]


def boottime() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass(frozen=True, slots=True)
class Decision:
    kind: Literal["keep", "back", "over"]
    user: str = ""  # who decided; "": nobody did


OVER = Decision("over")


class Deadline:
    """Threads may ask and decide; exactly one decision counts."""

    def __init__(self, begun: float, until: float, clock: Clock = boottime) -> None:
        self.begun = begun
        self.until = until
        self._clock = clock
        self._changed = threading.Condition()
        self._decision: Decision | None = None

    def left(self) -> float:
        """Seconds, 0 or more."""
        return max(0.0, self.until - self._clock())

    def waited(self) -> float:
        """Seconds since the waiting began."""
        return max(0.0, self._clock() - self.begun)

    def decide(self, decision: Decision) -> bool:
        """Whether it counts: not where the time is over, or somebody was faster."""
        with self._changed:
            if self._decision is None and self.left() > 0:
                self._decision = decision
                self._changed.notify_all()
                return True
            return False

    def wait(self) -> Decision:
        """Until somebody decides, or the time is over."""
        with self._changed:
            while self._decision is None:
                left = self.left()
                if left <= 0:
                    self._decision = OVER
                else:
                    self._changed.wait(min(left, TICK))
            return self._decision
