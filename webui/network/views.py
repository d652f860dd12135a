"""Interfaces, routes, names and access of the draft."""

from collections.abc import Callable

from django.shortcuts import render

from draft import editing, pages
from draft import store as draft
from draft.frame import look
from lbconfig.model import certificate
from lbconfig.model.snapshot import Snapshot
from lbconfig.wanted import network as interfaces
from network import editor, route_forms
from network.forms import MADE
from web.kept_input import keeps_input


@keeps_input
def edit_network(request):
    """The draft's network beside what the box really has."""
    status = look(request).status

    def another(page: pages.Page):
        kind = request.POST.get("add")
        return _network(request, editor.with_another(page, kind, status)) if kind in MADE else None

    return editing.edit(
        request,
        lambda data=None: editor.network_page(status, data),
        _checked(request, editor.check_network),
        editing.part("network"),
        _network,
        instead=another,
        offered=lambda page: editor.offered(page, status),
    )


def _checked(request, check: Callable[[pages.Page, Snapshot, str], Snapshot | None]):
    """For an admin at this address."""
    return lambda page, snapshot: check(page, snapshot, request.META["REMOTE_ADDR"])


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

    def another(page: pages.Page):
        kind = request.POST.get("add")
        return _routes(request, route_forms.with_another(page, kind)) if kind in ("route", "policy") else None

    check = _checked(request, route_forms.check_routes)
    return editing.edit(request, route_forms.routes_page, check, editing.part("network"), _routes, instead=another)


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
    return editing.edit(request, route_forms.names_page, route_forms.check_names, editing.part("network"), _names)


def _names(request, page: pages.Page, status: int = 200):
    by_dhcp = any(one.dhcp and one.on for one in draft.current().network.interfaces)
    context = {"page": page, "form": page.form, "by_dhcp": by_dhcp}
    return render(request, "network/names.html", context, status=status)


@keeps_input
def edit_access(request):
    """From where the web UI may be opened."""
    check = _checked(request, editor.check_access)
    return editing.edit(request, editor.access_page, check, editing.part("management"), _access)


def _access(request, page: pages.Page, status: int = 200):
    page.form.offer(draft.current().network.entrances)
    management = (look(request).running or draft.current()).management
    context = {
        "page": page,
        "form": page.form,
        "own": request.META["REMOTE_ADDR"],
        "given": bool(management.page_key),
        "certificate": certificate.first(management.certificate),
    }
    return render(request, "network/access.html", context, status=status)
