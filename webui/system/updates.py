"""The page "Updates": what runs, what else is there, and the way from one to the other."""

import logging

from django.contrib import messages
from django.http import JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_POST

from applier.wire.client import ApplierDown, ApplierRefused, connect
from draft.frame import look
from system.forms import SourceForm
from system.uploads import UploadRefused, receive

log = logging.getLogger(__name__)


def overview(request):
    return render(request, "system/updates.html", _state(request))


def live(request):
    """The part that changes while an install runs."""
    return render(request, "system/updates_live.html", _state(request) | {"refresh": True})


def sticks(request):
    """Bundles on USB sticks; asked for by a button, because looking means to mount them."""
    context: dict[str, object]
    try:
        context = {"sources": connect().update_sources()}
    except (ApplierDown, ApplierRefused) as error:
        context = {"error": str(error)}
    return render(request, "system/sticks.html", context)


@require_POST
def upload(request):
    """The body is the file (see updates.js). Answers {"next": address} or {"message": sentence}."""
    try:
        state = connect().slots()
        if not state["present"]:
            raise UploadRefused(409, "This box cannot be updated: it does not run from a disk with two slots.")
        connect().update_forget()
        source = receive(request, state["limit"])
    except UploadRefused as refusal:
        return JsonResponse({"message": str(refusal)}, status=refusal.status)
    except (ApplierDown, ApplierRefused) as error:
        return JsonResponse({"message": str(error)}, status=503)
    log.info("user %s uploaded a bundle", request.user.get_username())
    return JsonResponse({"next": f"{reverse('update-review')}?{urlencode({'source': source})}"})


def review(request):
    """What a bundle would bring, before anything is written."""
    form = SourceForm(request.GET)
    if not form.is_valid():
        return redirect("updates")
    try:
        found = connect().update_check(form.cleaned_data["source"])
    except (ApplierDown, ApplierRefused) as error:
        return render(request, "system/update_review.html", {"error": str(error)}, status=409)
    status = look(request).status
    context = {"found": found, "state": _state(request)["state"], "in_pair": bool(status and status["pair"])}
    return render(request, "system/update_review.html", context)


@require_POST
def install(request):
    form = SourceForm(request.POST)
    if form.is_valid():
        user = request.user.get_username()
        try:
            connect().update_install(form.cleaned_data["source"], user)
            log.info("user %s started to install a bundle", user)
        except (ApplierDown, ApplierRefused) as error:
            messages.error(request, f"Nothing was installed. {error}")
    return redirect("updates")


def restart(request, slot: str):
    """Asks first, with what it means; then the box goes down."""
    context = _state(request)
    wanted = next((one for one in context["slots"] if one["name"] == slot), None)
    if wanted is None or not wanted["version"]:
        messages.error(request, f"Slot {slot} holds nothing that can be started.")
        return redirect("updates")
    if request.method == "POST":
        user, status = request.user.get_username(), look(request).status
        before = int(status["uptime"]) if status else 0  # asked for now: in a moment nobody answers
        try:
            if wanted["booted"]:
                connect().reboot(user)
            else:
                connect().boot_slot(slot, user)
        except (ApplierDown, ApplierRefused) as error:
            messages.error(request, f"The box was not restarted. {error}")
            return redirect("updates")
        log.info("user %s restarts the box into slot %s, version %s", user, slot, wanted["version"])
        return redirect(f"{reverse('update-restarting', args=[slot])}?{urlencode({'before': before})}")
    return render(request, "system/restart.html", context | {"slot": wanted})


def restarting(request, slot: str):
    """The box is on its way; this page finds out when it is back."""
    return render(request, "system/restarting.html", _restarting(request, slot))


def live_restarting(request, slot: str):
    return render(request, "system/restarting_live.html", _restarting(request, slot) | {"refresh": True})


@require_POST
def seen(request):
    """The admin knows that the last update failed."""
    try:
        connect().update_seen()
    except (ApplierDown, ApplierRefused) as error:
        messages.error(request, str(error))
    return redirect("updates")


def _state(request) -> dict:
    try:
        state = connect().slots()
    except (ApplierDown, ApplierRefused) as error:
        return {"state": None, "error": str(error), "slots": []}
    slots = state["slots"]
    return {
        "state": state,
        "slots": slots,
        "runs": next((slot for slot in slots if slot["booted"]), None),
        "other": next((slot for slot in slots if not slot["booted"]), None),
        "job": state["job"],
        "outcome": state["outcome"],
    }


def _restarting(request, slot: str) -> dict:
    """`done`: nothing more will change by itself."""
    before = request.GET.get("before", "")
    context = _state(request) | {"slot": slot, "before": before}
    status, outcome, runs = look(request).status, context.get("outcome"), context.get("runs")
    since = int(before) if before.isascii() and before.isdigit() else 0
    back = bool(status and runs and (status["uptime"] < since or not since))
    trying = bool(outcome and outcome["state"] == "trying")
    arrived = bool(runs and runs["name"] == slot)
    return context | {"back": back, "done": back and not trying, "trying": trying, "arrived": arrived}
