"""A whole copy of an SQLite database that others may be using (SQLite's backup API).

Also a program, `python3 sqlite_copy.py SOURCE TARGET SECONDS`: SQLite does what the journals beside a database
say, so a database is opened by nobody but its owner (data_copy.py).
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path


def existing(path: Path) -> sqlite3.Connection:
    """Opened for reading and writing, and never made. Raises sqlite3.Error."""
    return sqlite3.connect(f"file:{path}?mode=rw", uri=True, timeout=5)


def copy(source: Path, target: Path, patience: float) -> None:
    """Make the new file `target`, which only its owner can read, with no -wal and -shm beside it.

    `patience`: seconds for a database that is being written.
    Raises OSError, sqlite3.Error; then there may be a part of it.
    """
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    with closing(existing(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new, progress=_not_for_ever(patience))
        new.execute("PRAGMA journal_mode=DELETE")


def overwrite(source: Path, target: sqlite3.Connection, patience: float) -> None:
    """Make the database behind an open connection equal to the file, in one transaction.

    `patience`: seconds for others who are writing to it. Raises sqlite3.Error; then it is as it was.
    """
    with closing(existing(source)) as new:
        new.backup(target, progress=_not_for_ever(patience))


def _not_for_ever(patience: float) -> Callable[[int, int, int], None]:
    """Python's backup() tries a locked database again and again, without end."""
    end = time.monotonic() + patience

    def progress(status: int, remaining: int, total: int) -> None:
        if time.monotonic() > end:
            raise sqlite3.OperationalError(f"it was locked for {patience:g} seconds")

    return progress


def main(words: list[str]) -> int:
    """Exit with 1, and the reason on standard error, where there is no copy."""
    source, target, patience = words
    try:
        copy(Path(source), Path(target), float(patience))
    except (OSError, sqlite3.Error) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
