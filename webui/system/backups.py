"""Copies of the database, beside it, made while it is in use (SQLite's backup API)."""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from django.conf import settings

from applier import sqlite_copy

log = logging.getLogger(__name__)

KEEP = 5
DAY = 24 * 3600  # seconds
PATIENCE = 5.0  # seconds for a database that is being written
PATTERN = "fairlead-*.sqlite3"


@dataclass(frozen=True)
class Backup:
    path: Path
    made: datetime
    size: int  # bytes


def listed() -> list[Backup]:
    """The newest first; the name holds the time, so a clock that jumped back does not hide a later copy."""
    try:
        found = [(path, path.stat()) for path in sorted(settings.BACKUPS.glob(PATTERN), reverse=True)]
    except OSError:
        return []
    return [Backup(path, datetime.fromtimestamp(about.st_mtime, UTC), about.st_size) for path, about in found]


def make_if_due() -> None:
    newest = listed()[:1]
    if not newest or time.time() - newest[0].made.timestamp() > DAY:
        make()


def make() -> None:
    """A new copy, whole or not there at all. A failure is logged: no page fails for want of a backup."""
    try:
        _make()
    except (OSError, sqlite3.Error) as error:
        log.error("no backup of the database could be made: %s", error)


def _make() -> None:
    folder = settings.BACKUPS
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    name = datetime.now(UTC).strftime("fairlead-%Y%m%d-%H%M%S-%f.sqlite3")
    part = folder / f".{name}.part"
    try:
        sqlite_copy.copy(settings.DATABASE, part, PATIENCE)
        sync(part)
        part.rename(folder / name)
        sync(folder)
    finally:
        part.unlink(missing_ok=True)
    for old in listed()[KEEP:]:
        old.path.unlink()


def damage(path: Path) -> str:
    """What SQLite finds wrong with the file; "" when it is whole.

    Raises sqlite3.Error where that cannot be said: a full partition is no damage.
    """
    try:
        with closing(sqlite_copy.existing(path)) as connection:
            found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            return str(error)
        raise
    return "" if found == "ok" else found


def newest_good() -> Backup | None:
    return next((backup for backup in listed() if not damage(backup.path)), None)


def put_aside() -> Path | None:
    """Move the database with its -wal and -shm into a folder of their own; None when there is none."""
    folder = settings.DATA / datetime.now(UTC).strftime("damaged-%Y%m%d-%H%M%S")
    files = [Path(f"{settings.DATABASE}{end}") for end in ("", "-wal", "-shm", "-journal")]
    present = [path for path in files if path.exists()]
    if not present:
        return None
    folder.mkdir(mode=0o700)
    for path in present:
        path.rename(folder / path.name)
    sync(folder)
    sync(settings.DATA)
    return folder


def restore(backup: Backup | None) -> Path | None:
    """Put the database aside and the backup in its place; where the old one is now.

    The copy is made first: when there is no room for it, everything stays as it was.
    """
    part = settings.DATA / f".{settings.DATABASE.name}.part"
    try:
        if backup:
            shutil.copyfile(backup.path, part)
            part.chmod(0o600)
            sync(part)
        aside = put_aside()
        if backup:
            part.rename(settings.DATABASE)
        sync(settings.DATA)
    finally:
        part.unlink(missing_ok=True)
    return aside


def sync(path: Path) -> None:
    """Until it is on the disk: a file's content, or the names in a folder."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
