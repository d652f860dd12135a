"""The pages of the history: every apply, one of them, two beside each other, and back into the draft."""

import logging

from django.contrib import messages
from django.core.paginator import Paginator
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from applier.wire.client import ApplierDown, ApplierRefused
from changes import actions, cards, replacing, revisions, steps
from changes.forms import CommentForm, KeepingForm, OutlookForm
from changes.models import Revision
from draft.frame import look
from lbconfig.model import names, redact
from lbconfig.model.snapshot import to_json
from lbconfig.validate.cards import swapped

log = logging.getLogger(__name__)

PER_PAGE = 50
PLACES = ("old", "new")


def history(request, keeping: KeepingForm | None = None, status: int = 200):
    """Every apply, the newest first."""
    missing = _keep_new()
    page = Paginator(Revision.objects.defer("snapshot", "steps"), PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "page": page,
        "missing": missing,
        "keeping": keeping or KeepingForm(initial={"revisions": revisions.kept()}),
        "kept": revisions.kept(),
        "specials": ((revisions.DRAFT, "The draft"), (revisions.RUNNING, "What runs")),
        "chosen": (revisions.RUNNING, revisions.DRAFT),
    }
    return render(request, "changes/history.html", context, status=status)


def _keep_new() -> str:
    """Keep what was applied and that nobody has looked at since; why that cannot be, or nothing."""
    try:
        actions.keep_history()
    except (ApplierDown, ApplierRefused) as error:
        return str(error)
    return ""


def _kept(number: int) -> Revision:
    """A revision; a link to it may come before anybody has opened the history."""
    if not Revision.objects.filter(number=number).exists():
        _keep_new()
    return get_object_or_404(Revision, number=number)


@require_POST
def keep(request):
    """How many revisions are kept; the oldest go at once where these are fewer."""
    form = KeepingForm(request.POST)
    if not form.is_valid():
        return history(request, form, 422)
    status = look(request).status
    revisions.keep(form.cleaned_data["revisions"], status["generation"] if status else None)
    log.info("user %s lets the history keep %d revisions", request.user.get_username(), form.cleaned_data["revisions"])
    messages.success(request, f"The history keeps the newest {form.cleaned_data['revisions']} revisions.")
    return redirect("history")


def revision(request, number: int, form: CommentForm | None = None, status: int = 200):
    """One apply: its steps, what it changed, and how it differs from what runs."""
    found = _kept(number)
    before = revisions.before(found)
    context = {
        "revision": found,
        "form": form or CommentForm(initial={"comment": found.comment}),
        "before": before,
        "steps": steps.told(found.steps, ended=True),
    }
    try:
        one = revisions.of_revision(found)
        context["text"] = to_json(redact.without_secrets(one.snapshot))
        context["secrets"] = redact.has_secrets(one.snapshot)
        if before:
            context["changed"] = revisions.compare(revisions.of_revision(before), one, in_full=False)
        if running := look(request).running:
            running_side = revisions.side(revisions.RUNNING, running)
            context["against"] = revisions.compare(running_side, one, in_full=False)
    except revisions.Unreadable as error:
        context["unreadable"] = str(error)
    return render(request, "changes/revision.html", context, status=status)


@require_POST
def comment(request, number: int):
    """A comment that was forgotten, or wrong; the page says who wrote it anew."""
    found = _kept(number)
    form = CommentForm(request.POST)
    if not form.is_valid():
        return revision(request, number, form, 422)
    if form.cleaned_data["comment"] != found.comment:
        revisions.correct(found, form.cleaned_data["comment"], request.user.get_username())
        messages.success(request, "The comment is changed.")
    return redirect("revision", number=number)


def compare(request):
    """Two states of the box: in words, and file by file."""
    _keep_new()
    running = look(request).running
    try:
        old, new = (revisions.side(request.GET.get(name, ""), running) for name in PLACES)
        found = revisions.compare(old, new)
    except revisions.Unreadable as error:
        messages.error(request, str(error))
        return redirect("history")
    return render(request, "changes/compare.html", {"found": found})


def restore(request, number: int):
    """A revision into the draft: says first what that does to the draft."""
    found = _kept(number)
    try:
        new = revisions.of_revision(found)
    except revisions.Unreadable as error:
        messages.error(request, str(error))
        return redirect("revision", number=number)
    context = {"what": new.title, "crumb": reverse("revision", args=[number])}
    return replace_draft(request, new.snapshot, context)


def replace_draft(request, new, context: dict):
    """Show what the draft loses and becomes; on POST make it so, unless it was changed meanwhile.

    context: `what` (in the middle of a sentence), `crumb` (where "Cancel" leads), `blocked` (problems stop it).
    Other cards may be chosen for those that the box does not have: they are sent with the form that replaces the
    draft, so that a choice is never lost, or by a button of their own that only shows the result.
    """
    chosen = cards.of_box(request, new, sent_with="replace")
    new = swapped(new, chosen.swaps)
    sent = request.method == "POST" and "preview" not in request.POST
    form, notice, status = OutlookForm(request.POST if sent else None), "", 200
    blocked = context.get("blocked", False)
    found = replacing.outlook(new, look(request).running, applied_at(request))
    if chosen.is_bound and not chosen.is_valid():
        status = 422
    elif sent and not (blocked and found.problems):
        try:
            if not form.is_valid():
                raise replacing.Moved
            replacing.replace(new, form.cleaned_data["counter"], request.user.get_username())
        except replacing.Moved:
            notice, status = "The draft was changed since you opened this page. Nothing was replaced yet.", 409
        else:
            log.info("user %s replaced the draft by %s", request.user.get_username(), context["what"])
            messages.success(request, f"The draft is {context['what']} now. Nothing runs differently until you apply.")
            return redirect("review")
    problems = [
        {"object": one.object, "field": names.field(one.field), "message": one.message} for one in found.problems
    ]
    context = context | {"found": found, "notice": notice, "problems": problems, "cards": chosen}
    return render(request, "changes/replace.html", context, status=status)


def applied_at(request):
    """When what runs was applied, as far as the history knows."""
    status = look(request).status
    found = Revision.objects.filter(number=status["generation"]).first() if status and status["generation"] else None
    return found.created if found else None
