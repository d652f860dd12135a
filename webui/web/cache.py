"""Django's cache in the memory of the process, by a clock that nobody sets.

Lock-outs and the counts of tries live in it. By the clock of the wall a lock-out would last for years where that was
ahead, and end at once where it is set forward.
"""

import time

from django.core.cache.backends.base import DEFAULT_TIMEOUT
from django.core.cache.backends.locmem import LocMemCache


class SteadyCache(LocMemCache):
    """Every moment in it is one of CLOCK_BOOTTIME."""

    _expire_info: dict[str, float | None]  # LocMemCache's own

    def get_backend_timeout(self, timeout=DEFAULT_TIMEOUT):
        seconds = self.default_timeout if timeout is DEFAULT_TIMEOUT else timeout
        return None if seconds is None else steady() + seconds if seconds > 0 else -1

    def _has_expired(self, key):
        end = self._expire_info.get(key, -1)
        return end is not None and end <= steady()


def steady() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)
