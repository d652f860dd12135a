"""The socket: who may ask, how much and how slowly, and a thread for each connection up to a number.

Who asks often keeps his connection: a thread and a connection for each question cost eight times as much as the answer.
"""

from __future__ import annotations

import logging
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from applier.wire import protocol
from applier.wire.errors import ApplierRefused
from applier.wire.protocol import MAX_REQUEST, Request

log = logging.getLogger("applier")

READ_SECONDS = 10.0  # for the whole request, however it trickles
IDLE_SECONDS = 60.0  # from an answer to the next request by the same connection
WRITE_SECONDS = 10.0
CONNECTIONS = 32
_PEER = struct.Struct("=iII")  # unix(7), SO_PEERCRED: pid, uid, gid

Handler = Callable[[Request, int], object]


class Server:
    def __init__(
        self,
        path: Path,
        handler: Handler,
        uids: Collection[int],
        gid: int | None = None,
        verbs: Mapping[str, Mapping[str, protocol.Check]] = protocol.VERBS,
    ) -> None:
        self.path = path
        self._verbs = verbs
        self._handler = handler
        self._uids = frozenset(uids)
        self._slots = threading.BoundedSemaphore(CONNECTIONS)
        self._lock = threading.Lock()
        self._open: set[socket.socket] | None = set()  # connections that are served; None: it is closed
        self._socket = self._listen(gid)

    def _listen(self, gid: int | None) -> socket.socket:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # Nobody may connect between bind and chown; the umask is the whole process's, so this comes before threads.
        mask = os.umask(0o177)
        try:
            listener.bind(str(self.path))
        finally:
            os.umask(mask)
        if gid is not None:
            os.chown(self.path, 0, gid)
        os.chmod(self.path, 0o660)
        listener.listen(64)
        return listener

    def serve(self) -> None:
        """Until close()."""
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError as error:
                if self._socket.fileno() < 0:
                    return
                log.error("accept: %s", error)
                time.sleep(0.1)
                continue
            if not self._slots.acquire(blocking=False):
                self._turn_away(connection)
                continue
            try:
                threading.Thread(target=self._serve_one, args=(connection,), daemon=True).start()
            except RuntimeError as error:  # no memory is left for one; what runs goes on, so the daemon must not end
                log.error("a connection gets no thread: %s", error)
                self._slots.release()
                self._turn_away(connection)

    def close(self) -> None:
        with self._lock:
            served, self._open = self._open or set(), None
        for one in (self._socket, *served):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError as error:
                log.debug("shutdown: %s", error)
        self._socket.close()

    def _serve_one(self, connection: socket.socket) -> None:
        try:
            with connection:
                with self._lock:
                    if self._open is None:
                        return
                    self._open.add(connection)
                self._answer_all(connection)
        except OSError as error:
            log.info("a client went away: %s", error)
        finally:
            with self._lock:
                if self._open is not None:
                    self._open.discard(connection)
            self._slots.release()

    def _answer_all(self, connection: socket.socket) -> None:
        """Until the client closes its end, is idle for too long, or sends what has no end."""
        try:
            uid = peer_uid(connection)
            if uid not in self._uids:
                raise ApplierRefused("forbidden", f"User id {uid} may not talk to the applier.")
            lines = _Lines(connection)
            line: bytes | None = lines.first()
            while line is not None:
                connection.settimeout(WRITE_SECONDS)
                connection.sendall(self._answer(line, uid))
                line = lines.next()
        except ApplierRefused as refusal:
            _send_last(connection, protocol.error(refusal))

    def _answer(self, line: bytes, uid: int) -> bytes:
        try:
            request = protocol.parse(line, self._verbs)
            if request.verb in protocol.FOR_ROOT and uid != 0:
                raise ApplierRefused("forbidden", f"Only root may ask for '{request.verb}'.")
            return protocol.result(self._handle(request, uid))
        except ApplierRefused as refusal:
            return protocol.error(refusal)

    def _handle(self, request: Request, uid: int) -> object:
        try:
            return self._handler(request, uid)
        except ApplierRefused:
            raise
        # A mistake of ours in one verb must not end the daemon.
        except Exception:
            log.exception("the request '%s' failed", request.verb)
            raise ApplierRefused("internal", "The applier has failed; its log says more.") from None

    def _turn_away(self, connection: socket.socket) -> None:
        refusal = ApplierRefused("overloaded", f"More than {CONNECTIONS} connections at once; try again.")
        connection.setblocking(False)
        try:
            with connection:
                connection.send(protocol.error(refusal))
        except OSError as error:
            log.info("turned a client away: %s", error)


def peer_uid(connection: socket.socket) -> int:
    uid: int = _PEER.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))[1]
    return uid


class _Lines:
    """The requests of a connection, one behind the other."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._data = bytearray()

    def first(self) -> bytes:
        """ApplierRefused if it is too long or does not come to its end in time."""
        deadline = time.monotonic() + READ_SECONDS
        while b"\n" not in self._data[-65536:]:
            if len(self._data) > MAX_REQUEST:
                raise ApplierRefused("too-large", f"The request is larger than {MAX_REQUEST} bytes.")
            left = deadline - time.monotonic()
            try:
                if left <= 0:
                    raise TimeoutError
                self._connection.settimeout(left)
                part = self._connection.recv(65536)
            except TimeoutError:
                text = f"The request did not end with a new line within {READ_SECONDS:g} seconds."
                raise ApplierRefused("incomplete", text) from None
            if not part:
                text = "The connection was closed before the request ended with a new line."
                raise ApplierRefused("incomplete", text)
            self._data += part
        line, _, rest = bytes(self._data).partition(b"\n")
        if len(line) > MAX_REQUEST:
            raise ApplierRefused("too-large", f"The request is larger than {MAX_REQUEST} bytes.")
        self._data = bytearray(rest)
        return line

    def next(self) -> bytes | None:
        """None where the client has closed the connection, or is idle for too long; else as first()."""
        while not self._data:
            self._connection.settimeout(IDLE_SECONDS)
            try:
                part = self._connection.recv(65536)
            except (TimeoutError, ConnectionResetError):
                return None
            if not part:
                return None
            self._data += part
        return self.first()


def _send_last(connection: socket.socket, data: bytes) -> None:
    connection.settimeout(WRITE_SECONDS)
    connection.sendall(data)
    # What a refused client still sends must be read, or closing would take the answer away from it.
    connection.shutdown(socket.SHUT_WR)
    deadline = time.monotonic() + READ_SECONDS
    connection.settimeout(1.0)
    swallowed = 0
    while swallowed < 4 * MAX_REQUEST and time.monotonic() < deadline:
        try:
            part = connection.recv(1 << 20)
        except TimeoutError:
            return
        if not part:
            return
        swallowed += len(part)
