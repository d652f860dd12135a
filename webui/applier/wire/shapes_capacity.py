"""The shapes of the answers about capacity. Rates are per second; shares of 1; times as in applier.wire.shapes."""

from __future__ import annotations

from typing import Literal, TypedDict

Figure = Literal["connections", "packets", "bytes"]
Held = Literal["box", "sender"]  # what held the rate where it is; sender: the clients, the box might do more


class RatesStatus(TypedDict):
    connections: float
    packets: float
    bytes: float


class LimitStatus(TypedDict):
    rates: RatesStatus
    busy: float  # CPUs' mean share
    busiest: float  # the busiest CPU's share
    softirq: float  # CPUs' mean share of time in which the kernel forwards
    held: Held


class HardwareStatus(TypedDict):
    processor: str
    cpus: int
    cards: list[str]  # driver and place of each: "igb 0000:03:00.0"


class KeptMeasurement(TypedDict):
    """One that has ended, as the data partition has it."""

    when: str
    user: str
    seconds: float  # that was watched
    hardware: HardwareStatus
    kernel: str
    version: str  # of Fairlead
    limit: LimitStatus
    dropped: int  # packets, in all of that time
    traffic: str  # that the box sent itself, from which port to which; "": clients sent


class Measurement(KeptMeasurement):
    """One that has ended; kept on the data partition, the newest first."""

    same: bool  # measured on the hardware that this box has now


class WatchJob(TypedDict):
    id: str
    user: str
    state: Literal["running", "done", "stopped", "failed"]
    percent: int
    message: str  # what it does, or how it ended
    between: bool  # the box sends itself, between two of its ports
    rates: RatesStatus | None  # of the last second
    busiest: float  # share of the busiest CPU in it
    dropped: int  # packets since it began


class WatchStarted(TypedDict):
    job: str  # its id
    seconds: float  # that it takes


class KnownStatus(TypedDict):
    figure: Figure
    rate: float
    at_least: bool  # the box might do more


class LoadStatus(TypedDict):
    """How near the box is to its limit now; in status(), None where it was never measured on this hardware."""

    share: float | None  # of the figure that is nearest to its limit; None: not known yet
    figure: Figure | None
    now: RatesStatus | None  # None: counted from now on; ask again in two seconds
    limits: list[KnownStatus]


class Capacity(TypedDict):
    job: WatchJob | None  # the measurement under way, or the last one since the daemon started
    hardware: HardwareStatus
    now: RatesStatus | None
    load: LoadStatus | None
    measurements: list[Measurement]
    ports: list[str]  # network cards that nothing uses: two of them may be joined by a cable and measured between
