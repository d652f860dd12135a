"""How connections are treated, for all services of the box."""

from __future__ import annotations

from dataclasses import asdict, replace

from django import forms
from django.shortcuts import render

from draft import editing
from draft import store as draft
from draft.pages import Page, check, finish
from lbconfig.model.names import FLOOD_DEFENCES, POLICY
from lbconfig.model.snapshot import FloodDefence, Policy, Snapshot
from web.fields import enum_field, number_field
from web.kept_input import keeps_input


def _seconds(name: str) -> forms.IntegerField:
    words = POLICY[name]
    return number_field(f"{words.long} (seconds)", help_text=words.help)


def _tick(name: str) -> forms.BooleanField:
    words = POLICY[name]
    return forms.BooleanField(label=words.long, required=False, help_text=words.help)


class PolicyForm(forms.Form):
    tcp_timeout = _seconds("tcp_timeout")
    fin_timeout = _seconds("fin_timeout")
    udp_timeout = _seconds("udp_timeout")
    release_removed = _tick("release_removed")
    release_persistent = _tick("release_persistent")
    reuse_ports = _tick("reuse_ports")
    adopt = _tick("adopt")
    icmp_errors = _tick("icmp_errors")
    route_answers = _tick("route_answers")
    flood_defence = enum_field(
        FloodDefence, FLOOD_DEFENCES, label=POLICY["flood_defence"].long, help_text=POLICY["flood_defence"].help
    )


@keeps_input
def edit(request):
    return editing.edit(request, _page, _check, editing.part("policy"), _show)


def _page(data=None) -> Page:
    row = draft.part("policy")
    form = PolicyForm(data) if data is not None else PolicyForm(initial=asdict(draft.current().policy))
    return finish(Page(row, form), data)


def _check(page: Page, snapshot: Snapshot) -> Snapshot | None:
    if not page.form.is_valid():
        return None
    return check(page, snapshot, replace(snapshot, policy=Policy(**page.form.cleaned_data)), "policy.")


def _show(request, page: Page, status: int = 200):
    return render(request, "balancing/policy.html", {"page": page, "form": page.form}, status=status)
