"""A backup file becomes the box: first looked at, in a folder beside the database; then put in by one transaction.

The order, for a power cut at any moment: the database is replaced as a whole (SQLite's backup API writes it as one
transaction of the one that runs), and with it comes the note of what root has to do. finish() does that, as often as
it takes.
"""

from __future__ import annotations

import logging
import secrets
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import DatabaseError, connection, connections
from django.db.migrations.loader import MigrationLoader

from accounts import ledger
from applier.base import sqlite_copy
from applier.wire.client import ApplierDown, ApplierRefused, connect
from changes.models import Revision
from draft.models import Draft
from lbconfig import migrate
from lbconfig.model.snapshot import Snapshot, SnapshotError
from system import backupfile
from system.backupfile import About
from system.models import Restored
from system.sealed import DAMAGED, TOO_NEW, NotOpened
from web import backups

log = logging.getLogger(__name__)

ALIAS = "opened"  # of the database in the folder, for Django
FOLDER = "opened-"
ONLY_ROW = 1
PATIENCE = 20.0  # seconds for others who are writing to the database
BATCH = 20  # revisions in memory at a time
_one = threading.Lock()

NO_USERS = "This backup file has no users: nobody could log in to this box any more."


class Gone(Exception):
    """What was opened is not there any more."""


@dataclass(frozen=True)
class Opened:
    """A backup file that was read to its end and found whole."""

    token: str
    about: About
    draft: Snapshot
    certificate: str
    key: str

    @property
    def database(self) -> Path:
        return _folder(self.token) / backupfile.DATABASE

    @property
    def made(self) -> datetime:
        return datetime.fromisoformat(self.about.made)


def open_file(file: BinaryIO, passphrase: str) -> Opened:
    """Read it, check it, and bring its tables up to date. Raises NotOpened, OSError; then nothing of it is left."""
    with _one:
        clear()
        token = secrets.token_hex(16)
        folder = _folder(token)
        folder.mkdir(mode=0o700, parents=True)
        try:
            for name, text in backupfile.open_into(folder, file, passphrase).items():
                (folder / name).write_text(text)
            _check(folder / backupfile.DATABASE)
            return opened(token)
        except (DatabaseError, sqlite3.Error, Gone) as error:
            clear()
            log.warning("a backup file cannot be used: %s", error)
            raise NotOpened(DAMAGED) from error
        except (NotOpened, OSError):
            clear()
            raise


def opened(token: str) -> Opened:
    """What open_file() made. Raises Gone, NotOpened."""
    folder = _folder(token)
    try:
        texts = {name: (folder / name).read_text() for name in backupfile.TEXTS}
    except OSError:
        raise Gone from None
    try:
        snapshot = migrate.read(texts["draft.json"])
    except SnapshotError as error:
        raise NotOpened(DAMAGED) from error
    return Opened(token, backupfile.about(texts["about.json"]), snapshot, texts["certificate.pem"], texts["key.pem"])


def clear(names: str = f"{FOLDER}*") -> None:
    """Remove what was opened and not restored; "*": all that a power cut left."""
    for folder in settings.INCOMING.glob(names):
        shutil.rmtree(folder, ignore_errors=True)


def put_in(found: Opened, user: str) -> None:
    """The box's database becomes that of the backup file, in one transaction; finish() has to follow.

    Revisions of this box stay: its own count where the file has another one of the same number.
    Raises sqlite3.Error, DatabaseError, OSError; then nothing was changed.
    """
    with _one:
        backups.make()  # the way back: the console restores the newest
        with as_django(found.database) as alias:
            _keep_own_revisions(alias)
            _move_counter(alias)
            ledger.admit(alias)
            Restored.objects.using(alias).update_or_create(
                pk=ONLY_ROW,
                defaults={
                    "made": found.made,
                    "hostname": found.about.hostname[:253],
                    "by": user[:150],
                    "number": max(Revision.objects.using(alias).values_list("number", flat=True), default=0),
                    "certificate": found.certificate,
                    "key": found.key,
                    "done": False,
                    "trouble": "",
                },
            )
        connection.ensure_connection()
        sqlite_copy.overwrite(found.database, connection.connection, PATIENCE)
        ledger.keep()
        ContentType.objects.clear_cache()
        clear()
    log.info("user %s restored a backup file of %s, made %s", user, found.about.hostname, found.about.made)


def finish() -> None:
    """Root's part of a restore, if it is not done yet. Whatever is in the way, the next log-in tries again."""
    row = Restored.objects.filter(pk=ONLY_ROW, done=False).first()
    if row is None:
        return
    try:
        connect().restore(row.certificate, row.key, row.number, row.by or "restore")
    except ApplierDown as error:
        log.warning("the restore is not finished yet: %s", error)
        return
    except ApplierRefused as error:
        if error.code == "busy":
            return
        row.trouble = error.message
        log.error("root's part of the restore was refused: %s", error.message)
    row.certificate = row.key = ""
    row.done = True
    row.save()


def _folder(token: str) -> Path:
    if not (len(token) == 32 and token.isascii() and token.isalnum()):
        raise Gone
    return settings.INCOMING / f"{FOLDER}{token}"


def _check(path: Path) -> None:
    """Raises NotOpened, DatabaseError, sqlite3.Error."""
    if found := backups.damage(path):
        raise sqlite3.DatabaseError(found)
    with closing(sqlite_copy.existing(path)) as database:
        odd = database.execute("SELECT count(*) FROM sqlite_master WHERE type IN ('trigger', 'view')").fetchone()[0]
        if odd or database.execute("PRAGMA foreign_key_check").fetchone():
            raise NotOpened(DAMAGED)
    with as_django(path) as alias:
        loader = MigrationLoader(connections[alias])
        if set(loader.applied_migrations) - set(loader.disk_migrations):
            raise NotOpened(TOO_NEW)
        # Data migrations of ours work on the database that they are given (schema_editor.connection.alias).
        call_command("migrate", database=alias, interactive=False, verbosity=0)
        if not get_user_model().objects.using(alias).filter(is_active=True).exists():
            raise NotOpened(NO_USERS)


def _keep_own_revisions(alias: str) -> None:
    theirs = Revision.objects.using(alias)
    for number in Revision.objects.values_list("number", flat=True):
        theirs.filter(number=number).delete()
    batch: list[Revision] = []
    for revision in Revision.objects.iterator(chunk_size=BATCH):
        revision.pk = None
        batch.append(revision)
        if len(batch) == BATCH:
            theirs.bulk_create(batch)
            batch = []
    theirs.bulk_create(batch)


def _move_counter(alias: str) -> None:
    """A form that was opened before the restore is recognised as old."""
    numbers = [row.counter for source in ("default", alias) for row in Draft.objects.using(source).all()]
    Draft.objects.using(alias).update(counter=max(numbers, default=0) + 1)


@contextmanager
def as_django(path: Path) -> Iterator[str]:
    """The database in a file, under an alias of its own."""
    base = connections.settings["default"]
    options = base["OPTIONS"] | {"init_command": "PRAGMA foreign_keys=ON;"}
    mine = base | {"NAME": str(path), "CONN_MAX_AGE": 0, "OPTIONS": options}
    # Another dict each time: other threads go through it at the end of each request.
    connections.settings = {**connections.settings, ALIAS: mine}
    try:
        yield ALIAS
    finally:
        connections[ALIAS].close()
        del connections[ALIAS]
        connections.settings = {alias: one for alias, one in connections.settings.items() if alias != ALIAS}
