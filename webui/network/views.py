"""Interfaces, routes, names and access of the draft."""

from collections.abc import Callable

from django.shortcuts import render

from draft import boxes, editing, pages
from draft import store as draft
from draft.boxes import Place
from draft.frame import look
from lbconfig.model import certificate
from lbconfig.model.snapshot import Snapshot
from lbconfig.pair import entrances, views
from lbconfig.wanted import network as interfaces
from network import editor, route_forms
from network.forms import MADE
from web.kept_input import keeps_input


@keeps_input
def edit_network(request):
    """The draft's network beside what the box really has."""
    place = boxes.shown(request)
    status = look(request).status if place.box in (None, boxes.own(request)) else None  # it tells of this box alone

    def another(page: pages.Page):
        kind = request.POST.get("add")
        return _network(request, editor.with_another(page, kind, status)) if kind in MADE else None

    return editing.edit(
        request,
        lambda data=None: editor.network_page(status, data, place),
        _checked(request, editor.check_network, place),
        editing.part(place.part("network")),
        _network,
        instead=another,
        offered=lambda page: editor.offered(page, status),
    )


def _checked(request, check: Callable[[pages.Page, Snapshot, str, Place], Snapshot | None], place: Place):
    """For an admin at this address."""
    return lambda page, snapshot: check(page, snapshot, request.META["REMOTE_ADDR"], place)


def _network(request, page: pages.Page, status: int = 200):
    place = boxes.shown(request)
    here = place.box in (None, boxes.own(request))
    live, runs = (look(request).status, look(request).running) if here else (None, None)
    found = {entry["name"]: entry for entry in (live["interfaces"] if live else ())}
    members = {name for row in page.rows for name in row.fields["members"].prepare_value(row["members"].value())}
    for row in page.rows:
        row.folded = row["name"].value() in members and not row["addresses"].value() and not row.errors
    rows = [(row, found.get(row["name"].value()), int(row["kind"].value() == "vlan")) for row in page.rows]
    # An interface that the box does not use yet is switched off; whether a cable is in it, nobody can tell.
    used = {link.name for one in views(runs) for link in interfaces.wanted(one).links} if runs else set()
    routers = interfaces.routers_of_dhcp(place.network())
    context = {"page": page, "form": page.form, "rows": rows, "used": used, "routers": routers}
    context |= {"known": live is not None, **boxes.switch(request, place)}
    return render(request, "network/network.html", context, status=status)


@keeps_input
def edit_routes(request):
    """Static routes and source-based routes."""

    def another(page: pages.Page):
        kind = request.POST.get("add")
        return _routes(request, route_forms.with_another(page, kind)) if kind in ("route", "policy") else None

    place = boxes.shown(request)
    check = _checked(request, route_forms.check_routes, place)
    make = lambda data=None: route_forms.routes_page(data, place)  # noqa: E731
    return editing.edit(request, make, check, editing.part(place.part("network")), _routes, instead=another)


def _routes(request, page: pages.Page, status: int = 200):
    place = boxes.shown(request)
    snapshot = place.of(draft.current())
    own = [text.partition("/")[0] for one in snapshot.network.interfaces for text in one.addresses]
    sources = [(vip, service.name) for service in snapshot.services for vip in service.vips]
    context = {
        "page": page,
        "form": page.form,
        "sources": dict([*((address, "this box") for address in own), *sources]).items(),
        "interfaces": [one.name for one in snapshot.network.interfaces],
        **boxes.switch(request, place),
    }
    return render(request, "network/routes.html", context, status=status)


@keeps_input
def edit_names(request):
    """Who is asked for addresses of names, and for the time."""
    place = boxes.shown(request)
    return editing.edit(
        request,
        lambda data=None: route_forms.names_page(data, place),
        lambda page, snapshot: route_forms.check_names(page, snapshot, place),
        editing.part(place.part("network")),
        _names,
    )


def _names(request, page: pages.Page, status: int = 200):
    place = boxes.shown(request)
    by_dhcp = any(one.dhcp and one.on for one in place.network().interfaces)
    context = {"page": page, "form": page.form, "by_dhcp": by_dhcp, **boxes.switch(request, place)}
    return render(request, "network/names.html", context, status=status)


@keeps_input
def edit_access(request):
    """From where the web UI may be opened."""
    check = lambda page, snapshot: editor.check_access(page, snapshot, request.META["REMOTE_ADDR"])  # noqa: E731
    return editing.edit(request, editor.access_page, check, editing.part("management"), _access)


def _access(request, page: pages.Page, status: int = 200):
    page.form.offer(entrances(draft.current()))
    management = (look(request).running or draft.current()).management
    context = {
        "page": page,
        "form": page.form,
        "own": request.META["REMOTE_ADDR"],
        "given": bool(management.page_key),
        "certificate": certificate.first(management.certificate),
    }
    return render(request, "network/access.html", context, status=status)
