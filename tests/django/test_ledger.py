"""Users and tokens belong to the box: an older slot, an old copy or a backup file brings none of them back."""

import io

import pytest
from api_robot import Robot, robot
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection
from forms_on_page import words
from tests.django.conftest import PASSWORD
from tests.fake import appliance

from accounts import credentials, ledger, tokens
from accounts.models import ApiToken, LedgerNumber
from web import faults

NEW = "rope and tide"
CHANGE = {"old_password": PASSWORD, "new_password1": NEW, "new_password2": NEW}


def by_the_page(client, box):
    page = words(client.get("/password/"))
    assert "Your 1 API token will end with the old password." in page
    answer = client.post("/password/", CHANGE, follow=True)
    assert "Your API token ended with the old one (1)" in words(answer)


def by_a_set_up_code(client, box):
    box.setup_done = False
    client.logout()
    values = {"code": appliance.SETUP_CODE, "username": "admin", "password": NEW, "again": NEW}
    assert client.post("/set-up/", values).status_code == 302


def by_the_console(client, box):
    call_command("reset_password", "admin", stdout=io.StringIO())


@pytest.mark.parametrize("way", [by_the_page, by_a_set_up_code, by_the_console])
def test_tokens_end_with_the_password(client, admin, alice, box, way):
    mine, hers = robot(admin), robot(get_user_model().objects.get(username="alice"))
    way(client, box)
    assert mine.get("/status").status_code == 401
    assert hers.get("/status").status_code == 200
    assert [one.user for one in ledger.load().tokens] == ["alice"]


# --- the other slot --------------------------------------------------------------------------------


class Slot:
    """The rows of users and tokens as they were, for a slot that comes back."""

    def __init__(self) -> None:
        self.users = list(get_user_model().objects.values())
        self.tokens = list(ApiToken.objects.values())
        self.number = LedgerNumber.objects.get().number

    def start(self) -> None:
        with ledger._unfollowed():
            get_user_model().objects.all().delete()
            get_user_model().objects.bulk_create([get_user_model()(**row) for row in self.users])
            ApiToken.objects.bulk_create([ApiToken(**row) for row in self.tokens])
        LedgerNumber.objects.update(number=self.number)
        call_command("prepare")


@pytest.fixture
def older(admin) -> Slot:
    """It knows two tokens, and the first password."""
    for name in ("revoked", "kept"):
        tokens.make_record(admin, name, ["read"])
        ApiToken.objects.filter(name=name).update(digest=tokens.digest(name))
    ledger.keep()
    return Slot()


def test_an_older_slot_knows_what_was_taken_back(admin, older):
    ApiToken.objects.get(name="revoked").delete()
    made = tokens.make(admin, "made later", ["read"], networks=["127.0.0.0/8"])
    admin.set_password(NEW)
    admin.save()
    get_user_model().objects.create_user("kim", password=PASSWORD)
    older.start()
    assert Robot("revoked").get("/status").status_code == 401
    assert Robot("kept").get("/status").status_code == 200
    assert Robot(made, REMOTE_ADDR="127.0.0.1").get("/status").status_code == 200
    assert Robot(made, REMOTE_ADDR="10.0.0.1").get("/status").status_code == 403
    assert get_user_model().objects.get(username="admin").check_password(NEW)
    assert get_user_model().objects.get(username="kim").check_password(PASSWORD)
    assert LedgerNumber.objects.get().number == ledger.load().number


@pytest.mark.parametrize("step", ["_put_users", "_set_number", "migrate"])
def test_an_older_slot_that_starts_on_a_full_disk_lets_nobody_in_by_an_old_password(
    admin, older, stranger, monkeypatch, step
):
    """Until there is room again: then the first request brings it forward."""
    ApiToken.objects.get(name="revoked").delete()
    credentials.set_password(admin, NEW)
    stranger.raise_request_exception = False
    tell = {"username": "admin", "password": PASSWORD}
    with monkeypatch.context() as full:

        def fails(*words, **more) -> None:
            raise OSError(28, "No space left on device")

        if step == "migrate":
            full.setattr("system.tables.call_command", fails)
            full.setattr(ledger, "_put_users", fails)
        else:
            full.setattr(ledger, step, fails)
        older.start()
        answer = stranger.post("/login/", tell)
        assert answer.status_code == 507 and faults.FULL.title in words(answer)
        assert Robot("revoked").get("/status").status_code == 507
    assert stranger.post("/login/", tell).status_code == 200
    assert Robot("revoked").get("/status").status_code == 401
    assert stranger.post("/login/", tell | {"password": NEW}).status_code == 302


def test_a_user_who_is_gone_is_gone_in_the_older_slot(admin, alice):
    older = Slot()
    get_user_model().objects.get(username="alice").delete()
    older.start()
    assert [one.username for one in get_user_model().objects.all()] == ["admin"]
    assert alice.get("/").status_code == 302


def test_the_newer_of_both_is_right_whatever_a_power_cut_left(admin, older):
    """The file is written first; a database that was replaced as a whole comes before it."""
    LedgerNumber.objects.update(number=older.number + 5)
    with ledger._unfollowed():
        get_user_model().objects.update(password="of the restored database")
    call_command("prepare")
    assert [one.password for one in ledger.load().users] == ["of the restored database"]
    assert ledger.load().number == older.number + 6


@pytest.mark.parametrize("text", ["", "{", "[]", '{"number": "x"}', '{"number": 1}', "[" * 100_000])
def test_a_file_that_cannot_be_read_is_made_anew(admin, settings, text):
    settings.LEDGER.write_text(text)
    call_command("prepare")
    assert [one.name for one in ledger.load().users] == ["admin"]
    assert settings.LEDGER.stat().st_mode & 0o777 == 0o600


def test_who_logs_in_changes_nothing_of_it(client, admin, settings):
    before = settings.LEDGER.read_text()
    client.post("/login/", {"username": "admin", "password": PASSWORD})
    robot(admin).get("/status")
    ApiToken.objects.all().delete()
    assert ledger.load().users == ledger.Ledger.from_json(before).users


def test_on_a_full_disk_nothing_is_changed(client, admin, settings, monkeypatch):
    """Who is told that nothing could be saved finds his old password, and his token."""
    mine = robot(admin)
    monkeypatch.setattr(ledger, "sync", lambda path: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    answer = client.post("/password/", CHANGE)
    assert answer.status_code == 507 and faults.FULL.title in words(answer)
    admin.refresh_from_db()
    assert admin.check_password(PASSWORD) and mine.get("/status").status_code == 200


def test_a_restored_copy_of_the_database_is_brought_forward(admin, older, capsys, monkeypatch):
    credentials.set_password(admin, NEW)
    monkeypatch.setattr("web.backups.damage", lambda path: "")
    monkeypatch.setattr("web.backups.restore", lambda backup: None)
    with ledger._unfollowed():
        get_user_model().objects.update(password="old")
    LedgerNumber.objects.update(number=older.number)
    monkeypatch.setattr(connection, "close", lambda: None)
    call_command("restore_database", "--even-if-whole")
    assert "Users and API tokens are those that the box had last." in capsys.readouterr().out
    assert get_user_model().objects.get().check_password(NEW)
