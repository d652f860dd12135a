"""The way into the API: who may, by what method, with what body, and how it refuses."""

import json
import logging
from datetime import timedelta

import pytest
from api_robot import ALL, PREFIX, Robot, error, fields, robot
from django.db import DatabaseError
from django.test import Client
from django.utils import timezone
from openapi_spec_validator import OpenAPIV31SpecValidator, validate

from accounts import tokens
from accounts.limits import TOKENS
from accounts.models import ApiToken
from accounts.scopes import SCOPES
from api import document
from api.table import ROUTES
from draft import what_runs

pytestmark = pytest.mark.django_db


def place(route) -> str:
    """An address of the sample box."""
    values = {"service": "1", "server": "1", "number": "2", "token": "1", "apply": "apply-4"}
    return route.path.format(**values)


def of(route) -> str:
    return f"{route.method} {route.path}"


# --- the document ---


def test_the_document_is_openapi(admin):
    validate(document.document(), cls=OpenAPIV31SpecValidator)
    found = robot(admin, "update").get("/openapi.json").json()
    assert found == json.loads(json.dumps(document.document()))


def test_every_route_is_in_the_document_once():
    paths = document.document()["paths"]
    found = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    assert found == {(route.method, route.path) for route in ROUTES} and len(found) == len(ROUTES)
    names = [route.name for route in ROUTES]
    assert len(set(names)) == len(names)


def test_every_scope_is_used():
    assert set().union(*(route.scopes for route in ROUTES)) == set(SCOPES)
    assert not [of(route) for route in ROUTES if route.changes and "read" in route.scopes]
    assert not [of(route) for route in ROUTES if route.method in ("PUT", "DELETE", "PATCH") and not route.changes]


# --- who may ---


def test_a_session_gets_not_older_and_not_younger_by_the_api(client):
    client.get("/")
    before = dict(client.session)
    client.get(f"{PREFIX}/status")
    assert dict(client.session) == before


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer ", "Bearer wrong", "Basic YWRtaW46eA==", "Bearer fairlead_\N{SNOWMAN}"]
)
def test_headers_that_are_no_token(admin, header):
    answer = Client(headers={"Authorization": header} if header is not None else {}).get(f"{PREFIX}/status")
    assert answer.status_code == 401 and error(answer)["code"] == "unauthorized"


def test_wrong_tokens_are_counted_and_right_ones_go_on(admin):
    good, wrong = robot(admin), Robot("fairlead_wrong")
    seen = [wrong.get("/status") for _ in range(TOKENS.most + 1)]
    assert [one.status_code for one in seen] == [401] * TOKENS.most + [429]
    assert int(seen[-1].headers["Retry-After"]) > 60
    assert good.get("/status").status_code == 200
    assert Robot("fairlead_wrong", REMOTE_ADDR="10.9.9.9").get("/status").status_code == 401
    six = [Robot("fairlead_wrong", REMOTE_ADDR=f"2001:db8::{i}").get("/status") for i in range(TOKENS.most + 1)]
    assert six[-1].status_code == 429 and "from 2001:db8::/64." in error(six[-1])["message"]


def test_a_token_that_has_ended(admin):
    one = robot(admin, expires=timezone.now() + timedelta(minutes=1))
    assert one.get("/status").status_code == 200
    ApiToken.objects.update(expires=timezone.now() - timedelta(seconds=1))
    answer = one.get("/status")
    assert answer.status_code == 401 and error(answer)["code"] == "expired"


def test_a_token_of_one_who_left(admin):
    one = robot(admin)
    admin.is_active = False
    admin.save()
    assert one.get("/status").status_code == 401


def test_a_token_counts_only_from_its_networks(admin):
    token = tokens.make(admin, "robot", ALL, networks=["10.1.0.0/16", "2001:db8::/32"])
    for address, status in (("10.1.2.3", 200), ("2001:db8::7", 200), ("10.2.0.1", 403), ("::1", 403), ("", 403)):
        answer = Robot(token, REMOTE_ADDR=address).get("/status")
        assert answer.status_code == status, address
    assert error(answer)["code"] == "wrong-address"


def test_the_console_needs_its_secret_and_no_nginx(db, settings, box):
    settings.CONSOLE_TOKEN_FILE.parent.mkdir(parents=True)
    settings.CONSOLE_TOKEN_FILE.write_text("the secret\n")
    console = {"REMOTE_ADDR": ""}  # the UNIX socket has no address
    whole = {"name": "console", "scopes": sorted(SCOPES), "expires": None}
    assert Robot("the secret", **console).get("/token").json() == whole
    assert Robot("the secre", **console).get("/token").status_code == 401
    for elsewhere in (console | {"HTTP_X_REAL_IP": "10.0.0.1"}, console | {"HTTP_X_REAL_IP": ""}, {}):
        assert Robot("the secret", **elsewhere).get("/token").status_code == 401
    settings.CONSOLE_TOKEN_FILE.write_text("\n")
    assert Robot("", **console).get("/token").status_code == 401
    settings.CONSOLE_TOKEN_FILE.unlink()
    assert Robot("the secret", **console).get("/token").status_code == 401


# --- methods, bodies, queries ---


def test_methods(admin):
    one = robot(admin)
    answer = one.delete("/draft")
    assert answer.status_code == 405 and answer.headers["Allow"] == "GET, HEAD, OPTIONS, PUT"
    assert one.ask("BREW", "/status").status_code == 405
    answer = one.ask("OPTIONS", "/services/1")
    assert (answer.status_code, answer.headers["Allow"]) == (204, "DELETE, GET, HEAD, OPTIONS, PATCH, PUT")
    head, get = one.ask("HEAD", "/draft"), one.get("/draft")
    assert head.status_code == 200 and not head.content and head.headers["ETag"] == get.headers["ETag"]


@pytest.mark.parametrize(
    "path", ["", "/", "/nothing", "/services/0", "/services/x", "/services/1/", "/a%0Ab%0A", f"/services/{9**30}"]
)
def test_what_there_is_not(admin, path):
    answer = robot(admin).get(path)
    assert answer.status_code == 404 and error(answer)["code"] == "not-found"
    assert Client().get(PREFIX + path).status_code == 401


@pytest.mark.parametrize(
    "body",
    [b" ", b"{", b"\xff", b"[1, 2", b'{"a": 1, "a": 2}', b'{"a": NaN}', b"[" * 100_000, b"1" * 5000, b'"\\ud800'],
    ids=lambda one: str(one[:12]),
)
def test_bodies_that_are_no_json(admin, body):
    answer = robot(admin).post("/services", body)
    assert answer.status_code == 400 and error(answer)["code"] == "not-json"


@pytest.mark.parametrize("kind", ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_content_types(admin, kind):
    answer = robot(admin).ask("POST", "/services", b"{}", kind)
    assert answer.status_code == 415


def test_bodies_that_are_too_large(admin):
    assert robot(admin).post("/services", b" " * (256 * 1024 + 1)).status_code == 413
    assert robot(admin).put("/draft", b" " * 8_000_001, If_Match="*").status_code == 413
    assert robot(admin).put("/draft", b" " * 2_000_000, If_Match="*").status_code == 400


@pytest.mark.parametrize("data", [None, [], "text", 7, True, {"comment": 7}, {"digest": "x", "more": 1}], ids=str)
def test_bodies_of_a_wrong_shape_name_the_field(admin, data):
    answer = robot(admin).post("/applies", b"null" if data is None else data)
    assert answer.status_code == 422 and error(answer)["code"] == "bad-field"
    assert fields(answer)[0][0] == "request"


@pytest.mark.parametrize("query", ["limit=0", "limit=x", "limit=1&limit=2", "before=-1", "page=2", f"limit={9**30}"])
def test_queries(admin, query):
    answer = robot(admin).get(f"/history?{query}")
    assert answer.status_code == 400 and error(answer)["code"] == "bad-query"


# --- a box that is not well ---


def test_without_an_applier(admin, box):
    box.reachable = False
    one = robot(admin)
    for method, path in (("GET", "/status"), ("GET", "/draft"), ("GET", "/draft/review"), ("POST", "/update/restart")):
        answer = one.ask(method, path)
        assert answer.status_code == 503 and error(answer)["code"] == "applier-down", path


def test_a_database_that_fails(admin, monkeypatch):
    one = robot(admin)

    def fail(call):
        raise DatabaseError("no such luck")

    monkeypatch.setattr(what_runs, "connect", lambda: fail(None))
    answer = one.get("/status")
    assert answer.status_code == 503 and error(answer)["code"] == "database"


def test_a_mistake_of_ours_is_json_too(admin, monkeypatch):
    monkeypatch.setattr(what_runs, "connect", lambda: 1 / 0)
    answer = robot(admin).client.get(f"{PREFIX}/status")
    assert answer.status_code == 500 and answer.json()["error"]["code"] == "fault"


def test_the_fault_file_is_told_as_json(admin, settings):
    settings.FAULT_FILE.parent.mkdir(parents=True)
    settings.FAULT_FILE.write_text("fairlead.sqlite3: damaged\n")
    answer = robot(admin).client.get(f"{PREFIX}/status")
    assert answer.status_code == 503 and "damaged" in answer.json()["error"]["message"]


def test_a_box_that_nobody_has_set_up_asks_for_a_token_too(db):
    assert Client().get(f"{PREFIX}/status").status_code == 401


def test_what_is_changed_is_in_the_log(admin, caplog):
    caplog.set_level(logging.INFO)
    robot(admin).post("/services/1/disable")
    assert "admin (token robot): POST /api/v1/services/1/disable: 200" in caplog.text
