"""A pair of boxes, each seen by itself.

The snapshot of a pair holds both boxes. The *view* of one of them is the snapshot of a box that is alone: what both
share, with that box's own network and hardware. All that renders, compares or judges works on a view.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from lbconfig.model.addresses import IPNetwork, bits, order, parse_interface
from lbconfig.model.kept import kept
from lbconfig.model.network import Interface, Network
from lbconfig.model.pair import Pair, PairBox
from lbconfig.model.snapshot import Snapshot
from lbconfig.wanted.netstate import Address
from lbconfig.wanted.network import homes

BOXES = (0, 1)
ORDINALS = ("first", "second")

LEASE = 10  # seconds for which a floating address is held unless its lease is renewed
NUMBERS = 254  # of heartbeats: a virtual router id has eight bits


class Heartbeat(NamedTuple):
    """A network in which the boxes tell each other that they live."""

    number: int  # the same on both boxes, and for as long as both have an address in this network
    interface: str
    address: str  # of this box; without a length, like the next one
    peer: str
    cable: bool  # whether it is the pair cable


def view(snapshot: Snapshot, box: int) -> Snapshot:
    """The snapshot of one box of the pair, 0 or 1; without a pair the snapshot itself."""
    return snapshot if snapshot.pair is None else _views(snapshot)[box]


def views(snapshot: Snapshot) -> tuple[Snapshot, ...]:
    """The view of each box; of a box that is alone, and of what is a view already, that one snapshot."""
    return (snapshot,) if snapshot.pair is None or number(snapshot) is not None else _views(snapshot)


def hostnames(snapshot: Snapshot) -> tuple[str, ...]:
    """Of the box, or of both of a pair."""
    return tuple(one.network.hostname for one in views(snapshot))


def interface_names(snapshot: Snapshot) -> tuple[str, ...]:
    """Of the box, or of either of a pair."""
    return tuple(dict.fromkeys(used.name for one in views(snapshot) for used in one.network.interfaces))


def entrances(snapshot: Snapshot) -> tuple[str, ...]:
    """Interfaces where packets come in, of the box or of either of a pair."""
    return tuple(dict.fromkeys(name for one in views(snapshot) for name in one.network.entrances))


def one_armed(snapshot: Snapshot) -> bool:
    """Whether clients and servers are on one interface, of the box or of either of a pair.

    The pair cable is none of them; neither is what has no address, such as the card that carries two VLANs.
    """
    boxes = snapshot.pair.boxes if snapshot.pair else ()
    networks = [(one.network, one.cable) for one in boxes] or [(snapshot.network, "")]
    return any(
        sum(_has_address(used) for used in network.interfaces if used.name != cable) <= 1 for network, cable in networks
    )


def _has_address(interface: Interface) -> bool:
    return interface.on and bool(interface.dhcp or interface.addresses or interface.floating)


@kept
def _views(snapshot: Snapshot) -> tuple[Snapshot, ...]:
    boxes = snapshot.pair.boxes if snapshot.pair else ()
    return tuple(replace(snapshot, network=one.network, tuning=one.tuning) for one in boxes)


def number(snapshot: Snapshot) -> int | None:
    """The box that this is the view of; None for what is no view."""
    boxes = snapshot.pair.boxes if snapshot.pair else ()
    return next((number for number, one in enumerate(boxes) if one.network == snapshot.network), None)


def keyed(snapshot: Snapshot, key: str) -> int | None:
    """The box of the pair that has this public key; None where none has it, or where there is no pair."""
    boxes = snapshot.pair.boxes if snapshot.pair else ()
    return next((number for number, one in enumerate(boxes) if one.key == key), None)


class Sides(NamedTuple):
    number: int  # of the own box
    own: PairBox
    peer: PairBox


def sides(snapshot: Snapshot) -> Sides | None:
    """Who is who in a view; None without a pair. ValueError for a snapshot of both boxes."""
    if snapshot.pair is None:
        return None
    own = number(snapshot)
    if own is None:
        raise ValueError("this is the snapshot of a pair, and none of its views")
    return Sides(own, snapshot.pair.boxes[own], snapshot.pair.boxes[1 - own])


def floating(snapshot: Snapshot, box: int) -> tuple[Address, ...]:
    """What the box holds while it leads: interface and address of each VIP and each other floating address.

    They stand for themselves alone (/32, /128), as VIPs do: a lease that ends must take no route along.
    """
    return () if snapshot.pair is None else _floating(view(snapshot, box))


@kept
def _floating(snapshot: Snapshot) -> tuple[Address, ...]:
    network, named = snapshot.network, named_floating(snapshot.network)
    vips = {vip for service in snapshot.enabled_services for vip in service.vips} - named.keys()
    places: dict[str, str | None] = {**homes(network, vips), **named}
    return tuple(
        (interface.name, f"{address}/{bits(address)}")
        for interface in network.interfaces
        if interface.on
        for address in sorted((one for one, home in places.items() if home == interface.name), key=order)
    )


def named_floating(network: Network) -> dict[str, str]:
    """The floating addresses that interfaces name, each with its interface."""
    return {
        text.partition("/")[0]: interface.name
        for interface in network.interfaces
        if interface.on
        for text in interface.floating
    }


def peers_addresses(snapshot: Snapshot) -> tuple[str, ...]:
    """The peer's own addresses, in order. `snapshot` is a view; empty without a pair."""
    both = sides(snapshot)
    return tuple(sorted(own_addresses(both.peer.network), key=order)) if both else ()


def own_addresses(network: Network) -> set[str]:
    """The fixed ones of a box, without lengths and without what floats."""
    return {text.partition("/")[0] for one in network.interfaces if one.on for text in one.addresses}


def heartbeats(pair: Pair, box: int) -> tuple[Heartbeat, ...]:
    """The pair cable first, then one for each interface with an own address in a network of the peer's.

    One is enough for both families: they live and die with the same link. IPv4 comes first. What cannot be read is
    left out.
    """
    first, second = (_attached(one.network) for one in pair.boxes)
    there = {one.network: one for one in reversed(second)}
    ends = (_of(one.cable, (one.cable_address,)) for one in pair.boxes)
    cable = [*zip(*ends, strict=False)]  # one, or none
    found: list[tuple[_Attached, _Attached]] = []
    used: set[tuple[int, str]] = set()  # interfaces of each box
    for one, other in [*cable, *((one, there[one.network]) for one in first if one.network in there)]:
        here = {(0, one.interface), (1, other.interface)}
        if one.network == other.network and not used & here:
            used |= here
            found.append((one, other))
    numbers = _numbers(str(one.network) for one, _ in found)
    return tuple(
        Heartbeat(numbers[str(mine.network)], mine.interface, mine.address, its.address, both in cable)
        for both in found
        for mine, its in [(both[box], both[1 - box])]
    )


class _Attached(NamedTuple):
    interface: str
    address: str
    network: IPNetwork


def _attached(network: Network) -> list[_Attached]:
    """The own addresses with their networks, IPv4 first."""
    found = [one for used in network.interfaces if used.on for one in _of(used.name, used.addresses)]
    return sorted(found, key=lambda one: ":" in one.address)


def _of(interface: str, texts: Iterable[str]) -> list[_Attached]:
    found = []
    for text in texts:
        with contextlib.suppress(ValueError):
            parsed = parse_interface(text)
            found.append(_Attached(interface, str(parsed.ip), parsed.network))
    return found


def _numbers(networks: Iterable[str]) -> dict[str, int]:
    """A number for each network, made of the network itself.

    Numbered through, a network that comes or goes would move the others, and while one box has the new configuration
    and the other one the old, they would not hear each other there.
    """
    found: dict[str, int] = {}
    for network in sorted(networks):
        number = zlib.crc32(network.encode()) % NUMBERS + 1
        while number in found.values():
            number = number % NUMBERS + 1
        found[network] = number
    return found


# --- a pair that somebody changes --------------------------------------------------------------------


def with_network(snapshot: Snapshot, box: int, network: Network) -> Snapshot:
    """The snapshot of a pair with another network of one box.

    What floats there floats on the other box as well, on the interface in whose network it is; and the address of the
    pair cable follows its interface.
    """
    pair = snapshot.pair
    if pair is None:
        raise ValueError("this is no snapshot of a pair")
    before, other = pair.boxes[box].network, pair.boxes[1 - box]
    mine = _cable_follows(replace(pair.boxes[box], network=network))
    its = replace(other, network=_floats_alike(other.network, _floats(before), _floats(network)))
    return replace(snapshot, pair=replace(pair, boxes=(mine, its) if box == 0 else (its, mine)))


def own_box(pair: Pair, addresses: Iterable[str]) -> int:
    """The box that has most of these addresses ("10.0.2.21/24"); the first one where neither has any."""
    there = set(addresses)
    counts = [sum(text in there for one in box.network.interfaces for text in one.addresses) for box in pair.boxes]
    return int(counts[1] > counts[0])


def _floats(network: Network) -> tuple[str, ...]:
    return tuple(text for one in network.interfaces for text in one.floating)


def _floats_alike(network: Network, before: tuple[str, ...], now: tuple[str, ...]) -> Network:
    gone, come = set(before) - set(now), [text for text in now if text not in before and text not in _floats(network)]
    interfaces = tuple(
        replace(
            one,
            floating=(
                *(text for text in one.floating if text not in gone),
                *(text for text in come if any(_same_network(text, own) for own in one.addresses)),
            ),
        )
        for one in network.interfaces
    )
    return replace(network, interfaces=interfaces)


def _same_network(text: str, other: str) -> bool:
    with contextlib.suppress(ValueError):
        return parse_interface(text).network == parse_interface(other).network
    return False


def _cable_follows(box: PairBox) -> PairBox:
    cable = next((one for one in box.network.interfaces if one.name == box.cable), None)
    if cable is None or not cable.addresses or box.cable_address in cable.addresses:
        return box
    return replace(box, cable_address=cable.addresses[0])
