"""Who may see pages: set-up first, then log in; an idle session ends."""

from urllib.parse import parse_qs, urlsplit

from django.conf import settings
from django.contrib.auth import get_user_model, logout
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from accounts import ledger, sessions
from lbconfig.model.addresses import source
from web import kept_input


def client_source(request) -> str:
    """For django-axes; web.middleware.ClientAddress has put the browser's address there."""
    return source(request.META.get("REMOTE_ADDR", ""))


class LedgerFirst:
    """Let nobody in before this slot knows which passwords count; its start may have found a full disk."""

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        ledger.catch_up()
        return self.get_response(request)


class SessionEnd:
    """End a session in time (accounts.sessions); pages that refresh themselves are no clicks."""

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        kept = None
        if request.user.is_authenticated:
            if sessions.is_over(request.session):
                kept = kept_input.of(request)
                logout(request)
                request.session["over"] = True  # the log-in page says why
                if kept:
                    request.session[kept_input.KEY] = kept
            elif not request.path.startswith("/live/"):
                sessions.stamp(request.session)
        response = self.get_response(request)
        if not request.user.is_authenticated and _stopped(request, response):
            return kept_input.log_in_instead(request, response, kept is not None)
        if response.status_code == 302 and request.headers.get("HX-Request"):
            return HttpResponse(status=204, headers={"HX-Redirect": response["Location"]})
        return response


def _stopped(request, response) -> bool:
    """Whether the log-in comes instead of what was asked for."""
    where = urlsplit(response.headers.get("Location", ""))
    wanted = parse_qs(where.query).get("next") == [request.get_full_path()]
    return response.status_code == 302 and where.path == reverse(settings.LOGIN_URL) and wanted


class SetUpFirst:
    """A box without any admin shows nothing but the set-up page. The API wants a token of an admin anyway."""

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        anonymous = not request.user.is_authenticated
        open_to_all = {reverse("set-up"), reverse("set-up-restore"), reverse("set-up-restore-code")}
        closed = request.path not in open_to_all and not request.path.startswith("/api/")
        if anonymous and closed and not get_user_model().objects.exists():
            return redirect("set-up")
        return self.get_response(request)
