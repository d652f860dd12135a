"""The code and the messages by which two boxes come to know each other, without a socket."""

import json

import pytest
from lbconfig_pairs import KEYS

from applier.pair.joining import messages, proof
from applier.pair.joining.messages import (
    Agreed,
    Answer,
    Hello,
    JoinError,
    Message,
    Probe,
    Proof,
    Proven,
    Refused,
    as_first,
    as_second,
    read,
    write,
)

CODE, CERTIFICATE = "ABCD-EFGH-IJKL-MN23", b"c" * 32
NONCES = ("1" * 64, "2" * 64)


class Script:
    """The other side says these lines, one after the other; what it is told is kept."""

    def __init__(self, *lines: Message | bytes) -> None:
        self.lines = [line if isinstance(line, bytes) else write(line) for line in lines]
        self.told: list[Message] = []

    def send(self, message: Message) -> None:
        self.told.append(message)

    def receive(self, limit: int) -> bytes:
        return self.lines.pop(0)


def proven(role: proof.Role, code: str = CODE, certificate: bytes = CERTIFICATE, nonces=NONCES, keys=KEYS) -> str:
    return proof.prove(proof.secret(code, certificate), role, certificate, nonces, keys)


def first(said: str) -> tuple[Script, bool]:
    other = Script(Hello(1, NONCES[1]), Proof(KEYS[1], said))
    _, good = as_first(other, proof.secret(CODE, CERTIFICATE), CERTIFICATE, NONCES[0], KEYS[0], bool)
    return other, good


def test_both_prove_the_code():
    other, good = first(proven("second box"))
    assert good and other.told == [Answer(NONCES[0], KEYS[0]), Proven(proven("first box"))]
    there = Script(Answer(NONCES[0], KEYS[0]), Proven(proven("first box")))
    assert as_second(there, "abcd efgh ijkl mn23", CERTIFICATE, NONCES[1], KEYS[1]) == KEYS[0]


@pytest.mark.parametrize(
    "said",
    [
        proven("first box"),  # sent back
        proven("second box", "ABCD-EFGH-IJKL-MN22"),
        proven("second box", certificate=b"d" * 32),  # what somebody in between showed
        proven("second box", nonces=("3" * 64, NONCES[1])),  # of an earlier time
        proven("second box", keys=(KEYS[0], KEYS[0])),
    ],
    ids=["the other role", "another code", "another certificate", "another time", "another key"],
)
def test_nothing_else_proves_it(said):
    other, good = first(said)
    assert not good and other.told == [Answer(NONCES[0], KEYS[0])]
    there = Script(Answer(NONCES[0], KEYS[0]), Proven(said.replace(proven("first box"), proven("second box"))))
    with pytest.raises(JoinError, match="does not know the code"):
        as_second(there, CODE, CERTIFICATE, NONCES[1], KEYS[1])


def test_a_code_as_people_type_it():
    assert proof.plain(" abcd-efgh ijkl-MN23\n") == "ABCDEFGHIJKLMN23" and proof.plain("0bcd-1fgh-8jkl-MN23")[0] == "O"
    for text in ("", "ABCD", CODE + "A", "ABCD-EFGH-IJKL-MN2!", "ÄBCD-EFGH-IJKL-MN23", "\0" * 16):
        assert proof.plain(text) == ""
    codes = {proof.new_code() for _ in range(50)}
    assert len(codes) == 50 and all(len(one) == 19 and proof.plain(one) for one in codes)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"", "not JSON"),
        (b"[]", "does not belong"),
        (b'{"kind":"hello"}', "does not belong"),
        (write(Hello(1, "0" * 64)), "does not belong"),
        (write(Probe(("1",) * 2000)), "addresses"),
        (write(Probe(("1" * 60,))), "addresses"),
        (b'{"kind":"probe","body":{"addresses":"10.0.2.1"}}', "addresses"),
        (b'{"kind":"probe","body":{"addresses":[],"more":1}}', "more"),
        (write(Refused("No.", "code")), "No."),
    ],
)
def test_what_is_not_exactly_of_the_shape_is_refused(line, said):
    with pytest.raises(JoinError, match=said):
        read(line, Probe)


@pytest.mark.parametrize(
    "message",
    [
        Hello(2, "0" * 64),
        Hello(1, "0"),
        Answer("0" * 64, "key"),
        Proof(KEYS[0], "z" * 64),
        Agreed("id", "lb1"),
        Agreed("a" * 32, "lb1", 2),
    ],
    ids=lambda one: type(one).__name__,
)
def test_every_value_is_checked(message):
    with pytest.raises(JoinError, match="unreadable"):
        read(write(message), type(message))


def test_lines_are_small_before_the_proof():
    for message in (
        Hello(1, "0" * 64),
        Answer("0" * 64, KEYS[0]),
        Proof(KEYS[0], "0" * 64),
        Refused("x" * 400, "code"),
    ):
        assert len(write(message)) < messages.EARLY and json.loads(write(message))["body"]


def test_a_box_that_dialled_itself_says_so():
    with pytest.raises(JoinError, match="the box itself"):
        as_second(Script(Answer(NONCES[0], KEYS[1])), CODE, CERTIFICATE, NONCES[1], KEYS[1])
