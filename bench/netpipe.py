"""The list's netpipe run: direct, NAT and direct routing with 1 to 6 real servers, and whether the director answered.

One connection to each server; blocks of ever larger sizes go there and come back whole; all connections are at the same
size at the same time, and the throughput of a size is their sum. Meanwhile the director's web page is asked for again
and again through its management card.
"""

from __future__ import annotations

import subprocess
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field

from bench.neighbours import SERVERS, cpu_seconds
from bench.result import Measured, Picture, Result, Series, Table
from bench.settings import Settings
from bench.stage import PIPE, Stage, services, vip
from board.machines.director import browser

from bench import papers

NAME = "netpipe"
WAYS = ("direct", "NAT", "DR")
LONGEST = 20.0  # seconds after which the page counts as not answered
# Of what NAT carries at most: one server's card of the paper (50 of 75 Mbit/s). The client's: 2.5 of these (125 of 50).
CARD = papers.NETPIPE_MBITS["direct"][1] / max(papers.NETPIPE_MBITS["NAT"].values())
CLIENT_CARDS = max(papers.NETPIPE_MBITS["direct"].values()) / papers.NETPIPE_MBITS["direct"][1]
LARGE = 1 << 16  # bytes: smaller blocks leave in one burst, which nothing slows
METHOD = (
    "NetPIPE's way: a block goes to each server and comes back whole, over one connection each, all at once; sizes "
    "grow. No end sends faster than network cards would, as in the paper, where the cards were slow and not the "
    f"machines: a server's {CARD:.2f} of what NAT carries at most, the client's {CLIENT_CARDS:.1f} times that. The "
    "figure is the highest sum over the sizes from 64 KiB on (size × 2 ÷ time of the round trip). Meanwhile the log-in "
    f"page of the director is asked for without pause; what takes longer than {LONGEST:.0f} s counts as no answer."
)


@dataclass
class Page:
    """Asks for the director's web page until it is told to end; use it as a context."""

    url: str
    seconds: list[float] = field(default_factory=list)
    unanswered: int = 0

    def __enter__(self) -> Page:
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join(2 * LONGEST)

    def _ask(self) -> None:
        opener = browser()
        while not self._ending.is_set():
            began = time.monotonic()
            try:
                with opener.open(f"{self.url}/", timeout=LONGEST) as answer:
                    answer.read()
                self.seconds.append(time.monotonic() - began)
            except (OSError, urllib.error.URLError):
                self.unanswered += 1
            self._ending.wait(0.1)


@dataclass(frozen=True)
class Piped:
    """One way to so many servers, once."""

    bits: dict[int, float]  # size in bytes -> Mbit/s of all connections together
    broken: int  # connections that did not get to the last size
    director: float  # seconds of processor a second
    seconds: tuple[float, ...]  # that the web page took
    unanswered: int


def run(settings: Settings) -> Result:
    counts = settings.pick((1, 3, 6), (1, 2, 3, 4, 5, 6))
    found: dict[tuple[str, int], list[Piped]] = {(way, count): [] for way in WAYS for count in counts}
    with settings.stages.take() as here:
        here.apply(services(counts, ("NAT", "DR"), (PIPE,)))
        here.near.stop()
        here.near.serve("pipe", "serve", PIPE)
        card = CARD * highest([piped(here, "NAT", counts[-1], settings, 0)]).median
        here.say(f"a server's card: {card:.0f} Mbit/s")
        with Page(here.director.url) as quiet:
            time.sleep(settings.pick(5, 15))
        for number in range(settings.rounds):
            for (way, count), rounds in found.items():
                rounds.append(piped(here, way, count, settings, card))
                here.say(f"round {number + 1}, {way}, {count} servers: {highest(rounds[-1:]).median:.0f} Mbit/s")
    before = Piped({}, 0, 0.0, tuple(quiet.seconds), quiet.unanswered)
    return Result(
        NAME, "The list's netpipe run: throughput, and whether the director can be reached", papers.NETPIPE,
        (throughput(found, counts), reached(found, before)), (picture(found, counts),),
        (f"A server's card sends {card:.0f} Mbit/s.",), METHOD,
    )  # fmt: skip


def piped(here: Stage, way: str, count: int, settings: Settings, card: float) -> Piped:
    """`card`: Mbit/s of a server's, 0: as fast as it can."""
    sizes = settings.pick((1 << 12, 1 << 16, 1 << 18), tuple(1 << power for power in range(6, 23, 2)))
    slot = settings.pick(1.0, 1.5)
    begin = time.time() + 1
    rate = round(card * 125_000 * min(1, CLIENT_CARDS / count))
    words = (rate, f"{begin:.3f}", slot, *sizes)
    used = cpu_seconds(here.director.running.pid)
    with Page(here.director.url) as page:
        clients = [
            here.near.start("client", "pipe", "ask", place, PIPE, *words, stdout=subprocess.PIPE, text=True)
            for place in (SERVERS[:count] if way == "direct" else [vip(way, count)] * count)
        ]
        said = [one.communicate(timeout=60 + slot * len(sizes))[0] for one in clients]
    used = (cpu_seconds(here.director.running.pid) - used) / (slot * len(sizes) + 1)
    lines = [[line.split() for line in one.splitlines()] for one in said]
    bits = dict.fromkeys(sizes, 0.0)
    for size, trips, seconds in (line for one in lines for line in one):
        bits[int(size)] += int(size) * int(trips) * 2 * 8 / float(seconds) / 1e6
    broken = sum(len(one) < len(sizes) for one in lines)
    return Piped(bits, broken, used, tuple(page.seconds), page.unanswered)


def highest(rounds: list[Piped]) -> Measured:
    return Measured(tuple(max(rate for size, rate in one.bits.items() if size >= LARGE) for one in rounds))


def throughput(found: dict[tuple[str, int], list[Piped]], counts: tuple[int, ...]) -> Table:
    rows = []
    for count in counts:
        ours = {way: highest(found[way, count]) for way in WAYS}
        paper = {way: papers.NETPIPE_MBITS[way][count] for way in WAYS}
        rows.append((
            count, *ours.values(), ours["NAT"].times(ours["direct"]), paper["NAT"] / paper["direct"],
            ours["DR"].times(ours["direct"]), paper["DR"] / paper["direct"],
        ))  # fmt: skip
    columns = (
        "servers", "direct, Mbit/s", "NAT, Mbit/s", "DR, Mbit/s", "NAT ÷ direct", "paper", "DR ÷ direct", "paper",
    )  # fmt: skip
    return Table("Throughput", columns, tuple(rows))


def reached(found: dict[tuple[str, int], list[Piped]], before: Piped) -> Table:
    rows = []
    for name, count, rounds in (
        ("nothing", 0, [before]),
        *((way, count, rounds) for (way, count), rounds in found.items()),
    ):
        pages = [second for one in rounds for second in one.seconds]
        broken = sum(one.broken for one in rounds) if count else None
        load = Measured(tuple(100 * one.director for one in rounds)) if count else None
        rows.append((
            name, count, load, len(pages), sum(one.unanswered for one in rounds),
            Measured(tuple(pages)).median if pages else None, max(pages, default=None), broken,
        ))  # fmt: skip
    columns = (
        "load", "servers", "director's CPU, %", "pages", "not answered", "median, s", "longest, s",
        "broken connections",
    )  # fmt: skip
    return Table("The director's web page meanwhile", columns, tuple(rows))


def picture(found: dict[tuple[str, int], list[Piped]], counts: tuple[int, ...]) -> Picture:
    lines = []
    for way in WAYS:
        rates = [highest(found[way, count]) for count in counts]
        lines.append(Series(
            way, tuple(counts), tuple(one.median for one in rates), tuple(one.low for one in rates),
            tuple(one.high for one in rates),
        ))  # fmt: skip
    return Picture(NAME, "Blocks there and back", "real servers", "Mbit/s, all connections together", tuple(lines))
