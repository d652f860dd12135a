"""Network and access of the draft."""

from django.contrib import messages
from django.db import transaction
from django.shortcuts import redirect, render

from changes import draft, pages
from monitoring.frame import look
from network import editor

SAVED = "Saved to the draft. The box uses it after you have reviewed and applied the changes."


def edit_network(request):
    """The wished network beside what the box really has."""
    status = look(request).status
    if request.method != "POST":
        return _network(request, editor.network_page(status))
    user = request.user.get_username()
    with transaction.atomic():
        page = editor.network_page(status, request.POST)
        if page.stale:
            return _network(request, pages.merged(page, editor.network_page(status), user), 409)
        candidate = editor.check_network(page, draft.current(), request.META["REMOTE_ADDR"])
        if candidate is None:
            return _network(request, page, 422)
        draft.write_network(candidate.network, user)
    return _saved(request, page)


def _network(request, page: pages.Page, status: int = 200):
    found = {entry["name"]: entry for entry in (look(request).status or {}).get("interfaces", [])}
    rows = [(row, found.get(row["name"].value())) for row in page.rows]
    # An interface that the box does not use yet is switched off; whether a cable is in it, nobody can tell.
    used = {interface.name for interface in running.network.interfaces} if (running := look(request).running) else set()
    context = {"page": page, "form": page.form, "rows": rows, "used": used}
    return render(request, "network/network.html", context, status=status)


def edit_access(request):
    """From where the web UI may be opened."""
    if request.method != "POST":
        return _access(request, editor.access_page())
    user = request.user.get_username()
    with transaction.atomic():
        page = editor.access_page(request.POST)
        if page.stale:
            return _access(request, pages.merged(page, editor.access_page(), user), 409)
        candidate = editor.check_access(page, draft.current(), request.META["REMOTE_ADDR"])
        if candidate is None:
            return _access(request, page, 422)
        draft.write_management(candidate.management, user)
    return _saved(request, page)


def _access(request, page: pages.Page, status: int = 200):
    context = {"page": page, "form": page.form, "own": request.META["REMOTE_ADDR"]}
    return render(request, "network/access.html", context, status=status)


def _saved(request, page: pages.Page):
    messages.success(request, SAVED)
    for sentence in page.consequences:
        messages.warning(request, f"Before you can apply: {sentence}")
    return redirect("overview")
