"""The notes of what a machine wrote, and the disks that a power cut leaves."""

import random
import struct

import pytest
from tests.lab.writes import DISCARD, FLUSH, FORCED, MAGIC, Writes

SECTOR = 512
PIECE = 4096


def entry(place: int, data: bytes = b"", flags: int = 0) -> bytes:
    header = struct.pack("<QQQQ", place // SECTOR, len(data) // SECTOR, flags, 0).ljust(SECTOR, b"\0")
    return header + (b"" if flags & DISCARD else data)


@pytest.fixture
def written(tmp_path):
    """written(entry, …): the log of these, of a disk full of "-"."""

    def write(*entries: bytes) -> Writes:
        head = struct.pack("<QQQI", MAGIC, 1, 0, SECTOR).ljust(SECTOR, b"\0")
        (tmp_path / "log").write_bytes(head + b"".join(entries))
        (tmp_path / "before").write_bytes(b"-" * 8 * PIECE)
        return Writes(tmp_path / "log", tmp_path / "before")

    return write


def left(writes: Writes, count: int, tmp_path, seed: int) -> str:
    """The first letter of each piece of the disk."""
    writes.left_by_a_cut(count, tmp_path / "disk", random.Random(seed))
    return (tmp_path / "disk").read_bytes()[::PIECE].decode()


def test_what_was_flushed_is_there_and_of_the_rest_anything(written, tmp_path):
    a, b, c, d = (letter * PIECE for letter in (b"a", b"b", b"c", b"d"))
    writes = written(entry(0, a), entry(PIECE, b), entry(0, flags=FLUSH), entry(0, c), entry(2 * PIECE, d, FORCED))
    assert {left(writes, 0, tmp_path, seed) for seed in range(40)} == {"--------"}
    assert {left(writes, 2, tmp_path, seed) for seed in range(40)} == {"--------", "a-------", "-b------", "ab------"}
    assert {left(writes, 3, tmp_path, seed) for seed in range(40)} == {"ab------"}
    assert {left(writes, 4, tmp_path, seed) for seed in range(40)} == {"ab------", "cb------"}
    assert {left(writes, 5, tmp_path, seed) for seed in range(40)} == {"abd-----", "cbd-----"}


def test_a_large_write_may_be_half_done(written, tmp_path):
    writes = written(entry(PIECE, b"x" * PIECE + b"y" * PIECE))
    found = {left(writes, 1, tmp_path, seed) for seed in range(40)}
    assert found == {"--------", "-x------", "--y-----", "-xy-----"}


def test_a_log_that_ends_in_the_middle(written):
    writes = written(entry(0, b"a" * PIECE), entry(0, b"gone" * PIECE, DISCARD), bytes(3 * SECTOR))
    assert [(one.begin, one.length) for one in writes.entries] == [(0, PIECE), (0, 0)]
    assert [writes.at(size) for size in (SECTOR, 2 * SECTOR, SECTOR * 20)] == [0, 1, 2]


def test_anything_else_is_refused(tmp_path):
    (tmp_path / "log").write_bytes(b"hello" * 100)
    with pytest.raises(ValueError, match="no log of writes"):
        Writes(tmp_path / "log", tmp_path / "log")
