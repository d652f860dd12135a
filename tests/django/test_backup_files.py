"""Backup files: taken, and restored on the same box."""

import json
import sqlite3
from contextlib import closing

import pytest
import sealed_backups
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection
from forms_on_page import form_values, words
from sealed_backups import PASSPHRASE, edit, opened, sealed_up, send, state, take
from tests import texts
from tests.django.conftest import PASSWORD

from accounts import credentials, ledger, tokens
from accounts.models import ApiToken, LedgerNumber
from applier.base import sqlite_copy
from applier.wire.errors import ApplierRefused
from changes.models import Revision
from draft import store as draft
from lbconfig.model.snapshot import from_json
from system import backupfile, restoring
from system.models import Restored
from web import faults, room
from web.fields import FILL_IN

pytestmark = pytest.mark.django_db(transaction=True)
any_database, cheap, file = sealed_backups.any_database, sealed_backups.cheap, sealed_backups.file


def restore(client, content):
    assert send(client, content).headers["Location"] == "/system/backup/restore/review/"
    return client.post("/system/backup/restore/review/", form_values(client.get("/system/backup/restore/review/")))


# --- taking one ------------------------------------------------------------------------------------


def test_what_is_in_a_backup_file(file, box, tmp_path):
    members = opened(file, tmp_path)
    assert set(members) == {*backupfile.TEXTS, "database.sqlite3"}
    assert from_json(members["running.json"].decode()) == box.snapshot
    assert from_json(members["draft.json"].decode()) == draft.current()
    assert members["key.pem"].decode() == box.recovery.key
    (tmp_path / "db").write_bytes(members["database.sqlite3"])
    with closing(sqlite3.connect(tmp_path / "db")) as database:
        count = {name: database.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in (
            "auth_user", "accounts_apitoken", "changes_revision", "django_session", "changes_candidate"
        )}  # fmt: skip
    assert count == {
        "auth_user": 1, "accounts_apitoken": 1, "changes_revision": 3, "django_session": 0, "changes_candidate": 0
    }  # fmt: skip


def test_sessions_leave_no_trace_in_it(client, tmp_path):
    client.get("/")
    key = client.session.session_key.encode()
    assert key not in opened(take(client), tmp_path)["database.sqlite3"]


def test_nothing_is_left_on_the_disk(file, settings):
    assert list(settings.INCOMING.iterdir()) == []


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({}, FILL_IN),
        ({"passphrase": "too short", "again": "too short"}, "at least 12 characters"),
        ({"passphrase": PASSPHRASE, "again": PASSPHRASE + " "}, "are not the same"),
        ({"passphrase": "x" * 129, "again": "x" * 129}, "at most 128 characters"),
        ({"passphrase": "nul\0" * 4, "again": "nul\0" * 4}, "Null characters"),
    ],
)
def test_a_passphrase_that_will_not_do(client, values, sentence):
    answer = client.post("/system/backup/", values)
    assert sentence in words(answer)
    assert "Content-Disposition" not in answer.headers


def test_without_the_applier_there_is_no_backup_file(client, box):
    box.reachable = False
    answer = client.post("/system/backup/", {"passphrase": PASSPHRASE, "again": PASSPHRASE})
    assert "No backup file could be made." in words(answer)


def test_on_a_full_disk(client, monkeypatch):
    monkeypatch.setattr(room, "HEADROOM", 1 << 60)
    answer = client.post("/system/backup/", {"passphrase": PASSPHRASE, "again": PASSPHRASE})
    assert "there is no room" in words(answer)


def test_a_file_for_which_there_is_no_room_is_not_read(client, file, monkeypatch):
    monkeypatch.setattr(room, "HEADROOM", 1 << 60)
    answer = send(client, file)
    assert answer.status_code == 507 and faults.FULL.title in words(answer)


@pytest.mark.parametrize("path", ["backup/", "backup/restore/", "backup/restore/review/", "backup/restored/", "reset/"])
def test_for_admins_only(stranger, admin, path):
    assert stranger.get(f"/system/{path}").headers["Location"].startswith("/login/")
    assert stranger.post(f"/system/{path}", {"hostname": "sample"}).headers["Location"].startswith("/login/")


# --- restored --------------------------------------------------------------------------------------


def test_the_page_says_what_is_in_it_and_what_goes(client, file, alice):
    edit(alice, "mail of alice")
    send(client, file)
    text = words(client.get("/system/backup/restore/review/"))
    assert "by sample, version 0.1.0" in text
    assert "3 revisions" in text
    assert "These names are not in the file: alice" in text
    assert "1 change of the draft that does not run ; edited by" in text and "virtual service 'mail of alice'" in text
    assert "Everybody is logged out, including you." in text


def test_what_was_taken_back_does_not_come_back(client, file, alice, admin):
    """Who restores an old file does not mean a password that somebody else knows, or a token that got loose."""
    credentials.set_password(admin, "something else entirely")
    client.post("/login/", {"username": "admin", "password": "something else entirely"})
    send(client, file)
    assert "a token that was revoked stays revoked" in words(client.get("/system/backup/restore/review/"))
    restore(client, file)
    assert get_user_model().objects.get().check_password("something else entirely")
    assert not ApiToken.objects.exists()
    assert ledger.load().number == LedgerNumber.objects.get().number
    assert [one.name for one in ledger.load().users] == ["admin"]


def test_users_tokens_history_and_draft_come_back(client, file, alice, admin, box):
    was = ApiToken.objects.get().digest
    edit(alice, "mail of alice")
    tokens.make(admin, "another")
    answer = restore(client, file)
    assert answer.headers["Location"] == "/login/?next=/system/backup/restored/"
    assert "The backup file is restored." in words(client.get(answer.headers["Location"]))
    assert list(get_user_model().objects.values_list("username", flat=True)) == ["admin"]
    assert get_user_model().objects.get().check_password(PASSWORD)
    assert ApiToken.objects.get().digest == was
    assert draft.current().services[1].name == "mail of the file"
    assert sorted(Revision.objects.values_list("number", flat=True)) == [1, 2, 3]
    assert client.get("/").status_code == 302 and alice.get("/").status_code == 302  # logged out
    assert client.post("/login/", {"username": "admin", "password": PASSWORD}).status_code == 302
    text = words(client.get("/system/backup/restored/"))
    assert "as in the file" in text and texts.REVIEW in text
    assert "mail of the file" in words(client.get("/changes/"))


def test_the_box_is_usable_afterwards(client, file, box):
    restore(client, file)
    client.post("/login/", {"username": "admin", "password": PASSWORD})
    edit(client, "mail after")
    answer = client.post("/changes/apply/", form_values(client.get("/changes/")) | {"comment": "after the restore"})
    assert texts.APPLIED in words(client.get(answer.headers["Location"]))
    assert Revision.objects.first().comment == "after the restore"
    assert len(take(client)) > 1000


def test_own_revisions_stay_and_numbers_go_on_above(client, file, box):
    """The file is of another box: it has revisions 1 to 3, and this one 2 and 3 of its own and a 4."""
    Revision.objects.filter(number=1).delete()
    Revision.objects.update(comment="of this box")
    Revision.objects.create(number=4, user="kim", comment="of this box", created="2026-02-02T02:02:02Z", snapshot="")
    restore(client, file)
    found = dict(Revision.objects.values_list("number", "comment"))
    assert found.pop(1) != "of this box"
    assert found == dict.fromkeys((2, 3, 4), "of this box")
    assert box.recovery.number == 4
    client.post("/login/", {"username": "admin", "password": PASSWORD})
    client.post("/changes/apply/", form_values(client.get("/changes/")))
    assert box.confirmed == 5


def test_certificate_and_key_go_to_root_and_do_not_stay_in_the_database(client, file, box):
    theirs = box.recovery.certificate
    box.recovery.certificate = box.recovery.key = "of now"
    restore(client, file)
    assert box.recovery.certificate == theirs
    row = Restored.objects.get()
    assert (row.done, row.certificate, row.key, row.trouble) == (True, "", "", "")


def test_a_certificate_that_root_refuses_is_told(client, file, box):
    box.recovery.refuse = ApplierRefused("bad-certificate", "They do not fit.")
    restore(client, file)
    client.post("/login/", {"username": "admin", "password": PASSWORD})
    assert "They do not fit." in words(client.get("/system/backup/restored/"))
    assert Restored.objects.get().key == ""


def test_root_s_part_is_made_up_for_when_it_could_not_be_reached(client, file, box, monkeypatch):
    box.recovery.certificate = "of now"
    send(client, file)
    values = form_values(client.get("/system/backup/restore/review/"))
    monkeypatch.setattr(restoring, "finish", lambda: None)  # the power goes after the one transaction
    client.post("/system/backup/restore/review/", values)
    monkeypatch.undo()
    assert box.recovery.certificate == "of now" and Restored.objects.get().key
    box.reachable = False
    client.post("/login/", {"username": "admin", "password": PASSWORD})
    assert not Restored.objects.get().done
    box.reachable = True
    client.post("/logout/")
    client.post("/login/", {"username": "admin", "password": PASSWORD})
    assert Restored.objects.get().done and box.recovery.certificate != "of now"


def test_a_draft_that_moved_between_look_and_restore_is_asked_for_again(client, alice, file):
    send(client, file)
    looked = form_values(client.get("/system/backup/restore/review/"))
    edit(alice, "mail of alice")
    answer = client.post("/system/backup/restore/review/", looked)
    assert answer.status_code == 409 and "The draft was changed since" in words(answer)
    assert draft.current().services[1].name == "mail of alice"
    assert client.post("/system/backup/restore/review/", form_values(answer)).status_code == 302


def test_a_file_that_another_admin_opened_is_not_mine(client, alice, file):
    send(client, file)
    assert "not open any more" in words(alice.get("/system/backup/restore/review/", follow=True))
    send(alice, file)  # one at a time
    assert "not open any more" in words(client.get("/system/backup/restore/review/", follow=True))


@pytest.mark.parametrize("token", ["", "../../x", "x" * 32, 5])
def test_a_token_leads_to_no_other_folder(client, token):
    session = client.session
    session["opened backup file"] = str(token)
    session.save()
    assert client.get("/system/backup/restore/review/").status_code == 302


def test_a_database_that_is_being_written_is_left_as_it_is(client, file, monkeypatch):
    before = state()
    send(client, file)
    values = form_values(client.get("/system/backup/restore/review/"))

    def locked(*_):
        raise sqlite3.OperationalError("it was locked for 20 seconds")

    monkeypatch.setattr(sqlite_copy, "overwrite", locked)
    answer = client.post("/system/backup/restore/review/", values)
    assert answer.status_code == 503 and "nothing was changed" in words(answer)
    assert state() == before


def test_an_old_backup_file_is_brought_up_to_date(client, file, tmp_path):
    """As a version before pairs and restored boxes would have written it."""
    members = opened(file, tmp_path)
    path = tmp_path / "old"
    path.write_bytes(members["database.sqlite3"])
    with restoring.as_django(path) as alias:
        call_command("migrate", "system", "zero", database=alias, verbosity=0)
    old = json.loads(members["draft.json"]) | {"schema": 1}
    for service in old["services"]:
        for server in service["real_servers"]:
            server["enabled"] = server.pop("state") != "disabled"
    content = sealed_up(members | {"database.sqlite3": path.read_bytes(), "draft.json": json.dumps(old).encode()})
    restore(client, content)
    assert "system_together" in connection.introspection.table_names()
    assert Revision.objects.count() == 3
    assert Restored.objects.get().done
