"""Making a pair, of the applier in memory: the real protocol over loopback, between boxes that are invented.

box.joining.port = 40123                     # where the box waits, and where it looks for another one
box.joining.answering.add("10.0.2.16")       # somebody has this address
JoiningBox(snapshot, port).verbs.pair_join("127.0.0.2", code, "admin")     # another box, in the same process
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import secrets
import select
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.fake.part import Part

from applier.base.paths import Paths
from applier.host.host import Host, HostError, Live, Output, Program
from applier.kept import pair_key
from applier.pair.joining import record, worker
from applier.pair.joining.messages import JoinError
from applier.pair.joining.verbs import Joinings
from applier.pair.joining.worker import Lines
from applier.wire.shapes_joining import Asked, JoinedLink, Joining
from lbconfig.model.snapshot import Snapshot
from lbconfig.target import Target
from lbconfig.validate.cards import Card, of_status
from lbconfig.wanted.pair_link import JOIN_PORT

if TYPE_CHECKING:
    from tests.fake.appliance import Box

ENDS = 90  # seconds that a thread may take on a busy machine


class InThread:
    """The program that talks to the other box, in a thread: a process takes half a second to start."""

    def __init__(self, role: str) -> None:
        own_input, self._input = os.pipe()
        self._output, own_output = os.pipe()
        self._lines = Lines(self._output, self._input)
        self._ending = threading.Lock()

        def work() -> None:
            with contextlib.suppress(JoinError, OSError):
                worker.serve(role, Lines(own_input, own_output))
            for one in (own_input, own_output):
                os.close(one)

        self._thread = threading.Thread(target=work, daemon=True)
        self._thread.start()

    def say(self, line: str) -> None:
        try:
            os.write(self._input, f"{line}\n".encode())
        except OSError as error:
            raise HostError("worker", None, str(error)) from None

    def lines(self, seconds: float) -> Iterator[str]:
        with contextlib.suppress(JoinError):
            while True:
                if b"\n" not in self._lines._rest and not select.select([self._output], [], [], seconds)[0]:
                    raise HostError("worker", None, f"it says nothing for {seconds:g} seconds")
                yield self._lines.receive(1 << 22).decode()

    def end(self) -> None:
        """Whoever reads its lines and whoever has lost patience may end it at the same moment."""
        with self._ending:
            if self._input >= 0:
                os.close(self._input)
                self._input = -1
        self._thread.join(ENDS)


class FakeHost(Live):
    """Of the system it has openssl; who answers ARP is arranged, and what a private key belongs to is invented."""

    def __init__(self, answering: set[str]) -> None:
        self.answering = answering
        self.opened: list[str] = []

    def start(self, argv: Sequence[str]) -> Program:
        return InThread(argv[-1])

    def command(self, argv: Sequence[str], stdin: str = "", timeout: float = 20.0) -> Output:
        if argv[0] == "arping":
            return Output(0 if argv[-1] in self.answering else 1, "", "")
        if argv[0] == "nft":
            self.opened.append(" ".join(argv[1:]))
            return Output(0, "", "")
        if argv[0] == "wg":
            made = hashlib.sha256(stdin.strip().encode()).digest() if argv[1] == "pubkey" else secrets.token_bytes(32)
            return Output(0, base64.b64encode(made).decode(), "")
        return super().command(argv, stdin, timeout)


class JoiningBox:
    """A box as far as it is needed to join another one."""

    def __init__(
        self,
        snapshot: Callable[[], Snapshot],
        cards: Callable[[], tuple[Card, ...]],
        port: int = JOIN_PORT,
        answering: set[str] | None = None,
    ) -> None:
        self._snapshot, self._cards = snapshot, cards
        self.host = FakeHost(set() if answering is None else answering)
        self.folder = tempfile.TemporaryDirectory(prefix="fairlead-joining-")
        self.paths = Paths(state=Path(self.folder.name) / "applier", version_file=Path("/nonexistent"), mount=None)
        self.number = 0  # in a pair: which of its boxes this is
        self.silent: Callable[[], bool] = lambda: True  # the other box of the pair, where the box is in one
        self.link: JoinedLink | None = {"heard": True, "lasts": 75.0}
        self._port = port
        self.begin()

    def begin(self) -> None:
        """The applier is started: what is on the disk is all that it knows."""
        self.verbs = Joinings(
            self,
            port=self._port,
            known_key=self.known_key,
            silent=self._is_silent,
            link=lambda: None if self.running.snapshot.pair else self.link,
        )

    @property
    def running(self) -> Target:
        snapshot = self._snapshot()
        return Target(1, snapshot, self.number if snapshot.pair else None)

    def _is_silent(self) -> bool:
        return self.silent()

    def known_key(self, host: Host, paths: Paths) -> str:
        """By which its pair knows this box."""
        pair = self._snapshot().pair
        return pair.boxes[self.number].key if pair is not None else pair_key.public(host, paths)

    def cards(self) -> tuple[Card, ...]:
        return self._cards()


@dataclass
class FakeJoiningState:
    port: int = int(os.environ.get("FAIRLEAD_FAKE_JOIN_PORT") or JOIN_PORT)  # of a box in a process of its own
    answering: set[str] = field(default_factory=set)
    box: JoiningBox | None = None  # made when somebody asks

    def close(self) -> None:
        if self.box is not None:
            self.box.verbs.pair_forget("the test")


class FakeJoining(Part):
    def pair_joining(self) -> Joining:
        return self._joinings().pair_joining()

    def pair_invite(self, user: str) -> Joining:
        return self._joinings().pair_invite(user)

    def pair_replace(self, user: str) -> Joining:
        return self._joinings().pair_replace(user)

    def pair_join(self, address: str, code: str, user: str) -> Joining:
        return self._joinings().pair_join(address, code, user)

    def pair_forget(self, user: str) -> Joining:
        return self._joinings().pair_forget(user)

    def pair_probe(self, addresses: list[str]) -> Asked:
        return self._joinings().pair_probe(addresses)

    def _joinings(self) -> Joinings:
        with self._box() as b:
            return joining_box(b).verbs


def agreed_key(box: Box) -> str:
    """The box's own key, where it knows another box; else empty."""
    found = box.joining.box and record.load(box.joining.box.paths)
    return found.keys[found.box] if found else ""


def joining_box(box: Box) -> JoiningBox:
    from tests.fake import kernel  # which needs the appliance

    state = box.joining
    if state.box is None:
        cards = lambda: of_status(kernel.interfaces(box))  # noqa: E731
        state.box = JoiningBox(lambda: box.snapshot, cards, state.port, state.answering)
        state.box.silent = lambda: box.pair is None or box.pair.seen.heard is None
    return state.box
