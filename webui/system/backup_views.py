"""The pages of backup files and of the factory reset."""

import logging
import sqlite3

from django.contrib import messages
from django.contrib.auth import get_user_model
from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError
from django.http import FileResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.debug import sensitive_post_parameters

from accounts import actions as accounts
from accounts import limits
from accounts.models import ApiToken
from applier.wire.client import ApplierDown, ApplierRefused, connect
from changes import actions, replacing
from changes.forms import OutlookForm
from changes.history import applied_at
from changes.models import Revision
from draft import store as draft
from draft.frame import look
from lbconfig.model.snapshot import Snapshot
from lbconfig.pair import hostnames, own_box
from lbconfig.validate import cards
from system import backupfile, restoring
from system.forms import CodeForm, PassphraseForm, ResetForm, RestoreForm
from system.models import Restored
from system.sealed import WRONG, NotOpened
from web.files import takes_file

log = logging.getLogger(__name__)

CODE, TOKEN = "set-up code", "opened backup file"  # in the session
FAILED = "The backup file could not be restored, and nothing was changed: {}."


@sensitive_post_parameters()
def backup(request):
    """Make a backup file and send it."""
    form = PassphraseForm(*_sent(request)[:1])
    if request.method == "POST" and form.is_valid():
        try:
            actions.keep_history()
            file = backupfile.make(form.cleaned_data["passphrase"])
        except (ApplierDown, ApplierRefused, OSError, sqlite3.Error) as error:
            form.add_error(None, f"No backup file could be made. {error}")
        else:
            log.info("user %s took a backup file", request.user.get_username())
            name = f"{'-'.join(hostnames(look(request).draft))}-{timezone.now():%Y%m%d-%H%M}.fairlead-backup"
            return FileResponse(file, as_attachment=True, filename=name, content_type="application/octet-stream")
    context = {
        "form": form,
        "users": get_user_model().objects.count(),
        "tokens": ApiToken.objects.count(),
        "revisions": Revision.objects.count(),
    }
    return render(request, "system/backup.html", context)


@takes_file(backupfile.LIMIT)
@sensitive_post_parameters()
def restore(request):
    """Open a backup file; nothing is changed yet."""
    form = RestoreForm(*_sent(request))
    found = _open(form) if request.method == "POST" else None
    if found:
        request.session[TOKEN] = found.token
        return redirect("restore-review")
    return render(request, "system/restore.html", {"form": form}, status=422 if form.errors else 200)


def restore_review(request):
    """What is in the backup file, and what goes for it; then the deed."""
    try:
        found = restoring.opened(request.session.get(TOKEN, ""))
    except (restoring.Gone, NotOpened):
        messages.error(request, "The backup file is not open any more. Choose it again.")
        return redirect("restore")
    form, notice, status = OutlookForm(*_sent(request)[:1]), "", 200
    outlook = replacing.outlook(found.draft, look(request).running, applied_at(request))
    if request.method == "POST":
        if form.is_valid() and form.cleaned_data["counter"] == outlook.counter:
            try:
                return _put_in(request, found, request.user.get_username())
            except (OSError, sqlite3.Error, DatabaseError) as error:
                log.error("a backup file could not be restored: %s", error)
                notice, status = FAILED.format(error), 503
        else:
            notice, status = "The draft was changed since you opened this page. Nothing was restored yet.", 409
    users = set(get_user_model().objects.values_list("username", flat=True))
    context = {
        "found": found,
        "outlook": outlook,
        "notice": notice,
        "losing": sorted(users - set(found.about.users)),
        "unknown": _unknown_interfaces(request, found.draft),
    }
    return render(request, "system/restore_review.html", context, status=status)


def _may_restore(request) -> bool:
    """Whether this is a box that nobody has set up, and the code was given; by the headers alone."""
    code = request.session.get(CODE)
    try:
        return bool(code) and _takes_code() and connect().setup_check(code)["valid"]
    except (ApplierDown, ApplierRefused):
        return False


def _takes_code() -> bool:
    """Raises ApplierDown, ApplierRefused."""
    return not get_user_model().objects.exists() and connect().setup_open()["open"]


def _not_before_code(request):
    return None if _may_restore(request) else redirect("set-up-restore")  # which says why


@login_not_required
@takes_file(backupfile.LIMIT, _not_before_code)
@sensitive_post_parameters()
def set_up_restore(request):
    """A new box takes a backup file instead of its first admin: the code first, then the file."""
    if not _may_restore(request):
        return set_up_restore_code(request)
    form = RestoreForm(*_sent(request))
    if request.method == "POST" and (found := _open(form)):
        try:
            return _put_in(request, found, "the one who set the box up", request.session[CODE])
        except (OSError, sqlite3.Error, DatabaseError) as error:
            form.add_error(None, FAILED.format(error))
    return _set_up_restore_page(request, form, coded=True)


@login_not_required
@sensitive_post_parameters()
def set_up_restore_code(request):
    """Its first half. nginx hands on no body of this one before it is whole."""
    try:
        if not _takes_code():
            return redirect("set-up")  # which says why
    except (ApplierDown, ApplierRefused):
        return redirect("set-up")
    form = CodeForm(*_sent(request)[:1])
    if request.method == "POST" and form.is_valid():
        try:
            accounts.prove(form.cleaned_data["code"], request.META["REMOTE_ADDR"])
        except accounts.WrongCode as error:
            form.add_error("code", str(error))
        except (limits.Refused, ApplierDown, ApplierRefused) as error:
            form.add_error(None, str(error))
        else:
            request.session[CODE] = form.cleaned_data["code"]
            return redirect("set-up-restore")
    return _set_up_restore_page(request, form, coded=False)


def _set_up_restore_page(request, form, coded: bool):
    context = {"form": form, "coded": coded}
    return render(request, "system/set_up_restore.html", context, status=422 if form.errors else 200)


def restored(request):
    """After the log-in: what came back, and what to look at before it is applied."""
    restoring.finish()
    row = Restored.objects.filter(pk=restoring.ONLY_ROW).first()
    if row is None:
        return redirect("overview")
    context = {"row": row, "unknown": _unknown_interfaces(request, draft.current())}
    return render(request, "system/restored.html", context)


def factory_reset(request):
    """Asks for the host name, so that nobody resets the wrong box by a slip."""
    form = ResetForm(*_sent(request)[:1])
    if request.method == "POST" and form.is_valid():
        try:
            connect().factory_reset(form.cleaned_data["hostname"], request.user.get_username())
        except (ApplierDown, ApplierRefused) as error:
            wrong = getattr(error, "code", "") == "wrong-hostname"
            form.add_error("hostname" if wrong else None, str(error))
        else:
            log.warning("user %s resets the box", request.user.get_username())
            return render(request, "system/resetting.html")
    running = look(request).running
    context = {"form": form, "hostname": hostnames(running)[_number(request, running)] if running else ""}
    return render(request, "system/factory_reset.html", context, status=422 if form.errors else 200)


def _number(request, running: Snapshot) -> int:
    """Which of the boxes that run this one is."""
    found = look(request).status
    live = (text for entry in (found["interfaces"] if found else ()) for text in entry["addresses"])
    return own_box(running.pair, live) if running.pair else 0


def _sent(request) -> tuple:
    """What a form takes: nothing where the page is only looked at."""
    return (request.POST, request.FILES) if request.method == "POST" else (None, None)


def _open(form: RestoreForm) -> restoring.Opened | None:
    """None where it cannot be opened; the form says why."""
    if not form.is_valid():
        return None
    try:
        return restoring.open_file(form.cleaned_data["file"].file, form.cleaned_data["passphrase"])
    except NotOpened as error:
        form.add_error("passphrase" if str(error) == WRONG else "file", str(error))
    except OSError as error:
        form.add_error("file", f"The backup file could not be opened: {error.strerror or error}.")
    return None


def _put_in(request, found: restoring.Opened, user: str, code: str = ""):
    """Then log in, by the users of the backup file."""
    restoring.put_in(found, user)
    restoring.finish()
    if code:
        accounts.spend(code)
    request.session.flush()
    messages.success(request, "The backup file is restored. Log in with a name and password of the box that made it.")
    return redirect(f"{reverse('login')}?next={reverse('restored')}")


def _unknown_interfaces(request, snapshot) -> list[str]:
    """Network cards that a configuration names and this box does not have."""
    status = look(request).status
    if status is None:
        return []
    return [one.name for one in cards.missing(snapshot.network, cards.of_status(status["interfaces"]))]
