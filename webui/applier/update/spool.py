"""Uploads: the web process leaves a bundle in its spool folder and names it; from here on it is root's alone.

The web process may be anybody's by now, so nothing that it controls is trusted: the folder is opened first and
everything is done in that folder, no link is followed, the file must be a plain one of the web process's own. It
is moved to a folder of root's, changes its owner, and then nobody may have it open for writing any more (the
kernel says so: it grants a read lease only then). What was checked is therefore what is installed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from applier.base.paths import Paths
from applier.wire.errors import ApplierRefused

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
UNKNOWN = ApplierRefused("unknown-upload", "This upload is no longer there; upload the bundle again.")
UNSAFE = ApplierRefused("unsafe-upload", "The upload was refused: it is not a plain file of the web process alone.")


class Spool:
    def __init__(self, paths: Paths) -> None:
        self._inbox = paths.upload
        self._own = paths.taken

    def take(self, name: str) -> Path:
        """The upload of that name, as a file that only root can change. ApplierRefused where it cannot be had."""
        path = self._own / f"{name}.raucb"
        if not path.exists():
            self.clear()
            try:
                self._move(name, path)
            except FileNotFoundError:
                raise UNKNOWN from None
            except OSError as error:
                text = f"The upload cannot be read: {error.strerror or error}."
                raise ApplierRefused("unsafe-upload", text) from None
        return path

    def clear(self) -> None:
        """Forget every upload that was taken: there is room for one."""
        with contextlib.suppress(OSError):
            for path in self._own.iterdir():
                path.unlink()

    def _move(self, name: str, path: Path) -> None:
        self._own.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _opened(self._inbox, _FOLDER) as inbox, _opened(self._own, _FOLDER) as own:
            owner = os.fstat(inbox).st_uid
            with _opened(f"{name}.raucb", _FILE, inbox) as file:
                found = os.fstat(file)
                if not stat.S_ISREG(found.st_mode) or found.st_uid != owner:
                    raise UNSAFE
                os.rename(f"{name}.raucb", path.name, src_dir_fd=inbox, dst_dir_fd=own)
                try:
                    moved = os.stat(path.name, dir_fd=own, follow_symlinks=False)
                    if (moved.st_dev, moved.st_ino) != (found.st_dev, found.st_ino):
                        raise UNSAFE  # somebody put another one in its place in between
                    os.fchown(file, os.geteuid(), os.getegid())
                    os.fchmod(file, 0o600)
                    _nobody_writes(file)
                except (OSError, ApplierRefused):
                    os.unlink(path.name, dir_fd=own)
                    raise


def _nobody_writes(file: int) -> None:
    """fcntl(2): a read lease is granted only where the file is open for writing nowhere."""
    try:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except BlockingIOError:
        raise UNSAFE from None


@contextlib.contextmanager
def _opened(path: Path | str, flags: int, folder: int | None = None) -> Iterator[int]:
    handle = os.open(path, flags, dir_fd=folder)
    try:
        yield handle
    finally:
        os.close(handle)
