"""Backup files that are refused: altered, cut short, with a wrong passphrase, or with something else inside."""

import io
import sqlite3
from contextlib import closing

import pytest
import sealed_backups
from forms_on_page import form_values, words
from sealed_backups import PASSPHRASE, opened, sealed_up, send, state

from system import backupfile, sealed
from web import files, room
from web.fields import FILL_IN

pytestmark = pytest.mark.django_db(transaction=True)
any_database, cheap, file = sealed_backups.any_database, sealed_backups.cheap, sealed_backups.file


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
    assert answer.status_code == 422 and FILL_IN in words(answer)


def test_too_large_a_file_is_not_read(client, settings):
    answer = client.post(
        "/system/backup/restore/", b"x", content_type="multipart/form-data; boundary=x", CONTENT_LENGTH=str(1 << 40)
    )
    assert answer.status_code == 413
    settings.INCOMING.mkdir()
    with pytest.raises(files.StopUpload):
        handler = files.ToDisk(None, 10, room.Promise(0))
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
        ("DROP TABLE changes_revision; DROP TABLE draft_draft", "altered"),
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
