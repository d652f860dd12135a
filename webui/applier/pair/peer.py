"""What is known of the other box of the pair: its newest beat, and when it came. In memory."""

from __future__ import annotations

import threading

from applier.pair.beat import Beat

Known = tuple[Beat | None, float | None]


class Peer:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: Known = (None, None)

    @property
    def beat(self) -> Beat | None:
        """The newest one; None: nothing was ever heard."""
        return self.known[0]

    @property
    def heard(self) -> float | None:
        """When it came, on CLOCK_BOOTTIME."""
        return self.known[1]

    @property
    def known(self) -> Known:
        """Both of the same moment."""
        with self._lock:
            return self._known

    def says(self, beat: Beat, now: float) -> None:
        with self._lock:
            self._known = (beat, now)

    def forget(self) -> None:
        """The box is in no pair any more, or in another one."""
        with self._lock:
            self._known = (None, None)
