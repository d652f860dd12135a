"""The admin's own firewall rules: list, order, edit, and what they would do with a packet."""

from dataclasses import replace

from django.contrib import messages
from django.db import transaction
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from draft import editing, merge, pages
from draft import firewall as draft_firewall
from draft import store as draft
from draft.editing import SAVED
from draft.frame import look
from draft.models import Rule
from firewall import editor, screen
from firewall.forms import PacketForm
from firewall.trial import leased
from lbconfig.judge import Fate, judge
from lbconfig.validate.services import validate
from web.faults import not_found
from web.kept_input import keeps_input

SIGNS = {Fate.PASSED: ("good", "▲", "It passes"), Fate.DROPPED: ("bad", "▼", "It is dropped")}
SIGNS[Fate.REJECTED] = ("bad", "▼", "It is rejected")
MORE = ("destinations", "interface", "masquerade", "rate", "per", "burst", "each_source", "log", "note")


def overview(request):
    sections, reason = screen.sections(draft.current(), look(request).running)
    return render(request, "firewall/rules.html", {"sections": sections, "no_counters": reason})


@keeps_input
def add(request):
    return _edit(request, None)


@keeps_input
def edit(request, pk: int):
    if request.method == "POST":
        return _edit(request, pk)
    row = Rule.objects.filter(pk=pk).first()
    return _show(request, editor.page(row)) if row else not_found(request, None)


def _edit(request, pk: int | None):
    """`pk` None: a new rule."""

    def make(data=None) -> pages.Page:
        row = Rule.objects.filter(pk=pk).first() if pk else None
        return editor.page(row, data, where=request.GET.get("where", ""))

    def removed(page: pages.Page):
        if pk is None or page.row is not None:
            return None
        page.notes.append("Somebody removed this rule, after you had opened it. Save to add it again, as the last.")
        return _show(request, page, 409)

    return editing.edit(
        request,
        make,
        editor.wished,
        editor.save,
        _show,
        then="firewall",
        saved=lambda rule: f"{rule.name}: {SAVED[:1].lower()}{SAVED[1:]}",
        instead=removed,
    )


def _show(request, page: pages.Page, status: int = 200):
    form = page.form
    wrong = any(name in form.errors for name in MORE) if form.is_bound else False
    noted = any(getattr(form.fields[name], "note", "") for name in MORE)
    filled = any(form[name].value() for name in MORE if name != "per")
    context = {
        "page": page,
        "form": form,
        "row": page.row,
        "open": wrong or noted or filled,
        "send": reverse("rule-edit", args=[page.row.pk]) if page.row else reverse("rule-add"),
    }
    return render(request, "firewall/rule.html", context, status=status)


def delete(request, pk: int):
    """Asks first; asks again when somebody changed the rule since the question was on the screen."""
    row = Rule.objects.filter(pk=pk).first()
    if row is None:
        messages.info(request, "This firewall rule is already removed.")
        return redirect("firewall")
    moved = ""
    if request.method == "POST":
        with transaction.atomic():
            row = Rule.objects.filter(pk=pk).first() or row
            if request.POST.get("version") == str(row.version):
                draft_firewall.remove(row)
                messages.success(request, f"{row.name} is removed from the draft. It counts until you apply.")
                return redirect("firewall")
        who, when = merge.who_and_when(row, request.user.get_username())
        moved = f"{who} changed this rule {when}, after you had opened this page."
    line = screen.Line(row, row.wish, True, True, None, False, "")
    return render(request, "firewall/delete.html", {"line": line, "moved": moved}, status=409 if moved else 200)


@require_POST
def move(request, pk: int):
    """Up or down by one, among the rules for the same packets."""
    return _one_step(request, pk, lambda row, user: draft_firewall.move(row, request.POST.get("to") == "up", user))


@require_POST
def switch(request, pk: int):
    """On or off."""

    def turn(row: Rule, user: str) -> None:
        draft_firewall.write(replace(row.wish, enabled=request.POST.get("to") == "on"), row, user)

    return _one_step(request, pk, turn)


def _one_step(request, pk: int, do):
    """Nothing is done to a rule that another admin changed since the list was on the screen."""
    user = request.user.get_username()
    with transaction.atomic():
        row = Rule.objects.filter(pk=pk).first()
        if row is None:
            messages.info(request, "This firewall rule is already removed.")
        elif request.POST.get("version") != str(row.version):
            who, when = merge.who_and_when(row, user)
            messages.warning(request, f"{who} changed or moved “{row.name}” {when}. Nothing was done; look again.")
        else:
            do(row, user)
    return redirect(f"{reverse('firewall')}#rule-{pk}")


def test(request):
    """Would this packet pass, and by which rule? Asked of the draft, and of what runs where that says otherwise."""
    form = PacketForm(request.GET or None, initial={"protocol": "tcp"})
    context = {"form": form}
    if form.is_bound and form.is_valid():
        snapshot, running = draft.current(), look(request).running
        context |= _verdicts(form.packet(), snapshot, running, leased(look(request).status, look(request).running))
    status = 422 if form.is_bound and form.errors else 200
    return render(request, "firewall/test.html", context, status=status)


def _verdicts(packet, snapshot, running, addresses: set[str]) -> dict:
    if validate(snapshot):
        return {"refused": "The draft has problems that stand in the way; Review changes names them."}
    wished = judge(snapshot, packet, addresses)
    now = judge(running, packet, addresses) if running else None
    same = now is None or (now.words, now.fate) == (wished.words, wished.fate)
    return {
        "verdict": wished,
        "sign": SIGNS[wished.fate],
        "now": None if same else now,
        "now_sign": SIGNS[now.fate] if now else None,
        "waits": running is not None and not draft.same(running, snapshot),
    }
