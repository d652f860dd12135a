"""The tables of the database: those of a new box come whole, from a file that is made with the image.

To make them one migration after another, and to find out at each start that none is missing, took a third of the web
process's first start and a twentieth of each later one (docs/decisions/0132). So the image has a database with the
tables and nothing else, and a number in it that stands for all that the migrations make; a database that has the same
number needs none of them.
"""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.db import connection

from lbconfig.model.snapshot import SCHEMA
from system import restoring
from web import backups

PLACE = slice(60, 64)  # of SQLite's "user version" in a file (sqlite.org/fileformat.html, section 1.3)
MADE = "2026-01-01 00:00:00"  # when each migration was run, so that two builds of an image are the same


def bring_up() -> None:
    """The database has the tables of this software. Raises OSError, DatabaseError, sqlite3.Error."""
    if not settings.DATABASE.exists() and settings.NEW_DATABASE.exists():
        # Aside with what a power cut has left of another one: its log would be taken for the log of this one.
        backups.restore(settings.NEW_DATABASE)
    wanted = number_of(settings.NEW_DATABASE)
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA user_version")
        (found,) = cursor.fetchone()
        if wanted and found == wanted:
            return
        call_command("migrate", interactive=False, verbosity=0)
        if wanted:
            cursor.execute(f"PRAGMA user_version = {wanted}")  # SQLite takes no parameter there


def number_of(path: Path) -> int:
    """Which tables a database in a file has, that nobody is writing to; 0 where there is none. Raises OSError."""
    try:
        with path.open("rb") as file:
            return int.from_bytes(file.read(PLACE.stop)[PLACE])
    except FileNotFoundError:
        return 0


def make_new(path: Path) -> None:
    """The database of a new box, the same bytes each time. Raises OSError, DatabaseError, sqlite3.Error."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "made.sqlite3")
        with restoring.as_django(made) as alias:
            call_command("migrate", database=alias, interactive=False, verbosity=0)
        with closing(sqlite3.connect(made, isolation_level=None)) as database:
            database.execute("UPDATE django_migrations SET applied = ?", (MADE,))
            database.execute(f"PRAGMA user_version = {number(database)}")
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("VACUUM")
        shutil.copyfile(made, path)


def number(database: sqlite3.Connection) -> int:
    """Stands for the migrations, for what they made, and for the schema of the documents: they bring that up, too."""
    names = database.execute("SELECT app, name FROM django_migrations ORDER BY app, name").fetchall()
    tables = database.execute("SELECT sql FROM sqlite_master ORDER BY type, name").fetchall()
    digest = hashlib.sha256(repr((SCHEMA, names, tables)).encode()).digest()
    return int.from_bytes(digest[:4]) >> 1 or 1  # SQLite keeps 32 bits with a sign
