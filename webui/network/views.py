"""Interfaces, routes, names and access of the draft."""

from django.contrib import messages
from django.db import transaction
from django.shortcuts import redirect, render

from draft import pages
from draft import store as draft
from draft.frame import look
from lbconfig.model import certificate
from lbconfig.model.snapshot import Snapshot
from lbconfig.wanted import network as interfaces
from network import editor, route_forms
from network.forms import MADE
from web.kept_input import given_back, keeps_input

SAVED = "Saved to the draft. The box uses it after you have reviewed and applied the changes."


@keeps_input
def edit_network(request):
    """The draft's network beside what the box really has."""
    status = look(request).status
    return _edit(
        request,
        lambda *data: editor.network_page(status, *data),
        editor.check_network,
        _write_network,
        _network,
        more=lambda page: (
            editor.with_another(page, request.POST["add"], status) if request.POST.get("add") in MADE else None
        ),
        merged=lambda page: editor.offered(page, status),
    )


def _edit(request, make, check, write, show, more=lambda page: None, merged=lambda page: page):
    """Show the form, or take what was sent: written to the draft, or shown with its errors and nothing is lost.

    `more` gives the page with another row where that was asked for. `merged` sees the page into which somebody else's
    change of the meantime was brought.
    """
    if request.method != "POST":
        return show(request, make())
    user = request.user.get_username()
    with transaction.atomic():
        page = make(request.POST)
        if given_back(request):
            return show(request, page)
        if longer := more(page):
            return show(request, longer)
        if page.stale:
            return show(request, merged(pages.merged(page, make(), user)), 409)
        candidate = check(page, draft.current(), request.META["REMOTE_ADDR"])
        if candidate is None:
            return show(request, page, 422)
        write(candidate, user)
    messages.success(request, SAVED)
    for sentence in page.consequences:
        messages.warning(request, f"Before you can apply: {sentence}")
    return redirect("overview")


def _write_network(candidate: Snapshot, user: str) -> None:
    draft.write_part("network", candidate.network, user)


def _network(request, page: pages.Page, status: int = 200):
    live = look(request).status
    found = {entry["name"]: entry for entry in (live["interfaces"] if live else ())}
    members = {name for row in page.rows for name in row.fields["members"].prepare_value(row["members"].value())}
    for row in page.rows:
        row.folded = row["name"].value() in members and not row["addresses"].value() and not row.errors
    rows = [(row, found.get(row["name"].value()), int(row["kind"].value() == "vlan")) for row in page.rows]
    # An interface that the box does not use yet is switched off; whether a cable is in it, nobody can tell.
    used = {link.name for link in interfaces.wanted(running).links} if (running := look(request).running) else set()
    routers = interfaces.routers_of_dhcp(draft.current().network)
    context = {"page": page, "form": page.form, "rows": rows, "used": used, "routers": routers}
    return render(request, "network/network.html", context, status=status)


@keeps_input
def edit_routes(request):
    """Static routes and source-based routes."""
    return _edit(
        request,
        route_forms.routes_page,
        route_forms.check_routes,
        _write_network,
        _routes,
        more=lambda page: (
            route_forms.with_another(page, request.POST["add"])
            if request.POST.get("add") in ("route", "policy")
            else None
        ),
    )


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


@keeps_input
def edit_names(request):
    """Who is asked for addresses of names, and for the time."""
    return _edit(
        request,
        route_forms.names_page,
        route_forms.check_names,
        _write_network,
        _names,
    )


def _names(request, page: pages.Page, status: int = 200):
    by_dhcp = any(one.dhcp and one.on for one in draft.current().network.interfaces)
    context = {"page": page, "form": page.form, "by_dhcp": by_dhcp}
    return render(request, "network/names.html", context, status=status)


@keeps_input
def edit_access(request):
    """From where the web UI may be opened."""
    return _edit(
        request,
        editor.access_page,
        editor.check_access,
        lambda candidate, user: draft.write_part("management", candidate.management, user),
        _access,
    )


def _access(request, page: pages.Page, status: int = 200):
    page.form.offer(draft.current().network.entrances)
    management = (look(request).running or draft.current()).management
    context = {
        "page": page,
        "form": page.form,
        "own": request.META["REMOTE_ADDR"],
        "given": bool(management.pair),
        "certificate": certificate.first(management.certificate),
    }
    return render(request, "network/access.html", context, status=status)
