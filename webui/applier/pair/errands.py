"""One box of a pair asks the other one, over the channel between them, and gets an answer.

A question that is lost, or whose answer is, comes to nothing: whoever asked hears in time that there was no answer. So
what is asked must be harmless where it was done and nobody knows. Nothing of it outlives the applier.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, Protocol

from applier.kept.turn import beside
from applier.pair.errand_lines import ANSWER, ASK, MAX_BODY, Answer, Ask, read_answer, read_ask, refusal, size
from applier.pair.peer import Peer
from applier.wire.errors import ApplierRefused
from applier.wire.protocol import FOR_PEER, Check, Request, checked
from applier.wire.shapes import Nothing
from applier.wire.shapes_pair import ErrandLine
from lbconfig import agreement
from lbconfig.agreement_lines import MAX_LINE, LineError
from lbconfig.target import Target

log = logging.getLogger("applier")

AT_ONCE = 4  # errands of the other box that are done here side by side
UNDER_WAY = 16  # questions of this box that wait for an answer
KEPT = 32 << 20  # bytes that wait for the process that carries them
IDS = 256  # of the other box's questions that are remembered
FROM_JOINED = frozenset({"pair_forgotten"})  # what boxes ask each other that were joined and are no pair yet
LOOKS = 1.0  # seconds between two looks whether the other box is still heard


class Core(Protocol):
    """What of the daemon it needs."""

    running: Target
    peer: Peer

    @property
    def joined_with(self) -> tuple[str, str] | None:
        """The pair that this box was joined for and is not in yet, and the other box's host name."""

    def handle(self, request: Request, uid: int) -> object: ...


class Line(NamedTuple):
    """What waits to be sent. `pair`: to whom it may go."""

    pair: str
    kind: Literal["ask", "answer"]
    body: Mapping[str, object]
    size: int


class Reply:
    """The answer to a question, once it has come."""

    def __init__(self) -> None:
        self.came = threading.Event()
        self.answer: Answer | None = None


class Errands:
    def __init__(
        self, core: Core, clock: Callable[[], float], verbs: Mapping[str, Mapping[str, Check]] = FOR_PEER
    ) -> None:
        self._core = core
        self._clock = clock
        self._verbs = verbs
        self._news = threading.Condition()
        self._lines: deque[Line] = deque()
        self._waiting: dict[str, Reply] = {}
        self._asked: deque[str] = deque(maxlen=IDS)
        self._doing = 0

    # --- for the rest of the applier -----------------------------------------------------------------

    def ask(self, verb: str, arguments: Mapping[str, object], within: float) -> dict[str, Any]:
        """What the other box answers, or ApplierRefused with what it refuses; "peer-away" where there is no answer.

        Whether it was done is not known then. For a thread that holds no lock: it waits up to `within` seconds.
        """
        between = self._between(verb)
        if between is None:
            raise ApplierRefused("no-pair", "This box is in no pair.")
        pair, name = between
        if self._silent():
            raise ApplierRefused("peer-away", f"{name} is not heard.")
        question, reply = Ask(secrets.token_hex(16), verb, arguments), Reply()
        body = question.to_data()
        length = size(body)
        if length > MAX_BODY:
            words = f"What {name} is asked has {length} bytes; the most that fits is {MAX_BODY}."
            raise ApplierRefused("too-large", words)
        with self._news:
            if len(self._waiting) >= UNDER_WAY:
                raise ApplierRefused("overloaded", f"{name} is asked {UNDER_WAY} things already; try again.")
            self._waiting[question.id] = reply
        try:
            self._send(Line(pair, ASK, body, length))
            self._wait(reply, name, within)
        finally:
            with self._news:
                del self._waiting[question.id]
        return _outcome(reply)

    def _wait(self, reply: Reply, name: str, within: float) -> None:
        end = time.monotonic() + within
        while not reply.came.wait(max(0.0, min(LOOKS, end - time.monotonic()))):
            if time.monotonic() >= end:
                raise ApplierRefused("peer-away", f"{name} did not answer within {within:g} seconds.")
            if self._silent():
                raise ApplierRefused("peer-away", f"{name} went away before it had answered.")

    # --- verbs for the process that carries the lines ------------------------------------------------

    @property
    def has_lines(self) -> bool:
        return bool(self._lines)

    def pair_errands(self) -> list[ErrandLine]:
        """What is to be sent, as soon as there is something, or nothing after a beat."""
        with self._news:
            self._news.wait_for(lambda: self._lines, agreement.BEAT)
            here = {between[0] for between in (self._between(""), self._core.joined_with) if between}
            found: list[ErrandLine] = []
            room = MAX_LINE
            while self._lines and (not found or self._lines[0].size <= room):
                line = self._lines.popleft()
                given_up = line.kind == ASK and line.body["id"] not in self._waiting
                if line.pair in here and not given_up:  # else the box has left that pair
                    found.append({"kind": line.kind, "body": dict(line.body)})
                    room -= line.size
            return found

    def pair_asked(self, errand: Mapping[str, object]) -> Nothing:
        """The other box asks something; the answer goes the same way back."""
        try:
            question = read_ask(errand)
        except LineError as error:
            raise _wrong(error) from None
        between = self._between(question.verb)
        if between is None:
            return {}
        pair, _ = between
        with self._news:
            if question.id in self._asked:
                return {}
            self._asked.append(question.id)
            full = self._doing >= AT_ONCE
            self._doing += not full
        if full:
            words = f"More than {AT_ONCE} things are asked at once; try again."
            self._say(pair, refusal(question.id, "overloaded", words))
            return {}

        def failed(error: BaseException) -> Answer:
            return refusal(question.id, "internal", "The applier has failed; its log says more.")

        def tell(answer: Answer) -> None:
            with self._news:
                self._doing -= 1
            self._say(pair, answer)

        beside(f"errand-{question.verb}", lambda: self._done(question), failed, tell)
        return {}

    def pair_answered(self, answer: Mapping[str, object]) -> Nothing:
        """The other box has answered. Where nobody waits for it, because it comes late or twice, it is dropped."""
        try:
            found = read_answer(answer)
        except LineError as error:
            raise _wrong(error) from None
        with self._news:
            reply = self._waiting.get(found.id)
            if reply is not None and reply.answer is None:
                reply.answer = found
                reply.came.set()
        return {}

    # ---------------------------------------------------------------------------------------------

    def _done(self, question: Ask) -> Answer:
        try:
            result = self._core.handle(checked(question.verb, dict(question.arguments), self._verbs), 0)
        except ApplierRefused as refused:
            return refusal(question.id, refused.code, refused.in_full)
        if not isinstance(result, dict):
            raise TypeError(f"{question.verb} answers with {type(result).__name__}; a peer gets objects alone")
        return Answer(question.id, result)

    def _say(self, pair: str, answer: Answer) -> None:
        body = answer.to_data()
        length = size(body)
        if length > MAX_BODY:
            words = f"The answer would have {length} bytes; the most that fits is {MAX_BODY}."
            body = refusal(answer.id, "too-large", words).to_data()
            length = size(body)
        self._send(Line(pair, ANSWER, body, length))

    def _send(self, line: Line) -> None:
        with self._news:
            self._lines.append(line)
            while sum(one.size for one in self._lines) > KEPT:  # nobody carries them
                self._lines.popleft()
            self._news.notify_all()

    def _between(self, verb: str) -> tuple[str, str] | None:
        """The pair, and the other box's host name, where the two may ask each other this; None: they may not."""
        pair, box = self._core.running.snapshot.pair, self._core.running.box
        if pair is not None and box is not None:
            return pair.id, pair.boxes[1 - box].name
        return self._core.joined_with if verb in FROM_JOINED else None

    def _silent(self) -> bool:
        heard = self._core.peer.heard
        return heard is None or self._clock() - heard > agreement.SILENT


def _outcome(reply: Reply) -> dict[str, Any]:
    answer = reply.answer
    if answer is None or answer.result is None:
        raise ApplierRefused(answer.code, answer.message) if answer else AssertionError
    return dict(answer.result)


def _wrong(error: LineError) -> ApplierRefused:
    return ApplierRefused("bad-field", f"What the other box says is wrong: {error}.")
