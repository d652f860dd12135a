"""Instructions of the image's own kernel, beside Debian's that the developer image has: needs IMAGE=.

The box is configured alike in both, and what is counted is counted alike (counted.py). What is left out are the stock
set-up and other balancers, which the image does not have.
"""

from __future__ import annotations

from bench.counted import OUR_WORDS, counted_stage
from bench.instructions import Found, Setup, in_turns, measured, ratio, setups
from bench.result import Result, Table
from bench.settings import Settings

DEBIANS, OWN = "Debian's kernel", "the image's"
BOXES = ("bare", "ours")


def counted_on_both() -> list[tuple[Setup, str]]:
    """Which loads, and as which box: none that needs a program or rules beside the appliance's."""
    plain = (one for one in setups() if not one.program and not one.rules)
    return [(one, box) for one in plain for box in one.boxes if box in BOXES]


def run(settings: Settings) -> Result:
    found: dict[str, Found] = {}
    names = {}
    for kernel, words in ((DEBIANS, OUR_WORDS), (OWN, "")):
        with counted_stage(settings, words, given=kernel == OWN) as stage:
            names[kernel] = stage.director.succeed("uname -r").strip()
            settings.say(f"{kernel}, {names[kernel]}")
            found[kernel] = in_turns(settings, stage, counted_on_both())
    return result(found, names)


def result(found: dict[str, Found], names: dict[str, str]) -> Result:
    return Result(
        name="kernel",
        title="Instructions of the image's own kernel",
        source="Counted as in the first part, in two guests that were booted one after the other.",
        method=(
            f"*{DEBIANS.capitalize()}* is {names[DEBIANS]}, in the developer image, and does not clear memory before "
            f"use; *{OWN}* is {names[OWN]}, which `make image` built from `board/` (compiler and C library may be "
            "others than those of a release)."
        ),
        tables=tuple(
            table(f"Instructions for each {unit}", found, datagrams)
            for unit, datagrams in (("connection", False), ("datagram that was passed on", True))
        ),
    )


def table(title: str, found: dict[str, Found], datagrams: bool) -> Table:
    rows = []
    for setup, box in counted_on_both():
        if setup.datagrams is datagrams:
            debians, own = (measured(found[kernel], datagrams, setup.name, box) for kernel in (DEBIANS, OWN))
            name = f"{setup.name}, without any rule" if box == "bare" else setup.name
            rows.append((name, debians, own, ratio(own, debians)))
    columns = ("way", DEBIANS, OWN, f"{OWN} ÷ {DEBIANS}")
    return Table(title, columns, tuple(rows), "The median, with the lowest and the highest round.")
