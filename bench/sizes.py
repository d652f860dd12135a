"""HAProxy's page: object sizes from 64 bytes to 100 MB, hits a second and bandwidth in one picture, its averaging."""

from __future__ import annotations

from dataclasses import dataclass

from bench.load import best_third
from bench.neighbours import SERVERS
from bench.result import Measured, Picture, Result, Series, Table
from bench.settings import Settings
from bench.stage import Stage, services, vip

from bench import papers

NAME = "sizes"
SERVERS_USED = 2
AT_ONCE = 32
SIZES = (64, 256, 1 << 10, 4 << 10, 16 << 10, 32 << 10, 64 << 10, 256 << 10, 1 << 20, 10 << 20, 100 << 20)
QUICK_SIZES = (64, 1 << 10, 16 << 10, 256 << 10, 10 << 20)
WAYS = ("direct", "NAT", "DR")
HEAD = 70  # bytes of an answer's head, about
METHOD = (
    f"As fast as {AT_ONCE} clients allow that fetch one object again and again, a new connection for each; "
    f"{SERVERS_USED} real servers. Averaged as on that page: of one measure a second the best twelfth is left out and "
    "the next third averaged (there 60 seconds: 5 and 20). Bandwidth is that of heads and bodies; hits are whole "
    "objects, for objects that take longer than a second the bandwidth divided by their size."
)


@dataclass(frozen=True)
class Point:
    hits: Measured
    bits: Measured  # a second
    director: Measured  # % of a processor
    failed: int


def run(settings: Settings) -> Result:
    sizes = settings.pick(QUICK_SIZES, SIZES)
    seconds = settings.pick(4, 12)
    found: dict[str, dict[int, Point]] = {}
    with settings.stages.take() as here:
        here.apply(services((SERVERS_USED,), ("NAT", "DR")))
        here.serve()
        for way in WAYS:
            found[way] = {}
            for size in sizes:
                found[way][size] = one = point(here, way, size, seconds, settings.rounds)
                here.say(f"{way}, {size} bytes: {one.hits.median:.0f} hits/s, {one.bits.median / 1e6:.0f} Mbit/s")
    remarks = (
        f"Each size was fetched for {seconds} seconds a round, not for a minute: an emulated director makes a run "
        "long enough as it is.",
        *([f"Sizes up to {sizes[-1] >> 20} MiB only: a quick run."] if settings.quick else []),
    )
    pictures = tuple(picture(way, found[way]) for way in WAYS if way != "direct")
    return Result(
        NAME,
        "HAProxy's page: object sizes",
        papers.HAPROXY,
        (rates(found, sizes), paper(found)),
        pictures,
        remarks,
        METHOD,
    )


def point(here: Stage, way: str, size: int, seconds: int, rounds: int) -> Point:
    places = SERVERS[:SERVERS_USED] if way == "direct" else (vip(way, SERVERS_USED),)
    loads = [
        here.load(*places, seconds=seconds, at_once=AT_ONCE, size=size, timeout=5.0) for _ in range(rounds)
    ]  # fmt: skip
    bits = [best_third([8 * many for _, many in one.log.each]) for one in loads]
    hits = [best_third([replies for replies, _ in one.log.each]) for one in loads]
    if size >= 1 << 20:  # a second holds too few whole ones to count them
        hits = [one / 8 / (size + HEAD) for one in bits]
    return Point(
        Measured(tuple(hits)), Measured(tuple(bits)), Measured(tuple(100 * one.director for one in loads)),
        sum(one.log.failed for one in loads),
    )  # fmt: skip


def rates(found: dict[str, dict[int, Point]], sizes: tuple[int, ...]) -> Table:
    columns = ["bytes"]
    for way in WAYS:
        columns += [f"{way}: hits/s", "Mbit/s", *(["director's CPU, %"] if way != "direct" else []), "errors"]
    rows = []
    for size in sizes:
        row: list = [size]
        for way in WAYS:
            one = found[way][size]
            row += [one.hits, Measured(tuple(bits / 1e6 for bits in one.bits.rounds))]
            row += [one.director] if way != "direct" else []
            row += [one.failed]
        rows.append(tuple(row))
    return Table("Hits and bandwidth by size", tuple(columns), tuple(rows))


def paper(found: dict[str, dict[int, Point]]) -> Table:
    """The shape of the curve, which needs no equal machines."""
    rows = []
    for way in WAYS:
        points = found[way]
        hits, bits = max(one.hits.median for one in points.values()), max(one.bits.median for one in points.values())
        half = min(size for size, one in points.items() if one.bits.median >= bits / 2)
        rows.append((way, hits, bits / 1e6, half, bits / 8 / hits))
    ours = papers.HAPROXY_BITS / 8 / papers.HAPROXY_HITS
    rows.append(("HAProxy, on that page", papers.HAPROXY_HITS, papers.HAPROXY_BITS / 1e6, papers.HAPROXY_HALF, ours))
    columns = (
        "way",
        "most hits/s",
        "most Mbit/s",
        "bytes at which half of that is reached",
        "most bytes/s ÷ most hits/s",
    )
    return Table("The shape beside the page's", columns, tuple(rows))


def picture(way: str, points: dict[int, Point]) -> Picture:
    sizes = tuple(points)
    hits, bits = [one.hits for one in points.values()], [one.bits for one in points.values()]
    return Picture(
        f"{NAME}-{way.lower()}", f"Object sizes, {way}", "bytes of the object", "hits a second",
        (
            Series("hits", sizes, tuple(one.median for one in hits), tuple(one.low for one in hits),
                   tuple(one.high for one in hits)),
            Series("bandwidth", sizes, tuple(one.median / 1e6 for one in bits), tuple(one.low / 1e6 for one in bits),
                   tuple(one.high / 1e6 for one in bits), right=True),
        ),
        right="Mbit/s", logarithmic=True,
    )  # fmt: skip
