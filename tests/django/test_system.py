"""The system page, backups, and the commands that prepare and restore the database."""

import io
import sqlite3

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from forms_on_page import words
from tests import texts

from applier.apply.runs import confirmed_sentence
from draft import store as draft
from lbconfig.model.snapshot import to_json
from system.views import words_of
from web import backups


@pytest.fixture
def database(settings, tmp_path):
    """A database file of the test's own, as prepare makes it; Django itself keeps its test database."""
    settings.DATA = tmp_path
    settings.DATABASE = tmp_path / "fairlead.sqlite3"
    settings.SECRET_KEY_FILE = tmp_path / "secret-key"
    connection = sqlite3.connect(settings.DATABASE)
    connection.executescript("PRAGMA journal_mode=WAL; CREATE TABLE t (x); INSERT INTO t VALUES ('kept');")
    connection.close()
    return settings.DATABASE


def damage(path):
    path.write_bytes(path.read_bytes()[:100] + b"\xff" * 3000)


def content(path) -> list:
    connection = sqlite3.connect(path)
    try:
        return connection.execute("SELECT x FROM t").fetchall()
    finally:
        connection.close()


def run(command: str, *arguments) -> str:
    out = io.StringIO()
    call_command(command, *arguments, stdout=out, stderr=out)
    return out.getvalue()


def test_the_system_page(client):
    text = words(client.get("/system/"))
    assert "Version 0.1.0" in text
    assert "revision 3" in text
    assert "None known" in text


def test_words_for_a_time():
    assert [words_of(seconds) for seconds in (59, 3700, 90_000, 200_000)] == [
        "0 min",
        "1 h 1 min",
        "1 day 1 h",
        "2 days 7 h",
    ]


def test_backups_are_whole_and_the_newest_five_stay(database):
    for _ in range(7):
        backups.make()
    found = backups.listed()
    assert len(found) == 5
    assert content(found[0].path) == [("kept",)]
    assert found[0].path.stat().st_mode & 0o777 == 0o600
    assert sorted(found, key=lambda one: one.path.name, reverse=True) == found


def test_a_backup_is_due_once_a_day(database):
    backups.make_if_due()
    backups.make_if_due()
    assert len(backups.listed()) == 1


def test_a_backup_that_cannot_be_made_is_logged(database, settings, caplog):
    settings.BACKUPS.write_text("a file where the folder should be")
    backups.make()
    assert "no backup of the database could be made" in caplog.text


def test_prepare_makes_the_key_once(db, database, settings):
    run("prepare")
    key = settings.SECRET_KEY_FILE.read_text()
    assert len(key) >= 50
    assert settings.SECRET_KEY_FILE.stat().st_mode & 0o777 == 0o600
    run("prepare")
    assert settings.SECRET_KEY_FILE.read_text() == key
    assert not settings.FAULT_FILE.exists()


def test_prepare_with_a_damaged_database_leaves_it_and_says_so(db, database, settings, stranger):
    damage(database)
    before = database.read_bytes()
    assert "cannot be used" in run("prepare")
    assert database.read_bytes() == before
    answer = stranger.get("/")
    assert answer.status_code == 503
    assert "The database of this web page is damaged" in words(answer)
    assert texts.STILL_BALANCES in words(answer)


def test_restore_puts_the_damaged_one_aside_and_takes_the_newest_good_backup(db, database, settings):
    backups.make()
    backups.make()
    damage(backups.listed()[0].path)
    damage(database)
    run("prepare")
    text = run("restore_database")
    assert "Restored the backup" in text
    assert content(database) == [("kept",)]
    assert len(list(settings.DATA.glob("damaged-*/fairlead.sqlite3"))) == 1
    assert not settings.FAULT_FILE.exists()


def test_a_full_partition_is_no_damage(db, database, settings, monkeypatch):
    """Nothing is put aside, no fault is left behind: the pages say it for themselves until there is room."""

    def fail(path):
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR
        raise error

    monkeypatch.setattr("applier.base.sqlite_copy.existing", fail)
    assert "cannot be prepared: disk I/O error" in run("prepare")
    assert not settings.FAULT_FILE.exists()
    with pytest.raises(CommandError, match="disk I/O error"):
        run("restore_database")
    assert content(database) == [("kept",)]


def test_restore_without_room_for_the_copy_changes_nothing(db, database, settings, monkeypatch):
    backups.make()
    damage(database)
    before = database.read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shutil.copyfile", fail)
    with pytest.raises(CommandError, match="No space left"):
        run("restore_database")
    assert database.read_bytes() == before


def test_restore_without_any_backup(db, database, settings):
    damage(database)
    assert "There is no good backup" in run("restore_database")
    assert len(list(settings.DATA.glob("damaged-*/fairlead.sqlite3"))) == 1


def test_restore_leaves_a_whole_database_alone(db, database):
    assert "nothing was changed" in run("restore_database")
    assert content(database) == [("kept",)]


def test_demo(db, box, monkeypatch, tmp_path):
    box.setup_done = False
    snapshot = tmp_path / "snapshot.json"
    snapshot.write_text(to_json(box.snapshot).replace('"sample"', '"show"'))
    monkeypatch.setattr("sys.stdin", io.StringIO(f"a demo password\n{box.setup_code}\n"))
    assert confirmed_sentence(4) in run("demo", "--password-stdin", "--snapshot", str(snapshot))
    assert get_user_model().objects.get().check_password("a demo password")
    assert box.snapshot.network.hostname == draft.current().network.hostname == "show"
    assert box.setup_done


@pytest.mark.parametrize(("stdin", "snapshot", "sentence"), [("", "{}", "no password"), ("pass\n", "{", "is not JSON")])
def test_demo_refuses(db, monkeypatch, tmp_path, stdin, snapshot, sentence):
    file = tmp_path / "snapshot.json"
    file.write_text(snapshot)
    monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
    with pytest.raises(CommandError, match=sentence):
        run("demo", "--password-stdin", "--snapshot", str(file))
