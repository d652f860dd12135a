"""A form that is sent after the log-in has ended: nothing is saved, nothing is lost, and the page says so."""

import pytest
from django.urls import get_resolver
from forms_on_page import form_values, words
from services_on_page import NEW
from tests.django.conftest import PASSWORD

from accounts import sessions
from draft import store as draft

LOG_IN = {"username": "admin", "password": PASSWORD}
ROUTE = {"routes-TOTAL_FORMS": "1", "routes-0-name": "new 1", "routes-0-kind": "route", "routes-0-via": "10.1.0.1"}
SSH = {"name": "ssh", "action": "allow", "where": "box", "protocol": "tcp", "ports": "22", "sources": "10.0.0.0/8"}
PAGES = {
    "service-add": ("/services/add/?preset=web", {"name": "typed in vain"}),
    "service-edit": ("/services/1/", {"name": "typed in vain", "servers-0-address": "10.2.0.77"}),
    "policy": ("/connections/", {"tcp_timeout": "1234"}),
    "sorry": ("/sorry/", {"title": "typed in vain"}),
    "network": ("/network/", {"hostname": "typed-in-vain"}),
    "routes": ("/network/routes/", ROUTE | {"routes-0-target": "10.99.0.0/16"}),
    "names": ("/network/names/", {"dns": "10.99.0.1"}),
    "access": ("/access/", {"allow": "10.99.0.0/16"}),
    "rule-add": ("/firewall/add/", {"name": "typed in vain"}),
    "rule-edit": ("/firewall/1/", {"name": "typed in vain"}),
    "tuning": ("/system/hardware/settings/", {"power": "latency"}),
}
WITHIN_A_PAGE = {"service-detection", "check-try-new", "check-try"}


@pytest.fixture
def over(monkeypatch):
    """Every log-in so far has ended."""
    lasting = sessions.is_over

    def end() -> None:
        ended = [True]
        monkeypatch.setattr(sessions, "is_over", lambda session: ended.pop() if ended else lasting(session))

    return end


def test_every_form_that_takes_long_is_kept():
    found = {one.name for one in get_resolver().url_patterns if getattr(one.callback, "keeps_input", False)}
    assert found == set(PAGES) | WITHIN_A_PAGE


@pytest.mark.parametrize("name", PAGES)
def test_what_was_entered_comes_back(client, over, name):
    url, entered = PAGES[name]
    if name == "rule-edit":
        client.post("/firewall/add/", form_values(client.get("/firewall/add/")) | SSH)
    page = client.get(url)
    assert page.status_code == 200
    values, before = form_values(page) | entered, draft.current()
    over()
    answer = client.post(url, values)
    where = answer.headers["Location"]
    assert where.startswith(f"/login/?next={url.partition('?')[0]}") and "unsaved" not in where
    assert "What you were filling in is kept" in words(client.get(where))
    back = client.post("/login/", LOG_IN | {"next": url})
    assert back.headers["Location"] == url
    page = client.get(url)
    assert page.status_code < 500 and "What you entered is here again" in words(page)
    for field, value in entered.items():
        assert form_values(page)[field] == value
    assert draft.current() == before
    assert "is here again" not in words(client.get(url))


def test_it_can_be_saved_then(client, over):
    over()
    client.post("/services/add/", NEW)
    client.post("/login/", LOG_IN)
    page = client.get("/services/add/")
    assert client.post("/services/add/", NEW | form_values(page)).headers["Location"] == "/"
    assert draft.current().services[-1].name == "web"


def test_another_user_does_not_get_it(client, alice, over):
    over()
    client.post("/services/add/", NEW)
    client.post("/login/", {"username": "alice", "password": PASSWORD})
    page = client.get("/services/add/")
    assert "is here again" not in words(page) and form_values(page)["name"] == ""


def test_a_part_of_the_page_brings_the_whole_form(client, over):
    """The sentence on the health check asks at each change, and the log-in page came with nothing behind it."""
    over()
    headers = {"HX-Request": "true", "HX-Current-URL": "https://lb/services/add/?preset=web"}
    answer = client.post("/services/detection/", NEW, headers=headers)
    assert answer.headers["HX-Redirect"] == "/login/?next=/services/add/%3Fpreset%3Dweb"
    answer = client.post("/login/", LOG_IN | {"next": "/services/add/?preset=web"})
    assert form_values(client.get(answer.headers["Location"]))["name"] == "web"


@pytest.mark.parametrize("url", ["//elsewhere.example/x", "javascript:x", "", "https:///x//"])
def test_a_page_elsewhere_is_nothing_to_go_back_to(stranger, admin, url):
    answer = stranger.get("/live/overview/", headers={"HX-Request": "true", "HX-Current-URL": url})
    assert answer.headers["HX-Redirect"].startswith(("/login/?next=/live/overview/", "/login/?next=/x"))


def test_of_a_stranger_nothing_is_kept_and_he_is_told(stranger, admin):
    answer = stranger.post("/services/add/", NEW)
    assert answer.headers["Location"] == "/login/?next=/services/add/&unsaved=yes"
    assert "what you sent was not saved" in words(stranger.get(answer.headers["Location"]))
    assert not stranger.session.keys()


def test_passwords_are_not_kept(client, over):
    over()
    client.post("/password/", {"old_password": PASSWORD, "new_password1": "x", "new_password2": "x"})
    assert set(client.session.keys()) == {"over"}
