"""The pages by which two boxes become a pair: one shows a code, the other one takes it, and the first one proposes."""

from __future__ import annotations

import logging

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from applier.wire.client import ApplierDown, ApplierRefused, connect
from applier.wire.shapes_joining import Joining
from draft import store as draft
from draft.frame import look
from lbconfig.joining import clocks
from lbconfig.wanted.pair_link import LINK_PORT
from system import joining
from system.forms import JoinForm, PairForm
from system.joining import Boxes
from system.views import words_of

log = logging.getLogger(__name__)

MINUTE = 60.0  # seconds


def known_of(found: Joining) -> dict:
    """The box that was joined with this one, how it stands with the link to it, and what to do about that."""
    known, link, invitation = found["joined"], found["link"], found["invitation"]
    if known is None or link is None:
        return {"known": known, "link": None}
    lasts = words_of(link["lasts"]) if link["lasts"] >= MINUTE else "less than a minute"
    other, heard = known["other"], link["heard"]
    if known["replaces"]:
        words = f"{other} takes this box into its pair once that is applied there. Until then it is not heard."
    elif heard:
        words = f"{other} is heard: the link to it has been up for {lasts}."
    else:
        words = (
            f"{other} has not been heard for {lasts}. Check that it is on, and that UDP port {LINK_PORT} passes "
            f"between this box and {known['address']}."
        )
    again, first = "", known["box"] == 0 and not known["replaces"]
    if first and not heard:
        again = f"If {other} does not show that it has joined this box, "
        if invitation:
            minutes = max(1, round(invitation["seconds"] / MINUTE))
            good = f"{minutes} more minute{'' if minutes == 1 else 's'}"
            again += f"enter the code {invitation['code']} there once more; it is good for {good}."
        else:
            again += "show a new code and enter it there."
    elif not heard:
        again = f"If {other} does not show that this box has joined it, enter the code that it shows, or a new one."
    return {
        "known": known,
        "link": {
            "heard": heard,
            "words": words,
            "again": again,
            "doubtful": not heard and not known["replaces"],
            "enter": bool(again) and not first,
            "show": bool(again) and first and invitation is None,
        },
    }


def live_link(request):
    """Whether the other box is heard; the pages that show it fetch it again."""
    try:
        context = known_of(connect().pair_joining())
    except (ApplierDown, ApplierRefused):
        return HttpResponse(status=204)  # what is shown stays
    link, shown = context["link"], request.GET.get("heard")
    if link is None or (shown is not None and shown != str(link["heard"])):
        return HttpResponse(headers={"HX-Refresh": "true"})  # it was forgotten, is heard now, or both are a pair
    return render(request, "system/pair_joined.html", context | {"refresh": True})


def make(request):
    """The first box: the code, and then what both boxes become."""
    context = _state(request)
    found = context.get("boxes")
    if found is None:
        return render(request, "system/pair_make.html", context)
    first = found.proposed()
    if request.method != "POST":
        form = PairForm(found, initial=joining.flat(first))
        return render(request, "system/pair_make.html", context | _columns(found, form))
    form = PairForm(found, request.POST)
    if form.is_valid() and _save(request, found, form):
        messages.success(request, joining.MADE)
        return redirect("review")
    return render(request, "system/pair_make.html", context | _columns(found, form), status=422)


def _save(request, found: Boxes, form: PairForm) -> bool:
    """Whether the pair is in the draft; else the reason stands beside its field."""
    choice = joining.chosen(found.proposed(), form.cleaned_data)
    try:
        taken = joining.asked(found, choice)
    except (ApplierDown, ApplierRefused) as error:
        form.add_error(None, f"Nobody could be asked whether the addresses are free: {error}")
        return False
    for problem in found.problems(choice, taken):
        field = joining.field_of(problem.path)
        if field in form.fields:
            form.add_error(field, f"{problem.message[:1].upper()}{problem.message[1:]}.")
        else:
            form.add_error(None, f"{problem}.")
    if form.errors:
        return False
    user = request.user.get_username()
    with transaction.atomic():
        draft.replace(found.joined(choice), user)
    log.info("user %s put the pair with %s into the draft", user, found.facts.network.hostname)
    return True


def live(request):
    """The part that the page fetches again while it waits; it leads on as soon as the other box has come."""
    context = _state(request)
    if not context.get("invitation") or context["known"]:
        answer = HttpResponse()
        answer.headers["HX-Redirect"] = reverse("pair-make")
        return answer
    return render(request, "system/pair_code.html", context)


@require_POST
def invite(request):
    try:
        connect().pair_invite(request.user.get_username())
    except (ApplierDown, ApplierRefused) as error:
        messages.error(request, f"There is no code: {error}")
    return redirect("pair-make")


@require_POST
def forget(request):
    try:
        connect().pair_forget(request.user.get_username())
        messages.info(request, "This box waits for no other box, and knows none.")
    except (ApplierDown, ApplierRefused) as error:
        messages.error(request, f"Nothing was ended: {error}")
    return redirect("pair-make")


def join(request):
    """The second box."""
    context = _state(request)
    form = JoinForm(request.POST or None)
    context["form"] = form
    if request.method != "POST" or not form.is_valid():
        return render(request, "system/pair_join.html", context, status=422 if request.method == "POST" else 200)
    try:
        connect().pair_join(form.cleaned_data["address"], form.cleaned_data["code"], request.user.get_username())
    except ApplierRefused as refusal:
        field = next((one["field"] for one in refusal.problems if one["field"] in form.fields), None)
        form.add_error(field, refusal.message)
    except ApplierDown as error:
        form.add_error(None, str(error))
    if form.errors:
        return render(request, "system/pair_join.html", context, status=422)
    return redirect("pair-join")


def _state(request) -> dict:
    running = look(request).running
    if running is not None and running.pair is not None:
        return {"paired": running.pair}
    try:
        found = connect().pair_joining()
    except (ApplierDown, ApplierRefused) as error:
        return {"error": str(error)}
    known = found["joined"]
    return known_of(found) | {
        "invitation": found["invitation"],
        "minutes": round(found["invitation"]["seconds"] / 60) if found["invitation"] else 0,
        "said": found["said"],
        "boxes": joining.boxes(known, running) if known else None,
    }


def _columns(found: Boxes, form: PairForm) -> dict:
    """The form as two columns, a row for each interface."""
    choice = found.proposed()
    cards = {name: form[f"card_{number}"] for number, (name, _) in enumerate(choice.cards)}
    rows = [
        {
            "interface": end.interface,
            "floating": end.floating,
            "card": cards.pop(end.interface, None),
            "own": [form[f"own_{number}_0"], form[f"own_{number}_1"]],
        }
        for number, end in enumerate(choice.ends)
    ]
    return {
        "form": form,
        "rows": rows,
        "cards": cards.items(),
        "first": found.first.network.hostname,
        "second": found.facts.network.hostname,
        "clock": clocks(found.known["time"], found.facts),
        "cables": [(form[f"cable_{box}"], form[f"cable_address_{box}"]) for box in (0, 1)],
        "in_draft": draft.current().pair is not None,
    }
