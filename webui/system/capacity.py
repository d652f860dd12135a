"""The page "Capacity": what the box forwards now, against the most that it was measured to."""

from __future__ import annotations

import logging

from django.contrib import messages
from django.shortcuts import redirect, render
from django.template.defaultfilters import filesizeformat
from django.views.decorators.http import require_POST

from applier.wire.client import ApplierDown, ApplierRefused, connect
from applier.wire.shapes_capacity import LoadStatus, Measurement, RatesStatus
from draft.frame import look
from lbconfig.capacity.figures import FIGURES
from lbconfig.model.addresses import shown
from lbconfig.model.snapshot import Protocol
from system.forms import BetweenForm, WatchForm

log = logging.getLogger(__name__)

NEAR = 80  # percent of the limit from which on the page warns
NAMES = {"connections": "New connections", "packets": "Packets", "bytes": "Traffic"}
SCRATCH_PORT = 80  # in the command line for a box that has no service yet


def overview(request):
    return _page(request)


def live(request):
    """The part that the page fetches again every two seconds."""
    return render(request, "system/capacity_live.html", _state(request) | {"refresh": True})


@require_POST
def watch(request):
    form = WatchForm(request.POST)
    if not form.is_valid():
        return _page(request, watching=form, status=422)
    user = request.user.get_username()
    try:
        connect().capacity_watch(form.cleaned_data["seconds"], user)
        log.info("user %s measures what the box forwards", user)
    except (ApplierDown, ApplierRefused) as error:
        messages.error(request, f"Nothing was started. {error}")
    return redirect("capacity")


@require_POST
def between(request):
    """Between two ports of the box: which of them are free is the applier's to say, who may have changed its mind."""
    state = _state(request)
    if "error" in state:
        messages.error(request, f"Nothing was started. {state['error']}")
        return redirect("capacity")
    form = BetweenForm(state["found"]["ports"], request.POST)
    if form.is_valid():
        user, ports = request.user.get_username(), form.cleaned_data
        try:
            connect().capacity_between(ports["sender"], ports["receiver"], user)
            log.info("user %s measures between two ports", user)
        except ApplierRefused as refusal:
            for problem in refusal.problems:
                form.add_error(problem["field"], f"This port {problem['message']}.")
            if not refusal.problems:
                messages.error(request, f"Nothing was started. {refusal}")
        except ApplierDown as error:
            messages.error(request, f"Nothing was started. {error}")
    if form.errors:
        return _page(request, between=form, status=422)
    return redirect("capacity")


@require_POST
def stop(request):
    try:
        connect().capacity_stop(request.user.get_username())
    except (ApplierDown, ApplierRefused) as error:
        messages.error(request, str(error))
    return redirect("capacity")


def _page(request, watching: WatchForm | None = None, between: BetweenForm | None = None, status: int = 200):
    state = _state(request)
    ports = state["found"]["ports"] if "found" in state else []
    forms = {"form": watching or WatchForm(), "between": between or BetweenForm(ports), "ports": ports}
    return render(request, "system/capacity.html", state | forms, status=status)


def _state(request) -> dict:
    try:
        found = connect().capacity()
    except (ApplierDown, ApplierRefused) as error:
        return {"error": str(error)}
    frame = look(request)
    load = found["load"]
    return {
        "found": found,
        "job": found["job"],
        "running": found["job"] is not None and found["job"]["state"] == "running",
        "now": worded(found["now"]),
        "during": worded(found["job"]["rates"]) if found["job"] else None,
        "figures": figures(load) if load else [],
        "load": summary(load),
        "rows": [_row(one) for one in found["measurements"]],
        "target": _target(frame.running),
    }


def summary(load: LoadStatus | None) -> dict | None:
    """How near the box is to its limit, for the bar on the overview; None: never measured on this hardware."""
    if load is None:
        return None
    percent = None if load["share"] is None else round(100 * load["share"])
    limit = next((one for one in load["limits"] if one["figure"] == load["figure"]), None)
    return {
        "percent": percent,
        "shown": min(percent or 0, 100),
        "near": percent is not None and percent >= NEAR,
        "over": percent is not None and percent > 100,
        "name": NAMES[load["figure"]].lower() if load["figure"] else "",
        "at_least": limit is not None and limit["at_least"],
    }


def figures(load: LoadStatus) -> list[dict]:
    """A line for each figure that was measured: now, limit, share."""
    now = load["now"]
    return [
        {
            "name": NAMES[one["figure"]],
            "limit": rate_words(one["figure"], one["rate"]),
            "at_least": one["at_least"],
            "now": rate_words(one["figure"], now[one["figure"]]) if now else "",
            "percent": round(100 * now[one["figure"]] / one["rate"]) if now else None,
        }
        for one in load["limits"]
    ]


def worded(rates: RatesStatus | None) -> list[tuple[str, str]]:
    """(name, rate in words) of each figure."""
    return [(NAMES[figure], rate_words(figure, rates[figure])) for figure in FIGURES] if rates else []


def rate_words(figure: str, rate: float) -> str:
    if figure == "bytes":
        return f"{filesizeformat(rate)}/s"
    return f"{rate:,.0f}/s" if rate >= 10 or rate == int(rate) else f"{rate:.1f}/s"


def _row(one: Measurement) -> dict:
    limit = one["limit"]
    return {
        "when": one["when"],
        "user": one["user"],
        "rates": worded(limit["rates"]),
        "busiest": round(100 * limit["busiest"]),
        "softirq": round(100 * limit["softirq"]),
        "held": limit["held"],
        "traffic": one["traffic"],
        "dropped": one["dropped"],
        "same": one["same"],
        "hardware": one["hardware"],
        "kernel": one["kernel"],
        "version": one["version"],
    }


def _target(running) -> str:
    """Where a client's load generator asks: the first TCP service that runs."""
    services = running.enabled_services if running else ()
    for service in services:
        if service.protocol is Protocol.TCP:
            return shown(service.address, service.port)
    return f"VIP:{SCRATCH_PORT}"
