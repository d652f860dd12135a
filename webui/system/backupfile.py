"""Backup files: all that makes a box what it is, in one file that a passphrase opens. Not the box's own copies of
its database; those are backups.py's.

Inside the sealed stream (sealed.py) is a tar archive, compressed with gzip:

    about.json        what, when, by which box and version
    running.json      the configuration that ran; draft.json: the draft (lbconfig.model.snapshot)
    database.sqlite3  users, tokens, history, draft: the tables of the web UI, without sessions
    certificate.pem   of the web page; key.pem: its key
"""

from __future__ import annotations

import gzip
import io
import json
import sqlite3
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, BinaryIO, cast

from django.apps import apps
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import connection
from django.utils import timezone

from applier.wire.client import connect
from changes.models import Revision
from draft import store as draft
from draft import what_runs
from lbconfig.model.snapshot import to_json
from lbconfig.pair import hostnames
from system.sealed import DAMAGED, NotOpened, Reader, Writer
from web.room import promised

FORMAT = 1
LIMIT = 400 << 20  # bytes of a file; nginx takes as many
TEXT = 16 << 20  # bytes of each text in it
DATABASE = "database.sqlite3"
TEXTS = ("about.json", "running.json", "draft.json", "certificate.pem", "key.pem")
# Tables that belong to one box and one moment.
LEFT_OUT = ("sessions.Session", "changes.Candidate", "system.Restored", "system.Together", "accounts.LedgerNumber")


@dataclass(frozen=True)
class About:
    format: int
    made: str  # ISO 8601, UTC
    hostname: str
    version: str  # of the software
    users: list[str]
    revisions: int
    newest: int  # number of the newest revision


def make(passphrase: str) -> BinaryIO:
    """A new backup file, open for reading and without a name. Raises ApplierDown, ApplierRefused, OSError."""
    status, pem = what_runs.status(), connect().page_key()
    running, now = what_runs.of(status), timezone.now()
    names = " and ".join(hostnames(running))
    with working_folder() as folder:
        _copy_database(folder / DATABASE)
        texts = {
            "about.json": json.dumps(asdict(_about(now, names, status["version"])), indent=2) + "\n",
            "running.json": to_json(running),
            "draft.json": to_json(draft.current()),
            "certificate.pem": pem["certificate"],
            "key.pem": pem["key"],
        }
        part = folder / "sealed"
        with part.open("wb") as file:
            _write(file, passphrase, texts, folder / DATABASE, now)
        return part.open("rb")  # the name goes with the folder


def open_into(folder: Path, file: BinaryIO, passphrase: str) -> dict[str, str]:
    """Read a backup file to its very end: the database into the folder; the texts by name. Raises NotOpened, OSError.

    Nothing of it may be used before this has come back: only then it is known that no byte was altered.
    """
    reader, texts = Reader(file, passphrase), dict[str, str]()
    try:
        # All that gzip asks of a file that it unpacks is read().
        with gzip.GzipFile(fileobj=cast(IO[bytes], reader)) as plain, tarfile.open(fileobj=plain, mode="r|") as archive:
            for member in archive:
                if member.name == DATABASE:
                    _unpack(_content(archive, member), member.size, folder / DATABASE)
                elif member.name in TEXTS and member.size <= TEXT:
                    texts[member.name] = _content(archive, member).read().decode()
            while plain.read(1 << 20):
                pass
        while reader.read(1 << 20):
            pass
    except (tarfile.TarError, zlib.error, gzip.BadGzipFile, EOFError, UnicodeDecodeError) as error:
        raise NotOpened(DAMAGED) from error
    if set(texts) != set(TEXTS) or not (folder / DATABASE).exists():
        raise NotOpened(DAMAGED)
    return texts


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    content = archive.extractfile(member)
    if content is None:
        raise tarfile.ReadError(f"{member.name} is no file")
    return content


def about(text: str) -> About:
    """Raises NotOpened. What a newer version says beside this is left out."""
    try:
        data = json.loads(text)
        known = About(**{name: data[name] for name in About.__annotations__})
        datetime.fromisoformat(known.made)
    except (ValueError, KeyError, TypeError) as error:
        raise NotOpened(DAMAGED) from error
    return known


@contextmanager
def working_folder() -> Iterator[Path]:
    settings.INCOMING.mkdir(mode=0o700, parents=True, exist_ok=True)
    with TemporaryDirectory(dir=settings.INCOMING, prefix="making-") as name:
        yield Path(name)


def _about(now: datetime, hostname: str, version: str) -> About:
    revisions = Revision.objects.order_by("number").values_list("number", flat=True)
    users = sorted(get_user_model().objects.values_list("username", flat=True))
    newest = revisions.last() or 0
    return About(FORMAT, now.isoformat(timespec="seconds"), hostname, version, users, len(revisions), newest)


def _copy_database(path: Path) -> None:
    connection.ensure_connection()
    with closing(sqlite3.connect(path)) as copy:
        connection.connection.backup(copy)
        copy.execute("PRAGMA journal_mode=DELETE")
        for name in LEFT_OUT:
            copy.execute(f'DELETE FROM "{apps.get_model(name)._meta.db_table}"')
        copy.commit()
        copy.execute("VACUUM")  # or what was deleted would still be in the file


def _write(file: BinaryIO, passphrase: str, texts: dict[str, str], database: Path, now: datetime) -> None:
    with (
        promised(settings.INCOMING, database.stat().st_size),  # it is never larger than that by much
        closing(Writer(file, passphrase)) as sealed,
        gzip.GzipFile(fileobj=sealed, mode="wb", mtime=0) as plain,
        tarfile.open(fileobj=plain, mode="w|", format=tarfile.PAX_FORMAT) as archive,
        database.open("rb") as content,
    ):
        for name, text in texts.items():
            archive.addfile(_member(name, len(text.encode()), now), io.BytesIO(text.encode()))
        archive.addfile(_member(DATABASE, database.stat().st_size, now), content)


def _member(name: str, size: int, now: datetime) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = size, 0o600, int(now.timestamp())
    return member


def _unpack(content: IO[bytes], size: int, path: Path) -> None:
    with promised(settings.INCOMING, size) as promise, path.open("wb") as file:
        while part := content.read(1 << 20):
            file.write(part)
            promise.wrote(len(part))
