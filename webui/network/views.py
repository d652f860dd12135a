"""Interfaces, routes, names and access of the draft."""

from django.contrib import messages
from django.db import transaction
from django.shortcuts import redirect, render

from changes import draft, pages
from lbconfig.render import interfaces
from monitoring.frame import look
from network import editor, route_forms
from network.forms import MADE

SAVED = "Saved to the draft. The box uses it after you have reviewed and applied the changes."


def edit_network(request):
    """The wished network beside what the box really has."""
    status = look(request).status
    if request.method != "POST":
        return _network(request, editor.network_page(status))
    user = request.user.get_username()
    with transaction.atomic():
        page = editor.network_page(status, request.POST)
        if request.POST.get("add") in MADE:
            return _network(request, editor.with_another(page, request.POST["add"], status))
        if page.stale:
            merged = pages.merged(page, editor.network_page(status), user)
            return _network(request, editor.offered(merged, status), 409)
        candidate = editor.check_network(page, draft.current(), request.META["REMOTE_ADDR"])
        if candidate is None:
            return _network(request, page, 422)
        draft.write_network(candidate.network, user)
    return _saved(request, page)


def _network(request, page: pages.Page, status: int = 200):
    found = {entry["name"]: entry for entry in (look(request).status or {}).get("interfaces", [])}
    members = {name for row in page.rows for name in row.fields["members"].prepare_value(row["members"].value())}
    for row in page.rows:
        row.folded = row["name"].value() in members and not row["addresses"].value() and not row.errors
    rows = [(row, found.get(row["name"].value()), int(row["kind"].value() == "vlan")) for row in page.rows]
    # An interface that the box does not use yet is switched off; whether a cable is in it, nobody can tell.
    used = {link.name for link in interfaces.wanted(running).links} if (running := look(request).running) else set()
    context = {"page": page, "form": page.form, "rows": rows, "used": used}
    return render(request, "network/network.html", context, status=status)


def edit_routes(request):
    """Static routes, and addresses with a way out of their own."""
    if request.method != "POST":
        return _routes(request, route_forms.routes_page())
    user = request.user.get_username()
    with transaction.atomic():
        page = route_forms.routes_page(request.POST)
        if request.POST.get("add") in ("route", "policy"):
            return _routes(request, route_forms.with_another(page, request.POST["add"]))
        if page.stale:
            return _routes(request, pages.merged(page, route_forms.routes_page(), user), 409)
        candidate = route_forms.check_routes(page, draft.current(), request.META["REMOTE_ADDR"])
        if candidate is None:
            return _routes(request, page, 422)
        draft.write_network(candidate.network, user)
    return _saved(request, page)


def _routes(request, page: pages.Page, status: int = 200):
    snapshot = draft.current()
    own = [text.partition("/")[0] for one in snapshot.network.interfaces for text in one.addresses]
    sources = [(vip, service.name) for service in snapshot.services for vip in service.vips]
    context = {
        "page": page,
        "form": page.form,
        "sources": dict([*((address, "this box") for address in own), *sources]).items(),
        "interfaces": [one.name for one in snapshot.network.interfaces],
    }
    return render(request, "network/routes.html", context, status=status)


def edit_names(request):
    """Who is asked for addresses of names, and for the time."""
    if request.method != "POST":
        return _names(request, route_forms.names_page())
    user = request.user.get_username()
    with transaction.atomic():
        page = route_forms.names_page(request.POST)
        if page.stale:
            return _names(request, pages.merged(page, route_forms.names_page(), user), 409)
        candidate = route_forms.check_names(page, draft.current(), request.META["REMOTE_ADDR"])
        if candidate is None:
            return _names(request, page, 422)
        draft.write_network(candidate.network, user)
    return _saved(request, page)


def _names(request, page: pages.Page, status: int = 200):
    by_dhcp = any(one.dhcp and one.on for one in draft.current().network.interfaces)
    context = {"page": page, "form": page.form, "by_dhcp": by_dhcp}
    return render(request, "network/names.html", context, status=status)


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
