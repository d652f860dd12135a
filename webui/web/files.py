"""Forms that take a file. No other form does (settings.FILE_UPLOAD_HANDLERS).

The file goes to the data partition, without a name there: whatever happens, nothing of it is left behind.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import tempfile
from collections.abc import Callable
from typing import BinaryIO

from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler, StopUpload
from django.http import HttpRequest, HttpResponse, UnreadablePostError
from django.http.multipartparser import MultiPartParserError
from django.views.decorators.csrf import csrf_exempt, csrf_protect

from web import bodies
from web.faults import FULL, Fault, page
from web.room import Promise, promised

OTHER_FIELDS = 64 * 1024  # bytes of a form beside its file; a pasted text has settings.DATA_UPLOAD_MAX_MEMORY_SIZE

UNREADABLE = Fault(
    400, "This form could not be read", "None of it was saved.", "Go back, load the page again and try once more."
)
ENDED_EARLY = Fault(
    408,
    "The file did not arrive",
    "The connection ended, or was too slow, before the whole file had arrived. None of it was kept.",
    "Go back and send the file again.",
)
CROWDED = Fault(503, "Others are sending files", str(bodies.Crowded()), "Go back and send the file again.")


class ToDisk(FileUploadHandler):
    def __init__(self, request: HttpRequest | None, limit: int, promise: Promise) -> None:
        super().__init__(request)
        self.limit = limit
        self.promise = promise
        self.size = 0
        self.files: list[BinaryIO] = []

    def new_file(self, *args, **kwargs) -> None:
        super().new_file(*args, **kwargs)
        self.file = tempfile.TemporaryFile(dir=settings.INCOMING)  # noqa: SIM115 # close() does
        self.files.append(self.file)

    def close(self) -> None:
        """A file without a name keeps its room until it is closed, and a client that goes away leaves it open."""
        for file in self.files:
            file.close()

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        self.size += len(raw_data)
        if self.size > self.limit:
            raise StopUpload(connection_reset=True)
        self.file.write(raw_data)
        self.promise.wrote(len(raw_data))

    def file_complete(self, file_size: int) -> UploadedFile:
        self.file.seek(0)
        return UploadedFile(self.file, self.file_name, self.content_type, file_size, self.charset)


def takes_file(limit: int, refusal: Callable[[HttpRequest], HttpResponse | None] = lambda _: None) -> Callable:
    """For a view whose form takes one file of so many bytes at most; larger ones are not even read.

    `refusal`: of a view that asks for no log-in, the answer to who may send no file, by the headers alone.
    """

    def wrap(view: Callable) -> Callable:
        protected = csrf_protect(view)

        @csrf_exempt  # reading the token reads the file: that comes after the handler is set, in `protected`
        @functools.wraps(view)
        def inner(request: HttpRequest, *args, **kwargs) -> HttpResponse:
            if request.method != "POST":
                return protected(request, *args, **kwargs)
            if (answer := refusal(request)) is not None:
                return answer
            length = bodies.said_length(request) or 0
            if length > limit + settings.DATA_UPLOAD_MAX_MEMORY_SIZE + OTHER_FIELDS:
                return page(too_large(limit))
            try:
                with promised(settings.INCOMING, length) as promise:
                    handler = ToDisk(request, limit, promise)
                    with contextlib.closing(handler):
                        return _read(request, handler) or protected(request, *args, **kwargs)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                return page(FULL)

        return inner

    return wrap


def _read(request: HttpRequest, handler: ToDisk) -> HttpResponse | None:
    """Now, so that what is wrong with it is told."""
    request.upload_handlers = [handler]
    try:
        with bodies.coming_in(request):
            request.POST  # noqa: B018 # Django reads it here
    except bodies.Crowded:
        return page(CROWDED)
    except UnreadablePostError:
        return page(ENDED_EARLY)
    except SuspiciousOperation:
        return page(too_large(settings.DATA_UPLOAD_MAX_MEMORY_SIZE))
    except MultiPartParserError:
        return page(UNREADABLE)
    return None


def too_large(limit: int) -> Fault:
    return Fault(
        413,
        "This is too large",
        f"At most {limit / 1e6:.0f} MB are accepted here. Nothing was changed.",
        "Go back and choose another file.",
    )
