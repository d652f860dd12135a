"""Room on the data partition: who is going to fill some of it asks first, and what others have asked for counts.

A look at the free space alone lets two in that fit one by one. A promise lasts as long as the connection that it was
given to; what was written of it is no longer free, and counts once.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections.abc import Iterator
from pathlib import Path

HEADROOM = 16 << 20  # bytes that stay free for the configuration
_lock = threading.Lock()
_promises: list[Promise] = []


class NoRoom(OSError):
    """`free`: how many bytes could have been had."""

    def __init__(self, size: int, free: int) -> None:
        super().__init__(errno.ENOSPC, f"there is no room for {size / 1e6:.1f} MB on the data partition")
        self.free = free


class Promise:
    def __init__(self, size: int) -> None:
        self.left = size  # bytes that are still free, and not for others

    def wrote(self, count: int) -> None:
        self.left = max(0, self.left - count)


@contextlib.contextmanager
def promised(folder: Path, size: int) -> Iterator[Promise]:
    """So many bytes in this folder of the data partition, which is made if need be. Raises NoRoom, OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _lock:
        about = os.statvfs(folder)
        free = about.f_bavail * about.f_frsize - HEADROOM - sum(one.left for one in _promises)
        if size > free:
            raise NoRoom(size, max(0, free))
        promise = Promise(size)
        _promises.append(promise)
    try:
        yield promise
    finally:
        with _lock:
            _promises.remove(promise)
