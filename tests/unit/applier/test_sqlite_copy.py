"""Whole copies of a database in use; and a database that becomes another one, whatever happens meanwhile."""

import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from applier.base import sqlite_copy

WEBUI = Path(__file__).resolve().parents[3] / "webui"
ROWS = 20_000


def make(path: Path, word: str, rows: int = 50, mode: str = "WAL") -> Path:
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA journal_mode={mode}")
        database.execute(f"CREATE TABLE {word} (text)")
        database.executemany(f"INSERT INTO {word} VALUES (?)", [(f"{word} {n} " * 20,) for n in range(rows)])
        database.commit()
    return path


def tables(path: Path) -> list[tuple]:
    with closing(sqlite_copy.existing(path)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return [(name, database.execute(f"SELECT count(*) FROM {name}").fetchone()[0]) for name in names]


def test_a_database_becomes_another_one(tmp_path):
    old, new = make(tmp_path / "old", "before"), make(tmp_path / "new", "after", 70, "DELETE")
    with closing(sqlite3.connect(old)) as target, closing(sqlite3.connect(old)) as reader:
        assert reader.execute("SELECT count(*) FROM before").fetchone() == (50,)
        sqlite_copy.overwrite(new, target, 5)
        assert reader.execute("SELECT count(*) FROM after").fetchone() == (70,)
        assert target.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert tables(old) == [("after", 70)]


def test_somebody_who_reads_meanwhile_goes_on_with_what_he_saw(tmp_path):
    old, new = make(tmp_path / "old", "before"), make(tmp_path / "new", "after", mode="DELETE")
    with closing(sqlite3.connect(old)) as target, closing(sqlite3.connect(old, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM before").fetchone() == (50,)
        sqlite_copy.overwrite(new, target, 5)
        assert reader.execute("SELECT count(*) FROM before").fetchone() == (50,)
        reader.execute("COMMIT")
        assert reader.execute("SELECT count(*) FROM after").fetchone() == (50,)


def test_somebody_who_writes_for_too_long_is_not_overwritten(tmp_path):
    old, new = make(tmp_path / "old", "before"), make(tmp_path / "new", "after", mode="DELETE")
    with closing(sqlite3.connect(old, timeout=0.1)) as target, closing(sqlite3.connect(old)) as writer:
        writer.execute("INSERT INTO before VALUES ('more')")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            sqlite_copy.overwrite(new, target, 0.3)
        writer.commit()
    assert tables(old) == [("before", 51)]


@pytest.mark.parametrize("seed", range(12))
def test_killed_at_any_moment_it_is_the_old_or_the_new(tmp_path, seed):
    old, new = make(tmp_path / "old", "before"), make(tmp_path / "new", "after", ROWS, "DELETE")
    program = (
        "import sqlite3, sys; from pathlib import Path; from applier.base import sqlite_copy;"
        f"target = sqlite3.connect({str(old)!r}); print('begins', flush=True);"
        f"sqlite_copy.overwrite(Path({str(new)!r}), target, 5); print('ended', flush=True)"
    )
    with subprocess.Popen([sys.executable, "-c", program], cwd=WEBUI, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "begins\n"
        time.sleep(random.Random(seed).uniform(0, 0.08))
        process.send_signal(signal.SIGKILL)
        ended = "ended" in process.stdout.read()
    found = tables(old)
    assert found in ([("before", 50)], [("after", ROWS)])
    assert not ended or found == [("after", ROWS)]
