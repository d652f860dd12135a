"""The certificate that the web page shows: the box's own, or one of the admin's."""

from __future__ import annotations

from dataclasses import replace

from django.contrib import messages
from django.db import transaction
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters

from applier.kept import page_key
from applier.wire.client import ApplierDown, ApplierRefused, connect
from changes import arrival
from draft import merge
from draft import store as draft
from draft.frame import look
from lbconfig.model import certificate as pem
from lbconfig.model.problem import Problem
from lbconfig.model.snapshot import Snapshot
from lbconfig.render import web
from lbconfig.validate.services import validate
from network.certificate_form import LIMIT, CertificateForm
from web.files import takes_file

OWN_AGAIN = "Saved to the draft: the box's own certificate. Review and apply the changes."
SAVED = "Saved to the draft: {}. The web page shows it after you have reviewed and applied the changes."
NOT_FOR_HERE = "It is not for {}, by which you have opened this page: there browsers will warn of it."


@takes_file(LIMIT)
@sensitive_post_parameters("key")
def edit_certificate(request):
    """See it, give another one, or go back to the box's own."""
    if request.method != "POST":
        return _page(request, CertificateForm(draft.current().management))
    user = request.user.get_username()
    with transaction.atomic():
        before = draft.current()
        form = CertificateForm(before.management, request.POST, request.FILES)
        if request.POST.get("seen") != _seen(before):
            return _moved(request, form)
        if "own" in request.POST:
            draft.write_part("management", replace(before.management, certificate="", key=""), user)
            messages.success(request, OWN_AGAIN)
            return redirect("certificate")
        if not form.is_valid() or (after := _checked(form, before)) is None:
            return _page(request, form, 422)
        draft.write_part("management", after.management, user)
    shown = pem.first(after.management.certificate)
    if shown:
        messages.success(request, SAVED.format(shown.sentence))
    if shown and (here := arrival.used(request)) and not shown.covers(here):
        messages.warning(request, NOT_FOR_HERE.format(here))
    return redirect("certificate")


def _moved(request, form: CertificateForm):
    """Somebody else saved another one meanwhile: what was entered stands there again, also what came as a file."""
    form.is_valid()
    again = CertificateForm(form.before, initial={name: form[name].value() for name in ("certificate", "key")})
    row = draft.part("management")
    who, when = merge.who_and_when(row, request.user.get_username()) if row else ("Somebody", "")
    note = f"{who} saved another certificate {when}, after you had opened this page. Nothing of yours is saved yet."
    return _page(request, again, 409, note)


def _checked(form: CertificateForm, before: Snapshot) -> Snapshot | None:
    """The draft with this certificate; None when something is wrong, with the reason beside its field."""
    chain, key = form.cleaned_data["chain"], form.cleaned_data["pair_key"]
    after = replace(before, management=replace(before.management, certificate=chain, key=key))
    own = ("management.certificate", "management.key")
    found: list[Problem] = [one for one in validate(after) if one.path in own]
    for one in found or page_key.changed_problems(after, before):
        subject = "The certificate" if one.field == "certificate" else "The private key"
        form.add_error(one.field, f"{subject} {one.message}.")
    return None if form.errors else after


def _seen(snapshot: Snapshot) -> str:
    """Tells which certificate the draft has."""
    return web.name(snapshot.management) if snapshot.management.page_key else "own"


def _page(request, form: CertificateForm, status: int = 200, note: str = ""):
    frame = look(request)
    wished = draft.current()
    runs = frame.running.management if frame.running else None
    context = {
        "form": form,
        "note": note,
        "seen": _seen(wished),
        "here": arrival.used(request),
        "running": runs,
        "running_shown": (pem.first(runs.certificate) if runs.page_key else _own()) if runs else None,
        "wished": wished.management,
        "wished_shown": pem.first(wished.management.certificate),
        "differs": runs is not None and runs.page_key != wished.management.page_key,
        "end": frame.certificate_end,
    }
    return render(request, "network/certificate.html", context, status=status)


def _own() -> pem.Certificate | None:
    """The box's own certificate; None where it is unknown."""
    try:
        return pem.first(connect().certificate()["certificate"])
    except (ApplierDown, ApplierRefused):
        return None
