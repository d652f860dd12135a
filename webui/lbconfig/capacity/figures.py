"""How much this machine can forward: from what was counted to a limit, and from a limit to a share of it.

The limit is the highest rate that lasted without a dropped packet while clients sent more and more, in the sense of
RFC 2544, section 26.1. What is counted is what IPVS forwards, all services together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypedDict

Figure = Literal["connections", "packets", "bytes"]
FIGURES: tuple[Figure, ...] = ("connections", "packets", "bytes")  # per second, of all services together
CLOSE = 0.05  # rates nearer to each other than this count as the same
BUSY = 0.95  # of a CPU's time: no more can be had from it
WINDOW = 5  # seconds that a rate has to last to count
SHORTEST_WATCH, LONGEST_WATCH, USUAL_WATCH = 10, 600, 30  # seconds

# Who held the highest rate where it is: the box itself, or the clients, who asked for no more.
BOX: Final = "box"
SENDER: Final = "sender"
Held = Literal["box", "sender"]


@dataclass(frozen=True, slots=True)
class Totals:
    """What IPVS has forwarded since it was loaded, both ways."""

    connections: int
    packets: int
    bytes: int


@dataclass(frozen=True, slots=True)
class CpuTimes:
    """Of one CPU, in ticks since the start."""

    all: int
    busy: int
    softirq: int


@dataclass(frozen=True, slots=True)
class Cpus:
    """How busy the CPUs were, each a share of 1."""

    mean: float
    busiest: float
    softirq: float  # mean, of the time that the kernel forwards in


@dataclass(frozen=True, slots=True)
class Rates:
    """A second."""

    connections: float
    packets: float
    bytes: float


@dataclass(frozen=True, slots=True)
class Sample:
    """A second of watching."""

    seconds: float
    rates: Rates
    cpus: Cpus
    dropped: int  # packets that the box had no room or time for


@dataclass(frozen=True, slots=True)
class Limit:
    """The highest rate that lasted, while clients sent."""

    rates: Rates
    cpus: Cpus
    held: Held


class HardwareData(TypedDict):
    """Hardware as plain data."""

    processor: str
    cpus: int
    cards: list[str]


@dataclass(frozen=True, slots=True)
class Hardware:
    """What has to be the same for a limit to hold."""

    processor: str
    cpus: int
    cards: tuple[str, ...]  # "virtio_net 0000:00:03.0", sorted

    def to_data(self) -> HardwareData:
        return {"processor": self.processor, "cpus": self.cpus, "cards": list(self.cards)}


# --- reading ---------------------------------------------------------------------------------------


def read_totals(text: str) -> Totals:
    """Of /proc/net/ip_vs_stats (ip_vs_ctl.c, ip_vs_stats_show: all in hex). ValueError where it says something else."""
    for line in text.splitlines():
        words = line.split()
        if len(words) == 5 and all(_is_hex(word) for word in words):
            connections, in_packets, out_packets, in_bytes, out_bytes = (int(word, 16) for word in words)
            return Totals(connections, in_packets + out_packets, in_bytes + out_bytes)
    raise ValueError("the kernel's counters of IPVS cannot be read")


def _is_hex(word: str) -> bool:
    return all(letter in "0123456789ABCDEFabcdef" for letter in word)


def read_cpus(text: str) -> tuple[CpuTimes, ...]:
    """Of /proc/stat (proc_stat(5)): user nice system idle iowait irq softirq steal."""
    found = []
    for line in text.splitlines():
        words = line.split()
        if words and words[0].startswith("cpu") and words[0] != "cpu":
            ticks = [int(word) for word in words[1:9]]
            idle = ticks[3] + ticks[4]
            found.append(CpuTimes(sum(ticks), sum(ticks) - idle, ticks[6]))
    return tuple(found)


def read_dropped(text: str) -> int:
    """Of /proc/net/softnet_stat: packets that a CPU's backlog had no room for."""
    return sum(int(line.split()[1], 16) for line in text.splitlines() if len(line.split()) > 1)


def read_processor(text: str) -> str:
    """Of /proc/cpuinfo; "" where it does not say."""
    names = (line.partition(":")[2] for line in text.splitlines() if line.startswith("model name"))
    return " ".join(next(names, "").split())


def read_driver(uevent: str) -> str:
    """Of /sys/class/net/…/device/uevent: driver and place; "" where there is no hardware."""
    found = dict(line.split("=", 1) for line in uevent.splitlines() if "=" in line)
    place = found.get("PCI_SLOT_NAME", "")
    return f"{found.get('DRIVER', '')} {place}".strip()


def rates(before: Totals, after: Totals, seconds: float) -> Rates:
    """Counters that went back (IPVS was loaded anew) count as nothing."""
    return Rates(*(max(0, getattr(after, one) - getattr(before, one)) / seconds for one in FIGURES))


def use(before: Sequence[CpuTimes], after: Sequence[CpuTimes]) -> Cpus:
    """Between two looks; a CPU that came or went meanwhile is left out."""
    spans = [
        (new.all - old.all, new.busy - old.busy, new.softirq - old.softirq)
        for old, new in zip(before, after, strict=False)
    ]
    shares = [(busy / all_, softirq / all_) for all_, busy, softirq in spans if all_ > 0]
    if not shares:
        return Cpus(0.0, 0.0, 0.0)
    busy = [one for one, _ in shares]
    return Cpus(sum(busy) / len(busy), max(busy), sum(one for _, one in shares) / len(shares))


# --- the limit -------------------------------------------------------------------------------------


def sustained(samples: Sequence[Sample], window: int = WINDOW) -> Limit | None:
    """The highest rate of packets that lasted so many samples without a drop; None: there is no such time.

    It is the box's own limit where more was tried and dropped, or a CPU had nothing left to give.
    """
    best: Limit | None = None
    for start in range(len(samples) - window + 1):
        some = samples[start : start + window]
        if any(one.dropped for one in some):
            continue
        found = _together(some)
        if found.rates.packets and (best is None or found.rates.packets > best.rates.packets):
            best = found
    if best is None:
        return None
    dropped = any(one.dropped and one.rates.packets >= best.rates.packets * (1 - CLOSE) for one in samples)
    return Limit(best.rates, best.cpus, BOX if dropped or best.cpus.busiest >= BUSY else SENDER)


def _together(some: Sequence[Sample]) -> Limit:
    seconds = sum(one.seconds for one in some)

    def mean(values: Iterable[float]) -> float:
        return sum(value * one.seconds for value, one in zip(values, some, strict=True)) / seconds

    return Limit(
        Rates(*(mean(getattr(one.rates, figure) for one in some) for figure in FIGURES)),
        Cpus(*(mean(getattr(one.cpus, part) for one in some) for part in ("mean", "busiest", "softirq"))),
        SENDER,
    )


# --- what is kept ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Known:
    """The highest known rate of one figure."""

    rate: float
    held: Held

    @property
    def at_least(self) -> bool:
        """Whether the box might do more."""
        return self.held == SENDER


def known(limits: Iterable[Limit]) -> dict[Figure, Known]:
    """By figure, from the measurements on this hardware, the newest first.

    The newest that came to an end of the box holds, unless something higher was seen since.
    """
    best: dict[Figure, Known] = {}
    for limit in limits:
        for figure in FIGURES:
            rate = getattr(limit.rates, figure)
            if rate > 0 and (figure not in best or rate > best[figure].rate):
                best[figure] = Known(rate, limit.held)
        if limit.held == BOX:
            break
    return best


def share(now: Rates, limits: dict[Figure, Known]) -> tuple[Figure, float] | None:
    """The figure that is nearest to its limit, and how near: 0.5 is half of it. None: nothing was ever measured."""
    shares = {figure: getattr(now, figure) / one.rate for figure, one in limits.items()}
    if not shares:
        return None
    nearest = max(FIGURES, key=lambda figure: shares.get(figure, -1.0))
    return nearest, shares[nearest]
