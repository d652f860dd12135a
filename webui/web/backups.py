"""Copies of the database, beside it, made while it is in use (SQLite's backup API).

Each has a number, because the clock may be set to any time: the highest is the newest. The time in a name is for
people. Copies of versions that did not number them count as older than all that have one.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.conf import settings

from applier.base import sqlite_copy

log = logging.getLogger(__name__)

KEEP = 5
DAY = timedelta(days=1)
PATIENCE = 5.0  # seconds for a database that is being written
NAME = re.compile(r"fairlead-(?:n(\d{1,9})-)?(\d{8}-\d{6}-\d{6})\.sqlite3")
MOMENT = "%Y%m%d-%H%M%S-%f"


@dataclass(frozen=True)
class Backup:
    path: Path
    number: int  # 0: of a version that did not number them
    made: datetime  # as the clock was set at that moment
    size: int  # bytes


def listed() -> list[Backup]:
    """The newest first."""
    try:
        found = [_backup(path) for path in settings.BACKUPS.iterdir()]
    except OSError:
        return []
    return sorted((one for one in found if one), key=lambda one: (one.number, one.made), reverse=True)


def _backup(path: Path) -> Backup | None:
    match = NAME.fullmatch(path.name)
    try:
        made = datetime.strptime(match[2], MOMENT).replace(tzinfo=UTC) if match else None
    except ValueError:
        return None
    return Backup(path, int(match[1] or 0), made, path.stat().st_size) if match and made else None


def now() -> datetime:
    return datetime.now(UTC)


def make_if_due() -> None:
    """One a day; also where the newest was made later than now, by a clock that was ahead then or is behind."""
    newest = listed()[:1]
    if not newest or not timedelta(0) <= now() - newest[0].made <= DAY:
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
    number = max((one.number for one in listed()), default=0) + 1
    name = f"fairlead-n{number:06}-{now().strftime(MOMENT)}.sqlite3"
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
    folder = _free(settings.DATA / now().strftime("damaged-%Y%m%d-%H%M%S"))
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


def _free(path: Path) -> Path:
    """Another name where there is one of that name, from before the clock was set back."""
    names = (path, *(path.with_name(f"{path.name}-{number}") for number in range(2, 1000)))
    return next(one for one in names if not one.exists())


def restore(copy: Path | None) -> Path | None:
    """Put the database aside and a copy of this one in its place; where the old one is now.

    The copy is made first: when there is no room for it, everything stays as it was.
    """
    part = settings.DATA / f".{settings.DATABASE.name}.part"
    try:
        if copy:
            shutil.copyfile(copy, part)
            part.chmod(0o600)
            sync(part)
        aside = put_aside()
        if copy:
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
