"""The page "Pair": both boxes beside each other, who leads and why, and the ways to change that."""

from __future__ import annotations

import logging
from collections.abc import Callable

from django.contrib import messages
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.formats import date_format
from django.views.decorators.http import require_POST

from applier.wire.client import ApplierDown, ApplierRefused, connect
from applier.wire.shapes import ApplyStarted
from applier.wire.shapes_pair import PairBoxStatus, PairState, PathStatus
from changes.history import replace_draft
from changes.models import SetAside
from draft.frame import look
from lbconfig import migrate
from lbconfig.model.addresses import web_page
from lbconfig.model.snapshot import HTTPS_PORT, SnapshotError
from system import pairing
from system.forms import ChoiceForm, HoldForm, SourceForm
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
CHOICES = {
    "stop": "Stop here",
    "go-on": "Go on",
    "go-back": "Go back",
    "leave": "Leave both as they are",
}
SAME_TIME = 1.0  # seconds; a box tells its own without fractions
SILENT = 3.0  # seconds from which on a box was not heard just now


def overview(request):
    drafts = SetAside.objects.exclude(snapshot="").defer("snapshot")
    state = _state(request)
    if "found" in state and not state["boxes"]:
        state |= _joined()
    return render(request, "system/pair.html", state | {"drafts": drafts})


def _joined() -> dict:
    """The box that this one was joined with, while the two are no pair."""
    try:
        return pairing.known_of(connect().pair_joining())
    except (ApplierDown, ApplierRefused):
        return {}


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


def leave(request):
    """This box leaves the pair."""
    return _end(request, "system/pair_leave.html", lambda user: connect().pair_leave(user))


def alone(request):
    """This box goes on without the other one."""
    return _end(request, "system/pair_alone.html", lambda user: connect().pair_alone(user))


def _end(request, template: str, do: Callable[[str], ApplyStarted]):
    state = _state(request)
    if "error" in state or not state["found"]["boxes"]:
        return redirect("pair")
    if request.method != "POST":
        return render(request, template, state)
    user = request.user.get_username()
    try:
        apply = do(user)["apply"]
    except (ApplierDown, ApplierRefused) as error:
        messages.error(request, f"Nothing was done. {error}")
        return redirect("pair")
    log.info("user %s ends the pair: %s", user, request.resolver_match.url_name)
    return redirect("progress", apply)


def choose(request):
    def do(user: str) -> PairState:
        connect().pair_choose(user)
        return connect().pair()

    return _ask(request, "system/pair_choose.html", do)


def draft(request, pk: int):
    """A draft that was not taken when both boxes were edited apart: into the draft after all."""
    found = get_object_or_404(SetAside.objects.exclude(snapshot=""), pk=pk)
    try:
        snapshot = migrate.read(found.snapshot)
    except SnapshotError as error:
        messages.error(request, f"This draft cannot be read: {error}.")
        return redirect("pair")
    what = f"the draft that {found.hostname} had on {date_format(found.found, 'DATETIME_FORMAT')} UTC"
    answer = replace_draft(request, snapshot, {"what": what, "crumb": reverse("pair")})
    if request.method == "POST" and answer.status_code == 302:
        _forget(found)
    return answer


@require_POST
def forget_draft(request, pk: int):
    """Nobody wants it any more; the other box forgets it as well."""
    _forget(get_object_or_404(SetAside, pk=pk))
    messages.info(request, "The draft that was not taken is gone.")
    return redirect("pair")


def _forget(found: SetAside) -> None:
    """It is remembered that it was there, so that the other box does not bring it again."""
    SetAside.objects.filter(pk=found.pk).update(snapshot="")


@require_POST
def update(request):
    """Bring both boxes to the version of a bundle."""
    form = SourceForm(request.POST)
    if not form.is_valid():
        return redirect("updates")
    user = request.user.get_username()
    try:
        connect().pair_update_start(form.cleaned_data["source"], user)
        log.info("user %s began to update both boxes", user)
    except (ApplierDown, ApplierRefused) as error:
        messages.error(request, f"Nothing was installed. {error}")
    return redirect("pair")


@require_POST
def update_choose(request):
    """How the update of both boxes goes on."""
    form = ChoiceForm(request.POST)
    if form.is_valid():
        choice, user = form.cleaned_data["choice"], request.user.get_username()
        try:
            connect().pair_update_choose(choice, user)
            log.info("user %s at the update of both boxes: %s", user, choice)
        except (ApplierDown, ApplierRefused) as error:
            messages.error(request, f"Nothing was done. {error}")
    return redirect("pair")


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
        found, drills, both = connect().pair(), connect().pair_drills(), connect().pair_update()
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
        "away": any(not one["own"] and (one["heard"] is None or one["heard"] > SILENT) for one in found["boxes"]),
        "leads": own is not None and own["role"] == "leads",
        "held": own is not None and (own["role"] == "held" or found["hold"] is not None),
        "step": STEPS[found["step"]],
        "drills": drills,
        "update": both,
        "update_choices": [{"name": choice, "words": CHOICES[choice]} for choice in both["choices"]],
        "paths": [{**path, "words": answers(path)} for path in found["paths"]],
        "lag": "" if found["lag"] is None else f"{found['lag']:,.0f}",
        "hold_left": words_of(found["hold"]["left"]) if found["hold"] and found["hold"]["left"] is not None else "",
    }


def answers(path: PathStatus) -> str:
    """What is said of a path after its address."""
    if path["alive"]:
        return "answers"
    return f"has been silent for {words_of(path['silent'])}" if path["ever"] else "has never answered"


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
