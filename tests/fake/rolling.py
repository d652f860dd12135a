"""The update of both boxes of a pair, in memory. Part of appliance.py.

appliance.box.rolling.course = rolling.sample(Phase.WATCHES)
appliance.box.rolling.course = rolling.sample(Phase.LEARNS, stopped="lb2 knows only 3 of 1,240 connections.")
appliance.box.rolling.here = False                 # it was begun at the other box
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

from tests.fake import run as fake_run
from tests.fake.part import Part

from applier.pair import standing
from applier.pair.roles import LEADS
from applier.pair.verbs import NO_PAIR
from applier.update.rolling import course as courses
from applier.update.rolling.course import Course, Half, Phase
from applier.wire.errors import ApplierRefused
from applier.wire.shapes import Nothing
from applier.wire.shapes_rolling import Choice, Rolling

PHASE_SECONDS = 4.0  # where the box is not instant
INSTALLED = Half("0.1.0", True, "0.2.0", "installed", "0.2.0", percent=80)
ORDER = (Phase.SENDS, Phase.INSTALLS, Phase.RESTARTS, Phase.LEARNS, Phase.HANDS_OVER, Phase.WATCHES, Phase.OWN)


def sample(phase: Phase = Phase.SENDS, stopped: str = "", version: str = "0.2.0", user: str = "admin") -> Course:
    names, since = ("lb1", "lb2"), "2026-02-01T09:30:00Z"
    return Course(
        "0" * 32, "1" * 32, 0, names, version, "upload:", 58_000_000, "a" * 64, user, since, phase, stopped=stopped
    )


@dataclass
class FakeRollingState:
    """Everything that can be arranged."""

    course: Course | None = None
    here: bool = True
    alone: bool = False
    own: Half = INSTALLED
    peer: Half = field(default_factory=lambda: replace(INSTALLED, percent=60, received=29_000_000))
    began: float = field(default_factory=time.monotonic)

    def become(self, course: Course) -> None:
        self.course, self.began = course, time.monotonic()

    def advance(self) -> None:
        course = self.course
        if course is None or not course.active or time.monotonic() - self.began < PHASE_SECONDS:
            return
        at = ORDER.index(course.phase) if course.phase in ORDER else len(ORDER)
        end = Phase.WENT_BACK if course.phase is Phase.BACK else Phase.DONE
        self.become(replace(course, phase=(*ORDER[at + 1 :], end)[0]))
        if course.phase is Phase.RESTARTS:
            self.peer = replace(self.peer, version=course.version)


class FakeRolling(Part):
    """The methods of applier.wire.client.Client that are about the update of both boxes."""

    def pair_update(self) -> Rolling:
        with self._box() as b:
            state = b.rolling
            if not b.instant:
                state.advance()
            if b.pair is None or state.course is None:
                return courses.nothing()
            return courses.told(state.course, state.here, state.own, state.peer, state.alone)

    def pair_update_ready(self) -> Nothing:
        with self._box() as b:
            if b.pair is None:
                raise ApplierRefused("no-pair", NO_PAIR)
            seen = b.pair.seen
            if seen.own.role != LEADS:
                raise ApplierRefused("not-leading", "lb1 does not lead. Update both boxes at lb2.")
            refusal = standing.refusal(seen)
            if refusal is not None:
                raise refusal
        return {}

    def pair_update_start(self, source: str, user: str) -> Rolling:
        self.pair_update_ready()
        with self._box() as b:
            if b.update.refuse is not None:
                raise b.update.refuse
            begun = sample(version=b.update.incoming, user=user)
            b.rolling.become(replace(begun, source=source, since=fake_run.now()))
        return self.pair_update()

    def pair_update_choose(self, choice: Choice, user: str) -> Rolling:
        with self._box() as b:
            state = b.rolling
            if state.course is None:
                raise ApplierRefused("no-update", "Both boxes are not being updated.")
            allowed = courses.choices(state.course, state.own, state.peer, state.alone)
            if choice not in allowed:
                words = f"The update of both boxes cannot do that now. Possible: {', '.join(allowed) or 'nothing'}."
                raise ApplierRefused("not-possible", words)
            state.become(courses.chosen(state.course, choice, user))
        return self.pair_update()
