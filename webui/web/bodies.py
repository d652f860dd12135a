"""Bodies that nginx hands on as they come: how many at once, and how slowly.

Each of them holds a thread of the web process until its end has come. So whoever reads one has decided by the headers
alone who may send it; long ones get few of the threads; and one that comes too slowly is cut off.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

from django.http import HttpRequest

AT_ONCE = 2  # long ones, of eight threads (overlay/etc/fairlead/gunicorn.conf.py)
SHORT = 64 * 1024  # bytes of a body that needs no place among them
LEAST = 8 * 1024  # bytes a second
PATIENCE = 15.0  # seconds without a byte; what came faster than it must counts for no longer
_PIECE = 16 * 1024  # bytes
_places = threading.BoundedSemaphore(AT_ONCE)


class Crowded(Exception):
    """As many long bodies as may are coming in already."""

    def __init__(self) -> None:
        super().__init__(f"{AT_ONCE} files are coming in already. Wait until one of them has ended and try again.")


class EndedEarly(ConnectionError):
    """The client went away, or sent too slowly. Django turns it into UnreadablePostError."""


@contextlib.contextmanager
def coming_in(request: HttpRequest) -> Iterator[None]:
    """Inside, the body may be read. Raises Crowded."""
    length = said_length(request)
    takes_place = length is None or length > SHORT
    if takes_place and not _places.acquire(blocking=False):
        raise Crowded
    try:
        with _Watch(request.META.get("gunicorn.socket")) as watch:
            # Django takes a body without a length for an empty one; gunicorn knows where it ends.
            stream = request.META["wsgi.input"] if length is None else request._stream
            # Django asks it for no more than _Paced has.
            request._stream = _Paced(stream, length or 0, watch)  # type: ignore[assignment]
            yield
    finally:
        if takes_place:
            _places.release()


def said_length(request: HttpRequest) -> int | None:
    """None: it comes in chunks, and only its end tells."""
    text = request.META.get("CONTENT_LENGTH") or ""
    if text.isascii() and text.isdigit():
        return int(text[:20])
    chunked = request.META.get("HTTP_TRANSFER_ENCODING") and request.META.get("wsgi.input_terminated")
    return None if chunked else 0


class _Watch:
    """Ends the reading from a connection that brings too little: the reader is blocked and cannot."""

    def __init__(self, connection: socket.socket | None) -> None:
        self._connection = connection  # None: not behind gunicorn
        self._until = time.monotonic() + PATIENCE
        self._over = threading.Event()

    def __enter__(self) -> _Watch:
        if self._connection is not None:
            threading.Thread(target=self._look, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def came(self, count: int) -> None:
        self._until = min(time.monotonic() + PATIENCE, self._until + count / LEAST)

    def _look(self) -> None:
        connection = self._connection
        while connection and not self._over.wait(max(0.0, self._until - time.monotonic())):
            if time.monotonic() >= self._until:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RD)  # what is answered can still be written
                return


class _Paced:
    """What Django reads a body from."""

    def __init__(self, stream, length: int, watch: _Watch) -> None:
        self._stream = stream
        self._left = length
        self._watch = watch

    def read(self, size: int = -1) -> bytes:
        found = bytearray()
        while size < 0 or len(found) < size:
            data = self._stream.read(_PIECE if size < 0 else min(_PIECE, size - len(found)))
            if not self._counted(data):
                break
            found += data
        return bytes(found)

    def readline(self, _: int = -1) -> bytes:
        """Of what is left at the end of a form, nobody asks for more than that it comes to its end."""
        return self._counted(self._stream.readline(_PIECE))

    def _counted(self, data: bytes) -> bytes:
        if not data and self._left > 0:
            raise EndedEarly("the body ended early")
        self._left -= len(data)
        self._watch.came(len(data))
        return data
