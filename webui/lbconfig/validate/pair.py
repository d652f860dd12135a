"""The rules for a pair: what its boxes must have in common, and what each must have for itself.

The rules for a box that is alone hold for each view. A problem with what is one box's own names that box.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from lbconfig.model.addresses import IPNetwork, contains, parse_interface
from lbconfig.model.problem import ACCESS, Place, Problem, Unseen, each, number, quote
from lbconfig.model.snapshot import Interface, Network, Pair, PairBox, Snapshot, Tuning, VirtualService
from lbconfig.pair import BOXES, ORDINALS, heartbeats, keyed, named_floating, view
from lbconfig.validate.fields import (
    NO_INTERFACE,
    given_twice,
    host_address,
    in_range,
    interface_address,
    interface_name,
)
from lbconfig.validate.links import MAX_INTERFACES
from lbconfig.validate.neighbours import covers, own_addresses
from lbconfig.validate.network import MAX_ADDRESSES, usable
from lbconfig.wanted.network import homes, links, static_networks
from lbconfig.wanted.pair_link import ADDRESSES, CHANNEL_PORT, LINK

Rules = Callable[[Snapshot], list[Problem]]  # for a box that is alone

ADVERT = (100, 10_000)  # milliseconds
MAX_HEARTBEATS = 8
MAX_FLOATING = 4096
LEAST_CABLE_MTU = 1280  # bytes; below it the link has no room for what the kernel sends
ID = re.compile(r"[0-9a-f]{32}")
KEY_BYTES = 32
_LINK_NETWORK = parse_interface(ADDRESSES[0]).network


def alone_problems(network: Network) -> Iterator[Problem]:
    """Of a box that is not in a pair."""
    for interface in network.interfaces:
        if interface.floating:
            place = Place(f"interface {quote(interface.name)}", f"network.interfaces[{interface.name}]")
            yield place.problem("floating", "has no meaning for a box that is not in a pair: leave it out")


def pair_problems(snapshot: Snapshot, pair: Pair, rules: Rules) -> Iterator[Problem]:
    """Of a snapshot of both boxes. `rules`: those for each view."""
    place = Place("pair", "pair")
    yield from each(place, id=_id(pair.id), advert=in_range(pair.advert, *ADVERT))
    yield from _not_empty(snapshot)
    yield from _of_views(snapshot, pair, rules)
    for box in BOXES:
        yield from _box(pair, box)
    if any(_too_much(box.network) for box in pair.boxes):  # which is told; what follows compares each with each
        return
    yield from _apart(pair)
    yield from _floating(snapshot, pair)
    yield from _services(snapshot, pair)
    yield from _policies(pair)
    yield from _heartbeats(place, pair)


def pair_warnings(snapshot: Snapshot) -> list[Problem]:
    """What an admin should know of a valid pair, and may leave as it is."""
    pair = snapshot.pair
    if pair is None or len(heartbeats(pair, 0)) > 1:
        return []
    words = "share only one network: if it fails, both of them lead"
    return [Place("pair", "pair").problem("boxes", words)]


def membership_problems(new: Snapshot, key: str) -> list[Problem]:
    """A configuration of a pair is for its two boxes. `key`: the public one of this box; empty: it has none."""
    if new.pair is None or keyed(new, key) is not None:
        return []
    words = "is the id of a pair that this box does not belong to: a pair is made by joining two boxes"
    return [Place("pair", "pair").problem("id", words)]


def _id(text: str) -> str | None:
    return None if ID.fullmatch(text) else f"must be 32 lower-case hexadecimal digits, not {quote(text)}"


# --- what each box has ---------------------------------------------------------------------------------


def _place(pair: Pair, box: int) -> Place:
    return Place(f"{ORDINALS[box]} box {quote(pair.boxes[box].name)}", f"pair.boxes[{box}]")


def _interface_place(pair: Pair, box: int, name: str) -> Place:
    outer = _place(pair, box)
    return Place(f"interface {quote(name)} of the {outer.object}", f"{outer.path}.network.interfaces[{name}]")


def _not_empty(snapshot: Snapshot) -> Iterator[Problem]:
    """What each box has for itself stands nowhere else."""
    parts: tuple[tuple[str, object, object], ...] = (
        ("network", snapshot.network, Network()),
        ("tuning", snapshot.tuning, Tuning()),
    )
    for name, part, empty in parts:
        for field in dataclasses.fields(type(part)):  # type: ignore[arg-type] # both are dataclasses
            if getattr(part, field.name) != getattr(empty, field.name):
                yield Place(name, name).problem(field.name, "must be left out in a pair: each of its boxes has its own")
                break


def _of_views(snapshot: Snapshot, pair: Pair, rules: Rules) -> Iterator[Problem]:
    """What is wrong with one box alone names it; what both have in common is told once."""
    first, second = (rules(view(snapshot, box)) for box in BOXES)
    for box, found, others in ((0, first, second), (1, second, first)):
        there = set(others)
        for one in found:
            if one.path.startswith(("network.", "tuning.")):
                place = _place(pair, box)
                whose, path = f"{one.object} of the {place.object}", f"{place.path}.{one.path}"
                yield dataclasses.replace(one, object=whose, path=path)
            elif one not in there:
                yield dataclasses.replace(one, object=f"{one.object} on the {_place(pair, box).object}")
            elif box == 0:
                yield one


def _box(pair: Pair, box: int) -> Iterator[Problem]:
    own, place = pair.boxes[box], _place(pair, box)
    known = {interface.name: interface for interface in own.network.interfaces}
    yield from each(
        place,
        key=key_sentence(own.key),
        cable=_cable(own, known),
        cable_address=_cable_address(own, known.get(own.cable)),
    )
    mtu = next((link.mtu for link in links(own.network) if link.name == own.cable), 0)
    if 0 < mtu < LEAST_CABLE_MTU:
        words = f"must be at least {LEAST_CABLE_MTU} on the pair cable, or 0, not {number(mtu)}"
        yield _interface_place(pair, box, own.cable).problem("mtu", words)
    if any(link.name == LINK for link in links(own.network)):
        words = f"{quote(LINK)} is the link between the boxes, which the box makes itself"
        yield _interface_place(pair, box, LINK).problem("name", words)
    for interface in usable(own.network).interfaces:
        for text in interface.addresses:
            if contains(_LINK_NETWORK, text.partition("/")[0]):
                words = f"{text} is in {_LINK_NETWORK}, the network of the link between the boxes"
                yield _interface_place(pair, box, interface.name).problem("addresses", words)


def _too_much(network: Network) -> bool:
    addresses = sum(len(interface.addresses) for interface in network.interfaces)
    return len(network.interfaces) > MAX_INTERFACES or addresses > MAX_ADDRESSES


def key_sentence(text: str) -> str | None:
    """What is wrong with a public key; None: nothing."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if len(data) == KEY_BYTES and base64.b64encode(data).decode() == text:
        return None
    return f"must be a WireGuard public key: {KEY_BYTES} bytes in base64, not {quote(text)}"


def _cable(own: PairBox, known: Mapping[str, Interface]) -> str | None:
    if sentence := interface_name(own.cable):
        return sentence
    if own.cable not in known:
        return f"{quote(own.cable)} {NO_INTERFACE}"
    if not known[own.cable].on:
        return f"{quote(own.cable)} is switched off"
    return f"{quote(own.cable)} uses DHCP: the pair cable needs fixed addresses" if known[own.cable].dhcp else None


def _cable_address(own: PairBox, cable: Interface | None) -> str | None:
    if sentence := interface_address(own.cable_address):
        return sentence
    if cable is not None and own.cable_address not in cable.addresses:
        return f"{own.cable_address} is not an address of {quote(own.cable)}"
    return None


# --- what they must not have in common, and what they must --------------------------------------------


def _apart(pair: Pair) -> Iterator[Problem]:
    first, second = pair.boxes
    place = _place(pair, 1)
    if first.key == second.key:
        yield place.problem("key", f"must not also be the key of {quote(first.name)}: each box has its own")
    if first.name.lower() == second.name.lower():
        words = f"must not be {quote(second.name)} on both boxes: people tell them apart by it"
        yield place.inner("network").problem("hostname", words)
    cables = [_network(box.cable_address) for box in pair.boxes]
    if None not in cables and cables[0] != cables[1]:
        yield place.problem(
            "cable_address", f"must be in {cables[0]}, where the pair cable of {quote(first.name)} ends"
        )
    owns = own_addresses(usable(first.network))
    nets = [net for one in usable(first.network).interfaces for net in static_networks(one)]
    for interface in usable(second.network).interfaces:
        inner = _interface_place(pair, 1, interface.name)
        for text in interface.addresses:
            address = text.partition("/")[0]
            if address in owns:
                yield inner.problem("addresses", f"{address} is also an address of {quote(first.name)}")
            other = next((net for net in nets if net != _network(text) and _overlap(net, _network(text))), None)
            if other is not None:
                words = f"{text} has a different prefix length from the network {other} of {quote(first.name)}"
                yield inner.problem("addresses", words)


def _network(text: str) -> IPNetwork | None:
    return parse_interface(text).network if interface_address(text) is None else None


def _overlap(net: IPNetwork, other: IPNetwork | None) -> bool:
    return other is not None and net.version == other.version and net.overlaps(other)


class _Known(NamedTuple):
    """What a floating address must not be."""

    own: Mapping[str, str]  # addresses of both boxes, with the box's name
    servers: Mapping[str, str]  # addresses of real servers, with the service's name


def _known(snapshot: Snapshot, pair: Pair) -> _Known:
    own = {address: box.name for box in pair.boxes for address in own_addresses(usable(box.network))}
    services = reversed(snapshot.enabled_services)
    servers = {one.address: service.name for service in services for one in service.machines}
    return _Known(own, servers)


def _floating(snapshot: Snapshot, pair: Pair) -> Iterator[Problem]:
    known = _known(snapshot, pair)
    texts = [{text for one in box.network.interfaces for text in one.floating} for box in pair.boxes]
    vips = {vip for one in snapshot.enabled_services for vip in one.vips}
    count = len(vips | {text.partition("/")[0] for one in texts for text in one})
    if count > MAX_FLOATING:
        words = f"must not have more than {MAX_FLOATING} floating addresses, but have {count}"
        yield Place("pair", "pair").problem("boxes", words)
        return
    for box in BOXES:
        network, first, other = pair.boxes[box].network, Unseen(), pair.boxes[1 - box]
        for interface in network.interfaces:
            place, nets = _interface_place(pair, box, interface.name), static_networks(_usable(interface))
            for text in interface.floating:
                sentence = interface_address(text) or _floating_here(text, interface, nets, network, known)
                if sentence is None and not first(text.partition("/")[0]):
                    sentence = given_twice(text)
                if sentence is None and text not in texts[1 - box]:
                    sentence = f"{text} is missing on {quote(other.name)}: what one box gives up, the other must take"
                yield from each(place, floating=sentence)


def _floating_here(
    text: str, interface: Interface, nets: list[IPNetwork], network: Network, known: _Known
) -> str | None:
    """Whether a good address can float on this interface."""
    address = text.partition("/")[0]
    if interface.dhcp:
        return f"{text} cannot be on {quote(interface.name)}, which uses DHCP"
    if not interface.on:
        return f"{text} cannot be on {quote(interface.name)}, which is switched off"
    if address in known.own:
        return f"{address} is an address of {quote(known.own[address])} itself"
    if address in known.servers:
        return f"{address} is a real server of virtual service {quote(known.servers[address])}"
    if address in (network.gateway, network.gateway6):
        return f"{address} is the default gateway"
    if _network(text) not in nets:
        return f"{text} is not in a network of {quote(interface.name)}: the interface needs an address of its own there"
    return None


def _usable(interface: Interface) -> Interface:
    return usable(Network(interfaces=(interface,))).interfaces[0]


def _services(snapshot: Snapshot, pair: Pair) -> Iterator[Problem]:
    """Where their addresses are: with whoever leads, so on both boxes in a network that is there for sure."""
    own = _known(snapshot, pair).own
    networks = [usable(box.network) for box in pair.boxes]
    named = {address: name for network in networks for address, name in _readable_floating(network).items()}
    asking = [{one.name for one in network.interfaces if one.dhcp} for network in networks]
    vips = [vip for one in snapshot.enabled_services for vip in one.vips if host_address(vip) is None]
    carriers = [homes(network, vips) for network in networks]
    if snapshot.management.port == CHANNEL_PORT:
        words = f"must not be {CHANNEL_PORT}: the boxes of the pair talk to each other on it"
        yield ACCESS.problem("port", words)
    for service in snapshot.enabled_services:
        place = Place(f"virtual service {quote(service.name)}", f"services[id={number(service.id)}]")
        for vip, field in _vips(service):
            if host_address(vip) is not None:
                continue
            box = next((box for box in BOXES if carriers[box][vip] in asking[box]), None)
            if vip in own:
                yield place.problem(field, f"{vip} is an address of {quote(own[vip])} itself, but a service must float")
            elif box is not None:
                where = f"{quote(carriers[box][vip] or '')} of {quote(pair.boxes[box].name)}"
                words = f"{vip} would be on {where}, which uses DHCP: a floating address needs a fixed network"
                yield place.problem(field, words)
            elif vip in named and covers(service, snapshot.management.port):
                words = f"{vip} port {snapshot.management.port} is the web UI of the pair: use another address or port"
                yield place.problem("port", words)


def _vips(service: VirtualService) -> Iterator[tuple[str, str]]:
    yield service.address, "address"
    yield from ((vip, "more_addresses") for vip in service.more_addresses)


def _readable_floating(network: Network) -> dict[str, str]:
    return {address: name for address, name in named_floating(network).items() if host_address(address) is None}


def _policies(pair: Pair) -> Iterator[Problem]:
    for box in BOXES:
        others = own_addresses(usable(pair.boxes[1 - box].network))
        for policy in pair.boxes[box].network.policies:
            if policy.source in others:
                outer = _place(pair, box)
                place = Place(
                    f"source-based route of {quote(policy.source)} of the {outer.object}",
                    f"{outer.path}.network.policies[{policy.source}]",
                )
                words = f"{policy.source} is an address of {quote(pair.boxes[1 - box].name)} itself"
                yield place.problem("source", words)


def _heartbeats(place: Place, pair: Pair) -> Iterator[Problem]:
    count = len(heartbeats(pair, 0))
    if count == 0:
        words = "must share a network in which both have a fixed address, so that each hears whether the other is alive"
        yield place.problem("boxes", words)
    elif count > MAX_HEARTBEATS:
        words = f"must not share more than {MAX_HEARTBEATS} networks with fixed addresses, but share {count}"
        yield place.problem("boxes", words)
