"""The parts of `make bench`, in the order in which they run: name -> module that has `run(Settings) -> Result`."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from bench.result import Result
from bench.settings import Settings
from board.lab.build import Image
from board.machines.lab import GIVEN_IMAGE

PARTS: dict[str, str] = {
    "instructions": "bench.instructions",
    "steps": "bench.steps",
    "lisa2001": "bench.lisa2001",
    "netpipe": "bench.netpipe",
    "sizes": "bench.sizes",
    "unequal": "bench.unequal",
    "aries": "bench.aries",
    "peers": "bench.peers",
    "reachable": "bench.reachable",
    "growth": "bench.growth",
    "table": "bench.table",
    "kernel": "bench.kernel",
}
NEED_IMAGE = ("kernel",)  # parts that run only where a disk image is given


class NoSuchPart(ValueError):
    """The text names the part and those that there are."""


def chosen(only: str) -> tuple[str, ...]:
    """The parts of "a,b", in the order of PARTS; all that can run for "". Raises NoSuchPart."""
    wanted = {name.strip() for name in only.split(",") if name.strip()}
    for name in sorted(wanted - set(PARTS)):
        raise NoSuchPart(f"there is no part {name!r}; there are: {', '.join(PARTS) or 'none'}")
    if not GIVEN_IMAGE and (lacking := wanted & set(NEED_IMAGE)):
        raise NoSuchPart(f"{', '.join(sorted(lacking))}: tell which disk image: make bench ONLY=… IMAGE=…")
    return tuple(name for name in PARTS if name in (wanted or PARTS) and (GIVEN_IMAGE or name not in NEED_IMAGE))


def prepared(names: tuple[str, ...], image: Image) -> Image:
    """With what these parts want to have in it beside; that can take downloads. Raises BuildError."""
    for name in names:
        prepare = getattr(importlib.import_module(PARTS[name]), "prepare", None)
        image = prepare(image) if prepare else image
    return image


def runner(name: str) -> Callable[[Settings], Result]:
    return importlib.import_module(PARTS[name]).run
