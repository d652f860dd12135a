"""The program without rights that talks to the other box while the two become a pair.

    python3 -m applier.pair.joining.worker first|second

Its first line of input says what it needs (Waits, Dials). It passes on what root's process says to the other box, and
what the other box says to root's process, in the order of messages.SAID and nothing else. It ends with its input.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import queue
import secrets
import select
import socket
import ssl
import sys
import threading
import time
from dataclasses import dataclass
from typing import Self

from applier.pair.joining.messages import (
    LATE,
    SAID,
    Again,
    Channel,
    JoinError,
    Listening,
    Message,
    Met,
    Refused,
    Waiting,
    as_first,
    as_second,
    read,
    write,
)
from applier.pair.joining.proof import NONCE_BYTES, Role, secret

PATIENCE = 40.0  # seconds for the other box to say the next thing
TICK = 5.0  # seconds after which it says again that it waits
GUESTS = 8  # that have connected and not proved anything yet; for one more, the first of them is sent away
SETUP = 1 << 16  # bytes
_GONE = "The connection between the two boxes was lost."


@dataclass(frozen=True, slots=True)
class Waits:
    """For the second box."""

    port: int  # 0: any
    certificate: str  # PEM, thrown away afterwards
    private: str  # its key
    code: str
    key: str  # WireGuard's public one of this box
    guesses: int
    seconds: int


@dataclass(frozen=True, slots=True)
class Dials:
    """The first box."""

    address: str
    port: int
    code: str
    key: str


class Lines:
    """A channel over two file descriptors, or over a TLS connection."""

    def __init__(self, source: int | ssl.SSLSocket, sink: int | ssl.SSLSocket) -> None:
        self._source, self._sink = source, sink
        self._rest = b""

    def fileno(self) -> int:
        return self._source if isinstance(self._source, int) else self._source.fileno()

    def send(self, message: Message) -> None:
        data = write(message)
        try:
            if isinstance(self._sink, int):
                while data:
                    data = data[os.write(self._sink, data) :]
            else:
                self._sink.settimeout(PATIENCE)
                self._sink.sendall(data)
        except OSError:
            raise JoinError(_GONE) from None

    def receive(self, limit: int) -> bytes:
        end = time.monotonic() + PATIENCE
        while b"\n" not in self._rest:
            if len(self._rest) > limit:
                raise JoinError("The other box said too much at once.")
            more = self._more(end - time.monotonic())
            if not more:
                raise JoinError(_GONE)
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        if len(line) > limit:
            raise JoinError("The other box said too much at once.")
        return line

    def _more(self, seconds: float) -> bytes:
        silent = JoinError(f"The other box said nothing for {PATIENCE:g} seconds.")
        if seconds <= 0:
            raise silent
        try:
            if isinstance(self._source, int):
                if not select.select([self._source], [], [], seconds)[0]:
                    raise silent
                return os.read(self._source, 1 << 16)
            self._source.settimeout(seconds)
            return self._source.recv(1 << 14)
        except TimeoutError:
            raise silent from None
        except OSError:
            raise JoinError(_GONE) from None


def relay(role: Role, root: Channel, other: Channel) -> None:
    """Pass on what comes after the proofs. Where one side refuses or is lost, both are told why, and it ends."""
    for who, kind in SAID:
        speaker, listener = (root, other) if who == role else (other, root)
        try:
            listener.send(read(speaker.receive(LATE), kind))
        except JoinError as error:
            for side in (root, other):
                with contextlib.suppress(JoinError):
                    side.send(Refused(error.why, error.field))
            return


@dataclass(frozen=True, slots=True)
class Known:
    """One that has proved that it knows the code."""

    secure: ssl.SSLSocket
    lines: Lines
    key: str
    address: str


class Door:
    """Greets all who connect side by side, so that whoever says nothing, or too slowly, delays nobody.

    Its `bell`, a file descriptor, can be read once there is something to `take`.
    """

    def __init__(self, setup: Waits) -> None:
        """OSError where the port cannot be had."""
        self.left = setup.guesses
        self._refusing = 0  # guests who are just being told that theirs was wrong
        self._key = setup.key
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_3
        _load(self._context, setup)
        self._certificate = hashlib.sha256(ssl.PEM_cert_to_DER_cert(setup.certificate)).digest()
        self._secret = secret(setup.code, self._certificate)
        self._lock = threading.Lock()
        # The longest here first; each a second handle of its connection, to end what a thread waits for.
        self._guests: list[socket.socket] = []
        self._threads: set[threading.Thread] = set()
        self._found: queue.SimpleQueue[Known | None] = queue.SimpleQueue()
        self.bell = os.eventfd(0, os.EFD_SEMAPHORE | os.EFD_NONBLOCK)
        self.listener = _listener(setup.port)
        self.listener.setblocking(False)  # who has connected may be gone before it is let in

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Send away all who are still here."""
        self.listener.close()
        with self._lock:
            for guest in self._guests:
                _hang_up(guest)
            greeting = [*self._threads]
        for thread in greeting:
            thread.join()
        while not self._found.empty():
            if (known := self._found.get()) is not None:
                known.secure.close()
        os.close(self.bell)

    def let_in(self) -> None:
        """Whoever has connected. Where too many are here, the one that came first has to leave."""
        try:
            plain, _ = self.listener.accept()
            guest = plain.dup()
        except OSError:
            return  # it is gone again
        plain.settimeout(PATIENCE)
        with self._lock:
            self._guests.append(guest)
            if len(self._guests) > GUESTS:
                _hang_up(self._guests.pop(0))
            greeting = threading.Thread(target=self._greet, args=(plain, guest), daemon=True)
            self._threads.add(greeting)
        greeting.start()

    def take(self) -> Known | None:
        """One that knows the code; None: one that did not has left."""
        os.eventfd_read(self.bell)
        return self._found.get()

    def _greet(self, plain: socket.socket, guest: socket.socket) -> None:
        known, wrong = None, False
        try:
            with contextlib.ExitStack() as opened:
                secure = opened.enter_context(self._context.wrap_socket(plain, server_side=True))
                lines = Lines(secure, secure)
                nonce = secrets.token_hex(NONCE_BYTES)
                key, good = as_first(lines, self._secret, self._certificate, nonce, self._key, self._judge)
                if good:
                    known = Known(secure, lines, key, plain_address(secure))
                    opened.pop_all()
                else:
                    wrong = True
                    lines.send(Refused(_wrong_code(self.left), "code"))
        except (OSError, JoinError):  # a stranger, or one that went away
            pass
        finally:
            with self._lock:
                if guest in self._guests:
                    self._guests.remove(guest)
                guest.close()
                self._refusing -= wrong
                self._found.put(known)
                os.eventfd_write(self.bell, 1)
                self._threads.remove(threading.current_thread())

    def _judge(self, right: bool) -> bool:
        """Whether one that has shown this may go on. However many come at once, no more guesses are answered."""
        with self._lock:
            right = right and self.left > 0
            if not right:
                self.left = max(0, self.left - 1)
                self._refusing += 1
            return right

    @property
    def over(self) -> bool:
        """Whether the guesses are used up, and whoever made one has been told so."""
        with self._lock:
            return self.left == 0 and self._refusing == 0


def _hang_up(guest: socket.socket) -> None:
    with contextlib.suppress(OSError):
        guest.shutdown(socket.SHUT_RDWR)


def wait(setup: Waits, root: Lines) -> None:
    """As the first box: until the time is over, or there were too many guesses, or root's process ends it.

    One that knows the code may come again: it may not have heard the last answer.
    """
    end = time.monotonic() + setup.seconds
    with Door(setup) as door:
        root.send(Listening(door.listener.getsockname()[1]))
        comes, found, ends = door.listener.fileno(), door.bell, root.fileno()
        while time.monotonic() < end:
            patience = min(TICK, max(0.0, end - time.monotonic()))
            ready = select.select([comes, found, ends], [], [], patience)[0]
            if ends in ready:  # it is gone, or wants this to end: it has nothing to say before somebody comes
                return
            if comes in ready:
                door.let_in()
            known = door.take() if found in ready else None
            if known is not None and not _serve(known, root):
                return
            if door.over:
                root.send(Refused("The code was entered wrongly too often. Make a new one.", "code"))
                return
            if not ready or found in ready:
                root.send(Waiting(door.left))
    root.send(Refused("Nobody has joined in time. Make a new code.", "code"))


def _serve(known: Known, root: Lines) -> bool:
    """Pass on what this box and root's process say. False: root's process does not go on."""
    with known.secure:
        root.send(Met(known.key, known.address))
        relay("first box", root, known.lines)
    return _said_again(root)


def _said_again(root: Channel) -> bool:
    """Skip what root's process has said to a box that was lost meanwhile. False: it does not go on."""
    with contextlib.suppress(JoinError):
        while True:
            line = root.receive(LATE)
            with contextlib.suppress(JoinError):
                read(line, Again)
                return True
    return False


def _wrong_code(left: int) -> str:
    if not left:
        return "This is not the code that the other box shows. It was the last try: make a new code there."
    return f"This is not the code that the other box shows. {left} {'try is' if left == 1 else 'tries are'} left."


def _load(context: ssl.SSLContext, setup: Waits) -> None:
    """The certificate and its key, which lie on no disk."""
    handle = os.memfd_create("certificate")
    try:
        os.write(handle, f"{setup.certificate}{setup.private}".encode())
        context.load_cert_chain(f"/proc/self/fd/{handle}")
    finally:
        os.close(handle)


def _listener(port: int) -> socket.socket:
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, backlog=8, dualstack_ipv6=True)
    return socket.create_server(("", port), backlog=8)


def dial(setup: Dials, root: Channel) -> None:
    """As the second box."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # what both prove has its digest in it
    try:
        with _connected(setup) as plain, context.wrap_socket(plain) as secure:
            certificate = hashlib.sha256(secure.getpeercert(binary_form=True) or b"").digest()
            address = plain_address(secure)
            other = Lines(secure, secure)
            nonce = secrets.token_hex(NONCE_BYTES)
            key = as_second(other, setup.code, certificate, nonce, setup.key)
            root.send(Met(key, address))
            relay("second box", root, other)
    except TimeoutError:
        words = (
            "The other box is busy, perhaps with an earlier try of this one. Wait a minute, and enter the code again."
        )
        root.send(Refused(words))
    except OSError:
        root.send(Refused("Something else than a box that waits for another one answers there.", "address"))


def plain_address(connection: socket.socket) -> str:
    """Of the other end, however it was called by who connected. OSError where that is gone."""
    address: str = connection.getpeername()[0]
    return address.removeprefix("::ffff:")


def _connected(setup: Dials) -> socket.socket:
    try:
        return socket.create_connection((setup.address, setup.port), PATIENCE)
    except socket.gaierror:
        raise JoinError("There is no host of this name.", "address") from None
    except ConnectionRefusedError:
        words = "No box waits there. Choose “Make a pair” on the other box first: its code ends after ten minutes."
        raise JoinError(words, "address") from None
    except OSError as error:
        reason = "nothing came back" if isinstance(error, TimeoutError) else (error.strerror or str(error)).lower()
        words = (
            f"The other box cannot be reached: {reason}. It must show a code, and this box must be in a network that "
            "may open its web page."
        )
        raise JoinError(words, "address") from None


def _end_with_input() -> None:
    """The other process is gone, so nobody waits for what this one does."""
    poll = select.poll()
    poll.register(0, 0)  # an end of the pipe is told without being asked for
    poll.poll()
    os._exit(0)


def serve(role: str, root: Lines) -> None:
    """What this program is for; it is told what it needs first."""
    try:
        data = json.loads(root.receive(SETUP))
        if role == "first":
            wait(Waits(**data), root)
        else:
            dial(Dials(**data), root)
    except JoinError as error:
        root.send(Refused(error.why, error.field))


def main(role: str) -> None:
    threading.Thread(target=_end_with_input, daemon=True).start()
    serve(role, Lines(0, 1))


if __name__ == "__main__":
    main(sys.argv[1])
