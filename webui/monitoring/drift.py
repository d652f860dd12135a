"""Where the box does not run what it should, and the way back to that."""

import logging

from django.contrib import messages
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from applier.wire.client import ApplierDown, ApplierRefused, connect
from draft.frame import look as look_at

PARTS = {
    "table": "table",
    "firewall": "firewall",
    "links": "interfaces",
    "addresses": "addresses",
    "routes": "routes",
    "settings": "settings",
    "checks": "health checks",
    "pair": "pair",
}

log = logging.getLogger(__name__)


def drift(request):
    return render(request, "monitoring/drift.html", _context(request))


def live_drift(request):
    """The part of the page that it fetches again every two seconds."""
    return render(request, "monitoring/drift_live.html", _context(request) | {"refresh": True})


@require_POST
def look(request):
    """At once; the page that follows shows what was found."""
    try:
        found = connect().look()
    except (ApplierDown, ApplierRefused) as error:
        messages.error(request, f"Nothing was looked at. {error}")
    else:
        if not (found["count"] or found["fresh"] or found["trouble"]):
            messages.success(request, "The box runs what it should.")
    return redirect("drift")


@require_POST
def repair(request):
    user = request.user.get_username()
    try:
        run = connect().repair(user)
    except (ApplierDown, ApplierRefused) as error:
        messages.error(request, f"Nothing was repaired. {error}")
        return redirect("drift")
    log.info("user %s has the box repaired", user)
    return redirect("progress", apply_id=run["apply"])


def _context(request) -> dict:
    frame = look_at(request)
    found = frame.status["drift"] if frame.status else None
    rows = [one | {"part": PARTS.get(one["where"], one["where"])} for one in found["differences"]] if found else []
    return {
        "drift": found,
        "rows": rows,
        "more": found["count"] - len(rows) if found else 0,
        "disturbing": any(one["disturbs"] for one in rows),
    }
