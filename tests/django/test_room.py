"""Room on the data partition: what uploads have asked for is counted over all of them."""

import errno
import io
import os

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse
from django.test import RequestFactory

from web import room
from web.files import takes_file

FREE = 100_000_000  # bytes


@pytest.fixture(autouse=True)
def partition(monkeypatch):
    """One with 100 MB free, of which nothing is kept; it fills as promises are used."""
    monkeypatch.setattr(room, "HEADROOM", 0)
    used = {"bytes": 0}

    def statvfs(_):
        return os.statvfs_result((1, 1, 0, 0, FREE - used["bytes"], 0, 0, 0, 0, 255))

    monkeypatch.setattr(room.os, "statvfs", statvfs)
    return used


def test_two_that_fit_one_by_one_do_not_fit_together(tmp_path):
    with room.promised(tmp_path, 80_000_000), pytest.raises(room.NoRoom) as caught, room.promised(tmp_path, 80_000_000):
        pass
    assert caught.value.errno == errno.ENOSPC and caught.value.free == 20_000_000
    with room.promised(tmp_path, 80_000_000):
        pass


def test_what_was_written_counts_once(tmp_path, partition):
    with room.promised(tmp_path, 60_000_000) as first:
        partition["bytes"] = 50_000_000
        first.wrote(50_000_000)
        with room.promised(tmp_path, 40_000_000), pytest.raises(room.NoRoom), room.promised(tmp_path, 1):
            pass
        first.wrote(50_000_000)  # more than was asked for gives nothing to others
        assert first.left == 0


@pytest.fixture
def deleted(settings):
    """How many files without a name are open in the folder where files come in."""

    def count() -> int:
        names = (os.readlink(one.path) for one in os.scandir("/proc/self/fd") if os.path.islink(one.path))
        return sum(name.startswith(str(settings.INCOMING)) for name in names)

    return count


def test_a_client_that_goes_away_leaves_its_room_to_others(deleted):
    """Its file had no name, and kept its room for as long as anything knew of the request."""
    whole = RequestFactory().post("/", {"file": SimpleUploadedFile("x", b"x" * 200_000)})
    kind, body = whole.environ["CONTENT_TYPE"], whole.read()
    for sent, status in ((body[:150_000], 408), (body, 200)):
        about = {"wsgi.input": io.BytesIO(sent), "CONTENT_LENGTH": str(len(body)), "CONTENT_TYPE": kind}
        request = RequestFactory().post("/", **about)
        request._dont_enforce_csrf_checks = True
        assert takes_file(1_000_000)(lambda _: HttpResponse())(request).status_code == status
        assert deleted() == 0 and room._promises == []
