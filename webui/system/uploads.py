"""A bundle on its way from the browser to the disk: straight into the spool folder, never through memory.

Nothing is read before it is clear that it fits. The name is the box's own; what the browser calls the file is
never used. One upload at a time: the web UI is one process.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import threading
from pathlib import Path

from django.conf import settings
from django.http import HttpRequest, UnreadablePostError

from web import bodies
from web.room import NoRoom, Promise, promised

log = logging.getLogger(__name__)

BLOCK = 1 << 20  # bytes
_one = threading.Lock()


class UploadRefused(Exception):
    """`status` is an HTTP status, the text a sentence for an admin."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def receive(request: HttpRequest, limit: int) -> str:
    """The body of the request as a source for the applier. `limit`: bytes that are taken. Raises UploadRefused."""
    length = _length(request)
    if length > limit:
        raise UploadRefused(413, f"The file has {_mb(length)}; a bundle for this box has {_mb(limit)} at most.")
    if not _one.acquire(blocking=False):
        raise UploadRefused(409, "Somebody else is uploading a bundle at the moment; wait until that has ended.")
    try:
        clear()
        with promised(settings.UPLOADS, length) as promise, bodies.coming_in(request):
            return f"upload:{_store(request, length, promise)}"
    except NoRoom as full:
        text = f"There is no room for this file: it has {_mb(length)}, and {_mb(full.free)} may be used."
        raise UploadRefused(507, text) from None
    except bodies.Crowded as crowded:
        raise UploadRefused(503, str(crowded)) from None
    except UnreadablePostError:
        clear()
        raise UploadRefused(400, "The upload ended before the whole file had arrived. Try again.") from None
    except OSError as error:
        clear()
        log.warning("an upload of %s ended: %s", _mb(length), error)
        raise UploadRefused(507, f"The bundle could not be stored: {error.strerror or error}.") from None
    finally:
        _one.release()


def clear() -> None:
    """Remove what earlier uploads left behind."""
    with contextlib.suppress(OSError):
        for path in settings.UPLOADS.iterdir():
            path.unlink()


def _length(request: HttpRequest) -> int:
    text = request.META.get("CONTENT_LENGTH") or ""
    if not (text.isascii() and text.isdigit()):
        raise UploadRefused(411, "The length of the file must be said beforehand (Content-Length).")
    if int(text) == 0:
        raise UploadRefused(400, "The file is empty.")
    return int(text)


def _store(request: HttpRequest, length: int, promise: Promise) -> str:
    name = secrets.token_hex(16)
    part = Path(settings.UPLOADS, f"{name}.part")
    handle = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb", buffering=0) as file:
        left = length
        while left and (data := request.read(min(BLOCK, left))):
            file.write(data)
            promise.wrote(len(data))
            left -= len(data)
        os.fsync(file.fileno())
    part.rename(part.with_suffix(".raucb"))
    return name


def _mb(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
