"""lighttpd's note: round robin beside schedulers that look at queues, on two unequal servers (bench.schedulers)."""

from __future__ import annotations

from bench.result import Cell, Measured, Picture, Result, Series, Table
from bench.settings import Settings

from bench import papers, schedulers

NAME = "unequal"
TITLE = "Two servers, one twice as slow"
QUICK = ("rr", "lc", "sed, weights 2 and 1")
METHOD = (
    f"Both servers work for four clients at a time, and rs2 takes twice as long for an answer; {schedulers.CLIENTS} "
    "clients ask again as soon as they are answered. The servers sleep instead of computing, so that emulated "
    "processors do not matter."
)


def run(settings: Settings) -> Result:
    names = settings.pick(QUICK, tuple(schedulers.SCHEDULERS))
    seconds = settings.pick(8, schedulers.SECONDS)
    settings.stages.close()  # this one has machines of its own
    counted = schedulers.measure(settings.image, names, settings.rounds, seconds)
    rates = {name: Measured(tuple(sum(one.values()) / seconds for one in rounds)) for name, rounds in counted.items()}
    paper = papers.LIGHTTPD_RATES
    rows: list[tuple[Cell, ...]] = []
    for name, rounds in counted.items():
        first = sum(one["rs1"] for one in rounds) / sum(sum(one.values()) for one in rounds)
        rows.append((name, rates[name], 100 * first, rates[name].times(rates["rr"])))
    for name in ("round robin", "shortest queue"):
        share = {"round robin": 49896 / 100018, "shortest queue": 69048 / 100018}[name]
        rows.append((f"the note: {name}", paper[name], 100 * share, paper[name] / paper["round robin"]))
    columns = ("scheduler", "answers/s", "the faster server's share, %", "times round robin")
    names = tuple(rates)
    drawn = Series(
        "answers a second", names, tuple(one.median for one in rates.values()),
        tuple(one.low for one in rates.values()), tuple(one.high for one in rates.values()),
    )  # fmt: skip
    return Result(
        NAME, "lighttpd's note: unequal servers", papers.LIGHTTPD, (Table(TITLE, columns, tuple(rows)),),
        (Picture(NAME, TITLE, "scheduler", "answers a second", (drawn,), "bars"),), (), METHOD,
    )  # fmt: skip
