"""Whose hands touch what: root copies the web process's database without opening it."""

import os
import shutil
import sqlite3
import struct
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from applier.disk import data_copy
from applier.host.host import Live

WEB = 12345
PAGE, SECTOR = 4096, 512
MAGIC = bytes.fromhex("d9d505f920a163d7")

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


@pytest.fixture
def data():
    """What the box keeps, in a folder that others may look into."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    (folder / "data/web").mkdir(parents=True)
    (folder / "data/applier").mkdir()
    yield folder / "data"
    shutil.rmtree(folder)


def database(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as made:
        made.execute("CREATE TABLE draft (name)")
        made.execute("INSERT INTO draft VALUES ('site')")
        made.commit()
    return path


def given_away(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        os.chown(path, WEB, WEB, follow_symlinks=False)


def hot_journal(path: Path, names: Path) -> None:
    """One that a commit over several databases would have left; SQLite deletes the file that it names."""
    name = os.fsencode(names)
    pages = path.stat().st_size // PAGE
    header = MAGIC + struct.pack(">5I", 0, 1, pages, SECTOR, PAGE)
    end = struct.pack(">I", (1 << 30) // PAGE + 1) + name + struct.pack(">II", len(name), sum(name)) + MAGIC
    Path(f"{path}-journal").write_bytes(header.ljust(SECTOR, b"\0") + end)


def test_a_journal_made_by_hand_deletes_nothing_of_root_s(data):
    victim = data / "applier/victim"
    victim.write_text("of root's")
    hot_journal(database(data / "web/fairlead.sqlite3"), victim)
    given_away(data / "web")
    with pytest.raises(data_copy.CopyFailed, match=r"fairlead\.sqlite3 cannot be copied"):
        data_copy.copy(Live(), data, data.parent / "copy")
    assert victim.exists()


def test_the_copy_is_its_owner_s(data):
    database(data / "web/fairlead.sqlite3")
    given_away(data / "web")
    data_copy.copy(Live(), data, data.parent / "copy")
    copied = data.parent / "copy/web/fairlead.sqlite3"
    assert (copied.stat().st_uid, copied.stat().st_mode & 0o777) == (WEB, 0o600)
    with closing(sqlite3.connect(copied)) as made:
        assert made.execute("SELECT name FROM draft").fetchall() == [("site",)]


def test_a_link_to_a_database_of_root_s_is_copied_as_a_link(data):
    database(data / "applier/secret.db").chmod(0o600)
    (data / "web/x.sqlite3").symlink_to(data / "applier/secret.db")
    os.mkfifo(data / "web/y.sqlite3")
    given_away(data / "web")
    data_copy.copy(Live(), data, data.parent / "copy")
    assert (data.parent / "copy/web/x.sqlite3").is_symlink()
    assert not [path for path in data_copy.digests(data.parent / "copy") if path.endswith("y.sqlite3")]
