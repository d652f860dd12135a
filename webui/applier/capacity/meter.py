"""What the box forwards at the moment, from counters that the kernel keeps anyway."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

from applier.host.host import Host, HostError
from lbconfig.capacity.figures import CpuTimes, Rates, Sample, Totals, rates, read_cpus, read_dropped, read_totals, use

TOTALS = Path("/proc/net/ip_vs_stats")
CPUS = Path("/proc/stat")
SOFTNET = Path("/proc/net/softnet_stat")
NET = Path("/sys/class/net")
LOST = ("rx_missed_errors", "rx_fifo_errors")  # a card had no room: the kernel did not fetch fast enough
SHORTEST = 1.0  # seconds between two looks; less says little
STALE = 10.0  # seconds after which a look is of another time


@dataclass(frozen=True, slots=True)
class Counters:
    when: float  # seconds, monotonic
    totals: Totals
    cpus: tuple[CpuTimes, ...]
    dropped: int


def totals(host: Host) -> Totals:
    """HostError where this kernel does not count, or has no IPVS loaded."""
    text = host.read(TOTALS)
    if text is None:
        raise HostError(f"read {TOTALS}", None, "IPVS is not loaded")
    try:
        return read_totals(text)
    except ValueError as error:
        raise HostError(f"read {TOTALS}", None, str(error)) from None


def read_counters(host: Host, cards: tuple[str, ...]) -> Counters:
    """`cards`: names of the network cards whose losses count."""
    found = totals(host)
    dropped = read_dropped(host.read(SOFTNET) or "")
    for name in cards:
        dropped += sum(int(host.read(NET / name / "statistics" / kind) or 0) for kind in LOST)
    return Counters(host.now(), found, read_cpus(host.read(CPUS) or ""), dropped)


def between(before: Counters, after: Counters) -> Sample:
    seconds = max(after.when - before.when, 0.001)
    lost = max(0, after.dropped - before.dropped)
    return Sample(seconds, rates(before.totals, after.totals, seconds), use(before.cpus, after.cpus), lost)


class Meter:
    """The rates since somebody asked last; pages ask every two seconds, several at once perhaps."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._lock = threading.Lock()
        self._before: tuple[float, Totals] | None = None
        self._rates: Rates | None = None

    def rates(self) -> Rates | None:
        """None: nobody asked in the last seconds, so it is counted from now on. HostError as `totals`."""
        with self._lock:
            now = self._host.now()
            if self._before and now - self._before[0] < SHORTEST:
                return self._rates
            found, before = totals(self._host), self._before
            self._before = (now, found)
            self._rates = None
            if before is not None and now - before[0] <= STALE:
                self._rates = rates(before[1], found, now - before[0])
            return self._rates
