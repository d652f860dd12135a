"""A slot is whole or holds nothing, whenever the power goes."""

import ctypes
import errno
import hashlib
import mmap
import os

import pytest
from update_box import IMAGE, SLOT

from applier.update import write as update_write
from applier.update.write import FLUSH, erase, reads_back, room, verify, write
from applier.wire.errors import ApplierRefused

DIGEST = hashlib.sha256(IMAGE).hexdigest()


@pytest.fixture
def image(tmp_path):
    path = tmp_path / "rootfs.squashfs"
    path.write_bytes(IMAGE)
    return path


@pytest.fixture
def slot(tmp_path):
    path = tmp_path / "slot"
    path.write_bytes(b"hsqs" + b"o" * (SLOT - 4))
    return path


def nothing(done):
    pass


def test_an_image_is_written_and_read_back(image, slot):
    done = []
    verify(image, image, len(IMAGE), DIGEST, done.append)
    erase(slot)
    write(image, image, slot, done.append)
    assert reads_back(slot, len(IMAGE), DIGEST, done.append)
    assert slot.read_bytes()[: len(IMAGE)] == IMAGE
    assert slot.stat().st_size == SLOT == room(slot)
    assert done[-1] == len(IMAGE) and max(done) == len(IMAGE)


@pytest.mark.parametrize("change", [lambda data: data[:-1], lambda data: data + b"x", lambda data: b"X" + data[1:]])
def test_an_image_that_is_not_the_signed_one(image, change):
    image.write_bytes(change(IMAGE))
    with pytest.raises(ApplierRefused, match="Nothing was written") as caught:
        verify(image, image, len(IMAGE), DIGEST, nothing)
    assert caught.value.code == "bundle-damaged"


def test_an_image_that_the_kernel_does_not_verify(image, monkeypatch):
    """What dm-verity finds damaged is an I/O error."""

    def fail(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "pread", fail)
    with pytest.raises(ApplierRefused, match="Input/output error"):
        verify(image, image, len(IMAGE), DIGEST, nothing)


def test_a_disk_that_gives_back_something_else(image, slot):
    erase(slot)
    write(image, image, slot, nothing)
    with slot.open("r+b") as file:
        file.seek(100_000)
        file.write(b"rot")
    assert not reads_back(slot, len(IMAGE), DIGEST, nothing)


class PowerCut(Exception):
    pass


def test_power_cuts_at_every_write(image, slot, monkeypatch):
    """After each single write the slot begins with zeros, or it is whole."""
    real, left = os.pwrite, [0]

    def cut(handle, data, place):
        if not left[0]:
            raise PowerCut
        left[0] -= 1
        return real(handle, data, place)

    monkeypatch.setattr(update_write, "BLOCK", 300_000)
    seen = set()
    for writes in range(1, 100):
        slot.write_bytes(b"hsqs" + b"o" * (SLOT - 4))
        left[0] = writes
        monkeypatch.setattr(os, "pwrite", cut)
        try:
            erase(slot)
            write(image, image, slot, nothing)
            ended = True
        except PowerCut:
            ended = False
        monkeypatch.setattr(os, "pwrite", real)
        head = slot.read_bytes()[:4096]
        whole = slot.read_bytes()[: len(IMAGE)] == IMAGE
        assert head == bytes(4096) or whole
        seen.add((head == bytes(4096), whole))
        if ended:
            break
    assert ended and seen == {(True, False), (False, True)}


def test_the_head_is_written_when_all_else_is_on_the_disk(image, slot, monkeypatch):
    log = []
    real_write, real_sync = os.pwrite, os.fsync
    monkeypatch.setattr(os, "pwrite", lambda handle, data, place: log.append(place) or real_write(handle, data, place))
    monkeypatch.setattr(os, "fsync", lambda handle: log.append("sync") or real_sync(handle))
    write(image, image, slot, nothing)
    assert log[-3:] == ["sync", 0, "sync"] and 0 not in log[:-3]


def test_a_slot_that_somebody_looks_into_is_waited_for(image, slot, monkeypatch):
    real, busy = os.open, iter([True, True])

    def opened(path, flags, *more):
        if flags & os.O_EXCL and next(busy, False):
            raise OSError(errno.EBUSY, "Device or resource busy", str(path))
        return real(path, flags, *more)

    monkeypatch.setattr(os, "open", opened)
    erase(slot)
    assert slot.read_bytes()[: update_write.HEAD] == bytes(update_write.HEAD)

    busy = iter(lambda: True, None)
    monkeypatch.setattr(update_write, "IN_USE", 0.3)
    with pytest.raises(OSError, match="busy"):
        erase(slot)


def in_memory(path) -> int:
    """Bytes of a file that the kernel has in memory (mincore(2))."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as mapped:
        pages = (ctypes.c_ubyte * (-(-len(mapped) // mmap.PAGESIZE)))()
        start = ctypes.c_char.from_buffer(mapped)
        failed = ctypes.CDLL(None, use_errno=True).mincore(ctypes.byref(start), ctypes.c_size_t(len(mapped)), pages)
        del start
        assert not failed, os.strerror(ctypes.get_errno())
        return sum(page & 1 for page in pages) * mmap.PAGESIZE


def test_hardly_anything_of_it_stays_in_memory(tmp_path):
    """What does would be taken for a flood."""
    large = os.urandom(1 << 20) * (3 * FLUSH >> 20)
    files = [tmp_path / name for name in ("image", "bundle", "slot")]
    for path in files:
        path.write_bytes(large)
    os.sync()
    with files[0].open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if in_memory(files[0]):
        pytest.skip("this file system has all its files in memory")
    image, bundle, slot = files
    assert in_memory(bundle) > FLUSH
    seen = []

    def look(_):
        seen.append(sum(map(in_memory, files)))

    erase(slot)
    verify(image, bundle, len(large), hashlib.sha256(large).hexdigest(), look)
    write(image, bundle, slot, look)
    assert reads_back(slot, len(large), hashlib.sha256(large).hexdigest(), look)
    assert seen[-1] < FLUSH and in_memory(bundle) == 0, seen
    assert max(seen[len(seen) // 2 :]) < 4 * FLUSH, seen
