"""Whose network and hardware a page shows: in a pair each box has its own, and the page has a switch."""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.http import HttpRequest

from draft import store as draft
from draft.frame import look
from lbconfig.model.network import Network
from lbconfig.model.problem import Problem
from lbconfig.model.snapshot import Snapshot
from lbconfig.model.tuning import Tuning
from lbconfig.pair import BOXES, own_box, view, with_network


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a snapshot the network of one box is. `box`: None for a box that is alone."""

    box: int | None = None

    @property
    def root(self) -> str:
        """How the paths of its problems begin."""
        return "" if self.box is None else f"pair.boxes[{self.box}]."

    def part(self, name: str) -> str:
        """The part of the draft that is written: all of a pair is one."""
        return name if self.box is None else "pair"

    def of(self, snapshot: Snapshot) -> Snapshot:
        """As this box has it."""
        return snapshot if self.box is None else view(snapshot, self.box)

    def network(self) -> Network:
        return self.of(draft.current()).network

    def with_network(self, snapshot: Snapshot, network: Network) -> Snapshot:
        return replace(snapshot, network=network) if self.box is None else with_network(snapshot, self.box, network)

    def with_tuning(self, snapshot: Snapshot, tuning: Tuning) -> Snapshot:
        if self.box is None or snapshot.pair is None:
            return replace(snapshot, tuning=tuning)
        boxes = list(snapshot.pair.boxes)
        boxes[self.box] = replace(boxes[self.box], tuning=tuning)
        return replace(snapshot, pair=replace(snapshot.pair, boxes=(boxes[0], boxes[1])))

    def near(self, problem: Problem) -> Problem:
        """With the path that it would have on a box that is alone."""
        return replace(problem, path=problem.path.removeprefix(self.root))


ALONE = Place()


def shown(request: HttpRequest) -> Place:
    """By ?box=; else the box that is asked itself."""
    pair = draft.current().pair
    if pair is None:
        return ALONE
    asked = request.GET.get("box", "")
    return Place(int(asked)) if asked in map(str, BOXES) else Place(own(request))


def own(request: HttpRequest) -> int | None:
    """Which box of the draft's pair this one is; None: it is in none."""
    pair, status = draft.current().pair, look(request).status
    found = status["interfaces"] if status else ()
    return None if pair is None else own_box(pair, (text for entry in found for text in entry["addresses"]))


def switch(request: HttpRequest, place: Place) -> dict[str, object]:
    """What the templates need: the names of the boxes, and which one is shown. Nothing for a box that is alone."""
    pair = draft.current().pair
    if pair is None or place.box is None:
        return {}
    return {"boxes": [one.name for one in pair.boxes], "box": place.box, "here": place.box == own(request)}
