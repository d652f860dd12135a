"""Floating addresses as the kernel is told about them: each is a lease that ends by itself.

Pure, and loaded by the floater, which imports as little as it can. Messages of rtnetlink(7) are bytes in host byte
order; their numbers are from the kernel's uapi headers linux/rtnetlink.h and linux/if_addr.h.
"""

from __future__ import annotations

import ipaddress
import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from applier.base.frames import announcement

VERSION = 1  # of floating.json
MOST = 4096  # addresses
NAME_LENGTH = 15  # of an interface (IFNAMSIZ)
LEASES = range(4, 301)  # seconds that a lease may last
BATCH = 32  # addresses that the kernel is told about at once, before they are announced

_NEW_ADDRESS, _DELETE_ADDRESS = 20, 21  # RTM_NEWADDR, RTM_DELADDR
_REQUEST, _REPLACE, _CREATE = 0x1, 0x100, 0x400
_ERROR = 2  # NLMSG_ERROR
_ADDRESS, _LOCAL, _LIFETIMES, _FLAGS = 1, 2, 6, 8  # IFA_…
_NO_DUPLICATE_CHECK, _NO_PREFIX_ROUTE = 0x02, 0x200  # IFA_F_NODAD, IFA_F_NOPREFIXROUTE
_INET, _INET6 = 2, 10
_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, port id
_ABOUT = struct.Struct("=BBBBI")  # family, length of the prefix, flags, scope, index of the interface
_ATTRIBUTE = struct.Struct("=HH")  # length, type
_CODE = struct.Struct("=i")


class Wrong(Exception):
    """The file floating.json cannot be used; the text names the place in it."""


class Place(NamedTuple):
    """An address at its interface."""

    interface: str
    address: str  # without a prefix length

    def __str__(self) -> str:
        return f"{self.address} at {self.interface}"


class Floating(NamedTuple):
    """What floating.json says."""

    places: tuple[Place, ...] = ()
    lease: int = 10  # seconds


class Card(NamedTuple):
    """What of an interface is in the messages and frames that are prepared."""

    number: int  # the kernel's index of it
    mac: str


class Batch(NamedTuple):
    """Some places, and what is sent about them."""

    places: tuple[Place, ...]
    hold: bytes  # the same message begins a lease and renews it
    drop: bytes
    frames: tuple[tuple[str, bytes], ...]  # interface, announcement


def read(text: str) -> Floating:
    """What the text of floating.json says. Raises Wrong."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Wrong(f"it is not whole: {error}") from None
    if not isinstance(data, dict) or data.get("version") != VERSION:
        raise Wrong(f"version: must be {VERSION}")
    lease, addresses = data.get("lease"), data.get("addresses")
    if isinstance(lease, bool) or not isinstance(lease, int) or lease not in LEASES:
        raise Wrong(f"lease: must be a number of seconds from {LEASES[0]} to {LEASES[-1]}, not {lease!r:.40}")
    if not isinstance(addresses, list) or len(addresses) > MOST:
        raise Wrong(f"addresses: must be a list of {MOST} at the most")
    places = (_place(number, one) for number, one in enumerate(addresses, 1))
    return Floating(tuple(dict.fromkeys(places)), lease)


def _place(number: int, entry: object) -> Place:
    if not isinstance(entry, list) or len(entry) != 2 or not all(isinstance(word, str) for word in entry):
        raise Wrong(f"address {number}: must be an interface and an address, not {entry!r:.80}")
    interface, text = entry
    if not 0 < len(interface) <= NAME_LENGTH:
        raise Wrong(f"address {number}: must name an interface of 1 to {NAME_LENGTH} letters, not {interface!r:.40}")
    try:
        if "/" not in text:
            raise ValueError
        return Place(interface, str(ipaddress.ip_interface(text).ip))
    except ValueError:
        raise Wrong(f"address {number}: must be such as 10.1.0.100/24, not {text!r:.60}") from None


def prepare(places: Sequence[Place], cards: Mapping[str, Card], lease: int) -> tuple[Batch, ...]:
    """Everything that will be sent about those whose interface is there."""
    present = [place for place in places if place.interface in cards]
    return tuple(_batch(present[at : at + BATCH], cards, lease) for at in range(0, len(present), BATCH))


def _batch(places: Sequence[Place], cards: Mapping[str, Card], lease: int) -> Batch:
    holds, drops = [], []
    for number, place in enumerate(places):
        index = cards[place.interface].number
        holds.append(_message(_NEW_ADDRESS, _REPLACE | _CREATE, number, place.address, index, lease))
        drops.append(_message(_DELETE_ADDRESS, 0, number, place.address, index))
    frames = tuple(
        (place.interface, announcement(mac, place.address)) for place in places if (mac := cards[place.interface].mac)
    )
    return Batch(tuple(places), b"".join(holds), b"".join(drops), frames)


def _message(kind: int, flags: int, number: int, address: str, index: int, lease: int = 0) -> bytes:
    """The number comes back in the kernel's complaint.

    The address is held without its network: an address of its own length is never the first of a network, on which the
    box's own addresses and their routes would depend.
    """
    parsed = ipaddress.ip_address(address)
    six = parsed.version == 6
    body = _ABOUT.pack(_INET6 if six else _INET, parsed.max_prefixlen, 0, 0, index)
    body += _attribute(_LOCAL, parsed.packed) + _attribute(_ADDRESS, parsed.packed)
    if kind == _NEW_ADDRESS:
        # IPv6: it is there at once, and is not what the box itself speaks from (RFC 6724 would choose it).
        body += _attribute(_LIFETIMES, struct.pack("=IIII", 0 if six else lease, lease, 0, 0))
        if six:
            body += _attribute(_FLAGS, struct.pack("=I", _NO_DUPLICATE_CHECK | _NO_PREFIX_ROUTE))
    return _HEADER.pack(_HEADER.size + len(body), kind, _REQUEST | flags, number, 0) + body


def _attribute(kind: int, value: bytes) -> bytes:
    length = _ATTRIBUTE.size + len(value)
    return _ATTRIBUTE.pack(length, kind) + value + b"\0" * (-length % 4)


def complaints(datagram: bytes, batch: Batch) -> Iterator[tuple[Place, int]]:
    """Which of a batch the kernel refused, each with the number of the error."""
    at = 0
    while at + _HEADER.size + _CODE.size <= len(datagram):
        length, kind, _, number, _ = _HEADER.unpack_from(datagram, at)
        if kind == _ERROR and number < len(batch.places):
            code = -_CODE.unpack_from(datagram, at + _HEADER.size)[0]
            if code:
                yield batch.places[number], code
        at += max(_HEADER.size, length + (-length % 4))
