"""Set-up, log-in, lock-out, idle time, passwords."""

import contextlib
import threading

import pytest
from django.contrib.auth import get_user_model
from forms_on_page import words
from tests import texts
from tests.django.conftest import PASSWORD
from tests.fake import appliance

from accounts import limits
from lbconfig.model.snapshot import FACTORY
from web.fields import FILL_IN

NEW = {"code": appliance.SETUP_CODE, "username": "kim", "password": "rope and tide", "again": "rope and tide"}
SIX, SAME_NETWORK, ANOTHER = "2001:db8:1:1::7", "2001:db8:1:1:ffff::8", "2001:db8:1:2::7"


@pytest.fixture
def new_box(box):
    return appliance.reset(instant=True, snapshot=FACTORY, confirmed=None)


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
    assert texts.FIRST_SERVICE in words(stranger.get("/"))


@pytest.mark.parametrize("code", ["test code 2222", "testcode2222", " TEST-CODE-2222 "])
def test_the_code_may_be_typed_in_any_way(new_box, stranger, code):
    assert stranger.post("/set-up/", NEW | {"code": code}).status_code == 302


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("code", "", FILL_IN),
        ("code", "ABCD-EFGH-JKMN", "This is not the code on the console."),
        ("code", "x" * 50, "at most 40 characters"),
        ("username", "", FILL_IN),
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
    """For who guesses, and for nobody else: five wrong codes a minute from anybody kept the admin out."""
    wrong = {"code": "ABCD-EFGH-JKMN"}
    for number in range(5):
        url, values = (("/set-up/", NEW | wrong), ("/set-up/restore/code/", wrong))[number % 2]
        stranger.post(url, values, REMOTE_ADDR=f"2001:db8:1:1::{number}")
    said = "Too many wrong set-up codes from 2001:db8:1:1::/64. Try again in a minute."
    assert said in words(stranger.post("/set-up/", NEW, REMOTE_ADDR=SIX))
    right = {"code": appliance.SETUP_CODE}
    assert said in words(stranger.post("/set-up/restore/code/", right, REMOTE_ADDR=SIX))
    assert stranger.post("/set-up/", NEW, REMOTE_ADDR=ANOTHER).headers["Location"] == "/"


def test_a_stranger_has_no_status_asked(new_box, stranger, monkeypatch):
    """It costs the root daemon a look at the whole table."""
    monkeypatch.setattr(appliance.Fake, "status", lambda *_: pytest.fail("it was asked"))
    for url in ("/", "/set-up/", "/set-up/restore/", "/login/", "/confirm/x/"):
        stranger.get(url)
    stranger.post("/set-up/", NEW | {"code": "ABCD-EFGH-JKMN"})
    stranger.post("/set-up/restore/code/", {"code": "ABCD-EFGH-JKMN"})
    stranger.post("/confirm/x/")


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


def test_addresses_of_one_network_of_ipv6_share_a_lock_out(stranger, admin):
    """Who has one address of IPv6 has 2**64: sixteen guesses from sixteen of them met no limit."""
    wrong, right = {"username": "admin", "password": "wrong"}, {"username": "admin", "password": PASSWORD}
    for number in range(6):
        answer = stranger.post("/login/", wrong, REMOTE_ADDR=f"2001:db8:1:1::{number}")
    assert answer.status_code == 429
    assert stranger.post("/login/", right, REMOTE_ADDR=SAME_NETWORK).status_code == 429
    assert stranger.post("/login/", right, REMOTE_ADDR=ANOTHER).status_code == 302


@pytest.fixture
def hashed(settings, monkeypatch) -> list[str]:
    """What was hashed."""
    settings.PASSWORD_HASHERS = ["accounts.limits.FewAtOnce"]
    found: list[str] = []
    monkeypatch.setattr(limits.FewAtOnce, "iterations", 1)
    plain = limits.PBKDF2PasswordHasher.encode
    monkeypatch.setattr(
        limits.PBKDF2PasswordHasher, "encode", lambda self, *args: found.append(args[0]) or plain(self, *args)
    )
    return found


def test_whatever_the_names_only_some_passwords_of_a_source_are_hashed(stranger, hashed):
    """45 log-ins with different names took the page away for 44 seconds."""
    get_user_model().objects.create_user("admin", password=PASSWORD)
    hashed.clear()
    answers = [stranger.post("/login/", {"username": f"name{i}", "password": f"guess{i}"}) for i in range(45)]
    assert [one.status_code for one in answers] == [200] * 10 + [429] * 35
    assert {one for one in hashed if one.startswith("guess")} == {f"guess{i}" for i in range(10)}
    assert "Too many log-ins from 127.0.0.1. Try again in a minute." in words(answers[-1])
    assert answers[-1].headers["Retry-After"] == "60"
    elsewhere = {"username": "admin", "password": PASSWORD}
    assert stranger.post("/login/", elsewhere, REMOTE_ADDR="192.0.2.9").status_code == 302


def test_a_log_in_that_succeeds_forgets_the_tries_before(stranger, admin):
    for number in range(9):
        stranger.post("/login/", {"username": f"name{number}", "password": "wrong"})
    for _ in range(3):
        assert log_in(stranger, PASSWORD).status_code == 302
        stranger.post("/logout/")


def test_one_log_in_of_a_source_is_looked_at_at_a_time(stranger, admin):
    with limits.logging_in("127.0.0.1"):
        assert "Another log-in from your address" in words(log_in(stranger, PASSWORD))
        elsewhere = {"username": "admin", "password": PASSWORD}
        assert stranger.post("/login/", elsewhere, REMOTE_ADDR="192.0.2.9").status_code == 302
    stranger.post("/logout/")
    assert log_in(stranger, PASSWORD).status_code == 302


def test_few_log_ins_are_looked_at_at_a_time(stranger, admin):
    with contextlib.ExitStack() as stack:
        for number in range(limits.LOG_INS):
            stack.enter_context(limits.logging_in(f"192.0.2.{number}"))
        answer = log_in(stranger, PASSWORD)
    assert answer.status_code == 429 and "Many are logging in" in words(answer)


def test_two_passwords_are_hashed_at_once(monkeypatch):
    begun, most, go_on = threading.Semaphore(0), [], threading.Event()

    def slow(*_):
        most.append(1)
        begun.release()
        go_on.wait(60)
        return ""

    monkeypatch.setattr(limits.PBKDF2PasswordHasher, "encode", slow)
    threads = [threading.Thread(target=limits.FewAtOnce().encode, args=("x", "salt")) for _ in range(4)]
    for one in threads:
        one.start()
    for _ in range(limits.HASHES):
        assert begun.acquire(timeout=20)
    assert not begun.acquire(timeout=0.05) and len(most) == limits.HASHES
    go_on.set()
    for one in threads:
        one.join()


def test_a_new_password_ends_the_lock_out(box, stranger, admin):
    for _ in range(6):
        log_in(stranger, "wrong")
    box.setup_done = False
    stranger.post("/set-up/", NEW | {"username": "admin"})
    stranger.post("/logout/")
    assert log_in(stranger, "rope and tide").status_code == 302


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
