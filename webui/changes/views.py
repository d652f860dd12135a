"""Review, apply, watch."""

import logging
import re

from django.contrib import messages
from django.db import transaction
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from applier.wire.client import ApplierDown, ApplierRefused
from applier.wire.shapes import ENDED
from changes import actions, arrival, before, cards, confirm, diffs, steps
from changes.forms import ApplyForm
from changes.links import link
from changes.models import Revision
from draft import store as draft
from draft.frame import look
from lbconfig.model import names
from lbconfig.model.snapshot import SnapshotError
from lbconfig.validate.cards import swapped

BACK = "The box runs what it ran before. Your draft is kept."
PAST_UNKNOWN = ("This apply is over", "Its outcome is in the history.")
# Outcome -> what the page of an apply says of one that the box does not remember.
PAST = {
    "confirmed": ("These changes were applied", "They were confirmed."),
    "not confirmed": ("These changes were not confirmed", f"Nobody confirmed them in time. {BACK}"),
    "rolled back": ("These changes failed, and were undone", BACK),
    "interrupted": (
        "These changes were interrupted",
        f"The box lost power, or its applier ended, before they were done. {BACK}",
    ),
    "failed": ("The apply failed, and not all of it could be undone", "The steps are in the history."),
    "not chosen": ("These changes were not chosen", "The boxes of the pair run the other box's configuration."),
}
KEPT = ("comment", "confirm_within", "decide")  # what an admin fills in under a review

log = logging.getLogger(__name__)


def review(
    request,
    form: ApplyForm | None = None,
    notice: str = "",
    status: int = 200,
    cards_form: cards.CardsForm | None = None,
):
    """Everything that applying the draft would change."""
    wished = look(request).draft
    try:
        found = actions.review(wished)
    except (ApplierDown, ApplierRefused) as error:
        return render(request, "changes/review.html", {"error": str(error)}, status=503)
    kept = {name: form[name].value() for name in KEPT} if form else {}
    fresh = ApplyForm(initial={"digest": found["digest"], "base": found["base"], **kept})
    wrong = form.errors if form and form.is_bound else {}
    context = before.context(request, found, wished) | {
        "form": fresh,
        "wrong": {name: wrong[name] for name in KEPT if name in wrong},
        "notice": notice,
        "problems": [
            {**problem, "field": names.field(problem["field"]), "link": link(problem["path"])}
            for problem in found["problems"]
        ],
        "changes": found["changes"],
        "files": [diffs.read(path, text) for path, text in found["diff"].items()],
        "base": found["base"],
        "other_box": found["other_box"],
        "cards": cards_form or cards.of_review(found),
    }
    return render(request, "changes/review.html", context, status=status)


@require_POST
def take_cards(request):
    """Other network cards in every place of the draft that names one which is not in this box."""
    with transaction.atomic():
        wished = draft.current()
        form = cards.of_box(request, wished)
        if form.is_bound and not form.is_valid():
            return review(request, status=422, cards_form=form)
        if form.swaps:
            draft.replace(swapped(wished, form.swaps), request.user.get_username())
    for old, new in form.swaps.items():
        log.info("user %s took the card %s instead of %s", request.user.get_username(), new, old)
        messages.success(request, f"The draft has {new} instead of {old} now.")
    return redirect("review")


@require_POST
def apply(request):
    """Send what was reviewed; whatever moved since is shown, and nothing is applied."""
    form = ApplyForm(request.POST)
    if not form.is_valid():
        notice = "" if form.errors.keys() <= set(KEPT) else "This page was incomplete; please review again."
        return review(request, form, notice, 422)
    data = form.cleaned_data
    wished, frame = draft.current(), look(request)
    try:
        answer = actions.apply(
            wished,
            data["digest"],
            data["base"],
            request.user.get_username(),
            data["comment"],
            request.META["REMOTE_ADDR"],
            data["confirm_within"],
        )
    except ApplierRefused as error:
        notice = f"Nothing was applied. {error.message}"
        return review(request, form, notice, 409)
    except ApplierDown as error:
        return review(request, form, f"Nothing was applied. {error}", 503)
    place = arrival.next_place(request, frame, wished)
    shows_other = frame.running is not None and arrival.shows_other(frame.running, wished)
    confirm.remember(request, answer, data["decide"], place, shows_other)
    if answer["secret"]:
        # Before its browser could ask for another page, the box may be gone from this address.
        look(request, anew=True)
        return progress(request, answer["apply"])
    return redirect("progress", apply_id=answer["apply"])


def discard(request):
    """Asks first: the draft goes back to what runs."""
    if request.method == "POST":
        try:
            with transaction.atomic():
                actions.discard(request.user.get_username())
        except (ApplierDown, ApplierRefused, SnapshotError) as error:
            messages.error(request, f"The draft is still there: {error}")
            return redirect("review")
        messages.success(request, "The draft is what the box runs again.")
        return redirect("overview")
    return render(request, "changes/discard.html")


def progress(request, apply_id: str):
    """The steps of an apply while it runs and after."""
    shown = _run(request, apply_id)
    answer = render(request, "changes/progress.html", shown)
    answer.headers["Content-Security-Policy"] = confirm.policy(request, shown)
    return answer


def live_progress(request, apply_id: str):
    return render(request, "changes/live.html", _run(request, apply_id) | {"refresh": True})


def _run(request, apply_id: str) -> dict:
    frame = look(request)
    run = frame.status and frame.status["apply"]
    if run and run["id"] != apply_id:
        run = None
    ended = run is not None and run["state"] in ENDED
    over = run is None and not frame.down
    if ended or over:
        try:
            actions.keep_history()
        except (ApplierDown, ApplierRefused) as error:  # the history page tries again
            log.warning("the outcome of %s is not in the history yet: %s", apply_id, error)
    seconds = sum(step["seconds"] for step in run["steps"]) if run else 0
    shown: dict[str, object] = {
        "run": run,
        "ended": ended,
        "apply_id": apply_id,
        "seconds": seconds,
        "down": frame.down,
    }
    shown |= {"steps": steps.told(run["steps"], ended)} if run else {}
    return shown | confirm.context(request, run) | (_past(apply_id) if over else {})


def _past(apply_id: str) -> dict:
    """What the history tells of an apply that the box does not remember: it was restarted, or applied another one."""
    number = re.match(r"apply-([0-9]{1,9})(?:-|\Z)", apply_id)
    found = Revision.objects.filter(number=int(number[1])).first() if number else None
    title, sentence = PAST.get(found.outcome if found else "", PAST_UNKNOWN)
    return {"past": found, "past_title": title, "past_sentence": sentence}
