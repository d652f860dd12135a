"""Set-up, log-in, lock-out, idle time, passwords."""

import time

import pytest
from django.contrib.auth import get_user_model
from forms_on_page import words
from tests.django.conftest import PASSWORD

from applier import fake
from lbconfig.snapshot import FACTORY

NEW = {"code": fake.SETUP_CODE, "username": "kim", "password": "rope and tide", "again": "rope and tide"}


@pytest.fixture
def new_box(box):
    return fake.reset(instant=True, snapshot=FACTORY, confirmed=None)


def log_in(client, password: str):
    return client.post("/login/", {"username": "admin", "password": password})


def test_a_new_box_shows_only_the_set_up_page(new_box, stranger):
    for url in ("/", "/login/", "/network/", "/changes/"):
        assert stranger.get(url).headers["Location"] == "/set-up/"
    assert stranger.get("/set-up/").status_code == 200


def test_set_up_creates_the_admin_spends_the_code_and_logs_in(new_box, stranger):
    assert stranger.post("/set-up/", NEW).headers["Location"] == "/"
    assert get_user_model().objects.get().check_password("rope and tide")
    assert new_box.setup_done
    assert "Add your first virtual service" in words(stranger.get("/"))


@pytest.mark.parametrize("code", ["test code 2222", "testcode2222", " TEST-CODE-2222 "])
def test_the_code_may_be_typed_in_any_way(new_box, stranger, code):
    assert stranger.post("/set-up/", NEW | {"code": code}).status_code == 302


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("code", "", "Please fill this in."),
        ("code", "ABCD-EFGH-JKMN", "This is not the code on the console."),
        ("code", "x" * 50, "at most 40 characters"),
        ("username", "", "Please fill this in."),
        ("username", "no spaces", "Enter a valid username"),
        ("username", "nul\0", "Null characters are not allowed"),
        ("password", "short", "too short"),
        ("password", "1234567890", "too common"),
        ("again", "something else", "The two passwords are not the same."),
    ],
)
def test_a_wrong_field_is_named_and_nobody_is_created(new_box, stranger, field, value, sentence):
    answer = stranger.post("/set-up/", NEW | {field: value})
    assert answer.status_code == 200
    assert sentence in words(answer)
    assert not get_user_model().objects.exists()
    assert not new_box.setup_done


def test_guessing_codes_is_slowed_down(new_box, stranger):
    for _ in range(5):
        stranger.post("/set-up/", NEW | {"code": "ABCD-EFGH-JKMN"})
    assert "Too many wrong codes" in words(stranger.post("/set-up/", NEW))


def test_set_up_is_closed_without_a_code(stranger, admin):
    answer = stranger.get("/set-up/")
    assert answer.status_code == 403
    assert "Set-up is closed" in words(answer)
    assert stranger.post("/set-up/", NEW).status_code == 403
    assert get_user_model().objects.count() == 1


def test_set_up_waits_for_the_applier(new_box, stranger):
    new_box.reachable = False
    answer = stranger.get("/set-up/")
    assert answer.status_code == 503
    assert "not ready" in words(answer)


def test_a_code_gives_an_existing_admin_a_new_password(box, stranger, admin):
    box.setup_done = False
    answer = stranger.post("/set-up/", NEW)
    assert "It knows: admin." in words(answer)
    assert stranger.post("/set-up/", NEW | {"username": "admin"}).status_code == 302
    admin.refresh_from_db()
    assert admin.check_password("rope and tide")


def test_log_in_and_out(stranger, admin):
    assert stranger.get("/network/").headers["Location"] == "/login/?next=/network/"
    answer = stranger.post("/login/", {"username": "admin", "password": PASSWORD, "next": "/network/"})
    assert answer.headers["Location"] == "/network/"
    assert stranger.get("/network/").status_code == 200
    assert stranger.get("/logout/").status_code == 405
    stranger.post("/logout/")
    assert stranger.get("/network/").status_code == 302


def test_log_in_leads_to_no_other_host(stranger, admin):
    answer = stranger.post("/login/", {"username": "admin", "password": PASSWORD, "next": "//elsewhere.example/"})
    assert answer.headers["Location"] == "/"


def test_wrong_passwords_lock_the_name_out_at_this_address_only(stranger, admin):
    for _ in range(5):
        assert "is wrong" in words(log_in(stranger, "wrong"))
    answer = log_in(stranger, "wrong")
    assert answer.status_code == 429
    assert "For 15 minutes nobody can log in with this name from your address" in words(answer)
    assert log_in(stranger, PASSWORD).status_code == 429
    elsewhere = {"username": "admin", "password": PASSWORD}
    assert stranger.post("/login/", elsewhere, REMOTE_ADDR="192.0.2.9").status_code == 302


def test_a_new_password_ends_the_lock_out(box, stranger, admin):
    for _ in range(6):
        log_in(stranger, "wrong")
    box.setup_done = False
    stranger.post("/set-up/", NEW | {"username": "admin"})
    stranger.post("/logout/")
    assert log_in(stranger, "rope and tide").status_code == 302


def test_an_idle_session_ends_and_the_page_says_why(client):
    session = client.session
    session["seen"] = int(time.time()) - 31 * 60
    session.save()
    assert client.get("/", follow=True).redirect_chain[-1][0] == "/login/?next=/"
    assert "half an hour" in words(client.get("/login/"))


def test_a_page_that_refreshes_itself_does_not_keep_the_session(client):
    session = client.session
    session["seen"] = int(time.time()) - 20 * 60
    session.save()
    before = client.session["seen"]
    client.get("/live/overview/")
    assert client.session["seen"] == before
    client.get("/")
    assert client.session["seen"] > before


def test_htmx_is_sent_to_the_log_in_page_as_a_whole(stranger, admin):
    answer = stranger.get("/live/overview/", headers={"HX-Request": "true"})
    assert (answer.status_code, answer.headers["HX-Redirect"]) == (204, "/login/?next=/live/overview/")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"old_password": "wrong"}, "Your old password was entered incorrectly"),
        ({"new_password2": "another one here"}, "match"),
        ({"new_password1": "short", "new_password2": "short"}, "too short"),
    ],
)
def test_a_wrong_field_changes_no_password(client, admin, change, sentence):
    values = {"old_password": PASSWORD, "new_password1": "tide and rope", "new_password2": "tide and rope"}
    assert sentence in words(client.post("/password/", values | change))
    admin.refresh_from_db()
    assert admin.check_password(PASSWORD)


def test_change_the_password_and_stay_logged_in(client, admin):
    values = {"old_password": PASSWORD, "new_password1": "tide and rope", "new_password2": "tide and rope"}
    assert client.post("/password/", values).status_code == 302
    admin.refresh_from_db()
    assert admin.check_password("tide and rope")
    assert client.get("/").status_code == 200
