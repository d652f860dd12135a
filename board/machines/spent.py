"""What a test spends its time on: booting, applying, waiting for health, asking the web page.

    @spent("booting")
    def wait_for_agent(self): ...

Each kind of work that takes long is marked so, as a decorator or as `with spent("…"):`. Where one is inside another,
the outer one counts. tests/conftest.py keeps the figures of each test; `make test-times` shows them, and the waits
that a host a few times slower would not have ended in time.
"""

from __future__ import annotations

import contextlib
import time
from collections import defaultdict
from collections.abc import Iterator

BOOTING = "booting"
GOING_BACK = "going back"  # to a saved moment, and saving one
APPLYING = "applying"
HEALTH = "health"  # waiting until servers are seen up or down
WEB = "web page"  # a browser, or requests to the web page
KINDS = (BOOTING, GOING_BACK, APPLYING, HEALTH, WEB)

_seconds: defaultdict[str, float] = defaultdict(float)
_begun: list[str] = []  # the kind that is being counted; never more than one
retries: list[str] = []  # what was tried once more, in words
SLOWER = 4  # times slower that a host may be on which every wait still ends before its bound
_close: dict[str, tuple[float, float]] = {}  # what was waited for, and for how long of how many seconds


@contextlib.contextmanager
def spent(kind: str) -> Iterator[None]:
    """Count the seconds of this block, or of this function, as work of that kind."""
    if _begun:
        yield
        return
    _begun.append(kind)
    began = time.monotonic()
    try:
        yield
    finally:
        _begun.clear()
        _seconds[kind] += time.monotonic() - began


def retried(what: str) -> None:
    """Something was tried once more; the run counts it and says it at its end."""
    retries.append(what)


def waited(what: str, seconds: float, bound: float) -> None:
    """Something came after that many seconds, for which `bound` would have been the last; kept where that is close."""
    if seconds * SLOWER > bound and seconds > _close.get(what, (0.0, 0.0))[0]:
        _close[what] = (round(seconds, 1), bound)


def take() -> tuple[dict[str, float], list[str], dict[str, tuple[float, float]]]:
    """Seconds of each kind, retries, and waits that took more than a fourth of their bound, since the last call."""
    taken = {kind: round(seconds, 2) for kind, seconds in _seconds.items()}, [*retries], {**_close}
    _seconds.clear()
    retries.clear()
    _close.clear()
    return taken
