"""The data partition: how full it is, and what is wrong with it, in sentences."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

from applier.base.paths import Paths

LITTLE = 4 << 20  # bytes; a large configuration takes about this much
RESERVE = 8 << 20  # bytes that are set aside, for the day on which the partition is full
PLENTY = 4 * RESERVE  # bytes that must be free before anything is set aside

Trouble = tuple[str, str]  # fault code, sentence

BOOT_FAULT = "data-partition"  # the name of the boot scripts' fault about it
CODES = ("data-missing", "data-full", "data-read-only", "data-error")
MISSING = (
    "data-missing",
    "The data partition is not there: the box forwards by what it can still read, and nothing can be saved. "
    "Check the disk and restart.",
)
READ_ONLY = (
    "data-read-only",
    "The data partition is read-only, perhaps after a disk error: nothing can be saved. Check the disk and restart.",
)
_BY_ERRNO = {errno.ENOENT: MISSING, errno.ENOTDIR: MISSING, errno.EROFS: READ_ONLY}


def usage(paths: Paths) -> tuple[int, int]:
    """Total and free bytes of the partition; (0, 0) where there is none."""
    if not _is_there(paths):
        return 0, 0
    try:
        numbers = os.statvfs(_nearest(paths.state))
    except OSError:
        return 0, 0
    return numbers.f_frsize * numbers.f_blocks, numbers.f_frsize * numbers.f_bavail


def trouble(paths: Paths) -> Trouble | None:
    """What can be seen without writing."""
    if not _is_there(paths):
        return MISSING
    try:
        numbers = os.statvfs(_nearest(paths.state))
    except OSError as error:
        return of_error(error, paths)
    if numbers.f_flag & os.ST_RDONLY:
        return READ_ONLY
    if numbers.f_frsize * numbers.f_bavail < LITTLE or (numbers.f_files and not numbers.f_favail):
        return _full(paths)
    return None


def at_boot(paths: Paths) -> dict[str, str]:
    """What the boot scripts found wrong: name of the fault to its sentence."""
    found = {}
    with contextlib.suppress(OSError):
        for path in sorted(paths.boot_faults.iterdir()):
            found[path.name] = " ".join(path.read_text(errors="replace")[:1000].split())
    return {name: text for name, text in found.items() if text}


def of_error(error: OSError, paths: Paths) -> Trouble:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return _full(paths)
    if error.errno in _BY_ERRNO:
        return _BY_ERRNO[error.errno]
    return "data-error", f"The data partition gives an error: {error.strerror or error}. Check the disk."


def _full(paths: Paths) -> Trouble:
    total, free = usage(paths)
    return (
        "data-full",
        f"The data partition is full ({free / 1e6:.1f} MB of {total / 1e6:.0f} MB are free): nothing can be applied. "
        "At the console of the box choose to make room.",
    )


def keep_reserve(paths: Paths) -> None:
    """Set the reserve aside, where there is room for it. Raises OSError."""
    if paths.reserve.exists() or usage(paths)[1] < PLENTY:
        return
    with paths.reserve.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, RESERVE)


def spend_reserve(paths: Paths) -> None:
    """Raises OSError."""
    paths.reserve.unlink(missing_ok=True)


def _is_there(paths: Paths) -> bool:
    return paths.mount is None or os.path.ismount(Path(paths.mount))


def _nearest(path: Path) -> Path:
    """The folder itself, or the one in which it will be made."""
    return next((one for one in (path, *path.parents) if one.exists()), path)
