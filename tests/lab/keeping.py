"""Backup files and the factory reset as a person with a browser does them."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.parse
import urllib.request
import uuid
from contextlib import suppress

from board.machines.director import Director, browser
from board.machines.updating import PASSWORD, USER, Page, token_of

PASSPHRASE = "rope and tide and moon"
FILE = 180.0  # seconds for a backup file, there or back, on a slow emulated machine


def take(page: Page) -> bytes:
    """Download a backup file."""
    address = f"{page.url}/system/backup/"
    values = {"csrfmiddlewaretoken": token_of(page.get("/system/backup/")), "passphrase": PASSPHRASE}
    body = urllib.parse.urlencode(values | {"again": PASSPHRASE}).encode()
    with page.opener.open(urllib.request.Request(address, body, {"Referer": address}), timeout=FILE) as answer:
        assert "attachment" in answer.headers["Content-Disposition"], answer.read().decode(errors="replace")
        return answer.read()


def restore_at_set_up(director: Director, content: bytes, code: str, passphrase: str = PASSPHRASE) -> tuple[int, str]:
    """On a box that nobody has set up; HTTP status and text of the page that follows."""
    opener, address = browser(), f"{director.url}/set-up/restore/"
    form = _read(opener, address)[1]
    body = urllib.parse.urlencode({"csrfmiddlewaretoken": token_of(form), "code": code}).encode()
    status, form = _read(opener, urllib.request.Request(f"{address}code/", body, {"Referer": address}))
    assert status == 200 and 'name="passphrase"' in form, form
    return _read(opener, _with_file(address, token_of(form), content, passphrase))


def log_in_after(director: Director) -> str:
    """The page that follows the log-in with the old name and password."""
    opener, address = browser(), f"{director.url}/login/?next=/system/backup/restored/"
    form = _read(opener, address)[1]
    values = {"csrfmiddlewaretoken": token_of(form), "username": USER, "password": PASSWORD}
    body = urllib.parse.urlencode(values | {"next": "/system/backup/restored/"}).encode()
    status, text = _read(opener, urllib.request.Request(address, body, {"Referer": address}))
    assert status == 200, text
    return text


def factory_reset(page: Page, hostname: str) -> None:
    """Type the name and push the button. The page that follows may come too late from a slow box."""
    address = f"{page.url}/system/reset/"
    with suppress(OSError, http.client.HTTPException):
        status, text = page.post(address, {"hostname": hostname}, page.get("/system/reset/"))
        assert status == 200 and "forgets everything and restarts" in text, text


def _read(opener: urllib.request.OpenerDirector, request: str | urllib.request.Request) -> tuple[int, str]:
    try:
        with opener.open(request, timeout=FILE) as answer:
            return answer.status, answer.read().decode(errors="replace")
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(errors="replace")


def _with_file(address: str, token: str, content: bytes, passphrase: str) -> urllib.request.Request:
    """A form with a file, as a browser sends it (RFC 7578)."""
    line = uuid.uuid4().hex
    fields = "".join(
        f'--{line}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in (("csrfmiddlewaretoken", token), ("passphrase", passphrase))
    )
    head = f'--{line}\r\nContent-Disposition: form-data; name="file"; filename="b"\r\n'
    head += "Content-Type: application/octet-stream\r\n\r\n"
    body = (fields + head).encode() + content + f"\r\n--{line}--\r\n".encode()
    headers = {"Referer": address, "Content-Type": f"multipart/form-data; boundary={line}"}
    return urllib.request.Request(address, body, headers)
