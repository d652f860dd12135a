"""Strangers who hold hundreds of connections to the web page, and finish nothing that they begin."""

from __future__ import annotations

import contextlib
import itertools
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

PASS = 0.1  # seconds between two looks at all connections
DRIP = 1.0  # seconds between two pieces of what never ends: nginx waits ten for the next one
AT_A_TIME = 20  # connections that a pass makes anew, so that these programs leave the others some of the machine
_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
_TLS.check_hostname, _TLS.verify_mode = False, ssl.CERT_NONE


@dataclass(frozen=True)
class Kind:
    """What each connection says at first, and again and again; and for how long one is held, in seconds."""

    begins: bytes = b""
    goes_on: bytes = b""
    shakes_hands: bool = True  # False: it leaves the TLS handshake half-way
    lasts: float = 3600.0


BODY = 900_000  # bytes that are said to come; more in one piece than nginx keeps in its own memory
_POST = f"POST /login/ HTTP/1.1\r\nHost: box\r\nReferer: https://box/login/\r\nContent-Length: {BODY}\r\n\r\n"
KINDS = {
    "half requests": Kind(b"GET /login/ HTTP/1.1\r\nHost: b"),
    "slow bodies": Kind(_POST.encode() + b"x" * 100_000, b"x"),
    "endless headers": Kind(b"GET /login/ HTTP/1.1\r\nHost: box\r\n", b"X-More: and more\r\n"),
    "TLS handshakes": Kind(shakes_hands=False, lasts=5.0),
}


class Strangers:
    """They come as soon as `entered` has brought their thread into the box's network, and stay until `close`."""

    def __init__(self, kind: Kind, sources: Iterable[str], target: tuple[str, int], entered: Callable[[], None]):
        """One connection from each source; one that the box ends is begun anew."""
        self._kind, self._target, self._entered = kind, target, entered
        self._all = [_Connection(kind, source, target) for source in sources]
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def held(self) -> int:
        """How many connections have said what they say at first."""
        assert self._thread.is_alive(), "the strangers have left"
        return sum(one.begun for one in self._all)

    def close(self) -> None:
        self._end.set()
        self._thread.join()

    def _work(self) -> None:
        self._entered()
        turns = itertools.cycle(self._all)
        try:
            while not self._end.wait(PASS):
                for one in self._all:
                    one.go_on()
                anew = (one for one in itertools.islice(turns, len(self._all)) if not one.open)
                for one in itertools.islice(anew, AT_A_TIME):
                    one.begin()
        finally:
            for one in self._all:
                one.close()


class _Connection:
    def __init__(self, kind: Kind, source: str, target: tuple[str, int]):
        self._kind, self._source, self._target = kind, source, target
        self._socket: socket.socket | None = None
        self.begun = False  # it has said what it says at first

    @property
    def open(self) -> bool:
        return self._socket is not None

    def begin(self) -> None:
        self._socket = socket.socket()
        self._socket.setblocking(False)
        self._socket.bind((self._source, 0))
        self._socket.connect_ex(self._target)
        self._received, self._sent = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = _TLS.wrap_bio(self._received, self._sent)
        self._waiting = b""  # to be sent
        self.begun, self._ends, self._next = False, time.monotonic() + self._kind.lasts, 0.0

    def go_on(self) -> None:
        """Say what is due; where the box has ended it, or its time is over, it is closed."""
        if self._socket is None:
            return
        try:
            with _later():
                self._receive()
            with _later():
                self._say()
            self._waiting += self._sent.read()
            with _later():
                self._waiting = self._waiting[self._socket.send(self._waiting) :]
        except OSError:
            self.close()
        else:
            if time.monotonic() > self._ends:
                self.close()

    def _receive(self) -> None:
        data = self._socket.recv(65536)
        if not data:
            raise ConnectionResetError
        if self._kind.shakes_hands:
            self._received.write(data)
        else:
            self.begun = True  # the box has had its part of the work

    def _say(self) -> None:
        self._tls.do_handshake()
        now = time.monotonic()
        if not self.begun:
            self._tls.write(self._kind.begins)
        elif self._kind.goes_on and now >= self._next:
            self._tls.write(self._kind.goes_on)
        else:
            return
        self.begun, self._next = True, now + DRIP

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket, self.begun = None, False


@contextlib.contextmanager
def _later() -> Iterator[None]:
    """What cannot be done yet is tried in the next pass."""
    with contextlib.suppress(BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
        yield
