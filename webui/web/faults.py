"""The pages for when something is wrong: readable, and drawn without the database or a session."""

import errno
import os
import sqlite3
import sys
from dataclasses import dataclass

from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.views.decorators.csrf import requires_csrf_token

ENOUGH = 256 * 1024  # bytes
STILL_BALANCING = "The box keeps balancing with its last confirmed configuration."


@dataclass(frozen=True)
class Fault:
    status: int
    title: str
    what: str
    do: str


FULL = Fault(
    507,
    "The data partition is full",
    "Nothing could be saved: there is no room left on the data partition. What was saved before is still there.",
    "Free space on the data partition at the console of the box, then go back and save again.",
)
READ_ONLY = Fault(
    503,
    "The data partition cannot be written",
    "Nothing could be saved: the data partition is mounted read-only or its disk refuses to write.",
    "Restart the box; the file system is checked at the start. If this page comes back, replace the disk.",
)
DAMAGED = Fault(
    503,
    "The database of this web page is damaged",
    "The settings that the web page keeps cannot be read. Nothing has been deleted.",
    "At the console of the box, choose to restore the database: the damaged file is put aside and the "
    "newest good backup takes its place.",
)
BUSY = Fault(
    503,
    "The database is busy",
    "Somebody else was saving for longer than five seconds, so nothing was saved here.",
    "Go back and save again.",
)
UNKNOWN_STORE = Fault(
    503,
    "The database of this web page does not answer",
    "What you asked for could not be read or saved.",
    "Try again in a moment. If this page comes back, restart the box.",
)
MISTAKE = Fault(
    500,
    "This page failed",
    "The software of the box has failed. Nothing was applied by this page.",
    "Go back and try again. The system log has the details.",
)
UNKNOWN_HOST = Fault(
    400,
    "The box does not answer to this name",
    "The name in the address is neither a host name (letters, digits, dots, hyphens, underscores) nor an IP address.",
    "Open the page by the address that the console of the box shows.",
)
NOT_FOUND = Fault(
    404, "There is no such page", "The address is wrong, or the object was removed.", "Go to the overview."
)
UNREADABLE = Fault(
    400,
    "This request cannot be read",
    "It is larger, has more fields or is built in another way than this page takes. Nothing was changed.",
    "Go back, load the page again and repeat the change.",
)

# Primary result codes of SQLite (sqlite.org/rescode.html); the extended ones carry them in the low byte.
BY_SQLITE_CODE = {
    sqlite3.SQLITE_FULL: FULL,
    sqlite3.SQLITE_READONLY: READ_ONLY,
    sqlite3.SQLITE_IOERR: READ_ONLY,
    sqlite3.SQLITE_PERM: READ_ONLY,
    sqlite3.SQLITE_CORRUPT: DAMAGED,
    sqlite3.SQLITE_NOTADB: DAMAGED,
    sqlite3.SQLITE_BUSY: BUSY,
    sqlite3.SQLITE_LOCKED: BUSY,
}
# Of a file beside the database.
BY_ERRNO = {errno.ENOSPC: FULL, errno.EDQUOT: FULL, errno.EROFS: READ_ONLY, errno.EIO: READ_ONLY}


def fault_of(error: BaseException | None) -> Fault:
    """Which page fits the error: Django keeps SQLite's own error as the cause of its DatabaseError."""
    if isinstance(error, OSError) and error.errno in BY_ERRNO:
        return BY_ERRNO[error.errno]
    if not isinstance(error, DatabaseError | sqlite3.Error):
        return MISTAKE
    cause = error if isinstance(error, sqlite3.Error) else error.__cause__
    code = getattr(cause, "sqlite_errorcode", None)
    fault = UNKNOWN_STORE if code is None else BY_SQLITE_CODE.get(code & 0xFF, UNKNOWN_STORE)
    if fault in (READ_ONLY, UNKNOWN_STORE) and no_room():
        return FULL  # SQLite calls it an I/O error when the file of its shared memory cannot grow
    return fault


def no_room() -> bool:
    """Whether the data partition has less room than SQLite needs to open a database."""
    try:
        about = os.statvfs(settings.DATA)
    except OSError:
        return False
    return about.f_bavail * about.f_frsize < ENOUGH


def page(fault: Fault, detail: str = "") -> HttpResponse:
    text = render_to_string("fault.html", {"fault": fault, "detail": detail, "still": STILL_BALANCING})
    return HttpResponse(text, status=fault.status)


def answer(request, fault: Fault, detail: str = "") -> HttpResponse:
    """The page; for a program that asked the API, the same as JSON."""
    if not request.path.startswith("/api/"):
        return page(fault, detail)
    words = {"code": "fault", "message": f"{fault.title}. {fault.what} {detail}".strip(), "problems": []}
    return JsonResponse({"error": words}, status=fault.status)


def fault_file_page(request) -> HttpResponse:
    """The fault that `manage.py prepare` found at the start."""
    try:
        detail = settings.FAULT_FILE.read_text()[:2000]
    except OSError:
        detail = ""
    response = answer(request, DAMAGED, detail)
    response.headers["Retry-After"] = "30"
    return response


def server_error(request) -> HttpResponse:
    """Django's handler500: also for errors outside the views, such as a session that cannot be saved."""
    error = sys.exc_info()[1]
    if isinstance(error, DatabaseError):
        connection.close()  # the next request opens the file anew, which may have been replaced meanwhile
    return answer(request, fault_of(error))


@requires_csrf_token
def csrf_failure(request, reason="") -> HttpResponse:
    """A form that is older than the log-in, mostly: say so, instead of a bare 403."""
    fault = Fault(
        403,
        "This form is too old",
        "You logged in or out since the page was opened, so for your safety nothing was saved.",
        "Open the page again and repeat the change.",
    )
    return answer(request, fault)


def bad_request(request, exception) -> HttpResponse:
    """What Django will not read."""
    return answer(request, UNREADABLE)


def not_found(request, exception) -> HttpResponse:
    return answer(request, NOT_FOUND)
