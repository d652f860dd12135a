"""A copy of what the box keeps on its data partition, taken while it is in use."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from applier.base import sqlite_copy
from applier.host.host import Host, run

TRIES = 3  # an apply in the middle of a copy makes another try
PATIENCE = 10.0  # seconds for a database that is being written
TIMEOUT = 300.0  # seconds for a slow disk
DATABASES = "*/*.sqlite3"  # those in use; their backups lie one folder deeper, and nobody writes to these
BESIDE = ("-wal", "-shm", "-journal")
ALONE = ["--clear-groups", "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all"]  # of setpriv
NOT_COPIED = "applier/reserve"  # room set aside; the copy's own box sets its own aside
LEAST_VERSION = "least-version"  # of what belongs to the box and to no slot (decision 42)
LEDGER = "web/ledger.json"  # which passwords and tokens count, and which ones do not any more


class CopyFailed(Exception):
    """The text is a sentence for an admin."""


def size(folder: Path) -> int:
    """Bytes of all files, as far as they stay while one counts."""
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            total += path.lstat().st_size
    return total


def copy(host: Host, source: Path, target: Path) -> None:
    """Make the folder `target`, with owners and modes. Raises CopyFailed, HostError, OSError."""
    for _ in range(TRIES):
        before = _generation(source)
        run(host, ["rm", "-rf", str(target)], timeout=TIMEOUT)
        copied = host.command(["cp", "-a", str(source), str(target)], timeout=TIMEOUT)
        if copied.exit == 0 and _generation(source) == before:
            break
    else:
        reason = " ".join(copied.stderr.split()) or "it changed all the time"
        raise CopyFailed(f"The configuration cannot be copied: {reason}.")
    (target / NOT_COPIED).unlink(missing_ok=True)
    for database in source.glob(DATABASES):
        if stat.S_ISREG(database.lstat().st_mode):  # a link was copied as one, and is not followed
            _copy_database(host, database, target / database.relative_to(source))


def of_the_box(shared: Path, with_configuration: bool) -> tuple[str, ...]:
    """What goes along of what no slot owns: who takes the users takes what was revoked, too."""
    names = (LEAST_VERSION, LEDGER) if with_configuration else (LEAST_VERSION,)
    return tuple(name for name in names if os.path.lexists(shared / name))


def copy_some(host: Host, source: Path, target: Path, names: tuple[str, ...]) -> None:
    """Files of a folder, each whole: who writes one puts a new one in its place. Raises HostError, OSError."""
    for name in names:
        (target / name).parent.mkdir(parents=True, exist_ok=True)  # the first start gives it to its owner
        run(host, ["cp", "-a", str(source / name), str(target / name)], timeout=TIMEOUT)


def digests(folder: Path) -> dict[str, str]:
    """What each file holds and each link points to: to find out later whether it is still the same."""
    return {str(path.relative_to(folder)): _digest(path) for path in sorted(folder.rglob("*")) if _has_content(path)}


def _generation(data: Path) -> tuple[str, str]:
    """What every apply changes first, and what it changes last."""
    confirmed = last = ""
    with contextlib.suppress(OSError):
        last = (data / "applier/last-number").read_text()
    with contextlib.suppress(OSError):
        confirmed = os.readlink(data / "applier/confirmed")
    return last, confirmed


def _copy_database(host: Host, source: Path, target: Path) -> None:
    """In the place of a copy that was taken file by file, in the middle of who knows what.

    As the one whose folder it lies in: SQLite obeys the journals beside a database, and one that was made by hand names
    a file of root's to be deleted.
    """
    for path in (target, *(target.with_name(target.name + end) for end in BESIDE)):
        path.unlink(missing_ok=True)
    owner = source.parent.lstat()
    words = ["python3", sqlite_copy.__file__, str(source), str(target), f"{PATIENCE:g}"]
    if owner.st_uid != os.geteuid():
        words = ["setpriv", "--reuid", str(owner.st_uid), "--regid", str(owner.st_gid), *ALONE, *words]
    done = host.command(words, timeout=TIMEOUT)
    if done.exit:
        reason = " ".join(done.stderr.split())[-300:] or f"exit code {done.exit}"
        raise CopyFailed(f"The database {source.name} cannot be copied: {reason}. Restore it first.")


def _has_content(path: Path) -> bool:
    return path.is_symlink() or path.is_file()


def _digest(path: Path) -> str:
    if path.is_symlink():
        return f"-> {os.readlink(path)}"
    total = hashlib.sha256()
    for part in _parts(path):
        total.update(part)
    return total.hexdigest()


def _parts(path: Path) -> Iterator[bytes]:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)  # it may have become a FIFO since it was seen
    with open(handle, "rb") as file:
        while part := file.read(1 << 20):
            yield part
