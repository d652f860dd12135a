"""What two boxes say to each other until they are a pair: one line of JSON each, and everything in it is checked.

The same lines go between root's process and the one without rights that talks to the other box.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from applier.pair.joining import proof
from applier.pair.joining.proof import Role
from lbconfig.joining import Facts
from lbconfig.model.reading import SnapshotError, build
from lbconfig.model.writing import plain
from lbconfig.validate.pair import ID, key_sentence

VERSION = 1
EARLY = 2048  # bytes of a line, until the other box has proven that it knows the code
LATE = 1 << 20  # and afterwards
MAX_ADDRESSES = 1000
MAX_WORDS = 400  # characters of a reason
_HEX = re.compile(r"[0-9a-f]{64}")


class JoinError(Exception):
    """They do not become a pair. A sentence for an admin; `field` is what he entered and has to look at."""

    def __init__(self, why: str, field: str = "") -> None:
        super().__init__(why)
        self.why = why
        self.field = field


@dataclass(frozen=True, slots=True)
class Hello:
    version: int
    nonce: str


@dataclass(frozen=True, slots=True)
class Answer:
    nonce: str
    key: str


@dataclass(frozen=True, slots=True)
class Proof:
    key: str
    proof: str


@dataclass(frozen=True, slots=True)
class Proven:
    proof: str


@dataclass(frozen=True, slots=True)
class Tell:
    facts: Facts


@dataclass(frozen=True, slots=True)
class Probe:
    addresses: tuple[str, ...]  # to be asked for with ARP


@dataclass(frozen=True, slots=True)
class Taken:
    addresses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Agreed:
    id: str  # of the pair
    hostname: str  # of the box that waited
    box: int = 1  # which of the pair's the one that joins becomes
    replaces: bool = False  # it takes the place of a box that is dead


@dataclass(frozen=True, slots=True)
class Kept:
    """The second box has it on its disk."""


@dataclass(frozen=True, slots=True)
class Done:
    """And so has the first one."""


@dataclass(frozen=True, slots=True)
class Refused:
    why: str
    field: str = ""


# Between the two processes of a box.
@dataclass(frozen=True, slots=True)
class Listening:
    port: int


@dataclass(frozen=True, slots=True)
class Waiting:
    left: int  # guesses


@dataclass(frozen=True, slots=True)
class Met:
    """The other box knows the code."""

    key: str
    address: str


@dataclass(frozen=True, slots=True)
class Again:
    """What there was to say to the other box has been said, or was cut short: wait for it, or for the next one."""


Message = (
    Hello
    | Answer
    | Proof
    | Proven
    | Tell
    | Probe
    | Taken
    | Agreed
    | Kept
    | Done
    | Refused
    | Listening
    | Waiting
    | Met
    | Again
)
# Once both have proven it: who says what. The second box begins.
SAID: tuple[tuple[Role, type[Message]], ...] = (
    ("second box", Tell),
    ("first box", Probe),
    ("second box", Taken),
    ("first box", Agreed),
    ("second box", Kept),
    ("first box", Done),
)
Kind = TypeVar("Kind")


class Channel(Protocol):
    """To the other box, or to the other process."""

    def send(self, message: Message) -> None:
        """Raises JoinError."""

    def receive(self, limit: int) -> bytes:
        """A line of at most so many bytes. Raises JoinError."""


def write(message: Message) -> bytes:
    data = {"kind": type(message).__name__.lower(), "body": plain(message)}
    return json.dumps(data, separators=(",", ":")).encode() + b"\n"


def read(line: bytes, *kinds: type[Kind]) -> Kind:
    """One of these kinds. Raises JoinError for anything else, and where the other side refuses, with its reason."""
    known: dict[str, type[Any]] = {kind.__name__.lower(): kind for kind in (*kinds, Refused)}
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        raise JoinError("The other box said something that is not JSON.") from None
    if not isinstance(data, dict) or data.keys() != {"kind", "body"} or data["kind"] not in known:
        raise JoinError("The other box said something that does not belong here.")
    try:
        message: Any = build(known[data["kind"]], data["body"])
    except SnapshotError as error:
        raise JoinError(f"The other box said something unreadable ({error.path or 'body'}).") from None
    if isinstance(message, Refused):
        raise JoinError(message.why[:MAX_WORDS], message.field[:40])
    if wrong := _wrong(message):
        raise JoinError(f"The other box said something unreadable ({wrong}).")
    found: Kind = message
    return found


def _wrong(message: Any) -> str:
    """The field that is not as it must be."""
    for field in dataclasses.fields(message):
        value = getattr(message, field.name)
        match field.name:
            case "version" if value != VERSION:
                return "version"
            case "nonce" | "proof" if not _HEX.fullmatch(value):
                return field.name
            case "key" if key_sentence(value):
                return "key"
            case "box" if value not in (0, 1):
                return "box"
            case "id" if not ID.fullmatch(value):
                return "id"
            case "addresses" if len(value) > MAX_ADDRESSES or any(len(one) > 45 for one in value):
                return "addresses"
    return ""


def as_first(
    channel: Channel, secret: bytes, certificate: bytes, nonce: str, key: str, judge: Callable[[bool], bool]
) -> tuple[str, bool]:
    """The first box's part until both know each other: the second one's public key, and whether it may go on.

    `judge` decides that, by whether the proof was right. Nothing but a refusal is sent to one that may not.
    """
    hello = read(channel.receive(EARLY), Hello)
    channel.send(Answer(nonce, key))
    said = read(channel.receive(EARLY), Proof)
    nonces, keys = (nonce, hello.nonce), (key, said.key)
    good = judge(proof.same(said.proof, proof.prove(secret, "second box", certificate, nonces, keys)))
    if good:
        channel.send(Proven(proof.prove(secret, "first box", certificate, nonces, keys)))
    return said.key, good


def as_second(channel: Channel, code: str, certificate: bytes, nonce: str, key: str) -> str:
    """The second box's part: the first one's public key. Raises JoinError."""
    channel.send(Hello(VERSION, nonce))
    answer = read(channel.receive(EARLY), Answer)
    if answer.key == key:
        raise JoinError("This is the address of the box itself. Enter the one of the other box.", "address")
    secret = proof.secret(code, certificate)
    nonces, keys = (answer.nonce, nonce), (answer.key, key)
    channel.send(Proof(key, proof.prove(secret, "second box", certificate, nonces, keys)))
    proven = read(channel.receive(EARLY), Proven)
    if not proof.same(proven.proof, proof.prove(secret, "first box", certificate, nonces, keys)):
        raise JoinError("Who answers there does not know the code, so it is not the box that shows it.", "address")
    return answer.key
