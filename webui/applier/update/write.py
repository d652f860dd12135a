"""From a bundle's verified image to a slot. A slot is whole or holds nothing: its first block comes last.

The image is read through dm-verity, so every byte that arrives here is a signed one, or reading fails.

Nothing of what is read and written stays in memory: IPVS counts free pages, and what fills them it takes for a flood
(lbconfig/hardware/share.py). Then it closes quiet connections. What the kernel reads of the bundle for dm-verity counts
for none of the box's own programs, so their share of memory does not bound it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from applier.wire.errors import ApplierRefused

BLOCK = 1 << 20  # bytes
HEAD = 4096  # bytes; the superblock of a squashfs is in the first 96
IN_USE = 15.0  # seconds that somebody else may still use a slot that is to be written
FLUSH = 8 * BLOCK  # so much may be in memory; and the percentage tells what is on the disk

Progress = Callable[[int], None]  # gets the bytes that are done


def verify(image: Path, bundle: Path, size: int, digest: str, progress: Progress) -> None:
    """Read all of it before anything is written. ApplierRefused where it is not what was signed."""
    try:
        with _opened(image) as source, _opened(bundle) as under:
            if os.fstat(source).st_size == size and _digest_of(source, size, progress, under) == digest:
                return
        reason = "its image is not the one that was signed"
    except OSError as error:
        reason = error.strerror or str(error)
    text = f"The bundle is damaged: {reason}. Nothing was written. Download or copy it again."
    raise ApplierRefused("bundle-damaged", text)


def room(device: Path) -> int:
    """Bytes that the slot can hold. Raises OSError."""
    handle = os.open(device, os.O_RDONLY)
    try:
        return os.lseek(handle, 0, os.SEEK_END)
    finally:
        os.close(handle)


def erase(device: Path) -> None:
    """From here on the slot holds nothing. Raises OSError."""
    with _exclusive(device) as handle:
        _write(handle, bytes(HEAD), 0)
        os.fsync(handle)


def write(image: Path, bundle: Path, device: Path, progress: Progress) -> None:
    """Raises OSError. The slot must have been erased before."""
    with image.open("rb") as source, _opened(bundle) as under, _exclusive(device) as target:
        head = source.read(HEAD)
        place = waiting = len(head)
        while part := source.read(BLOCK):
            _write(target, part, place)
            place += len(part)
            waiting += len(part)
            if waiting >= FLUSH:
                os.fdatasync(target)
                _forget(source.fileno(), under, target)
                waiting = 0
                progress(place)
        os.fsync(target)
        _write(target, head, 0)
        os.fsync(target)
        _forget(source.fileno(), under, target)
        progress(place)


def reads_back(device: Path, size: int, digest: str, progress: Progress) -> bool:
    """Whether the disk gives back what was written; from the disk itself, not from memory. Raises OSError."""
    with _opened(device) as handle:
        _forget(handle)
        return _digest_of(handle, size, progress) == digest


def _digest_of(handle: int, size: int, progress: Progress, *under: int) -> str:
    total, place = hashlib.sha256(), 0
    while place < size and (part := os.pread(handle, min(BLOCK, size - place), place)):
        total.update(part)
        place += len(part)
        if place % FLUSH == 0 or place == size:
            _forget(handle, *under)
        progress(place)
    return total.hexdigest()


def _forget(*handles: int) -> None:
    """What memory has of these files; not what is still to be written."""
    for handle in handles:
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    handle = os.open(path, os.O_RDONLY)
    try:
        yield handle
    finally:
        os.close(handle)


@contextlib.contextmanager
def _exclusive(device: Path) -> Iterator[int]:
    # open(2): with O_EXCL a block device that is in use (a mounted slot) is refused. Whoever looks into it, as to read
    # its version, is done in a moment.
    deadline = time.monotonic() + IN_USE
    while True:
        try:
            handle = os.open(device, os.O_WRONLY | os.O_EXCL)
            break
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() >= deadline:
                raise
            time.sleep(0.2)
    try:
        yield handle
    finally:
        os.close(handle)


def _write(handle: int, data: bytes, place: int) -> None:
    view = memoryview(data)
    while view:
        done = os.pwrite(handle, view, place)
        view, place = view[done:], place + done
