"""The network page and the access page."""

from __future__ import annotations

import re
from dataclasses import replace

from applier.wire.shapes import Status
from draft import store as draft
from draft.boxes import ALONE, Place
from draft.pages import Page, add, check, finish
from lbconfig.model.flat import flat
from lbconfig.model.problem import Problem
from lbconfig.model.snapshot import Interface, Network, Snapshot
from lbconfig.validate.reach import access_problem
from network.forms import (
    MADE,
    AccessForm,
    InterfaceFormSet,
    NetworkForm,
    interface_wish,
    management_wish,
    values_of,
)

INTERFACE = re.compile(r"network\.interfaces\[(?P<name>.*)\]\.(?P<field>[a-z_.]+)$")
# Fields of the model whose field on the page has another name.
FIELDS = {
    "vlan.parent": "parent",
    "vlan.id": "tag",
    "bond.members": "members",
    "bond.primary": "primary",
    "bond.miimon": "miimon",
    "bridge.members": "members",
    "on": "off",
}


def network_page(status: Status | None, data=None, place: Place = ALONE) -> Page:
    row = draft.part(place.part("network"))
    if data is not None:
        formset = InterfaceFormSet(data, prefix="interfaces")
        return offered(finish(Page(row, NetworkForm(data), formset.forms, formset), data), status)
    network = place.network()
    stored = {entry.name: entry for entry in network.interfaces}
    shown = [*stored.values(), *(Interface(name) for name in _cards(status) if name not in stored)]
    formset = InterfaceFormSet(initial=[values_of(entry) for entry in shown], prefix="interfaces")
    form = NetworkForm(initial=flat(network))
    return offered(finish(Page(row, form, formset.forms, formset)), status)


def _cards(status: Status | None) -> list[str]:
    """What the box has; what it made itself is in the draft, or goes with the next apply."""
    found = status["interfaces"] if status else ()
    return [entry["name"] for entry in found if entry["name"] != "lo" and not entry["kind"]]


def offered(page: Page, status: Status | None) -> Page:
    """With what may be chosen in each row."""
    names = dict.fromkeys([*(row["name"].value() or "" for row in page.rows), *_cards(status)])
    for row in page.rows:
        row.offer([name for name in names if name and name != row["name"].value()])
    return page


def with_another(page: Page, kind: str, status: Status | None) -> Page:
    """The page as it was sent, with one more row; nothing is looked at yet."""
    rows = [{name: row[name].value() for name in row.fields} for row in page.rows]
    known = {row["name"] for row in rows}
    blank = values_of(Interface("")) | {"kind": kind, "new": True, "name": _free(kind, known), "miimon": 100}
    formset = InterfaceFormSet(initial=[*rows, blank], prefix="interfaces")
    form = NetworkForm(initial={name: page.form[name].value() for name in page.form.fields})
    more = Page(page.row, form, formset.forms, formset, page.base, page.version, page.notes)
    return offered(more, status)


def _free(kind: str, known: set[str]) -> str:
    """A name for a bond or bridge; a VLAN gets its name from its parent."""
    if kind == "vlan":
        return ""
    start = {"bond": "bond", "bridge": "br"}[kind]
    return next(name for number in range(len(known) + 1) if (name := f"{start}{number}") not in known)


def check_network(page: Page, snapshot: Snapshot, client: str, place: Place = ALONE) -> Snapshot | None:
    """The draft with this network; None when a field is wrong, with the reason beside it."""
    if not (page.form.is_valid() & (page.formset is None or page.formset.is_valid())):
        return None
    candidate = place.with_network(snapshot, _wish(page, place.of(snapshot).network))
    own = f"{place.root}network."

    def beside(page: Page, problem: Problem, message: str) -> bool:
        return _beside_interface(page, place.near(problem), message)

    return _reachable(page, check(page, snapshot, candidate, own, beside), client)


def _wish(page: Page, before: Network) -> Network:
    """A card without any setting is left out, unless the draft knows it."""
    known = {entry.name for entry in before.interfaces}
    interfaces = []
    for row in page.rows:
        data = row.cleaned_data
        row.wished = data["name"] or _vlan_name(data)
        interface = interface_wish(data, row.wished)
        if not data["gone"] and (interface != Interface(row.wished) or row.wished in known):
            interfaces.append(interface)
    return replace(before, interfaces=tuple(interfaces), **page.form.cleaned_data)


def _vlan_name(data: dict) -> str:
    """As most people call it: eth0.20. A long one has to be named by the admin."""
    return f"{data['parent']}.{data['tag']}" if data["kind"] in MADE and data["parent"] and data["tag"] else ""


def access_page(data=None) -> Page:
    row = draft.part("management")
    stored = flat(draft.current().management)
    return finish(Page(row, AccessForm(data) if data is not None else AccessForm(initial=stored)), data)


def check_access(page: Page, snapshot: Snapshot, client: str) -> Snapshot | None:
    if not page.form.is_valid():
        return None
    candidate = replace(snapshot, management=management_wish(page.form, snapshot.management))
    return _reachable(page, check(page, snapshot, candidate, "management."), client)


def _reachable(page: Page, candidate: Snapshot | None, client: str) -> Snapshot | None:
    """Nobody shuts his own door. A way that is lost comes back by itself: see lbconfig.diff.cutoff."""
    if candidate and client and (problem := access_problem(candidate, client)):
        add(page, problem, _beside_interface)
    return candidate if page.good else None


def _beside_interface(page: Page, problem: Problem, message: str) -> bool:
    match = INTERFACE.match(problem.path)
    if match is None:
        return False
    for row in page.rows:
        if getattr(row, "wished", row["name"].value()) == match["name"]:
            field = FIELDS.get(match["field"], match["field"])
            row.add_error(field if field in row.fields else None, message)
            return True
    return False
