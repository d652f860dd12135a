"""Routes, names and time."""

from __future__ import annotations

import re
from dataclasses import replace

from django import forms

from draft import store as draft
from draft.boxes import ALONE, Place
from draft.pages import Page, check, finish
from lbconfig.model.flat import flat
from lbconfig.model.problem import Problem
from lbconfig.model.snapshot import Network, PolicyRoute, Snapshot, StaticRoute
from lbconfig.validate import services as validate
from network.forms import PLAIN, Lines

MAX_ROWS = 1300  # of both kinds together; lbconfig has a bound for each
ENTRY = re.compile(r"network\.(?P<list>routes|policies)\[(?P<target>.*)\]\.(?P<field>[a-z]+)$")


class RouteForm(forms.Form):
    """A static route, or a source-based route: `kind` says which."""

    name = forms.CharField(max_length=20, widget=forms.HiddenInput)
    kind = forms.ChoiceField(choices=[("route", "route"), ("policy", "policy")], widget=forms.HiddenInput)
    target = forms.CharField(max_length=64, required=False, widget=forms.TextInput(attrs=PLAIN))
    via = forms.CharField(label="Router", max_length=45, required=False, widget=forms.TextInput(attrs=PLAIN))
    interface = forms.CharField(
        label="Interface",
        max_length=64,
        required=False,
        help_text="Empty: the one whose network the router is in.",
        widget=forms.TextInput(attrs=PLAIN),
    )
    metric = forms.IntegerField(
        label="Metric", required=False, help_text="Of routes to the same network the lowest counts."
    )
    gone = forms.BooleanField(label="Remove it", required=False)

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        route = self["kind"].value() != "policy"
        self.fields["target"].label = "Network to reach" if route else "Answers from"
        self.fields["target"].widget.attrs |= {"placeholder": "10.9.0.0/16"} if route else {"list": "sources"}
        self.fields["interface"].widget.attrs["list"] = "interfaces"

    @property
    def more_wrong(self) -> bool:
        return any(name in self.errors for name in ("interface", "metric"))


class _Rows(forms.BaseFormSet):
    default_error_messages = {"missing_management_form": "This form is not complete. Open the page again."}


RouteFormSet = forms.formset_factory(RouteForm, formset=_Rows, extra=0, max_num=MAX_ROWS, absolute_max=MAX_ROWS)


class RoutesForm(forms.Form):
    """Nothing of its own; the rows have it all."""


class NamesForm(forms.Form):
    dns = Lines(
        label="Name servers (DNS)",
        required=False,
        help_text="One per line, three at most. Empty: those that DHCP brings. What stands here counts alone.",
    )
    search = Lines(
        label="Search domains", required=False, rows=2, help_text="Where a short name is looked for: example.org"
    )
    ntp = Lines(
        label="Time servers (NTP)",
        required=False,
        help_text="Addresses or names, one per line, such as those of your router or pool.ntp.org. "
        "Empty: those that DHCP brings.",
    )


def routes_page(data=None, place: Place = ALONE) -> Page:
    row = draft.part(place.part("network"))
    if data is not None:
        formset = RouteFormSet(data, prefix="routes")
        return finish(Page(row, RoutesForm(data), formset.forms, formset), data)
    formset = RouteFormSet(initial=_stored(place.network()), prefix="routes")
    return finish(Page(row, RoutesForm(), formset.forms, formset))


def _stored(network: Network) -> list[dict]:
    found = [
        {"kind": "route", "target": one.destination, **_way(one), "metric": one.metric or None}
        for one in network.routes
    ]
    found += [{"kind": "policy", "target": one.source, **_way(one)} for one in network.policies]
    return [{"name": f"{one['kind']} {one['target']} {one.get('metric') or ''}".strip()[:20], **one} for one in found]


def _way(one: StaticRoute | PolicyRoute) -> dict:
    return {"via": one.via, "interface": one.interface}


def with_another(page: Page, kind: str) -> Page:
    """The page as it was sent, with one more row; nothing is looked at yet."""
    rows = [{name: row[name].value() for name in row.fields} for row in page.rows]
    formset = RouteFormSet(initial=[*rows, {"name": f"new {len(rows) + 1}", "kind": kind}], prefix="routes")
    return Page(page.row, RoutesForm(), formset.forms, formset, page.base, page.version, page.notes)


def check_routes(page: Page, snapshot: Snapshot, client: str, place: Place = ALONE) -> Snapshot | None:
    """The draft with these routes; None when a field is wrong, with the reason beside it."""
    if not (page.form.is_valid() & (page.formset is None or page.formset.is_valid())):
        return None
    kept = [row.cleaned_data for row in page.rows if not row.cleaned_data["gone"] and _filled(row.cleaned_data)]
    routes = tuple(
        StaticRoute(one["target"], one["via"], one["interface"], one["metric"] or 0)
        for one in kept
        if one["kind"] == "route"
    )
    policies = tuple(
        PolicyRoute(one["target"], one["via"], one["interface"]) for one in kept if one["kind"] == "policy"
    )
    network = replace(place.of(snapshot).network, routes=routes, policies=policies)
    own = (f"{place.root}network.routes", f"{place.root}network.policies")

    def beside(page: Page, problem: Problem, message: str) -> bool:
        return _beside_row(page, place.near(problem), message)

    candidate = check(page, snapshot, place.with_network(snapshot, network), own, beside)
    if candidate and client and (problem := validate.admin_problem(candidate, client)):
        page.form.add_error(None, f"{problem}.")
    return candidate if page.good else None


def _filled(data: dict) -> bool:
    return bool(data["target"] or data["via"] or data["interface"])


def _beside_row(page: Page, problem: Problem, message: str) -> bool:
    match = ENTRY.match(problem.path)
    if match is None:
        return False
    for row in page.rows:
        kind = {"routes": "route", "policies": "policy"}[match["list"]]
        data = row.cleaned_data
        if data["kind"] == kind and data["target"] == match["target"] and not data["gone"]:
            field = {"destination": "target", "source": "target"}.get(match["field"], match["field"])
            row.add_error(field if field in row.fields else None, message)
            return True
    return False


def names_page(data=None, place: Place = ALONE) -> Page:
    row = draft.part(place.part("network"))
    initial = flat(place.network())
    return finish(Page(row, NamesForm(data) if data is not None else NamesForm(initial=initial)), data)


def check_names(page: Page, snapshot: Snapshot, place: Place = ALONE) -> Snapshot | None:
    if not page.form.is_valid():
        return None
    candidate = place.with_network(snapshot, replace(place.of(snapshot).network, **page.form.cleaned_data))
    return check(page, snapshot, candidate, tuple(f"{place.root}network.{name}" for name in ("dns", "search", "ntp")))
