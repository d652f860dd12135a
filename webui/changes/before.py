"""What the review says before the click: who is hit, and whether the change will ask to be confirmed."""

from __future__ import annotations

from applier.wire.shapes import Review
from changes import arrival
from draft.frame import look
from lbconfig.diff.cutoff import USUAL
from lbconfig.model.snapshot import Snapshot
from lbconfig.validate.reach import entrance_problem, way_problem

SHOWN = 50  # services in the table; the others are counted


def context(request, found: Review, new: Snapshot) -> dict:
    frame = look(request)
    if not found["reach"] or frame.running is None:
        return {}
    reach, hit = found["reach"], found["impact"]
    place = arrival.next_place(request, frame, new)
    client = request.META["REMOTE_ADDR"]
    lost = way_problem(new, client) or entrance_problem(new, client)
    services = hit["services"] if hit else []
    busy = [one for one in services if one["closed"] or one["refused"] or one["kept"]]
    busy.sort(key=lambda one: (-one["closed"], not one["refused"], -one["kept"]))
    return {
        "reach": reach,
        "usual": USUAL,
        "unknown": place is None,
        "new_place": arrival.url(request, place) if place else "",
        "shows_other": arrival.shows_other(frame.running, new),
        "lost": lost.message if lost else "",
        "impact": hit,
        "impact_rows": busy[:SHOWN],
        "impact_more": len(services) - len(busy[:SHOWN]),
    }
