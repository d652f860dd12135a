"""Forms that take a file. No other form does (settings.FILE_UPLOAD_HANDLERS).

The file goes to the data partition, without a name there: whatever happens, nothing of it is left behind.
"""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Callable

from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler, StopUpload
from django.http import HttpRequest, HttpResponse, UnreadablePostError
from django.http.multipartparser import MultiPartParserError
from django.views.decorators.csrf import csrf_exempt, csrf_protect

from fairlead import bodies
from fairlead.faults import FULL, Fault, page

HEADROOM = 16 << 20  # bytes of the data partition that stay free for the configuration
OTHER_FIELDS = 64 * 1024  # bytes of a form beside its file; a pasted text has settings.DATA_UPLOAD_MAX_MEMORY_SIZE

UNREADABLE = Fault(
    400, "This form could not be read", "Nothing of it was taken.", "Go back, load the page again and try once more."
)
ENDED_EARLY = Fault(
    408,
    "The file did not arrive",
    "The connection ended, or was too slow, before the whole file was there. Nothing of it was kept.",
    "Go back and send the file again.",
)
CROWDED = Fault(503, "Others are sending files", str(bodies.Crowded()), "Go back and send the file again.")


class ToDisk(FileUploadHandler):
    def __init__(self, request: HttpRequest, limit: int) -> None:
        super().__init__(request)
        self.limit = limit
        self.size = 0

    def new_file(self, *args, **kwargs) -> None:
        super().new_file(*args, **kwargs)
        settings.INCOMING.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.file = tempfile.TemporaryFile(dir=settings.INCOMING)  # noqa: SIM115 # the request closes it

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        self.size += len(raw_data)
        if self.size > self.limit:
            raise StopUpload(connection_reset=True)
        self.file.write(raw_data)

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
            if length + HEADROOM > room():
                return page(FULL)
            request.upload_handlers = [ToDisk(request, limit)]
            try:
                with bodies.coming_in(request):
                    request.POST  # noqa: B018 # read now, so that what is wrong with it is told
            except bodies.Crowded:
                return page(CROWDED)
            except UnreadablePostError:
                return page(ENDED_EARLY)
            except SuspiciousOperation:
                return page(too_large(settings.DATA_UPLOAD_MAX_MEMORY_SIZE))
            except MultiPartParserError:
                return page(UNREADABLE)
            return protected(request, *args, **kwargs)

        return inner

    return wrap


def room() -> int:
    """Bytes that are free where files come in."""
    settings.INCOMING.mkdir(mode=0o700, parents=True, exist_ok=True)
    about = os.statvfs(settings.INCOMING)
    return about.f_bavail * about.f_frsize


def too_large(limit: int) -> Fault:
    return Fault(
        413,
        "This is too large",
        f"At most {limit / 1e6:.0f} MB are taken here. Nothing was changed.",
        "Go back and choose another file.",
    )
