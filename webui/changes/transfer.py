"""Configurations as files: out as readable JSON, and in by way of a look at what the draft would become."""

import logging

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import content_disposition_header

from changes import revisions
from changes.forms import ImportForm
from changes.history import replace_draft
from changes.models import Candidate
from draft.frame import look
from lbconfig import migrate, schema
from lbconfig.model import names, redact
from lbconfig.model.snapshot import SnapshotError, to_json
from lbconfig.pair import hostnames
from lbconfig.validate.services import validate
from web.files import takes_file

log = logging.getLogger(__name__)

NO_KEY = "Its certificate of the web page is left out: the private key is not in the file. The box's own is shown."
LIMIT = 8 * 1024 * 1024  # bytes of a file; the applier takes no more


def overview(request, form: ImportForm | None = None, problems=(), status: int = 200):
    secret = redact.has_secrets(look(request).draft)
    exports = ((revisions.DRAFT, "The draft"), (revisions.RUNNING, "What runs"))
    context = {"form": form or ImportForm(), "problems": problems, "secret": secret, "exports": exports}
    return render(request, "changes/transfer.html", context, status=status)


def export(request, key: str):
    """A download: the draft, what runs, or a revision by its number; ?passwords=no leaves these out."""
    frame = look(request)
    try:
        side = revisions.side(key, frame.running)
    except revisions.Unreadable as error:
        messages.error(request, str(error))
        return redirect("transfer")
    bare = request.GET.get("passwords") == "no"
    snapshot = redact.without_secrets(side.snapshot) if bare else side.snapshot
    name = f"{'-'.join(hostnames(snapshot))}-{key}-{timezone.now():%Y%m%d-%H%M}{'-without-passwords' * bare}.json"
    log.info("user %s exported %s%s", request.user.get_username(), side.title, " without passwords" * bare)
    answer = HttpResponse(to_json(snapshot), content_type="application/json")
    answer.headers["Content-Disposition"] = content_disposition_header(True, name)
    return answer


@login_not_required
def published_schema(request):
    """For editors and programs; it says nothing of this box but its version of the model."""
    return HttpResponse(schema.to_json(), content_type="application/schema+json")


@takes_file(LIMIT)
def import_file(request):
    """What is wrong with the file, or a candidate that waits for a look at it."""
    if request.method != "POST":
        return redirect("transfer")
    form = ImportForm(request.POST, request.FILES)
    if not form.is_valid():
        return overview(request, form, status=422)
    try:
        snapshot = migrate.read(form.cleaned_data["json"])
    except SnapshotError as error:
        words = f"{error.message[:1].upper()}{error.message[1:]}."
        return overview(request, form, [{"where": error.path, "message": words}], 422)
    whole, now = snapshot, look(request).draft
    snapshot = redact.with_key(whole, now)
    if found := validate(snapshot):
        problems = [
            {"where": problem.path, "message": f"{problem.object}, {names.field(problem.field)}: {problem.message}."}
            for problem in found
        ]
        return overview(request, form, problems, 422)
    user = request.user.get_username()
    values = {"name": form.cleaned_data["name"], "snapshot": to_json(snapshot)}
    Candidate.objects.update_or_create(user=user, defaults=values)
    if whole.management.certificate and not snapshot.management.certificate:
        messages.warning(request, NO_KEY)
    return redirect("import-review")


def review_import(request):
    """The candidate beside the draft; then it replaces it."""
    candidate = Candidate.objects.filter(user=request.user.get_username()).first()
    if candidate is None:
        messages.error(request, "There is no imported configuration that waits. Choose the file again.")
        return redirect("transfer")
    new = migrate.read(candidate.snapshot)
    context = {"what": f"the configuration of {candidate.name}", "crumb": reverse("transfer"), "blocked": True}
    answer = replace_draft(request, new, context)
    if answer.status_code == 302:
        candidate.delete()
    return answer
