"""The page by which a dead box of the pair is replaced: a code for the new one, its cards, and then the draft."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping
from dataclasses import dataclass

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from applier.wire.client import ApplierDown, ApplierRefused, connect
from applier.wire.shapes_joining import JoinedBoxes
from draft import store as draft
from draft.frame import look
from lbconfig import replacing
from lbconfig.joining import Facts, clocks
from lbconfig.model.pair import PairBox
from lbconfig.model.problem import Problem
from lbconfig.model.reading import build
from lbconfig.model.snapshot import Snapshot
from system.forms import CardsOfNewBoxForm

log = logging.getLogger(__name__)

MADE = "The draft has the new box. Review it: until you apply, nothing has changed."


@dataclass(frozen=True)
class NewBox:
    """A box that has joined to take the place of another one. `snapshot`: of the pair, as the draft has it."""

    known: JoinedBoxes
    facts: Facts
    snapshot: Snapshot
    old: PairBox

    @property
    def box(self) -> int:
        """Its place."""
        return 1 - self.known["box"]

    @property
    def key(self) -> str:
        return self.known["keys"][self.box]

    def cards(self) -> tuple[tuple[str, str], ...]:
        return replacing.cards(self.old, self.facts)

    def replaced(self, swaps: Mapping[str, str]) -> Snapshot:
        return replacing.replaced(self.snapshot, self.box, swaps, self.key)

    def problems(self, swaps: Mapping[str, str]) -> list[Problem]:
        return replacing.problems(self.snapshot, self.box, self.facts, swaps, self.key)


def new_box(known: JoinedBoxes | None, running: Snapshot | None) -> NewBox | None:
    """None where no box has joined for this, or the draft has another pair by now."""
    now = draft.current()
    if known is None or known["facts"] is None or now.pair is None or now.pair.id != known["id"]:
        return None
    box = 1 - known["box"]
    in_draft = now.pair.boxes[box].key == known["keys"][box]
    # The draft may have the new box already, with other cards; then what runs has the old one.
    before = running if in_draft and running is not None and running.pair is not None else now
    old = before.pair.boxes[box] if before.pair else now.pair.boxes[box]
    return NewBox(known, build(Facts, known["facts"]), with_box(now, box, old), old)


def with_box(snapshot: Snapshot, box: int, old: PairBox) -> Snapshot:
    """The draft, with the old box in its place."""
    if snapshot.pair is None or snapshot.pair.boxes[box] == old:
        return snapshot
    boxes = list(snapshot.pair.boxes)
    boxes[box] = old
    return dataclasses.replace(snapshot, pair=dataclasses.replace(snapshot.pair, boxes=(boxes[0], boxes[1])))


def replace(request):
    context = _state(request)
    if context.get("alone"):
        return redirect("pair")
    found: NewBox | None = context.get("new")
    if found is None:
        return render(request, "system/pair_replace.html", context)
    cards = found.cards()
    initial = {f"card_{number}": there for number, (_, there) in enumerate(cards)}
    form = CardsOfNewBoxForm(found.facts, cards, request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        swaps = {name: form.cleaned_data[f"card_{number}"] for number, (name, _) in enumerate(cards)}
        for problem in found.problems(swaps):
            field = f"card_{problem.path[6:-1]}" if problem.path.startswith("cards[") else None
            words = f"{problem.message[:1].upper()}{problem.message[1:]}." if field else f"{problem}."
            form.add_error(field, words)
        if not form.errors:
            user = request.user.get_username()
            with transaction.atomic():
                draft.replace(found.replaced(swaps), user)
            log.info("user %s put a new box instead of %s into the draft", user, found.old.name)
            messages.success(request, MADE)
            return redirect("review")
    status = 422 if request.method == "POST" else 200
    more = {"form": form, "clock": clocks(found.known["time"], found.facts)}
    return render(request, "system/pair_replace.html", context | more, status=status)


@require_POST
def code(request):
    try:
        connect().pair_replace(request.user.get_username())
    except (ApplierDown, ApplierRefused) as error:
        messages.error(request, f"There is no code: {error}")
    return redirect("pair-replace")


def live(request):
    """The part that the page fetches again while it waits; it leads on as soon as the new box has come."""
    context = _state(request)
    if not context.get("invitation") or context["known"]:
        answer = HttpResponse()
        answer.headers["HX-Redirect"] = reverse("pair-replace")
        return answer
    return render(request, "system/pair_code.html", context)


def _state(request) -> dict:
    running = look(request).running
    try:
        state, found = connect().pair(), connect().pair_joining()
    except (ApplierDown, ApplierRefused) as error:
        return {"error": str(error)}
    peer = next((one for one in state["boxes"] if not one["own"]), None)
    if peer is None:
        return {"alone": True}
    return {
        "peer": peer,
        "invitation": found["invitation"],
        "minutes": round(found["invitation"]["seconds"] / 60) if found["invitation"] else 0,
        "said": found["said"],
        "known": found["joined"],
        "new": new_box(found["joined"], running),
    }
