"""The network page and the access page."""

from __future__ import annotations

import re
from dataclasses import replace

from changes import draft
from changes.pages import Page, add, check, finish
from lbconfig.problem import Problem
from lbconfig.reach import access_problem
from lbconfig.snapshot import Snapshot
from network.forms import AccessForm, InterfaceFormSet, NetworkForm, management_wish, network_wish
from network.models import Interface, Management, Network

INTERFACE = re.compile(r"network\.interfaces\[(?P<name>.+)\]\.(?P<field>[a-z]+)$")


def network_page(status: dict | None, data=None) -> Page:
    row = Network.objects.filter(pk=draft.ONLY_ROW).first()
    if data is not None:
        formset = InterfaceFormSet(data, prefix="interfaces")
        return finish(Page(row, NetworkForm(data), formset.forms, formset), data)
    stored = {entry.name: entry for entry in Interface.objects.all()}
    found = [entry["name"] for entry in (status or {}).get("interfaces", []) if entry["name"] != "lo"]
    initial = [
        {
            "name": name,
            "dhcp": name in stored and stored[name].dhcp,
            "addresses": stored[name].addresses if name in stored else [],
        }
        for name in [*stored, *(name for name in found if name not in stored)]
    ]
    formset = InterfaceFormSet(initial=initial, prefix="interfaces")
    form = NetworkForm(initial={name: getattr(row, name) for name in NetworkForm.base_fields} if row else None)
    return finish(Page(row, form, formset.forms, formset))


def access_page(data=None) -> Page:
    row = Management.objects.filter(pk=draft.ONLY_ROW).first()
    form = AccessForm(data) if data is not None else AccessForm(initial={"allow": row.allow if row else []})
    return finish(Page(row, form), data)


def check_network(page: Page, snapshot: Snapshot, client: str) -> Snapshot | None:
    """The draft with this network; None when a field is wrong, with the reason beside it."""
    if not (page.form.is_valid() & page.formset.is_valid()):
        return None
    known = {entry.name for entry in snapshot.network.interfaces}
    candidate = replace(snapshot, network=network_wish(page.form, page.formset, known))
    return _reachable(page, check(page, snapshot, candidate, "network.", _beside_interface), client)


def check_access(page: Page, snapshot: Snapshot, client: str) -> Snapshot | None:
    if not page.form.is_valid():
        return None
    candidate = replace(snapshot, management=management_wish(page.form))
    return _reachable(page, check(page, snapshot, candidate, "management."), client)


def _reachable(page: Page, candidate: Snapshot | None, client: str) -> Snapshot | None:
    """Nobody shuts his own door. A way that is lost comes back by itself: see lbconfig.cutoff."""
    if candidate and client and (problem := access_problem(candidate, client)):
        add(page, problem, _beside_interface)
    return candidate if page.good else None


def _beside_interface(page: Page, problem: Problem, message: str) -> bool:
    match = INTERFACE.match(problem.path)
    for row in page.rows if match else ():
        if row["name"].value() == match["name"]:
            row.add_error(match["field"] if match["field"] in row.fields else None, message)
            return True
    return False
