"""How a process asks the applier: one line of JSON over its socket, and one that comes back.

Of the standard library and ours it loads what that takes and no more: the process that talks with the other box of a
pair does nothing else.
"""

from __future__ import annotations

import contextlib
import json
import socket
from collections import deque
from typing import TYPE_CHECKING, Any

from applier.wire.errors import ApplierDown, ApplierRefused

if TYPE_CHECKING:
    from pathlib import Path

TIMEOUT = 60  # seconds; a check of a thousand services takes some of them on a small box
MAX_ANSWER = 64 * 1024 * 1024  # bytes


class Asking:
    """Whoever asks it gives the verbs a method each; `timeout` in seconds.

    `keeps`: its connections are kept for the next question, one for each thread that asks at the same time. What it
    asks is harmless when it is done twice: a connection that the applier has ended meanwhile shows so when it is used.
    """

    def __init__(self, path: Path | str, timeout: float = TIMEOUT, keeps: bool = False) -> None:
        self.path = str(path)
        self.timeout = timeout
        self._keeps = keeps
        self._idle: deque[socket.socket] = deque()

    def _ask(self, verb: str, **fields: object) -> Any:
        """What the applier answers. It keeps to the shapes, and is not asked again whether it does."""
        line = json.dumps({"verb": verb, **fields}, separators=(",", ":")).encode() + b"\n"
        try:
            answer = json.loads(self._exchange(line))
        except TimeoutError:
            raise ApplierDown(f"The applier did not answer within {self.timeout:g} seconds.") from None
        except OSError as error:
            raise ApplierDown(f"The applier cannot be reached at {self.path}: {error.strerror or error}.") from None
        except ValueError:
            raise ApplierDown("The applier ended before its answer was complete.") from None
        if not isinstance(answer, dict) or not answer.keys() & {"error", "result"}:
            raise ApplierDown("The applier gave an answer that is neither a result nor an error.")
        if "error" in answer:
            raise ApplierRefused(**answer["error"])
        return answer["result"]

    def _exchange(self, line: bytes) -> bytes:
        with contextlib.suppress(IndexError):
            answer = self._talk(self._idle.pop(), line)
            if answer.endswith(b"\n"):
                return answer
            self._forget()  # the applier was started anew, and has ended the others as well
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(self.timeout)
        try:
            connection.connect(self.path)
        except OSError:
            connection.close()
            raise
        return self._talk(connection, line)

    def _talk(self, connection: socket.socket, line: bytes) -> bytes:
        """The answer, without its end where the connection has ended before. OSError where that takes too long."""
        answer = bytearray()
        try:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(line)  # broken: it refused before it had read all, and says why
            with contextlib.suppress(ConnectionResetError):
                while not answer.endswith(b"\n") and len(answer) < MAX_ANSWER:
                    part = connection.recv(65536)
                    if not part:
                        break
                    answer += part
        except BaseException:
            connection.close()
            raise
        if self._keeps and answer.endswith(b"\n"):
            self._idle.append(connection)
        else:
            connection.close()
        return bytes(answer)

    def _forget(self) -> None:
        with contextlib.suppress(IndexError):
            while True:
                self._idle.pop().close()
