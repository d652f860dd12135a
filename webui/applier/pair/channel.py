"""What the two boxes of a pair say to each other, by a user without any rights.

    python3 -m applier.pair.channel /run/fairlead

Each box sends on a connection that it makes itself and reads on those that it takes, one line of JSON after the other.
What comes is checked into typed values here, and once more by the applier, which gets it over a socket of its own that
has verbs for this process alone. So a root process never reads a byte from the network, and this one has nothing that
is worth having: it knows no secret, writes no file and runs no program. WireGuard, below, knows who the other box is.
"""

from __future__ import annotations

import contextlib
import logging
import resource
import select
import socket
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping
from typing import Any

from applier.pair import beat
from applier.pair.beat import Beat
from applier.pair.errand_lines import ANSWER, ASK, Answer, Ask, read_answer, read_ask
from applier.wire.asking import Asking
from applier.wire.errors import ApplierDown, ApplierRefused
from lbconfig.agreement import BEAT, Lineage, Said
from lbconfig.agreement_lines import (
    MAX_LINE,
    Content,
    Fetch,
    LineError,
    Reader,
    Writer,
    plain_content,
    plain_said,
    read_content,
    read_said,
)
from lbconfig.wanted import pair_link
from lbconfig.wanted.pair_link import CHANNEL_PORT

log = logging.getLogger("pair")

SOCKET = "pair.sock"  # the applier's, for this process; Paths has it, too
SECONDS = 10.0  # for a line, however it trickles, and for a connection without one
CONNECTIONS = 4
MEMORY = 384 << 20  # bytes: the longest lines of all connections, and what one of them becomes
STACK = 512 << 10
Other = Beat | Ask | Answer
OTHERS: Mapping[str, Any] = {"beat": beat.read, ASK: read_ask, ANSWER: read_answer}
REFUSED_LINES = 10  # of a connection, before it is ended


class ForPair(Asking):
    """The applier, as this process may ask it."""

    def connected(self) -> None:
        self._ask("pair_connected")

    def tells(self, seen: int, lineage: str) -> dict[str, Any]:
        answer: dict[str, Any] = self._ask("pair_tells", seen=seen, lineage=lineage)
        return answer

    def hears(self, said: dict[str, object]) -> bool:
        return bool(self._ask("pair_hears", said=said)["known"])

    def says(self, said: Beat) -> None:
        self._ask("peer_says", beat=said.to_data())

    def content(self, wanted: Fetch) -> dict[str, Any]:
        answer: dict[str, Any] = self._ask("pair_content", id=wanted.id, whole=wanted.whole)
        return answer

    def brings(self, content: Content) -> None:
        self._ask("pair_brings", content=plain_content(content))

    def errands(self) -> list[dict[str, Any]]:
        answer: list[dict[str, Any]] = self._ask("pair_errands")
        return answer

    def asked(self, question: Ask) -> None:
        self._ask("pair_asked", errand=question.to_data())

    def answered(self, answer: Answer) -> None:
        self._ask("pair_answered", answer=answer.to_data())


class Channel:
    """`addresses`: of the link, that of the first box and that of the second; `port`: where both listen."""

    def __init__(self, applier: ForPair, addresses: tuple[str, str], port: int = CHANNEL_PORT) -> None:
        self._applier = applier
        self._addresses = addresses
        self._port = port
        self._lock = threading.Lock()
        self._reading = threading.Lock()  # one line at a time: it may become twenty times as large
        self._place: tuple[str, int] | None = None  # pair, and which of its boxes this is
        self._listener: socket.socket | None = None
        self._heard: list[socket.socket] = []  # the connections that are read, the newest last
        self._wanted: deque[Fetch] = deque(maxlen=CONNECTIONS)  # what the other box has asked for
        self._sending = threading.RLock()  # the connection by which this box speaks
        self._out: socket.socket | None = None
        self._writer = Writer("", 0)
        self._seen = 0
        self._lineage: Lineage = ()
        self._delivered: Lineage | None = None  # the lineage of the other box that the applier has
        self._next_try = 0.0
        self._asked: tuple[Fetch | None, float] = (None, 0.0)  # what the other box was asked for last, and when
        self.refused: Counter[str] = Counter()  # lines, by the field that was wrong

    # --- speaking --------------------------------------------------------------------------------

    def run(self) -> None:
        """For ever."""
        threading.Thread(target=self._carry_all, daemon=True).start()
        while True:
            try:
                self.step()
            except ApplierDown as error:
                log.info("the applier: %s", error)
                time.sleep(BEAT)
            except ApplierRefused as error:
                log.error("the applier: %s", error)
                time.sleep(BEAT)

    def step(self) -> None:
        """Ask the applier what there is to say, which takes a beat at the most, and say it."""
        told = self._applier.tells(self._seen, self._lineage[-1].id if self._lineage else "")
        if not told:
            self.leave()
            time.sleep(BEAT)
            return
        said = read_said(told["said"], self._lineage or None)
        self._seen, self._lineage = told["seen"], said.lineage
        self._be(told["pair"], told["box"])
        if not self._connect():
            return
        lines = [self._writer.line(said), self._writer.other("beat", told["beat"])]
        wanted = Fetch(told["fetch"], told["whole"])
        if wanted.id and self._may_ask(wanted):
            lines.append(self._writer.line(wanted))
        with contextlib.suppress(IndexError):
            found = self._applier.content(self._wanted.popleft())
            if found:
                lines.append(self._writer.line(read_content(found)))
        self._send(lines)

    def _carry_all(self) -> None:
        while True:
            try:
                self.carry()
            except (ApplierDown, ApplierRefused) as error:
                log.debug("the applier: %s", error)  # step() says so
                time.sleep(BEAT)
            # The next one may work; nobody else would start this thread again.
            except Exception:
                log.exception("an errand was not carried")
                time.sleep(BEAT)

    def carry(self) -> None:
        """What the one box asks the other one and what it answers: these wait for no beat."""
        if self._out is None:
            time.sleep(BEAT)
            return
        errands = self._applier.errands()
        with self._sending:
            self._send([self._writer.other(one["kind"], one["body"]) for one in errands])

    def _send(self, lines: list[bytes]) -> None:
        """What cannot be sent is lost."""
        with self._sending:
            if self._out is None or not lines:
                return
            try:
                self._out.sendall(b"".join(lines))
            except OSError as error:
                log.info("the other box: %s", error)
                self._hang_up()

    def _may_ask(self, wanted: Fetch) -> bool:
        """Once, and again where nothing comes of it: a configuration may take longer than a beat."""
        now = time.monotonic()
        if self._asked[0] == wanted and now - self._asked[1] < SECONDS / 2:
            return False
        self._asked = (wanted, now)
        return True

    def leave(self) -> None:
        """The box is in no pair."""
        self._place = None
        self._hang_up()
        if self._listener:
            self._listener.close()
            self._listener = None
        self._end_all()

    def _be(self, pair: str, box: int) -> None:
        """This box of this pair: listen there, and end what was spoken in another place."""
        if self._place != (pair, box):
            self.leave()
            self._place = (pair, box)
        if self._listener is None:
            self._listener = self._listen(self._addresses[box])

    def _listen(self, address: str) -> socket.socket | None:
        try:
            listener = socket.create_server((address, self._port), backlog=CONNECTIONS)
        except OSError as error:  # the link is being made
            log.info("%s port %d: %s", address, self._port, error)
            return None
        threading.Thread(target=self._take_all, args=(listener,), daemon=True).start()
        return listener

    def _connect(self) -> bool:
        """Whether there is a connection by which this box can speak."""
        with self._sending:
            if self._out and select.select([self._out], [], [], 0)[0]:
                self._hang_up()  # the other box sends nothing here but an end
            if self._out is None and self._place and time.monotonic() >= self._next_try:
                pair, box = self._place
                self._next_try = time.monotonic() + BEAT
                own, peer = self._addresses[box], self._addresses[1 - box]
                try:
                    self._out = socket.create_connection((peer, self._port), BEAT, (own, 0))
                    self._out.settimeout(SECONDS)
                except OSError as error:
                    log.debug("%s: %s", peer, error)
                    return False
                self._writer = Writer(pair, box)
                log.info("connected with %s", peer)
            return self._out is not None

    def _hang_up(self) -> None:
        with self._sending:
            if self._out:
                self._out.close()
                self._out = None

    # --- listening -------------------------------------------------------------------------------

    def _take_all(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, (address, *_) = listener.accept()
            except OSError:
                if listener.fileno() < 0:
                    return
                time.sleep(BEAT)
                continue
            place = self._place
            if place is None or address != self._addresses[1 - place[1]] or not self._slot(connection):
                self.refused["connection"] += 1
                connection.close()
                continue
            threading.Thread(target=self._read_all, args=(connection, place), daemon=True).start()

    def _slot(self, connection: socket.socket) -> bool:
        with self._lock:
            if len(self._heard) >= CONNECTIONS:
                return False
            self._heard.append(connection)
            return True

    def _read_all(self, connection: socket.socket, place: tuple[str, int]) -> None:
        """What comes by one connection, to its end."""
        pair, box = place
        reader: Reader[Other] = Reader(pair, 1 - box, OTHERS)
        lines = Lines(connection)
        newest = False
        try:
            bad = 0
            while bad < REFUSED_LINES and (line := lines.next()) is not None:
                try:
                    with self._reading:
                        what = reader.line(line)
                except (LineError, MemoryError) as error:
                    bad += 1
                    self._refuse(str(error) or "memory")
                    continue
                if not newest:
                    newest = True
                    self._is_newest(connection)
                if not self._is_current(connection):
                    break
                self._hand_on(what)
        except (OSError, LineError) as error:
            self._refuse(str(error))
        finally:
            with self._lock:
                self._heard = [one for one in self._heard if one is not connection]
            connection.close()

    def _is_newest(self, connection: socket.socket) -> None:
        """The other box speaks here from now on: what came before by another connection would be old."""
        with self._lock:
            others = [one for one in self._heard if one is not connection]
            self._heard = [*others, connection]
            self._delivered = None
        for one in others:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(ApplierDown, ApplierRefused):
            self._applier.connected()

    def _is_current(self, connection: socket.socket) -> bool:
        with self._lock:
            return bool(self._heard) and self._heard[-1] is connection

    def _end_all(self) -> None:
        with self._lock:
            here = self._heard
        for one in here:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _hand_on(self, what: Said | Fetch | Content | Other) -> None:
        try:
            match what:
                case Said():
                    if not self._applier.hears(plain_said(what, self._delivered)):
                        self._applier.hears(plain_said(what, None))  # it has started anew
                    self._delivered = what.lineage
                case Beat():
                    self._applier.says(what)
                case Fetch():
                    if what not in self._wanted:
                        self._wanted.append(what)
                case Content():
                    self._applier.brings(what)
                case Ask():
                    self._applier.asked(what)
                case Answer():
                    self._applier.answered(what)
        except (ApplierDown, ApplierRefused) as error:
            log.info("the applier: %s", error)

    def _refuse(self, why: str) -> None:
        self.refused[why.partition(":")[0][:40]] += 1
        total = self.refused.total()
        if total & (total - 1) == 0:  # 1, 2, 4, 8, …: whoever sends them does not fill the log
            log.warning("refused: %s (%d so far)", why[:300], total)


class Lines:
    """The lines of a connection, each in time and of a length that may be."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._data = bytearray()

    def next(self) -> bytes | None:
        """None at the end. OSError where it takes too long, LineError where it is too long."""
        deadline = time.monotonic() + SECONDS
        searched = 0
        while (end := self._data.find(b"\n", searched)) < 0:
            searched = len(self._data)
            if searched > MAX_LINE:
                raise LineError(f"line: has more than {MAX_LINE} bytes")
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("line: it did not come to its end in time")
            self._connection.settimeout(left)
            part = self._connection.recv(65536)
            if not part:
                return None
            self._data += part
        line = bytes(self._data[:end])
        del self._data[: end + 1]
        return line


def main(folder: str, *addresses: str) -> None:
    """`folder` has the applier's socket; `addresses`: of the first box and of the second, else those of the link."""
    logging.basicConfig(level=logging.INFO, format="pair: %(levelname)s %(message)s")
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    threading.stack_size(STACK)
    first, second = addresses or (address.partition("/")[0] for address in pair_link.ADDRESSES)
    Channel(ForPair(f"{folder}/{SOCKET}", SECONDS, keeps=True), (first, second)).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
