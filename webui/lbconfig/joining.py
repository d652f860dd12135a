"""Two boxes that are about to become a pair: what is proposed for them, and what is wrong with a choice.

The first box is the one that an admin has set up. Its clients, servers and admins know its addresses, so these become
floating, and each box gets others of its own. The second box gets the network of the first one by its own cards.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from lbconfig.model.addresses import IPNetwork, bits, parse_address, parse_interface
from lbconfig.model.network import Interface, Network
from lbconfig.model.pair import Pair, PairBox
from lbconfig.model.problem import Place, Problem, quote
from lbconfig.model.snapshot import Snapshot
from lbconfig.model.tuning import Tuning
from lbconfig.pair import BOXES
from lbconfig.validate.cards import Card, renamed
from lbconfig.validate.fields import interface_address
from lbconfig.validate.services import validate
from lbconfig.wanted.network import links, static_networks

NEAR = 6  # free addresses in each network that both boxes ask for before any is proposed
LABEL = 63  # characters between two dots of a host name (RFC 1123)
SEARCHED = 4096  # addresses that are looked at for a free one
CABLE_HOSTS = 6  # a network of so many addresses or fewer, which nothing else uses, is one for the pair cable
CABLE = ("169.254.65.1/30", "169.254.65.2/30")  # where a card that nothing uses becomes the pair cable
APART = 60  # seconds between the clocks from which on an admin is told
_INTERFACE = re.compile(r"pair\.boxes\[(?P<box>[01])\]\.network\.interfaces\[(?P<name>.*)\]\.(?P<field>[a-z_.]+)$")
_BOX = re.compile(r"pair\.boxes\[(?P<box>[01])\]\.(?P<field>cable|cable_address)$")


@dataclass(frozen=True, slots=True)
class Facts:
    """What a box tells the other one of itself before they are a pair."""

    version: str
    schema: str  # the digest of the schema of its snapshots
    cards: tuple[Card, ...]
    network: Network
    tuning: Tuning
    time: int  # by its clock, in Unix seconds


@dataclass(frozen=True, slots=True)
class End:
    """An interface of the first box that has fixed addresses, and what becomes of it."""

    interface: str
    floating: tuple[str, ...]  # the former addresses; none of a pair cable's
    own: tuple[tuple[str, ...], tuple[str, ...]]  # of the first box and of the second one


@dataclass(frozen=True, slots=True)
class Choice:
    """What an admin may change of the proposal."""

    hostname: str  # of the second box
    cards: tuple[tuple[str, str], ...]  # each card that the first box uses, and the second one's in its place
    ends: tuple[End, ...]
    cables: tuple[str, str]
    cable_addresses: tuple[str, str]  # empty: the first address of its own there


def differences(mine: Facts, theirs: Facts) -> Iterator[str]:
    """Sentences why the two cannot be a pair at all, as long as that is so. `theirs`: the second box's."""
    name = quote(theirs.network.hostname)
    if mine.version != theirs.version:
        yield (
            f"{name} runs version {quote(theirs.version)} and this box {quote(mine.version)}: "
            "install the same version on both boxes and try again."
        )
    elif mine.schema != theirs.schema:
        yield f"{name} has a different configuration format: install the same version on both boxes and try again."


def clocks(here: int, theirs: Facts) -> str:
    """A sentence where the clocks of the two are far apart; empty where they are not. `here`: the time of this box."""
    seconds = abs(here - theirs.time)
    if seconds <= APART:
        return ""
    minutes = seconds // 60
    days = f"{minutes // 1440} days" if minutes >= 2 * 1440 else f"{minutes} minutes"
    way = "behind" if theirs.time < here else "ahead"
    return f"The clock of {quote(theirs.network.hostname)} is {days} {way}: its log and its history would mislead."


# --- what is proposed ------------------------------------------------------------------------------------


def candidates(snapshot: Snapshot, facts: Facts) -> tuple[str, ...]:
    """Addresses that the boxes should ask for with ARP before one of them is proposed. Of IPv4, without a length."""
    used = _used(snapshot, facts)
    found: list[str] = []
    for interface in _fixed(snapshot.network):
        for text in interface.addresses:
            if ":" not in text:
                found += (one.partition("/")[0] for one in _free(text, used | set(found), NEAR))
    return tuple(found)


def proposed(snapshot: Snapshot, facts: Facts, taken: Collection[str] = ()) -> Choice:
    """What both boxes become unless somebody changes it. `snapshot`: of the first box; `taken`: what answered ARP."""
    names = _cards(snapshot.network, facts)
    used = _used(snapshot, facts) | set(taken)
    ends = []
    firsts = {one.partition("/")[0] for interface in _fixed(snapshot.network) for one in interface.addresses}
    for interface in _fixed(snapshot.network):
        there = names.get(interface.name, interface.name)
        dedicated = _is_cable(snapshot, interface)
        own: tuple[list[str], list[str]] = ([], [])
        for text in interface.addresses:
            kept = _theirs(facts.network, there, text, firsts)
            mine = [text] if dedicated else list(_free(text, used, 1))
            used |= {one.partition("/")[0] for one in mine}
            its = [kept] if kept else list(_free(text, used, 1))
            used |= {one.partition("/")[0] for one in its}
            own[0].extend(mine)
            own[1].extend(its)
        ends.append(End(interface.name, () if dedicated else interface.addresses, (tuple(own[0]), tuple(own[1]))))
    cable = next((end.interface for end in ends if not end.floating), ends[0].interface if ends else "")
    return Choice(
        _second_name(snapshot.network.hostname, facts.network.hostname),
        tuple(names.items()),
        tuple(ends),
        (cable, names.get(cable, cable)),
        ("", ""),
    )


def _second_name(first: str, second: str) -> str:
    """The second box's own name; where both have the same, as two new boxes do, the next one of it."""
    if first.casefold() != second.casefold():
        return second
    label, dot, domain = first.partition(".")
    stem = label.rstrip("0123456789")
    number = str(int(label[len(stem) :]) + 1) if stem != label else "-2"
    return f"{stem[: LABEL - len(number)]}{number}{dot}{domain}"


def joined(snapshot: Snapshot, facts: Facts, choice: Choice, pair: str, keys: tuple[str, str]) -> Snapshot:
    """The snapshot of both boxes. `pair`: its id; `keys`: the public ones."""
    swaps = dict(choice.cards)
    first, second = (_network(snapshot.network, choice, box) for box in BOXES)
    second = replace(renamed(second, swaps), hostname=choice.hostname)
    networks = [_with_cable(one, choice, box) for box, one in ((0, first), (1, second))]
    tunings = (snapshot.tuning, facts.tuning)
    boxes = [
        PairBox(networks[box], tunings[box], choice.cables[box], _cable_address(networks[box], choice, box), keys[box])
        for box in BOXES
    ]
    return replace(snapshot, network=Network(), tuning=Tuning(), pair=Pair(pair, (boxes[0], boxes[1])))


def _fixed(network: Network) -> list[Interface]:
    return [one for one in network.interfaces if one.on and one.addresses]


def _network(network: Network, choice: Choice, box: int) -> Network:
    """That of the first box, with the addresses that this box has."""
    ends = {end.interface: end for end in choice.ends}
    interfaces = tuple(
        replace(one, addresses=ends[one.name].own[box], floating=ends[one.name].floating) if one.name in ends else one
        for one in network.interfaces
    )
    return replace(network, interfaces=interfaces)


def _with_cable(network: Network, choice: Choice, box: int) -> Network:
    """With the address of the cable on a card that nothing else uses."""
    name, address = choice.cables[box], choice.cable_addresses[box]
    known = next((one for one in network.interfaces if one.name == name), None)
    if not name or not address or (known is not None and address in known.addresses):
        return network
    own = known or Interface(name)
    own = replace(own, on=True, addresses=(*own.addresses, address))
    others = [one for one in network.interfaces if one.name != name]
    return replace(network, interfaces=(*others, own))


def _cable_address(network: Network, choice: Choice, box: int) -> str:
    if choice.cable_addresses[box]:
        return choice.cable_addresses[box]
    cable = next((one for one in network.interfaces if one.name == choice.cables[box]), None)
    return cable.addresses[0] if cable and cable.addresses else ""


def _cards(network: Network, facts: Facts) -> dict[str, str]:
    """For each card of the first box the second one's: in the same network, else of the same name."""
    names = [link.name for link in links(network) if not link.kind]
    used = {one.name: one for one in network.interfaces}
    there = {net: one.name for one in reversed(_fixed(facts.network)) for net in _networks(one.addresses)}
    found: dict[str, str] = {}
    for name in names:
        nets = _networks(used[name].addresses) if name in used else []
        place = next((there[net] for net in nets if net in there), name)
        found[name] = place if place not in found.values() else name
    return found


def _theirs(network: Network, name: str, text: str, known: Collection[str]) -> str:
    """The second box's own address in this network, where it has one already that the first one has not."""
    wanted = _networks((text,))
    here = (one for one in _fixed(network) if one.name == name)
    others = (other for one in here for other in one.addresses if other.partition("/")[0] not in known)
    return next((other for other in others if _networks((other,)) == wanted), "")


def _is_cable(snapshot: Snapshot, interface: Interface) -> bool:
    """Whether nothing but the pair can use this network: it is tiny, and nobody is in it."""
    nets = static_networks(interface)
    network = snapshot.network
    others = {vip for one in snapshot.services for vip in one.vips}
    others |= {one.address for service in snapshot.services for one in service.machines}
    others |= {network.gateway, network.gateway6, *(route.via for route in network.routes)} - {""}
    inside = (parse_address(one) in net for one in _readable(others) for net in nets)
    return all(net.num_addresses - 2 <= CABLE_HOSTS for net in nets) and not any(inside)


def _used(snapshot: Snapshot, facts: Facts) -> set[str]:
    """Addresses that somebody has, as far as the two configurations say."""
    used: set[str] = set()
    for network in (snapshot.network, facts.network):
        used |= {text.partition("/")[0] for one in network.interfaces for text in one.addresses}
        used |= {network.gateway, network.gateway6, *network.dns, *network.ntp}
        used |= {*(one.via for one in network.routes), *(one.via for one in network.policies)}
    for service in snapshot.services:
        used |= {*service.vips, *(one.address for one in service.machines)}
    return used


def _free(text: str, used: Collection[str], count: int) -> Iterator[str]:
    """The next addresses after this one, in its network, that nobody has; with the length."""
    own = parse_interface(text)
    net = own.network
    first, last = int(net.network_address), int(net.broadcast_address)
    edges = {first, last} if net.num_addresses > 2 else set()
    for step in range(1, min(net.num_addresses, SEARCHED)):
        number = first + (int(own.ip) - first + step) % net.num_addresses
        address = str(type(own.ip)(number))
        if number not in edges and address not in used:
            yield f"{address}/{net.prefixlen}"
            count -= 1
            if not count:
                return


def _networks(texts: Iterable[str]) -> list[IPNetwork]:
    return [parse_interface(text).network for text in texts if interface_address(text) is None]


def _readable(addresses: Iterable[str]) -> Iterator[str]:
    return (one for one in addresses if interface_address(f"{one}/{bits(one)}") is None)


# --- what is wrong with it ---------------------------------------------------------------------------------


def problems(
    snapshot: Snapshot,
    facts: Facts,
    choice: Choice,
    pair: str,
    keys: tuple[str, str],
    taken: Collection[str] = (),
) -> list[Problem]:
    """Each with the path of what is to be changed in the choice, such as "ends[0].own[1]"; others name the pair."""
    found = [*_strange(facts, choice), *_taken(snapshot, facts, choice, taken)]
    told = {one.path for one in found}
    for one in validate(joined(snapshot, facts, choice, pair, keys)):
        path = _path(one, choice)
        if path not in told:
            found.append(replace(one, path=path))
    return found


def _strange(facts: Facts, choice: Choice) -> Iterator[Problem]:
    """Cards that the second box does not have, and networks without an address for each box."""
    names = [there for _, there in choice.cards]
    there = {card.name for card in facts.cards}
    spare = ", ".join(card.name for card in facts.cards if not card.kind and card.name not in names and card.mac)
    for number, (name, other) in enumerate(choice.cards):
        place = Place(f"card {quote(name)}", f"cards[{number}]")
        if other not in there:
            rest = f"it has {spare}, which nothing uses" if spare else "it has no other card"
            yield Problem(place.object, "card", f"{quote(other)} is not in the second box; {rest}", place.path)
        elif names.index(other) != number:
            yield Problem(place.object, "card", f"{quote(other)} stands for another card already", place.path)
    made = {end.interface for end in choice.ends} - {name for name, _ in choice.cards}
    if choice.cables[1] not in there | made:
        words = f"{quote(choice.cables[1])} is not in the second box"
        yield Problem("pair cable", "cable", words, "cables[1]")
    for number, end in enumerate(choice.ends):
        for box in BOXES:
            if not end.own[box]:
                words = "must have an address for each box: enter one that nobody uses in this network"
                yield Problem(f"interface {quote(end.interface)}", "addresses", words, f"ends[{number}].own[{box}]")


def _taken(snapshot: Snapshot, facts: Facts, choice: Choice, taken: Collection[str]) -> Iterator[Problem]:
    """Addresses of a service, and those that somebody answered for, unless that is the box that has them already."""
    used = {one.address: service.name for service in snapshot.services for one in service.machines}
    used |= {vip: service.name for service in snapshot.services for vip in service.vips}
    theirs = {text.partition("/")[0] for one in facts.network.interfaces for text in one.addresses}
    mine = {text.partition("/")[0] for one in snapshot.network.interfaces for text in one.addresses}
    for number, end in enumerate(choice.ends):
        for box, known in ((0, mine), (1, theirs)):
            for text in end.own[box]:
                address, words = text.partition("/")[0], ""
                if address in used:
                    words = f"{address} is an address of virtual service {quote(used[address])}"
                elif address in taken and address not in known:
                    words = f"{address} is taken: somebody in that network answers for it"
                if words:
                    place = f"ends[{number}].own[{box}]"
                    yield Problem(f"interface {quote(end.interface)}", "addresses", words, place)


def _path(problem: Problem, choice: Choice) -> str:
    """Where in the choice it belongs."""
    if problem.path == "pair.boxes[1].network.hostname":
        return "hostname"
    if match := _BOX.match(problem.path):
        where = "cables" if match["field"] == "cable" else "cable_addresses"
        return f"{where}[{match['box']}]"
    match = _INTERFACE.match(problem.path)
    if match is None:
        return problem.path
    box, swaps = int(match["box"]), dict(choice.cards)
    for number, end in enumerate(choice.ends):
        if match["name"] == (end.interface if box == 0 else swaps.get(end.interface, end.interface)):
            return f"ends[{number}].own[{box}]"
    return f"cable_addresses[{box}]" if match["name"] == choice.cables[box] else problem.path
