"""The parts of `make bench`, in the order in which they run: name -> module that has `run(Settings) -> Result`."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from bench.result import Result
from bench.settings import Settings

PARTS: dict[str, str] = {"instructions": "bench.instructions", "steps": "bench.steps"}


class NoSuchPart(ValueError):
    """The text names the part and those that there are."""


def chosen(only: str) -> tuple[str, ...]:
    """The parts of "a,b", in the order of PARTS; all of them for "". Raises NoSuchPart."""
    wanted = {name.strip() for name in only.split(",") if name.strip()}
    for name in sorted(wanted - set(PARTS)):
        raise NoSuchPart(f"there is no part {name!r}; there are: {', '.join(PARTS) or 'none'}")
    return tuple(name for name in PARTS if not wanted or name in wanted)


def runner(name: str) -> Callable[[Settings], Result]:
    return importlib.import_module(PARTS[name]).run
