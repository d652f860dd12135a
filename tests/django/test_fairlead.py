"""What holds for every page: log-in first, headers, the client's address, readable faults."""

import re
import sqlite3
from pathlib import Path

import pytest
from django.conf import settings
from django.db import DatabaseError, OperationalError, connection
from django.test import Client, RequestFactory
from django.urls import get_resolver
from forms_on_page import form_values, words
from tests import texts
from tests.django.conftest import PASSWORD

from draft import store as draft
from web import faults
from web.middleware import ClientAddress

OPEN = {"login", "set-up", "schema", "arrive"}
LEAD_TO_SET_UP = {"set-up-restore", "set-up-restore-code"}
BEFORE_THE_LOG_IN = OPEN | {"set-up-restore-code"}  # nginx hands on a body to these only when it is whole
NGINX = Path(__file__).parents[2] / "overlay/etc/fairlead/nginx.conf"
BY_TOKEN = {"api-v1"}  # programs bring no cookie (tests/django/test_api.py)
ARGUMENTS = {
    "pk": 1,
    "number": 1,
    "apply_id": "x",
    "slot": "A",
    "address": "10.2.0.11",
    "key": "draft",
    "name": "plan",
    "secret": "x" * 32,
}


def urls() -> list[tuple[str, str]]:
    resolver = get_resolver()
    found = []
    for pattern in resolver.url_patterns:
        names = pattern.pattern.converters
        found.append((pattern.name, "/" + resolver.reverse(pattern.name, **{name: ARGUMENTS[name] for name in names})))
    return found


@pytest.mark.parametrize(("name", "url"), urls())
def test_every_page_wants_a_log_in(stranger, admin, name, url):
    answer = stranger.get(url)
    if name in OPEN:
        assert "Location" not in answer.headers
    elif name in BY_TOKEN:
        assert answer.status_code == 401
    elif name in LEAD_TO_SET_UP:
        assert answer.headers["Location"] == "/set-up/"
    elif answer.status_code != 405:
        assert answer.headers["Location"].startswith("/login/")


@pytest.mark.parametrize("host", ["my_lb", "MY_lb:8443", "lb", "lb.example.", "10.1.0.2:8443", "[2001:db8::2]:8443"])
def test_the_box_answers_to_whatever_name_its_network_gives_it(admin, host):
    browser = Client(enforce_csrf_checks=True, headers={"Host": host, "X-Forwarded-Proto": "https"})
    form = browser.get("/login/")
    assert form.status_code == 200
    values = {"username": "admin", "password": PASSWORD, "csrfmiddlewaretoken": str(form.context["csrf_token"])}
    origin = {"Origin": f"https://{host}"}
    assert browser.post("/login/", values, headers={"Origin": "https://other"}).status_code == 403
    assert browser.post("/login/", values, headers=origin).status_code == 302
    assert browser.get("/api/v1/status").status_code == 401


@pytest.mark.parametrize("host", ["my lb", "a/b", "_" * 300, "lb:port", "lb:8443:1", "[::1", "b\xfcro", "<b>"])
def test_what_is_no_name_is_refused_in_words(host):
    browser = Client(headers={"Host": host})
    answer = browser.get("/login/")
    assert answer.status_code == 400 and "The box does not answer to this name" in words(answer)
    assert "Content-Security-Policy" in answer.headers and "<b>" not in answer.content.decode()
    error = browser.get("/api/v1/status")
    assert error.status_code == 400 and "does not answer to this name" in error.json()["error"]["message"]


def test_what_django_will_not_read_is_told_in_words(client, settings):
    settings.DATA_UPLOAD_MAX_NUMBER_FIELDS = 3
    answer = client.post("/sorry/", {str(number): "x" for number in range(9)})
    assert answer.status_code == 400 and "This request cannot be read" in words(answer)


def test_the_preview_of_the_sorry_page_runs_nothing(client):
    answer = client.get("/sorry/preview/")
    assert answer.headers["Content-Security-Policy"] == "default-src 'none'; style-src 'unsafe-inline'"
    assert "<script" not in answer.content.decode()


# The sorry page is complete in itself, its style included.
@pytest.mark.parametrize(("name", "url"), [one for one in urls() if one[0] != "sorry-preview"])
def test_every_page_has_a_strict_policy_and_no_inline_code(client, name, url):
    answer = client.get(url)
    assert answer.headers["Content-Security-Policy"].startswith(
        "default-src 'none'; script-src 'self'; style-src 'self'"
    )
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert answer.headers["Cache-Control"] != "" and "public" not in answer.headers["Cache-Control"]
    page = answer.content.decode()
    for forbidden in (" style=", " onclick=", "<style", "<script>", "javascript:"):
        assert forbidden not in page
    # Words may name an address; nothing is fetched from elsewhere.
    assert not re.search(r"""(src|href|action|data-\w+)=["']?(https?:)?//|url\(""", page)


@pytest.mark.parametrize(("name", "url"), urls())
def test_no_page_is_changed_without_the_token_of_its_form(admin, name, url):
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(admin, backend="django.contrib.auth.backends.ModelBackend")
    answer = strict.post(url, {})
    if name in BY_TOKEN:
        assert answer.status_code == 401
        return
    if name == "set-up-restore":
        assert answer.headers["Location"] == "/set-up/restore/"  # no code, and nothing of the form is read
        return
    assert answer.status_code == 403
    assert "This form is too old" in words(answer)


class Body:
    """Nothing may be read from it before it is decided who sends it."""

    read_from = False

    def read(self, *_):
        self.read_from = True
        return b""

    readline = read


@pytest.mark.parametrize(("name", "url"), urls())
@pytest.mark.parametrize("kind", ["multipart/form-data; boundary=x", "application/x-www-form-urlencoded"])
def test_of_a_stranger_no_body_is_read(admin, box, name, url, kind):
    """Each that is read holds a thread for as long as he likes, where nginx hands it on as it comes."""
    strict, body = Client(enforce_csrf_checks=True), Body()
    box.setup_done = False
    strict.cookies[settings.CSRF_COOKIE_NAME] = "x" * 32
    strict.post(url, **{"wsgi.input": body, "CONTENT_LENGTH": "1000", "CONTENT_TYPE": kind})
    assert body.read_from == (name in BEFORE_THE_LOG_IN)


def test_forms_of_strangers_are_whole_before_they_are_handed_on():
    [unbuffered] = re.findall(r"location ~ (\S+) {[^}]*proxy_request_buffering off", NGINX.read_text())
    handed_on = {name for name, url in urls() if re.match(unbuffered, url)}
    assert "set-up-restore" in handed_on and not handed_on & BEFORE_THE_LOG_IN


@pytest.mark.parametrize(
    ("remote", "header", "address"),
    [
        ("", "192.168.10.7", "192.168.10.7"),
        ("", "::ffff:10.0.0.1", "10.0.0.1"),
        ("", "nonsense", ""),
        ("", "", ""),
        ("127.0.0.1", "192.168.10.7", "127.0.0.1"),
    ],
)
def test_the_address_of_the_browser(remote, header, address):
    request = RequestFactory().get("/", REMOTE_ADDR=remote, headers={"X-Real-IP": header})
    ClientAddress(lambda request: request)(request)
    assert request.META["REMOTE_ADDR"] == address


def test_a_page_that_is_not_there(client):
    answer = client.get("/nowhere/")
    assert answer.status_code == 404
    assert faults.NOT_FOUND.title in words(answer)


@pytest.mark.parametrize(
    ("code", "status", "sentence"),
    [
        (sqlite3.SQLITE_FULL, 507, "The data partition is full"),
        (sqlite3.SQLITE_READONLY, 503, "cannot be written"),
        (sqlite3.SQLITE_IOERR | 3 << 8, 503, "cannot be written"),
        (sqlite3.SQLITE_CORRUPT, 503, "is damaged"),
        (sqlite3.SQLITE_NOTADB, 503, "is damaged"),
        (sqlite3.SQLITE_BUSY, 503, "is busy"),
        (sqlite3.SQLITE_CANTOPEN, 503, "does not answer"),
    ],
)
def test_what_sqlite_says_becomes_a_page(client, monkeypatch, code, status, sentence):
    def fail(*_, **__):
        cause = sqlite3.OperationalError("as SQLite puts it")
        cause.sqlite_errorcode = code
        raise OperationalError("as SQLite puts it") from cause

    values = form_values(client.get("/services/1/"))
    monkeypatch.setattr("draft.store.write_service", fail)
    answer = client.post("/services/1/", values)
    assert answer.status_code == status
    assert sentence in words(answer)
    assert texts.STILL_BALANCES in words(answer)


@pytest.mark.django_db(transaction=True)  # SQLite may take the whole transaction back, the test's own, too
def test_a_database_that_is_really_full(client):
    """SQLite itself refuses; nothing is half saved, and afterwards all is as before."""
    before = draft.current()
    values = form_values(client.get("/services/1/"))
    with connection.cursor() as cursor:
        pages = cursor.execute("PRAGMA page_count").fetchone()[0]
        cursor.execute(f"PRAGMA max_page_count={pages}")
    try:
        grown = {"servers-TOTAL_FORMS": "303"} | {
            f"servers-{row}-{name}": value
            for row in range(3, 303)
            for name, value in (("address", f"10.2.0.{row % 200 + 40}"), ("port", str(1000 + row)), ("weight", "1"))
        }
        answer = client.post("/services/1/", values | grown)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA max_page_count=1073741823")
    assert answer.status_code == 507
    assert faults.FULL.title in words(answer)
    assert client.get("/services/1/").status_code == 200 and draft.current() == before


def test_an_input_error_of_a_full_partition_is_called_full(monkeypatch):
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR
    assert faults.fault_of(error) is faults.READ_ONLY
    monkeypatch.setattr("web.faults.no_room", lambda: True)
    assert faults.fault_of(error) is faults.FULL


def test_an_error_outside_the_views_is_readable_too(client, monkeypatch):
    def fail(*_, **__):
        raise DatabaseError("database disk image is malformed")

    monkeypatch.setattr("accounts.session_store.SessionStore._get_session_from_db", fail)
    answer = client.get("/")
    assert answer.status_code == 503
    assert "does not answer" in words(answer)


def test_a_mistake_of_ours(client, monkeypatch):
    monkeypatch.setattr("monitoring.views.services", lambda frame: 1 / 0)
    answer = client.get("/")
    assert answer.status_code == 500
    assert "This page failed" in words(answer)
    assert "ZeroDivisionError" not in words(answer)


def test_every_fault_says_what_to_do():
    for fault in {*faults.BY_SQLITE_CODE.values(), faults.UNKNOWN_STORE, faults.MISTAKE}:
        assert fault.title and fault.what and fault.do
