"""The bundle as it comes from the other box, in pieces: whole, or not there.

It ends up where an upload does that root has taken (update/spool.py), and is checked and installed as one.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from applier.base.paths import Paths
from applier.kept import storage
from applier.wire.errors import ApplierRefused

# Bytes. While a piece is on its way, nothing else passes between the boxes: on a line of 2 Mbit/s for less than half of
# the time after which a box that says nothing is away.
PIECE = 256 << 10
WAITS = 5.0  # seconds for the piece before, less than the other box waits for an answer
HEADROOM = 16 << 20  # bytes that stay free for the configuration


@dataclass
class Coming:
    """What has come so far. In memory: an applier that is started anew forgets all uploads, this one too."""

    name: str
    size: int
    digest: str
    have: int = 0
    sum: Any = field(default_factory=hashlib.sha256)


class Receiving:
    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._coming: Coming | None = None
        # A slow disk takes longer for a piece, or for the bundle once it is whole, than the other box waits: then that
        # one sends it again.
        self._taking = threading.Lock()

    def received(self, name: str) -> int:
        """How many bytes of that bundle are here."""
        coming = self._coming
        if coming is None or coming.name != name:
            return 0
        there = self._whole(name) if coming.have == coming.size else self._part(name)
        return coming.have if there.exists() else 0  # else an upload has taken its place

    def take(self, name: str, size: int, digest: str, limit: int, offset: int, piece: bytes) -> int:
        """How many bytes are here afterwards: the place of the next piece. A piece for another place changes nothing.

        `limit`: bytes that a bundle may have. Raises ApplierRefused.
        """
        if size > limit:
            words = f"The bundle has {size / 1e6:.1f} MB; this box takes {limit / 1e6:.1f} MB at most."
            raise ApplierRefused("bundle-too-large", words)
        if not self._taking.acquire(timeout=WAITS):
            return self.received(name)
        try:
            have = self.received(name)
            if offset != have or have == size:
                return have
            coming = self._coming if have else None
            if coming is None:
                coming = self._begin(Coming(name, size, digest))
            self._write(coming, piece[: size - have])
            return coming.have
        except OSError as error:
            self.forget()
            raise ApplierRefused(*storage.of_error(error, self._paths)) from None
        finally:
            self._taking.release()

    def forget(self) -> None:
        """Whatever has come."""
        coming, self._coming = self._coming, None
        if coming is not None:
            for path in (self._part(coming.name), self._whole(coming.name)):
                with contextlib.suppress(OSError):
                    path.unlink()

    def _begin(self, coming: Coming) -> Coming:
        """Reserve the room for all of it. Raises OSError, ApplierRefused."""
        self.forget()
        free = storage.usage(self._paths)[1] - HEADROOM
        if coming.size > free:
            words = f"it has {coming.size / 1e6:.1f} MB, and {max(0, free) / 1e6:.1f} MB may be used"
            raise ApplierRefused("data-full", f"There is no room for the bundle: {words}.")
        self._paths.taken.mkdir(mode=0o700, parents=True, exist_ok=True)
        for old in self._paths.taken.iterdir():  # there is room for one
            old.unlink()
        self._coming = coming
        handle = os.open(self._part(coming.name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.posix_fallocate(handle, 0, coming.size)
        finally:
            os.close(handle)
        return coming

    def _write(self, coming: Coming, piece: bytes) -> None:
        """Nobody is told that a piece is here before it is, and the last one not before all of the bundle is."""
        handle = os.open(self._part(coming.name), os.O_WRONLY)
        try:
            view = memoryview(piece)
            while view:
                done = os.pwrite(handle, view, coming.have + len(piece) - len(view))
                view = view[done:]
        finally:
            os.close(handle)
        coming.sum.update(piece)
        have = coming.have + len(piece)
        if have == coming.size:
            self._end(coming)
        coming.have = have

    def _end(self, coming: Coming) -> None:
        if coming.sum.hexdigest() != coming.digest:
            self.forget()
            words = "The bundle did not arrive as it was sent: its digest is another one. Begin again."
            raise ApplierRefused("bundle-damaged", words)
        part = self._part(coming.name)
        handle = os.open(part, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        part.rename(self._whole(coming.name))

    def _part(self, name: str) -> Path:
        return self._paths.taken / f".{name}.part"

    def _whole(self, name: str) -> Path:
        return self._paths.taken / f"{name}.raucb"
