"""Backup files: taken, opened, refused, restored on the same box and on a new one; the factory reset."""

import dataclasses
import io
import json
import sqlite3
import tarfile
from contextlib import closing

import pytest
from django.contrib.auth import get_user_model
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.db import connection
from django.db.utils import ConnectionHandler
from django.test import Client
from forms_on_page import form_values, words
from tests.django.conftest import PASSWORD

from accounts import tokens
from accounts.models import ApiToken
from applier import fake, sqlite_copy
from applier.errors import ApplierRefused
from changes import actions, draft
from changes.models import Revision
from fairlead import files
from lbconfig.snapshot import FACTORY, Bond, Bridge, Interface, Vlan, from_json
from system import backupfile, restoring, sealed
from system.models import Restored

pytestmark = pytest.mark.django_db(transaction=True)

PASSPHRASE = "rope and tide and moon"


@pytest.fixture(autouse=True)
def any_database(transactional_db, monkeypatch):
    """Django's tests admit no databases that are listed and not theirs; that of a backup file is such a one."""
    listed = ConnectionHandler.__iter__
    hidden = lambda handler: (alias for alias in listed(handler) if alias != restoring.ALIAS)  # noqa: E731
    monkeypatch.setattr(ConnectionHandler, "__iter__", hidden)


@pytest.fixture(autouse=True)
def cheap(monkeypatch):
    """A test need not cost a guesser anything."""
    monkeypatch.setattr(sealed.Writer.__init__, "__defaults__", (sealed.Cost(4, 8, 1),))


@pytest.fixture
def file(client, admin, box) -> bytes:
    """Of a box with a token, a history, and a draft that does not run."""
    tokens.make(admin, "night job")
    edit(client, "mail of the file")
    return take(client)


def take(client) -> bytes:
    answer = client.post("/system/backup/", {"passphrase": PASSPHRASE, "again": PASSPHRASE})
    assert answer.headers["Content-Disposition"].endswith('.fairlead-backup"'), words(answer)
    return b"".join(answer.streaming_content)


def edit(client, name):
    client.post("/services/2/", form_values(client.get("/services/2/")) | {"name": name})


def send(client, content, passphrase=PASSPHRASE, url="/system/backup/restore/"):
    return client.post(url, {"file": SimpleUploadedFile("x.fairlead-backup", content), "passphrase": passphrase})


def restore(client, content):
    assert send(client, content).headers["Location"] == "/system/backup/restore/review/"
    return client.post("/system/backup/restore/review/", form_values(client.get("/system/backup/restore/review/")))


def opened(content: bytes, tmp_path) -> dict[str, bytes]:
    """The archive inside, by nothing but the library's own means."""
    plain = sealed.Reader(io.BytesIO(content), PASSPHRASE).read()
    with tarfile.open(fileobj=io.BytesIO(plain), mode="r:gz") as archive:
        return {member.name: archive.extractfile(member).read() for member in archive}


def sealed_up(members: dict[str, bytes]) -> bytes:
    plain, out = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    writer = sealed.Writer(out, PASSPHRASE)
    writer.write(plain.getvalue())
    writer.close()
    return out.getvalue()


def state() -> tuple:
    """What a refused file must not touch."""
    users = list(get_user_model().objects.order_by("pk").values_list("username", "password"))
    return users, draft.current(), list(Revision.objects.values_list("number", "user")), ApiToken.objects.count()


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
        ({}, "Please fill this in."),
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
    monkeypatch.setattr(files, "HEADROOM", 1 << 60)
    answer = client.post("/system/backup/", {"passphrase": PASSPHRASE, "again": PASSPHRASE})
    assert "there is no room" in words(answer)


def test_a_file_for_which_there_is_no_room_is_not_read(client, file, monkeypatch):
    monkeypatch.setattr(files, "HEADROOM", 1 << 60)
    answer = send(client, file)
    assert answer.status_code == 507 and "The data partition is full" in words(answer)


@pytest.mark.parametrize("path", ["backup/", "backup/restore/", "backup/restore/review/", "backup/restored/", "reset/"])
def test_for_admins_only(stranger, admin, path):
    assert stranger.get(f"/system/{path}").headers["Location"].startswith("/login/")
    assert stranger.post(f"/system/{path}", {"hostname": "sample"}).headers["Location"].startswith("/login/")


# --- refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [0, 16, 17, 25, 60, 5000, -20, -1])
def test_an_altered_file_changes_nothing(client, file, settings, place):
    before, altered = state(), bytearray(file)
    altered[place] ^= 1
    answer = send(client, bytes(altered))
    assert answer.status_code == 422
    assert state() == before
    assert list(settings.INCOMING.iterdir()) == []
    assert client.get("/system/backup/restore/review/").status_code == 302


@pytest.mark.parametrize("left", [0, 30, 52, 5000, -1])
def test_half_a_file_changes_nothing(client, file, left):
    before = state()
    assert send(client, file[:left]).status_code == 422
    assert state() == before


def test_a_wrong_passphrase_says_so(client, file):
    answer = send(client, file, PASSPHRASE + "!")
    assert answer.status_code == 422
    assert "The passphrase is wrong, or the file is damaged" in words(answer)


def test_no_file_at_all(client):
    answer = client.post("/system/backup/restore/", {"passphrase": PASSPHRASE})
    assert answer.status_code == 422 and "Please fill this in." in words(answer)


def test_too_large_a_file_is_not_read(client, monkeypatch):
    answer = client.post(
        "/system/backup/restore/", b"x", content_type="multipart/form-data; boundary=x", CONTENT_LENGTH=str(1 << 40)
    )
    assert answer.status_code == 413
    with pytest.raises(files.StopUpload):
        handler = files.ToDisk(None, 10)
        handler.new_file("file", "x", None, None, None)
        handler.receive_data_chunk(b"x" * 11, 0)


@pytest.mark.parametrize(
    "change",
    [
        {"database.sqlite3": b"no database"},
        {"database.sqlite3": b""},
        {"database.sqlite3": None},
        {"draft.json": b"{"},
        {"draft.json": b'{"schema": 99}'},
        {"about.json": b"[]"},
        {"about.json": b'{"format": 1}'},
        {"about.json": b"\xff"},
        {"key.pem": None},
    ],
    ids=str,
)
def test_what_is_sealed_and_no_backup_all_the_same(client, file, tmp_path, settings, change):
    before = state()
    members = {name: text for name, text in (opened(file, tmp_path) | change).items() if text is not None}
    assert send(client, sealed_up(members)).status_code == 422
    assert state() == before
    assert list(settings.INCOMING.iterdir()) == []


def test_a_stream_that_is_no_archive(client):
    out = io.BytesIO()
    writer = sealed.Writer(out, PASSPHRASE)
    writer.write(b"hello")
    writer.close()
    assert send(client, out.getvalue()).status_code == 422


def test_names_in_an_archive_lead_nowhere(client, file, tmp_path, settings):
    members = opened(file, tmp_path) | {"../../evil": b"x", "/etc/evil": b"x", "more.json": b"from a newer version"}
    assert send(client, sealed_up(members)).status_code == 302
    (folder,) = settings.INCOMING.iterdir()
    assert sorted(path.name for path in folder.iterdir()) == sorted([*backupfile.TEXTS, "database.sqlite3"])
    assert not (tmp_path / "evil").exists()


def with_database(file, tmp_path, sql: str) -> bytes:
    members = opened(file, tmp_path)
    path = tmp_path / "changed"
    path.write_bytes(members["database.sqlite3"])
    with closing(sqlite3.connect(path)) as database:
        database.executescript(sql)
    return sealed_up(members | {"database.sqlite3": path.read_bytes()})


@pytest.mark.parametrize(
    ("sql", "sentence"),
    [
        ("CREATE TRIGGER t AFTER INSERT ON auth_user BEGIN DELETE FROM auth_user; END", "altered"),
        ("CREATE VIEW v AS SELECT 1", "altered"),
        ("PRAGMA foreign_keys=OFF; UPDATE accounts_apitoken SET user_id = 99", "altered"),
        ("DELETE FROM accounts_apitoken; DELETE FROM auth_user", "has no users"),
        ("UPDATE auth_user SET is_active = 0", "has no users"),
        ("INSERT INTO django_migrations (app, name, applied) VALUES ('changes', '0099_x', '2030-01-01')", "newer"),
        ("DROP TABLE changes_revision; DROP TABLE changes_draft", "altered"),
    ],
)
def test_a_database_that_will_not_do(client, file, tmp_path, sql, sentence):
    before = state()
    answer = send(client, with_database(file, tmp_path, sql))
    if answer.status_code == 302:  # its tables are missed when it is put in
        answer = client.post("/system/backup/restore/review/", form_values(client.get(answer.headers["Location"])))
        assert answer.status_code == 503
    else:
        assert answer.status_code == 422 and sentence in words(answer)
    assert state() == before


# --- restored --------------------------------------------------------------------------------------


def test_the_page_says_what_is_in_it_and_what_goes(client, file, alice):
    edit(alice, "mail of alice")
    send(client, file)
    text = words(client.get("/system/backup/restore/review/"))
    assert "by sample, version 0.1.0" in text
    assert "3 revisions" in text
    assert "These names are not in the file: alice" in text
    assert "1 change of the draft that does not run ; edited by" in text and "virtual service 'mail of alice'" in text
    assert "Everybody is logged out, you too." in text


def test_users_tokens_history_and_draft_come_back(client, file, alice, admin, box):
    was = ApiToken.objects.get().digest
    admin.set_password("something else entirely")
    admin.save()
    client.post("/login/", {"username": "admin", "password": "something else entirely"})
    edit(alice, "mail of alice")
    ApiToken.objects.all().delete()
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
    assert "as in the file" in text and "Review changes" in text
    assert "mail of the file" in words(client.get("/changes/"))


def test_the_box_is_usable_afterwards(client, file, box):
    restore(client, file)
    client.post("/login/", {"username": "admin", "password": PASSWORD})
    edit(client, "mail after")
    answer = client.post("/changes/apply/", form_values(client.get("/changes/")) | {"comment": "after the restore"})
    assert "The changes run" in words(client.get(answer.headers["Location"]))
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
    """As a version before candidates and corrected comments would have written it."""
    members = opened(file, tmp_path)
    path = tmp_path / "old"
    path.write_bytes(members["database.sqlite3"])
    with restoring._as_django(path) as alias:
        call_command("migrate", "changes", "0001", database=alias, verbosity=0)
        call_command("migrate", "system", "zero", database=alias, verbosity=0)
    old = json.loads(members["draft.json"]) | {"schema": 1}
    for service in old["services"]:
        for server in service["real_servers"]:
            server["enabled"] = server.pop("state") != "disabled"
    content = sealed_up(members | {"database.sqlite3": path.read_bytes(), "draft.json": json.dumps(old).encode()})
    restore(client, content)
    assert "changes_candidate" in connection.introspection.table_names()
    assert Revision.objects.count() == 3
    assert Restored.objects.get().done


# --- on a new box ----------------------------------------------------------------------------------


@pytest.fixture
def new_box(file, settings):
    """The file, and a box that nobody has set up."""
    call_command("flush", interactive=False, verbosity=0)
    fake.reset(instant=True, snapshot=FACTORY, confirmed=None)
    return fake.box


def code(client, text=fake.SETUP_CODE):
    return client.post("/set-up/restore/", {"code": text})


def test_a_new_box_takes_a_backup_file_in_place_of_a_set_up(new_box, file):
    stranger = Client()
    assert "restore a backup file" in words(stranger.get("/set-up/"))
    assert "First the code" in words(stranger.get("/set-up/restore/"))
    assert code(stranger).status_code == 302
    answer = send(stranger, file, url="/set-up/restore/")
    assert answer.headers["Location"] == "/login/?next=/system/backup/restored/"
    assert new_box.setup_done
    login = {"username": "admin", "password": PASSWORD, "next": "/system/backup/restored/"}
    assert stranger.post("/login/", login).headers["Location"] == "/system/backup/restored/"
    text = words(stranger.get("/system/backup/restored/"))
    assert "as in the file" in text
    assert "Virtual service 'mail of the file'" in words(stranger.get("/changes/"))
    assert sorted(Revision.objects.values_list("number", flat=True)) == [1, 2, 3]
    assert new_box.recovery.number == 3


def test_interfaces_that_the_box_does_not_have_are_named(new_box, file):
    stranger = Client()
    code(stranger)
    send(stranger, file, url="/set-up/restore/")
    stranger.post("/login/", {"username": "admin", "password": PASSWORD})
    assert "interfaces that this box does not have: eth1 ." in words(stranger.get("/system/backup/restored/"))


def test_what_the_draft_makes_by_itself_is_not_missing(new_box, file):
    """Of VLANs, bonds and bridges only the cards that they are made of."""
    stranger = Client()
    code(stranger)
    send(stranger, file, url="/set-up/restore/")
    stranger.post("/login/", {"username": "admin", "password": PASSWORD})
    made = (
        Interface("eth0"),
        Interface("eth0.5", vlan=Vlan("eth0", 5), addresses=("10.5.0.2/24",)),
        Interface("bond0", bond=Bond(("eth6", "eth7"))),
        Interface("br0", bridge=Bridge(("eth0.6",))),
        Interface("eth0.6", vlan=Vlan("eth0", 6)),
        Interface("bond0.9", vlan=Vlan("bond0", 9)),
    )
    draft.write_network(dataclasses.replace(draft.current().network, interfaces=made), "admin")
    said = "interfaces that this box does not have: eth6, eth7 ."
    assert said in words(stranger.get("/system/backup/restored/"))


def test_the_code_comes_before_any_file(new_box, file, settings):
    stranger = Client()
    answer = send(stranger, file, url="/set-up/restore/")
    assert answer.status_code == 422 and "First the code" in words(answer)
    assert "This is not the code on the console." in words(code(stranger, "ABCD-EFGH-JKMN"))
    assert "First the code" in words(stranger.get("/set-up/restore/"))
    assert not get_user_model().objects.exists()


def test_a_refused_file_leaves_a_new_box_new(new_box, file):
    stranger = Client()
    code(stranger)
    assert send(stranger, file[:-1], url="/set-up/restore/").status_code == 422
    assert send(stranger, file, "wrong wrong wrong", url="/set-up/restore/").status_code == 422
    assert not get_user_model().objects.exists() and not new_box.setup_done
    assert send(stranger, file, url="/set-up/restore/").status_code == 302


def test_a_box_that_is_set_up_takes_none_there(client, stranger, file, box):
    assert stranger.get("/set-up/restore/").headers["Location"] == "/set-up/"
    box.setup_done = False  # a code for a forgotten password does not open the way to another box's users
    assert send(stranger, file, url="/set-up/restore/").headers["Location"] == "/set-up/"


# --- factory reset ---------------------------------------------------------------------------------


def test_the_reset_asks_for_the_name_and_says_what_goes(client, box):
    text = words(client.get("/system/reset/"))
    assert "Type sample to confirm" in text
    assert "The configuration of the version in the other slot is forgotten, too" in text
    answer = client.post("/system/reset/", {"hostname": "sample"})
    assert "The box forgets everything and restarts" in words(answer)
    assert box.recovery.resets == ["admin"]


@pytest.mark.parametrize("name", ["", "simple", "SAMPLE", "sample; reboot", "s" * 300, "\u202esample"])
def test_a_wrong_name_resets_nothing(client, box, name):
    assert client.post("/system/reset/", {"hostname": name}).status_code == 422
    assert box.recovery.resets == []


def test_the_name_is_that_of_what_runs_and_not_of_the_draft(client, box):
    now = draft.current()
    draft.replace(dataclasses.replace(now, network=dataclasses.replace(now.network, hostname="later")), "admin")
    assert "Type sample to confirm" in words(client.get("/system/reset/"))
    assert client.post("/system/reset/", {"hostname": "later"}).status_code == 422


def test_a_reset_that_the_applier_refuses(client, box):
    box.reachable = False
    answer = client.post("/system/reset/", {"hostname": "sample"})
    assert answer.status_code == 422 and "cannot be reached" in words(answer)


def test_the_draft_of_a_restored_box_can_name_other_interfaces(file):
    """Interfaces are compared by name, whatever else a configuration has of them."""
    snapshot = dataclasses.replace(FACTORY, network=dataclasses.replace(FACTORY.network, interfaces=(Interface("x9"),)))
    draft.replace(snapshot, "admin")
    assert [one.name for one in draft.current().network.interfaces] == ["x9"]
    assert actions.fill_if_empty()
