"""A change that waits to be confirmed: keep it, take it back, and arrive at the box's new address.

What a browser needs for it lies in the session of the admin who applied: the secret of the apply, the place to
follow, and whether he wants to decide by a click.
"""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from applier.wire.client import ApplierDown, ApplierRefused, connect
from applier.wire.shapes import ApplyStarted, RunStatus
from changes import arrival
from draft.frame import look
from web.middleware import CONTENT_SECURITY_POLICY

KEY = "pending"  # of the session
TOO_OLD = "This browser still uses a connection from before the change, which proves nothing. It makes a new one: "
AGAIN = "please try once more."


def remember(request, answer: ApplyStarted, decide: bool, place: str | None, shows_other: bool = False) -> None:
    """`answer`: of the apply; `place`: where the box is found after the change; "": as before; None: not known.

    `shows_other`: another certificate.
    """
    if answer["secret"]:
        kept = {"apply": answer["apply"], "secret": answer["secret"], "decide": decide, "shows_other": shows_other}
        request.session[KEY] = kept | {"place": place}
    else:
        request.session.pop(KEY, None)


def context(request, run: RunStatus | None) -> dict:
    """What the page of an apply shows about its confirmation."""
    own = request.session.get(KEY, {})
    if not run or not run["confirm"]:
        return {}
    if own.get("apply") != run["id"]:
        own = {}
    shows_other = own.get("shows_other", False)
    # With another certificate the page is opened anew even where it is: see arrival.shows_other.
    new = own.get("place") or (request.get_host() if shows_other and own.get("place") == "" else "")
    waiting = run["state"] == "waiting"
    return {
        "confirm": run["confirm"],
        "own": bool(own) or run["user"] == request.user.get_username(),
        "decide": own.get("decide", True),
        # It confirms by itself: reaching the box is the proof. Only the browser that applied does so.
        "arrived": waiting and bool(own) and not own["decide"] and arrival.proves(request, run),
        "unknown": own.get("place", "") is None,
        "new": new,
        "moved": bool(own.get("place")),
        "shows_other": shows_other,
        "new_place": arrival.url(request, new) if new else "",
        "follow": arrival.link(request, new, own["secret"], own["decide"]) if new else "",
        "probe": arrival.url(request, new, "/static/fairlead/logo.svg") if new else "",
        "silent": arrival.silent(request, new) if new else "",
    }


def policy(request, shown: dict) -> str:
    """The content security policy of the page that looks for the box at its new address."""
    more = arrival.sources(request, shown.get("new", ""))
    return CONTENT_SECURITY_POLICY.replace("connect-src 'self'", f"connect-src 'self' {more}".rstrip())


def keep(request):
    """Confirm what waits. Another admin's changes only after a question (GET)."""
    run = _run(request)
    if run and run["state"] == "done" and request.POST.get("apply") == run["id"]:
        return _to(run)  # the page asked twice
    if run is None or run["state"] != "waiting":
        messages.info(request, "No changes wait to be confirmed any more.")
        return _to(run)
    own = request.session.get(KEY, {})
    mine = own.get("apply") == run["id"]
    if request.method != "POST":
        return render(request, "changes/keep.html", {"run": run, "confirm": run["confirm"]})
    if request.POST.get("apply") != run["id"]:
        messages.error(request, "Nothing was confirmed: other changes wait by now.")
    elif arrival.must_wait(request, run):
        if request.headers.get("HX-Request"):
            return HttpResponse(status=204)  # the page tries again by itself
        messages.warning(request, TOO_OLD + AGAIN)
    else:
        try:
            connect().confirm(run["id"], own["secret"] if mine else "", request.user.get_username())
        except (ApplierDown, ApplierRefused) as error:
            messages.error(request, f"Not confirmed. {error}")
    return _to(run)


@require_POST
def take_back(request):
    """Back to what ran before, at once. Any admin may."""
    run = _run(request)
    try:
        connect().roll_back(request.POST.get("apply", "")[:64], "", request.user.get_username())
    except (ApplierDown, ApplierRefused) as error:
        messages.error(request, str(error))
    return _to(run)


@login_not_required
def arrive(request, secret: str):
    """At the new address, where nobody is logged in: the secret says whose browser it is.

    Whoever does not hold it learns nothing here.
    """
    own = request.session.get(KEY, {})
    # In a session that knows of this apply, the browser has not left the address.
    shown = {"decide": "decide" in request.GET, "secret": secret, "same": own.get("place") == ""}
    if request.method != "POST":
        return render(request, "changes/arrive.html", shown)
    try:
        run = connect().progress()
        if "back" in request.POST:
            connect().roll_back(secret=secret)
            return render(request, "changes/arrive.html", shown | {"back": True})
        if run and run["state"] == "running" and run["confirm"]:
            return render(request, "changes/arrive.html", shown | {"early": True})
        if run and run["state"] == "waiting" and arrival.must_wait(request, run):
            return render(request, "changes/arrive.html", shown | {"old": True})
        ended = connect().confirm(secret=secret)
    except ApplierRefused as error:
        return render(request, "changes/arrive.html", shown | {"said": error.message}, status=409)
    except ApplierDown as error:
        return render(request, "changes/arrive.html", shown | {"down": str(error)}, status=503)
    kept = ended["state"] == "done"
    return render(request, "changes/arrive.html", shown | {"kept": kept, "said": ended["message"]})


def _run(request) -> RunStatus | None:
    status = look(request).status
    return status["apply"] if status else None


def _to(run: RunStatus | None):
    return redirect("progress", apply_id=run["id"]) if run else redirect("overview")
