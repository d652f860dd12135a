"""Writing so that a power cut at any moment leaves either the old or the new, and never a mixture.

A file is safe once its content is synced *and* the folder that names it is.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def write(path: Path, data: bytes, mode: int = 0o600) -> None:
    """A new file with its content on the disk; its name is not yet."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        _write_all(handle, data)
        os.fsync(handle)
    finally:
        os.close(handle)


def append(path: Path, data: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        _write_all(handle, data)
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def prepare(path: Path, data: bytes) -> Path:
    """The first half of replace(): all that needs space on the disk. The second is put()."""
    temporary = path.with_name(f".{path.name}.new")
    try:
        write(temporary, data)
    except OSError:
        temporary.unlink(missing_ok=True)  # half of it would keep the room that it could not get
        raise
    return temporary


def put(temporary: Path, path: Path) -> None:
    os.replace(temporary, path)
    sync_folder(path.parent)


def replace(path: Path, data: bytes) -> None:
    put(prepare(path, data), path)


def point(link: Path, target: str) -> None:
    """Make the symbolic link point there, in one piece."""
    temporary = link.with_name(f".{link.name}.new")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)
    os.symlink(target, temporary)
    put(temporary, link)


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
