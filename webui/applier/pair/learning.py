"""A box that comes back has itself told all connections before it may lead, and makes sure that they came.

What the other box tells by itself at the first word may come before this one can take it, and nobody acknowledges the
kernel's datagrams. So the box that needs to know asks, and counts what it has got (decision 120).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from applier.kept.turn import beside
from applier.pair.errands import Errands
from applier.pair.telling import knows_all, knows_enough
from applier.wire.errors import ApplierRefused

log = logging.getLogger("applier")

LEARNS = 60.0  # seconds after which the box may lead with what it knows
ARRIVES = 3.0  # seconds after which what has not arrived was lost
TELLS = 3  # times at the most that the other box tells all of them
WAITS = "it is being told the connections of the other box"
LATER = frozenset({"peer-away", "overloaded"})  # what is refused for these is asked again
CANNOT = -1  # the other box cannot tell them: an older version, or its table cannot be read


class Core(Protocol):
    """What of the daemon it needs."""

    errands: Errands

    def established(self) -> int: ...


@dataclass
class Course:
    """One return of the box."""

    since: float
    asking: bool = False
    tries: int = 0
    there: int | None = None  # open connections of the other box, once it has told all of them
    told: float = 0.0  # when that was
    over: bool = False


class Learning:
    def __init__(self, core: Core, clock: Callable[[], float]) -> None:
        self._core = core
        self._clock = clock
        self._course: Course | None = None

    def forget(self) -> None:
        """The box is not held any more; when it comes back, it has to be told anew."""
        self._course = None

    def missing(self) -> str:
        """What the box waits for beside one that leads, in words; empty: for nothing any more. Never blocks."""
        now = self._clock()
        course = self._course = self._course or Course(now)
        if course.over:
            return ""
        if now - course.since >= LEARNS:
            self._end(course, f"it was not told all connections within {LEARNS:g} seconds")
        elif not course.asking:
            self._go_on(course, now)
        return "" if course.over else WAITS

    def _go_on(self, course: Course, now: float) -> None:
        if course.there is None:
            self._ask(course)
            return
        known = self._core.established()
        if course.there == CANNOT:
            self._end(course, "the other box cannot tell it all connections")
        elif not (all_known := knows_all(known, course.there)) and now - course.told < ARRIVES:
            pass  # they are on their way
        elif not all_known and course.tries < TELLS:
            self._ask(course)
        elif knows_enough(known, course.there):
            course.over = True
            log.info("the box was told all connections: it knows %d of %d open ones", known, course.there)
        else:
            self._end(course, f"it knows {known:,} of {course.there:,} open connections, although it was told all")

    def _ask(self, course: Course) -> None:
        def work() -> int | None:
            try:
                there = self._core.errands.ask("pair_retell", {}, LEARNS).get("established")
            except ApplierRefused as refused:
                log.info("the other box was asked for all connections: %s", refused)
                return None if refused.code in LATER else CANNOT
            return there if type(there) is int and there >= 0 else CANNOT

        def tell(there: int | None) -> None:
            course.there, course.told, course.asking = there, self._clock(), False
            course.tries += there is not None

        course.asking = True
        beside("learning", work, lambda _: CANNOT, tell)

    @staticmethod
    def _end(course: Course, why: str) -> None:
        course.over = True
        log.warning("the box may lead anyway: %s", why)
