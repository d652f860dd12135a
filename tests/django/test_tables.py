"""The database of a new box is made with the image, and one that has its tables needs no migration (system.tables).

By processes of their own, as the build and the box begin them: Django's test database is not a file of a box.
"""

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from django.conf import settings

from system import tables

MANAGE = Path(settings.WEBUI) / "manage.py"
USER = "INSERT INTO auth_user VALUES (1, 'x', NULL, 0, 'kim', '', '', 0, 1, '2026-01-01 00:00:00', '')"


class Box:
    """The folder of a web process, and the file that an image brings along."""

    def __init__(self, folder: Path, new: Path) -> None:
        self.data = folder / "web"
        self.database = self.data / "fairlead.sqlite3"
        self.environment = {
            **os.environ,
            "FAIRLEAD_DATA": str(self.data),
            "FAIRLEAD_RUN": str(folder / "run"),
            "FAIRLEAD_LEDGER": str(folder / "ledger.json"),
            "FAIRLEAD_NEW_DATABASE": str(new),
        }

    def run(self, *words: object) -> str:
        """What the command says of what went wrong."""
        done = subprocess.run(
            [sys.executable, MANAGE, *map(str, words)], env=self.environment, capture_output=True, text=True, check=True
        )
        return done.stderr

    def starts(self) -> None:
        assert "database cannot be" not in self.run("prepare")

    def ask(self, *statements: str) -> list[tuple]:
        with closing(sqlite3.connect(self.database, isolation_level=None)) as connection:
            for statement in statements:
                rows = connection.execute(statement).fetchall()
        return rows

    def has(self) -> list[str]:
        """Its tables, and what is in them, but for who may log in."""
        with closing(sqlite3.connect(self.database)) as connection:
            connection.execute("UPDATE django_migrations SET applied = ''")
            return [line for line in connection.iterdump() if "accounts_ledgernumber" not in line]

    def migrated(self) -> int:
        """How many migrations it was brought through, after the file was made."""
        return self.ask(f"SELECT count(*) FROM django_migrations WHERE applied <> '{tables.MADE}'")[0][0]


@pytest.fixture(scope="session")
def new(tmp_path_factory) -> Path:
    """As the build of an image makes it."""
    folder = tmp_path_factory.mktemp("new")
    Box(folder, folder / "none").run("new_database", folder / "new.sqlite3")
    return folder / "new.sqlite3"


@pytest.fixture(scope="session")
def begun(tmp_path_factory, new) -> dict[str, Path]:
    """The folders of boxes that have started once: with that file, and as on a developer's machine without it."""
    folders = {"new": new, "migrations": new.with_name("none")}
    for name, file in folders.items():
        folders[name] = tmp_path_factory.mktemp(name)
        Box(folders[name], file).starts()
    return folders


@pytest.fixture
def box(tmp_path, new) -> Box:
    return Box(tmp_path, new)


@pytest.fixture
def started(box, begun, tmp_path) -> Box:
    shutil.copytree(begun["new"], tmp_path, dirs_exist_ok=True)
    return box


@pytest.fixture
def migrated(box, begun, tmp_path) -> Box:
    shutil.copytree(begun["migrations"], tmp_path, dirs_exist_ok=True)
    return box


def test_it_is_the_same_each_time_and_nothing_else_is_made(box, new, tmp_path):
    box.run("new_database", tmp_path / "again.sqlite3")
    assert (tmp_path / "again.sqlite3").read_bytes() == new.read_bytes()
    assert not box.database.exists(), "a migration has looked at another database than its own"


def test_a_new_box_has_what_the_migrations_make_and_runs_none(started, begun, new):
    assert started.migrated() == 0
    assert started.database.stat().st_mode & 0o777 == 0o600
    assert started.ask("PRAGMA journal_mode") == [("wal",)]
    other = Box(begun["migrations"], new)
    assert other.migrated() > 10
    assert started.has() == other.has()


def test_one_that_was_made_by_migrations_keeps_what_it_has_and_is_asked_once(migrated, new):
    box = migrated
    box.ask(USER)
    before = box.ask("SELECT app, name, applied FROM django_migrations")
    box.starts()
    assert box.ask("PRAGMA user_version") == [(tables.number_of(new),)]
    box.ask("DELETE FROM django_content_type WHERE model = 'draft'")  # what a migration would put there again
    box.starts()
    assert box.ask("SELECT count(*) FROM django_content_type WHERE model = 'draft'") == [(0,)]
    assert box.ask("SELECT app, name, applied FROM django_migrations") == before
    assert box.ask("SELECT username FROM auth_user") == [("kim",)]


def test_one_of_another_version_is_migrated(started, new):
    box = started
    box.ask(
        USER,
        "DROP TABLE system_together",
        "DROP TABLE system_restored",
        "DELETE FROM django_migrations WHERE app = 'system'",
        f"PRAGMA user_version = {tables.number_of(new) + 1}",
    )
    box.starts()
    assert box.migrated() == 1
    assert box.ask("SELECT count(*) FROM system_together") == [(0,)]
    assert box.ask("SELECT username FROM auth_user") == [("kim",)]
    assert box.ask("PRAGMA user_version") == [(tables.number_of(new),)]


def test_an_empty_file_that_a_power_cut_left_becomes_a_database(box, new):
    box.data.mkdir()
    box.database.touch()
    box.starts()
    assert box.migrated() > 10
    assert box.ask("PRAGMA user_version") == [(tables.number_of(new),)]


def test_the_log_of_a_database_that_is_gone_is_put_aside(started):
    """The power went after the database was moved and before its log was: that is none of the new one's."""
    box = started
    with closing(sqlite3.connect(box.database, isolation_level=None)) as connection:
        connection.execute(USER)
        log = Path(f"{box.database}-wal").read_bytes()
    assert log
    for path in box.data.glob("fairlead.sqlite3*"):
        path.unlink()
    Path(f"{box.database}-wal").write_bytes(log)
    box.starts()
    assert box.ask("SELECT count(*) FROM auth_user") == [(0,)]
    assert [path.read_bytes() for path in box.data.glob("damaged-*/fairlead.sqlite3-wal")] == [log]


def test_a_database_that_cannot_be_restored_begins_as_that_of_a_new_box(started):
    box = started
    for path in (box.data / "backups").iterdir():
        path.unlink()
    box.database.write_bytes(b"nonsense" * 1000)
    assert "cannot be used" in box.run("prepare")
    box.run("restore_database")
    assert box.migrated() == 0


@pytest.mark.parametrize("change", ["SCHEMA", "names", "tables"])
def test_the_number_is_another_one_for_other_tables_and_other_documents(change, new, tmp_path, monkeypatch):
    with closing(sqlite3.connect(new)) as source, closing(sqlite3.connect(":memory:")) as copy:
        source.backup(copy)
        before = tables.number(copy)
        assert before == tables.number_of(new)
        if change == "SCHEMA":
            monkeypatch.setattr(tables, "SCHEMA", tables.SCHEMA + 1)
        elif change == "names":
            copy.execute("UPDATE django_migrations SET name = '0009_more' WHERE app = 'draft'")
        else:
            copy.execute("ALTER TABLE system_together ADD COLUMN more")
        assert 0 < tables.number(copy) < 2**31
        assert tables.number(copy) != before
