"""The page "Pair": both boxes beside each other, who leads and why, and the ways to change that."""

from __future__ import annotations

import logging
from collections.abc import Callable

from django.contrib import messages
from django.shortcuts import redirect, render

from applier.wire.client import ApplierDown, ApplierRefused, connect
from applier.wire.shapes_pair import PairBoxStatus, PairState
from draft.frame import look
from lbconfig.model.addresses import web_page
from lbconfig.model.snapshot import HTTPS_PORT
from system.forms import HoldForm
from system.views import words_of

log = logging.getLogger(__name__)

ROLES = {
    "leads": ("leads", "good"),
    "stands by": ("stands by", "good"),
    "held": ("held", "wait"),
    "fault": ("cannot lead", "bad"),
    "": ("never heard", "bad"),
}
STEPS = {
    "in step": "Both boxes have the same configuration.",
    "behind": "The other box has an older configuration.",
    "ahead": "This box has an older configuration than the other one.",
    "forked": "The boxes have two configurations that were made apart.",
    "": "",
}
SAME_TIME = 1.0  # seconds; a box tells its own without fractions
SILENT = 3.0  # seconds from which on a box was not heard just now


def overview(request):
    return render(request, "system/pair.html", _state(request))


def live(request):
    """The part that the page fetches again every two seconds."""
    return render(request, "system/pair_live.html", _state(request) | {"refresh": True})


def hand_over(request):
    return _ask(request, "system/pair_hand_over.html", lambda user: connect().pair_hand_over(user))


def drill(request):
    def do(user: str) -> None:
        connect().pair_drill("back" in request.POST, user)

    return _ask(request, "system/pair_drill.html", do)


def hold(request):
    form = HoldForm(request.POST or None)
    if request.method == "POST" and not form.is_valid():
        return render(request, "system/pair_hold.html", _state(request) | {"form": form}, status=422)
    hours = int(form.cleaned_data["hours"]) if form.is_valid() else 0
    return _ask(request, "system/pair_hold.html", lambda user: connect().pair_hold(hours, user), form=form)


def release(request):
    return _ask(request, "system/pair_release.html", lambda user: connect().pair_release(user))


def choose(request):
    def do(user: str) -> PairState:
        connect().pair_choose(user)
        return connect().pair()

    return _ask(request, "system/pair_choose.html", do)


def _ask(request, template: str, do: Callable[[str], PairState | None], **more):
    """One question; what is posted is the yes."""
    if request.method != "POST":
        state = _state(request)
        if "error" in state or not state["found"]["boxes"]:
            return redirect("pair")
        return render(request, template, state | more)
    user = request.user.get_username()
    try:
        found = do(user)
        log.info("user %s at the pair: %s", user, request.resolver_match.url_name)
        if found is not None:
            messages.success(request, found["sentence"])
    except (ApplierDown, ApplierRefused) as error:
        messages.error(request, f"Nothing was done. {error}")
    return redirect("pair")


def _state(request) -> dict:
    try:
        found, drills = connect().pair(), connect().pair_drills()
    except (ApplierDown, ApplierRefused) as error:
        return {"error": str(error)}
    running = look(request).running
    port = running.management.port if running else HTTPS_PORT
    own = next((one for one in found["boxes"] if one["own"]), None)
    return {
        "found": found,
        "boxes": [_column(found, one, port) for one in found["boxes"]],
        "own": own,
        "peer": next((one for one in found["boxes"] if not one["own"]), None),
        "leads": own is not None and own["role"] == "leads",
        "held": own is not None and (own["role"] == "held" or found["hold"] is not None),
        "step": STEPS[found["step"]],
        "drills": drills,
        "hold_left": words_of(found["hold"]["left"]) if found["hold"] and found["hold"]["left"] is not None else "",
    }


def _column(found: PairState, one: PairBoxStatus, port: int) -> dict:
    word, tone = ROLES[one["role"]]
    silent = one["heard"] is None or one["heard"] > SILENT
    return {
        "box": one,
        "word": f"was: {word}" if silent and one["role"] else word,
        "tone": "off" if silent else tone,
        "since": words_of(one["since"]),
        "silent": silent,
        "heard": "" if one["heard"] is None else words_of(one["heard"]),
        "pages": [] if one["own"] else [web_page(address, port) for address in one["addresses"]],
        "clock": "" if one["own"] else _clock(found["clock"]),
    }


def _clock(ahead: float | None) -> str:
    if ahead is None:
        return ""
    if abs(ahead) < SAME_TIME:
        return "the same as here"
    return f"{abs(ahead):,.1f} seconds {'ahead of' if ahead > 0 else 'behind'} this box"
