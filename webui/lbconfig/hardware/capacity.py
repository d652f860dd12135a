"""How much this machine can forward: from what was counted to a limit, and from a limit to a share of it.

The method is that of RFC 2544, section 26.1: the highest rate at which what was sent also arrived, found by halving
what is left between a rate that was forwarded and one that was not. It asks for no loss at all; here one packet in a
thousand may be missing, because on a box that goes on working a single late interrupt would move the limit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

FIGURES = ("connections", "packets", "bytes")  # per second, of all services together
LOSS = 0.001  # of what was sent; more is more than the box can do
CLOSE = 0.05  # the limit is known when a rate that failed is nearer than this to one that did not
MOST_TRIALS = 12  # at one load
FAR = 4  # times: a rate that failed is so far from one that did not that halving takes too many trials
BUSY = 0.95  # of a CPU's time: nothing more is to be had of it
WINDOW = 5  # seconds that a rate has to last to count
SHORTEST_WATCH, LONGEST_WATCH, USUAL_WATCH = 10, 600, 30  # seconds

# Who held the highest rate where it is: the box itself, the one who sent, the speed of the cable.
BOX, SENDER, WIRE = "box", "sender", "wire"
WIRE_FULL = 0.95  # of the speed of the card
FRAMING = 24  # bytes a packet takes on the cable beside itself: preamble, checksum, gap (IEEE 802.3)
ETHERNET = 14  # bytes of header that IPVS does not count


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
class Trial:
    """So much was offered for a moment, and so much of it came through."""

    wanted: int  # packets/s; 0: as many as the sender could
    seconds: float
    sent: int  # packets
    arrived: int
    rates: Rates  # as IPVS counted them
    cpus: Cpus

    @property
    def offered(self) -> float:
        return self.sent / self.seconds

    @property
    def clean(self) -> bool:
        return self.sent > 0 and self.sent - self.arrived <= LOSS * self.sent


@dataclass(frozen=True, slots=True)
class Sample:
    """A second of watching."""

    seconds: float
    rates: Rates
    cpus: Cpus
    dropped: int  # packets that the box had no room or time for


@dataclass(frozen=True, slots=True)
class Limit:
    """The highest rate that lasted, at one kind of load."""

    rates: Rates
    cpus: Cpus
    held: str  # BOX, SENDER or WIRE


@dataclass(frozen=True, slots=True)
class Hardware:
    """What has to be the same for a limit to hold."""

    processor: str
    cpus: int
    cards: tuple[str, ...]  # "virtio_net 0000:00:03.0", sorted

    def to_data(self) -> dict:
        return asdict(self) | {"cards": list(self.cards)}


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


def next_rate(trials: Sequence[Trial]) -> int | None:
    """Packets/s to offer next; 0: as many as the sender can; None: there is nothing more to find out."""
    if not trials:
        return 0
    good = max((one.offered for one in trials if one.clean), default=0.0)
    bad = min((one.offered for one in trials if not one.clean), default=0.0)
    if not bad or len(trials) >= MOST_TRIALS or good >= bad * (1 - CLOSE):
        return None
    if len(trials) == 1:
        # What came through while too much was offered is a good guess, unless the box choked on what it dropped.
        came = trials[0].arrived / trials[0].seconds
        return max(1, round(min(max(came, bad / FAR), bad * (1 - CLOSE))))
    if not good:
        return max(1, round(bad / FAR))
    return max(1, round(math.sqrt(good * bad) if bad > FAR * good else (good + bad) / 2))


def limit_of(trials: Sequence[Trial], speed: int, size: int) -> Limit | None:
    """None: at every rate something was lost. `speed`: of the cable, Mbit/s, 0: not told; `size`: bytes on it."""
    clean = [one for one in trials if one.clean]
    if not clean:
        return None
    best = max(clean, key=lambda one: one.offered)
    full = speed and best.offered * (size + FRAMING) * 8 >= WIRE_FULL * speed * 1e6
    held = WIRE if full else BOX if any(not one.clean for one in trials) else SENDER
    return Limit(best.rates, best.cpus, held)


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
    held: str

    @property
    def at_least(self) -> bool:
        """Whether the box might do more."""
        return self.held == SENDER


def known(found: Iterable[Iterable[Limit]]) -> dict[str, Known]:
    """By figure, from the limits of each measurement on this hardware, the newest first.

    The newest that came to an end of the box or the cable holds, unless something higher was seen since.
    """
    best: dict[str, Known] = {}
    settled: set[str] = set()
    for limits in found:
        newest: dict[str, Known] = {}
        for limit in limits:
            for figure in FIGURES:
                rate = getattr(limit.rates, figure)
                if rate > 0 and (figure not in newest or rate > newest[figure].rate):
                    newest[figure] = Known(rate, limit.held)
        for figure, one in newest.items():
            if figure in settled:
                continue
            if figure not in best or one.rate > best[figure].rate:
                best[figure] = one
            if not one.at_least:
                settled.add(figure)
    return best


def share(now: Rates, limits: dict[str, Known]) -> tuple[str, float] | None:
    """The figure that is nearest to its limit, and how near: 0.5 is half of it. None: nothing was ever measured."""
    shares = {figure: getattr(now, figure) / one.rate for figure, one in limits.items()}
    if not shares:
        return None
    nearest = max(FIGURES, key=lambda figure: shares.get(figure, -1.0))
    return nearest, shares[nearest]
