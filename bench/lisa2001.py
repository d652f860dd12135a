"""LISA 2001: direct, NAT, direct routing and tunnel with 1, 2 and 4 real servers; offered rate against reply rate.

All real servers share what processors this machine has, so each is held to a rate: the share of the director's highest
that a server of the paper had of the paper's director. Everything behind that is measured.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.neighbours import SERVERS
from bench.result import Cell, Measured, Picture, Result, Series, Table
from bench.settings import Settings
from bench.stage import WAYS, Loaded, Stage, services, vip

from bench import papers

NAME = "lisa2001"
SERVER_SHARE = papers.LISA_DIRECT / papers.LISA_PEAKS["DR", 1, 4][0]
PROCESSORS = (1, 2, 4)  # of the director
MANY = 256  # connections at once: with fewer it is the time of an answer that is measured
METHOD = (
    "httperf's way: a page of 628 bytes, HTTP/1.0, one request a connection, so many connections begun a second "
    "whatever becomes of them, one second without progress is an error; four clients' logs are added up. Only the "
    "director is emulated. Each real server is held to a rate by its program, as all share this machine: "
    f"{SERVER_SHARE:.2f} of what the director with one processor reaches by direct routing, as in the paper. "
    "The director's processor is measured from outside (QEMU's), the servers' are those of their programs."
)


@dataclass(frozen=True)
class Configuration:
    way: str  # "direct" or one of WAYS
    servers: int

    @property
    def place(self) -> str:
        return SERVERS[0] if self.way == "direct" else vip(self.way, self.servers)

    @property
    def name(self) -> str:
        return f"{self.way}, {self.servers} server{'s' if self.servers > 1 else ''}"


Curve = dict[float, list[Loaded]]  # offered rate -> its rounds


def run(settings: Settings) -> Result:
    counts = (1, 2, 4)
    wished = [Configuration("direct", 1), *(Configuration(way, count) for way in WAYS for count in counts)]
    peak, curves = 0.0, {}
    for cpus in PROCESSORS:
        with settings.stages.take(cpus) as here:
            here.apply(services(counts))
            if not peak:
                peak = highest(here, vip("DR", max(counts)), settings.seconds)
                here.say(f"the director's highest by direct routing: {peak:.0f} replies/s")
            here.serve(per_second=round(peak * SERVER_SHARE))
            rates = [
                round(peak * share) for share in settings.pick((0.5, 1.0, 1.4), (0.3, 0.5, 0.7, 0.9, 1.1, 1.4, 1.8))
            ]
            curves[cpus] = measured(here, wished, rates, settings)
    remarks = [f"A real server is held to {round(peak * SERVER_SHARE)} replies/s."]
    if more := [cpus for cpus in PROCESSORS if cpus > settings.cores]:
        remarks.append(
            f"This machine has {settings.cores} processors: a director with {' or '.join(map(str, more))} shares them "
            "with itself, with its clients and with its servers, so it cannot get ahead by them."
        )
    return Result(
        NAME, "LISA 2001: offered rate against reply rate", papers.LISA,
        tuple(table for cpus, found in curves.items() for table in (peaks(cpus, found), times(cpus, found))),
        tuple(picture(cpus, found) for cpus, found in curves.items()), tuple(remarks), METHOD,
    )  # fmt: skip


def highest(here: Stage, place: str, seconds: float) -> float:
    """Replies a second that the director manages when no server holds it back."""
    here.serve()
    here.load(place, seconds=2, at_once=MANY)  # whatever is slow at the first time
    return here.load(place, seconds=seconds, at_once=MANY).log.rate


def measured(
    here: Stage, wished: list[Configuration], rates: list[int], settings: Settings
) -> dict[Configuration, Curve]:
    """By rounds, so that what disturbs the machine for a while disturbs all ways alike."""
    found: dict[Configuration, Curve] = {one: {rate: [] for rate in rates} for one in wished}
    for number in range(settings.rounds):
        for one in wished:
            for rate in rates:
                found[one][rate].append(here.load(one.place, seconds=settings.seconds, rate=rate))
            here.say(f"round {number + 1}, {one.name}: {best(found[one])[1].median:.0f} replies/s")
    return found


def best(curve: Curve) -> tuple[float, Measured]:
    """The offered rate at which most replies came, and these."""
    rates = {rate: Measured(tuple(one.log.rate for one in rounds)) for rate, rounds in curve.items() if rounds}
    return max(rates.items(), key=lambda pair: pair[1].median)


def peaks(cpus: int, found: dict[Configuration, Curve]) -> Table:
    direct = best(found[Configuration("direct", 1)])[1]
    rows: list[tuple[Cell, ...]] = []
    for one, curve in found.items():
        rate, replies = best(curve)
        cost = curve[rate]
        paper = (
            papers.LISA_DIRECT if one.way == "direct" else papers.LISA_PEAKS.get((one.way, cpus, one.servers), (0,))[0]
        )
        director = None if one.way == "direct" else Measured(tuple(100 * each.director for each in cost))
        rows.append((
            one.way, one.servers, rate, replies, replies.times(direct), paper / papers.LISA_DIRECT if paper else None,
            director, Measured(tuple(100 * each.servers for each in cost)),
        ))  # fmt: skip
    columns = (
        "way", "servers", "offered/s", "most replies/s", "times direct", "paper: times direct", "director's CPU, %",
        "servers' programs' CPU, %",
    )  # fmt: skip
    return Table(
        f"Director with {cpus} virtual processor{'s' if cpus > 1 else ''}: the highest reply rates",
        columns,
        tuple(rows),
    )


def times(cpus: int, found: dict[Configuration, Curve]) -> Table:
    """How it fares when more is offered than it can."""
    rows = []
    for one, curve in found.items():
        rate = max(curve)
        logs = [each.log for each in curve[rate]]
        rows.append((
            one.way, one.servers,
            Measured(tuple(log.offered for log in logs)), Measured(tuple(log.rate for log in logs)),
            Measured(tuple(100 * log.failed / max(1, log.tried) for log in logs)),
            Measured(tuple(log.median for log in logs)), Measured(tuple(log.p99 for log in logs)),
        ))  # fmt: skip
    columns = ("way", "servers", "offered/s", "replies/s", "errors, %", "median reply, ms", "99 %, ms")
    return Table(
        f"At the highest offered rate, {cpus} virtual processor{'s' if cpus > 1 else ''}", columns, tuple(rows)
    )


def picture(cpus: int, found: dict[Configuration, Curve]) -> Picture:
    lines = []
    for one, curve in found.items():
        rounds = [Measured(tuple(each.log.rate for each in loads)) for loads in curve.values()]
        lines.append(Series(
            one.name, tuple(curve), tuple(each.median for each in rounds), tuple(each.low for each in rounds),
            tuple(each.high for each in rounds),
        ))  # fmt: skip
    title = f"Director with {cpus} virtual processor{'s' if cpus > 1 else ''}"
    return Picture(
        f"{NAME}-{cpus}cpu", title, "connections offered a second", "replies a second", tuple(lines), diagonal=True
    )
