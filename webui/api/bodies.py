"""What requests carry: JSON in the body, and the few small shapes that are no part of a snapshot."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import NoReturn, TypeVar

from django.http import HttpRequest, UnreadablePostError

from api.errors import ApiError, of_shape
from lbconfig.capacity.figures import USUAL_WATCH
from lbconfig.model.firewall import RuleProtocol
from lbconfig.model.ports import PORT
from lbconfig.model.problem import quote
from lbconfig.model.snapshot import SnapshotError, part
from web.bodies import Crowded, coming_in, said_length

Kind = TypeVar("Kind")

SMALL = 256 * 1024  # bytes
LARGE = 8 * 1000 * 1000  # bytes; a whole snapshot, as much as the applier takes with what is around it
BLOCK = 65536
JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"


@dataclass(frozen=True, slots=True)
class ApplyRequest:
    """What was reviewed; `digest` and `base` as the review gave them.

    `confirm_within`: seconds within which it has to be confirmed, or everything is undone; null: as the change asks.
    """

    digest: str
    base: int | None = None
    comment: str = ""
    confirm_within: int | None = None


@dataclass(frozen=True, slots=True)
class CardSwap:
    name: str  # of a card that the draft names
    take: str  # a card of the box that nothing uses


@dataclass(frozen=True, slots=True)
class CardsRequest:
    """Other network cards, in every place of the draft that names one of these."""

    cards: tuple[CardSwap, ...]


@dataclass(frozen=True, slots=True)
class OperationRequest:
    """A real server by its address, in all services that run or in one of them."""

    operation: str  # of operations.VERBS
    address: str
    service: int = 0  # 0: all
    server: int = 0  # its id, where one service has the address twice


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """How long the box counts what it forwards."""

    seconds: int = USUAL_WATCH


@dataclass(frozen=True, slots=True)
class BetweenRequest:
    """Two ports of the box that nothing uses and a cable joins; `receiver` is the one that is measured."""

    sender: str
    receiver: str


@dataclass(frozen=True, slots=True)
class HoldRequest:
    """For how many hours this box of the pair is held; 0: until it is released."""

    hours: int = 0


@dataclass(frozen=True, slots=True)
class DrillRequest:
    """Whether the other box hands over back afterwards."""

    back: bool = False


@dataclass(frozen=True, slots=True)
class UpdateChoice:
    """How the update of both boxes goes on: stop, go-on, go-back or leave, as far as its `choices` name it."""

    choice: str


@dataclass(frozen=True, slots=True)
class CloneRequest:
    """What the copy has of its own; the rest is that of the service it is made from."""

    name: str
    address: str = ""  # empty: that of the other service
    port: int = field(default=0, metadata=PORT)  # 0: the same


@dataclass(frozen=True, slots=True)
class CommentRequest:
    comment: str


@dataclass(frozen=True, slots=True)
class PacketRequest:
    """The first packet of a connection. `port` and `source_port`: 0 where the protocol has none.

    `icmp`: of ICMP the type of the message (RFC 792, RFC 4443); an echo request is the protocol ping.
    """

    source: str
    destination: str
    interface: str  # by which it comes in
    protocol: RuleProtocol = RuleProtocol.TCP  # not any or tcp+udp
    port: int = field(default=0, metadata=PORT)
    source_port: int = field(default=40000, metadata=PORT)
    icmp: int = 0


@dataclass(frozen=True, slots=True)
class BackupRequest:
    passphrase: str


@dataclass(frozen=True, slots=True)
class JoinRequest:
    """The box that shows a code, and the code."""

    address: str
    code: str


@dataclass(frozen=True, slots=True)
class ResetRequest:
    """`hostname`: that of the box, as a proof of intent."""

    hostname: str


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """A token for a program. `days`: until it ends, 0: never. `user`: for the console, which is no user."""

    name: str
    scopes: tuple[str, ...]
    days: int = 0
    networks: tuple[str, ...] = ()
    user: str = ""


def read(request: HttpRequest, limit: int, kinds: tuple[str, ...]) -> object:
    """The JSON of the body. Raises ApiError."""
    if request.content_type not in kinds:
        wanted = " or ".join(kinds)
        said = (request.content_type or "")[:60] or "none"
        raise ApiError(415, "not-json", f"The body must be {wanted} (Content-Type), not {quote(said)}.")
    body = _bytes(request, limit)
    try:
        return json.loads(body, parse_constant=_no_number, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise ApiError(400, "not-json", f"The body is not JSON: {quote(str(error))}.") from None


def typed(kind: type[Kind], data: object) -> Kind:
    """One of the shapes above. Raises ApiError."""
    try:
        return part(kind, data)
    except SnapshotError as error:
        raise of_shape(error, "request") from None


def _bytes(request: HttpRequest, limit: int) -> bytes:
    if (said_length(request) or 0) > limit:
        raise _too_large(limit)
    body = bytearray()
    try:
        with coming_in(request):
            while data := request.read(BLOCK):
                body += data
                if len(body) > limit:
                    raise _too_large(limit)
    except Crowded as crowded:
        raise ApiError(503, "crowded", str(crowded), headers={"Retry-After": "10"}) from None
    except UnreadablePostError:
        text = "The body ended early, or came too slowly; nothing was done."
        raise ApiError(408, "incomplete", text) from None
    return bytes(body)


def _too_large(limit: int) -> ApiError:
    return ApiError(413, "too-large", f"The body may have {limit} bytes at most.")


def _object(pairs: list[tuple[str, object]]) -> dict:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has the same field twice")
    return found


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")
