"""Linux Journal's ARIES test: requests a second with and without the director as servers are added; and a server that
is removed and added again under load, with no request that fails."""

from __future__ import annotations

import dataclasses
import time

from bench.lisa2001 import highest
from bench.load import Log
from bench.neighbours import SERVERS
from bench.result import Cell, Measured, Picture, Result, Series, Table
from bench.settings import Settings
from bench.stage import Stage, service, services, vip
from board.machines.director import wish

from bench import papers

NAME = "aries"
WAYS = ("direct", "NAT", "DR")
SERVER_SHARE = 0.5  # of what the director reaches with NAT; in the paper eight servers were four times the director
AT_ONCE = 256
CHANGED = 3  # servers, of which one comes and goes
METHOD = (
    f"As fast as {AT_ONCE} clients allow. Without a director the clients ask the servers in turn, as WebBench does. "
    f"Each real server is held to {SERVER_SHARE:.0%} of what the director reaches with NAT (in the paper a half: "
    "eight servers answered four times what NAT passed on). Then a server is removed and added again by applies, "
    "over and over, while the clients go on; and the same load again with no change, to tell what fails by itself."
)


def run(settings: Settings) -> Result:
    counts = settings.pick((1, 2, 4), (1, 2, 3, 4, 6, 8))
    found: dict[tuple[str, int], list[float]] = {(way, count): [] for way in WAYS for count in counts}
    with settings.stages.take() as here:
        here.apply(services(counts, ("NAT", "DR")))
        limit = round(SERVER_SHARE * highest(here, vip("NAT", counts[-1]), settings.seconds))
        here.serve(per_second=limit)
        for number in range(settings.rounds):
            for (way, count), rounds in found.items():
                places = SERVERS[:count] if way == "direct" else (vip(way, count),)
                rounds.append(here.load(*places, seconds=settings.seconds, at_once=AT_ONCE).log.rate)
                here.say(f"round {number + 1}, {way}, {count} servers: {rounds[-1]:.0f} replies/s")
        changed = [row for number, way in enumerate(("NAT", "DR"), 1) for row in changes(here, way, number, settings)]
    rates = {place: Measured(tuple(rounds)) for place, rounds in found.items()}
    return Result(
        NAME, "ARIES: with and without the director as servers are added", papers.ARIES,
        (scaling(rates, counts), undisturbed(changed)), (picture(rates, counts),),
        (f"A real server is held to {limit} replies/s.",), METHOD,
    )  # fmt: skip


def scaling(rates: dict[tuple[str, int], Measured], counts: tuple[int, ...]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for count in counts:
        direct, nat, routed = (rates[way, count] for way in WAYS)
        rows.append((count, direct, nat, routed, nat.times(direct), routed.times(direct)))
    paper = papers.ARIES_RATES
    rows.append(("8, the paper", paper["direct"], paper["NAT"], None, paper["NAT"] / paper["direct"], None))
    columns = ("servers", "direct, replies/s", "NAT, replies/s", "DR, replies/s", "NAT ÷ direct", "DR ÷ direct")
    return Table("Replies a second", columns, tuple(rows))


def changes(here: Stage, way: str, number: int, settings: Settings) -> list[tuple]:
    """Remove a server and add it again, over and over, while the clients go on; then the same load with no change.

    Two rows of the table. The second tells what fails by itself.
    """
    seconds = settings.pick(40, 160)
    here.serve()  # a server at its limit would refuse by itself
    place = vip(way, CHANGED)
    full, less = (
        wish(dataclasses.replace(service(number, way, count), address=place)) for count in (CHANGED, CHANGED - 1)
    )
    here.apply(full)
    rate = here.load(place, seconds=settings.seconds, at_once=AT_ONCE).log.rate / 3
    ended = here.begin(place, seconds=seconds, rate=rate)
    until = time.monotonic() + seconds
    time.sleep(3)
    took: dict[str, list[float]] = {"removed": [], "added": []}
    pair = 0.0
    while time.monotonic() + pair < until - 1:
        first = time.monotonic()
        for what, snapshot in (("removed", less), ("added", full)):
            began = time.monotonic()
            here.director.apply(snapshot)
            took[what].append(time.monotonic() - began)
            time.sleep(1)
        pair = time.monotonic() - first
    during = told(here, f"{way}, {len(took['added'])} times a server removed and added", ended().log)
    alone = told(here, f"{way}, nothing changed", here.load(place, seconds=seconds, rate=rate).log)
    return [
        (way, len(took["added"]), *during, Measured(tuple(took["removed"])), Measured(tuple(took["added"]))),
        (f"{way}, nothing changed", 0, *alone, None, None),
    ]


def told(here: Stage, what: str, log: Log) -> tuple:
    """Its part of a row: requests, answered, failed, by what, longest."""
    why = ", ".join(f"{kind}: {count}" for kind, count in log.errors.items() if count)
    here.say(f"{what}: {log.tried} requests, {log.failed} failed ({why})")
    return (log.tried, log.replies + log.late, log.failed, why, log.longest)


def undisturbed(rows: list[tuple]) -> Table:
    columns = (
        "way", "removed and added, times", "requests", "answered", "failed", "by", "longest, ms",
        "an apply that removed, s", "an apply that added, s",
    )  # fmt: skip
    return Table("A server removed and added under load", columns, tuple(rows), "At a third of the highest rate.")


def picture(rates: dict[tuple[str, int], Measured], counts: tuple[int, ...]) -> Picture:
    lines = []
    for way in WAYS:
        found = [rates[way, count] for count in counts]
        lines.append(Series(
            way, tuple(counts), tuple(one.median for one in found), tuple(one.low for one in found),
            tuple(one.high for one in found),
        ))  # fmt: skip
    return Picture(NAME, "With and without the director", "real servers", "replies a second", tuple(lines))
