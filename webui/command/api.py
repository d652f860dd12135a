"""The way to the API on the box itself: the UNIX socket of the web process, and the token that only root can read.

So there is one door: the same validation, the same draft, the same history and the same log as for everybody else.
"""

from __future__ import annotations

import contextlib
import errno
import http.client
import json
import os
import socket
import stat
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

RUN = "/run/fairlead"
PREFIX = "/api/v1"
TIMEOUT = 90.0  # seconds; a review of a thousand services takes some of them on a small box


class Unreachable(Exception):
    """Nobody answers, or not to this user. The text says what to do."""


class Refused(Exception):
    """The API said no; nothing was changed. `problems` name object and field."""

    def __init__(self, status: int, code: str, message: str, problems: list[dict]) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.problems = problems


class Api:
    def __init__(self, run: Path | None = None) -> None:
        folder = (run or Path(os.environ.get("FAIRLEAD_RUN", RUN))) / "web"
        self.socket = folder / "web.sock"
        self._token = folder / "console-token"

    def get(self, path: str, **query: object):
        words = "&".join(f"{name}={quote(str(value), safe='')}" for name, value in query.items())
        return self.ask("GET", f"{path}?{words}" if words else path)

    def post(self, path: str, data: object = None):
        return self.ask("POST", path, data)

    def ask(self, method: str, path: str, data: object = None):
        """What the API answers, as data; None where it has nothing to say. Raises Refused, Unreachable.

        The console overwrites what is there, as an admin does who replaces a file: If-Match is "*".
        """
        text = self.fetch(method, path, data)
        return _json(text) if text else None

    def send(self, path: str, file: Path):
        """A file as the body of a request; what the API answers, as data. Raises Refused, Unreachable, OSError."""
        with file.open("rb") as body:
            length = os.fstat(body.fileno()).st_size
            headers = {"Content-Type": "application/octet-stream", "Content-Length": str(length)}
            return _json(self._answered("POST", path, headers, body))

    def fetch(self, method: str, path: str, data: object = None) -> bytes:
        """The same, as it comes: a file. Raises Refused, Unreachable."""
        if data is None:
            return self._answered(method, path, {}, None)
        return self._answered(method, path, {"Content-Type": "application/json"}, json.dumps(data).encode())

    def _answered(self, method: str, path: str, more: dict[str, str], body: bytes | BinaryIO | None) -> bytes:
        headers = {"Authorization": f"Bearer {self._secret()}", "If-Match": "*", **more}
        status, text = self.exchange(method, f"{PREFIX}/{path.strip('/')}", headers, body)
        if status < 400:
            return text
        answer = _json(text) if text else None
        error = answer.get("error", {}) if isinstance(answer, dict) else {}
        raise Refused(status, error.get("code", "?"), error.get("message", f"HTTP {status}"), error.get("problems", []))

    def exchange(
        self, method: str, path: str, headers: dict[str, str], body: bytes | BinaryIO | None
    ) -> tuple[int, bytes]:
        """One request; HTTP status and body of its answer."""
        connection = UnixConnection(self.socket)
        try:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # refused before all of it has come
                connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException) as error:
            words = getattr(error, "strerror", None) or error or type(error).__name__
            text = f"The web process does not answer at {self.socket}: {words}. Try again in a moment; "
            raise Unreachable(f"{text}`fairlead-applier` asks the applier itself.") from None
        finally:
            connection.close()

    def _secret(self) -> str:
        try:
            return _own_text(self._token).strip()
        except PermissionError:
            raise Unreachable("Only root may use this command; others use the API with a token.") from None
        except OSError as error:
            raise Unreachable(f"The web process has not started yet: {self._token}: {error.strerror}.") from None


def _own_text(path: Path) -> str:
    """A file of whoever has the folder: root follows no link that the web process left, and waits at no FIFO."""
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode) or about.st_uid != path.parent.stat().st_uid:
            raise OSError(errno.EINVAL, "it is not a file of the web process")
        return file.read(1000).decode(errors="replace")


def _json(text: bytes):
    try:
        return json.loads(text)
    except ValueError:
        raise Unreachable("The web process gave an answer that is not JSON.") from None


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=TIMEOUT)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))
