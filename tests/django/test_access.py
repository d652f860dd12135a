"""Who gets in where: every page and every route of the API, asked by everybody. access.txt is the answer.

FAIRLEAD_GOLDEN_UPDATE=1 pytest tests/django/test_access.py    writes it anew; read the difference before committing it.
"""

import os
from pathlib import Path

import pytest
from api_robot import PREFIX
from django.http import HttpResponse
from django.middleware.csrf import CsrfViewMiddleware
from django.test import Client
from django.urls import get_resolver

from accounts import tokens
from accounts.models import ApiToken
from accounts.scopes import SCOPES
from api import endpoint
from api.errors import ApiError
from api.table import ROUTES

TABLE = Path(__file__).with_name("access.txt")
IN = 299  # the status that stands for "here it would have run"
API = "^api/v1"
ARGUMENTS = {
    "pk": 1, "number": 1, "token": 1, "service": 1, "server": 1, "slot": "B", "apply_id": "a-1", "apply": "apply-4",
    "secret": "x", "key": "draft", "address": "10.1.0.11", "name": "plan",
}  # fmt: skip
HEAD = """\
Who gets in where. Made by tests/django/test_access.py; a page or a route that is not in here fails that test.

pages: by whom it is run.  nobody: without a log-in.  session: logged in; a POST brings the token of the form.
  forged: logged in, a POST without that token.  bearer: a token of the API that may everything, and no session.
  yes: it runs.  log-in: the log-in page comes instead.  403: refused.  itself: the view looks for the token of the
  form by itself, once it has decided how much of the body is read.
"""
BETWEEN = """
routes of the API: a token of each single scope, and of all of them; yes: it runs, 403: refused, 401: no token of the
  box.  A session opens none.
"""


class Stop:
    """The last middleware: whoever comes this far would have been served."""

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        return self.get_response(request)

    def process_view(self, request, view, args, kwargs):
        if view is endpoint.endpoint:
            return None  # it asks by itself, and is stopped in there
        checked = getattr(view, "csrf_exempt", False) and request.method == "POST"
        return HttpResponse("itself" if checked else "yes", status=IN)


@pytest.fixture
def stopped(settings, monkeypatch):
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, f"{__name__}.Stop"]

    def stop(request, route):
        raise ApiError(IN, "in", "It would have run.")

    monkeypatch.setattr(endpoint, "_query", stop)


def word(answer) -> str:
    if answer.status_code == IN:
        return answer.content.decode()
    if answer.status_code == 302 and answer.headers["Location"].startswith("/login/"):
        return "log-in"
    return str(answer.status_code)


def pages(admin) -> list[str]:
    robot = {"Authorization": f"Bearer {tokens.make(admin, 'all', list(SCOPES))}"}
    nobody, bearer = Client(), Client(headers=robot)
    session, forged = Client(), Client(enforce_csrf_checks=True)
    for one in (session, forged):
        one.force_login(admin, backend="django.contrib.auth.backends.ModelBackend")
    found = []
    for pattern in get_resolver().url_patterns:
        route = str(pattern.pattern)
        if route.startswith(API):
            continue
        arguments = {name: ARGUMENTS[name] for name in pattern.pattern.converters}
        url = "/" + get_resolver().reverse(pattern.name, **arguments)
        for method in ("GET", "POST"):
            who = {"nobody": nobody, "session": session}
            if method == "POST":
                who |= {"forged": forged, "bearer": bearer}
            words = {name: word(one.generic(method, url)) for name, one in who.items()}
            found.append(f"{method:4} /{route:42} " + "  ".join(f"{name}: {text:6}" for name, text in words.items()))
    return [line.rstrip() for line in found]


def routes(admin) -> list[str]:
    kinds = {scope: [scope] for scope in SCOPES} | {"all": list(SCOPES)}
    who = {None: Client()}
    for name, scopes in kinds.items():
        text, record = tokens.make_record(admin, name, [])
        ApiToken.objects.filter(pk=record.pk).update(scopes=scopes)
        who[name] = Client(headers={"Authorization": f"Bearer {text}"})
    session = Client()
    session.force_login(admin, backend="django.contrib.auth.backends.ModelBackend")
    found = []
    for route in ROUTES:
        url = PREFIX + route.path.format(**ARGUMENTS)
        answers = {name: one.generic(route.method, url, b"{}", "application/json") for name, one in who.items()}
        answers["session"] = session.generic(route.method, url, b"{}", "application/json")
        for one in (None, "session"):
            assert answers[one].headers["WWW-Authenticate"] == "Bearer" and not answers[one].cookies
        for one in answers.values():
            if one.status_code == 403:
                wanted = " or ".join(sorted(route.scopes))
                assert one.json()["error"]["code"] == "forbidden" and wanted in one.json()["error"]["message"]
        words = {
            name or "nobody": "yes" if one.status_code == IN else str(one.status_code) for name, one in answers.items()
        }
        found.append(f"{route.method:6} {route.path:42} " + " ".join(f"{name}: {text}" for name, text in words.items()))
    return found


def test_who_gets_in_where(admin, stopped):
    table = "\n".join([HEAD, *pages(admin), BETWEEN, *routes(admin)]) + "\n"
    if os.environ.get("FAIRLEAD_GOLDEN_UPDATE") == "1":
        TABLE.write_text(table)
    assert table.splitlines() == TABLE.read_text().splitlines()


def test_the_table_asks_those_who_decide(stopped, settings):
    """It stops behind all that refuses: a new middleware belongs in front of it."""
    assert settings.MIDDLEWARE[-1] == f"{__name__}.Stop"
    assert f"{CsrfViewMiddleware.__module__}.{CsrfViewMiddleware.__name__}" in settings.MIDDLEWARE
