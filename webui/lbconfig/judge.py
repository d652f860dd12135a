"""Would this packet pass, and by which rule?

A pure function over a valid snapshot. It follows the chains of render/nftables.py and render/own_rules.py in their
order; tests/unit/lbconfig/test_judge_packets.py sends the same packets through the real rules in a real kernel.
It judges the first packet of a connection: later ones belong to what is open.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from lbconfig.model import icmp
from lbconfig.model.addresses import contains, parse_address, parse_network, version
from lbconfig.model.firewall import Action, Packet, Rule, RuleProtocol, Where
from lbconfig.model.icmp import Care, Message
from lbconfig.model.problem import quote
from lbconfig.model.snapshot import Snapshot, VirtualService
from lbconfig.pair import heartbeats, peers_addresses, sides, views
from lbconfig.validate.reach import nearest
from lbconfig.wanted import network as interfaces
from lbconfig.wanted import settings as sysctl
from lbconfig.wanted.netstate import MAIN, NetworkState, own_table
from lbconfig.wanted.pair_link import ADDRESSES, CHANNEL_PORT, LINK, LINK_PORT, SYNC_PORT


class Fate(StrEnum):
    PASSED = "passed"
    DROPPED = "dropped"  # the sender is told nothing
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class Verdict:
    fate: Fate
    words: str  # a sentence: what decided, and what becomes of the packet
    where: Where | None  # whose rules were asked; None: it does not come so far
    rule: Rule | None = None  # the admin's own one that decided; None: the box's
    service: VirtualService | None = None  # that gets it


def judge(snapshot: Snapshot, packet: Packet, leased: Collection[str] = ()) -> Verdict:
    """`leased`: addresses of the box that the snapshot does not name, from DHCP. All of them without their length.

    Of a pair the box is the first one, or that whose view the snapshot is; and it leads.
    """
    snapshot = views(snapshot)[0]
    used = [one for one in snapshot.network.interfaces if one.on]
    own = {text.partition("/")[0] for one in used for text in (*one.addresses, *one.floating)} | {*leased}
    vips = {vip for one in snapshot.enabled_services for vip in one.vips}
    if reason := _forged(snapshot, packet, own | vips):
        return Verdict(Fate.DROPPED, reason, None)
    if reason := _by_link(snapshot, packet):
        return Verdict(Fate.DROPPED, reason, None)
    link = {_link_address(snapshot, own=True)}
    if packet.destination in own | vips | link or parse_address(packet.destination).is_multicast:
        return _to_the_box(_Question(snapshot, packet, own, vips))
    return _through(_Question(snapshot, packet, own, vips))


class _Question(NamedTuple):
    snapshot: Snapshot
    packet: Packet
    own: set[str]
    vips: set[str]

    @property
    def is_tcp(self) -> bool:
        return self.packet.protocol is RuleProtocol.TCP


def _forged(snapshot: Snapshot, packet: Packet, own: set[str]) -> str:
    """Why the kernel drops it before any rule; "" where it does not. Of IPv4 only (rp_filter)."""
    if version(packet.source) == 6 or (packet.interface == LINK and snapshot.pair):
        return ""
    if packet.source in own:
        return f"{packet.source} is this box's own address: the kernel drops a packet that comes with it from outside."
    homes = _ways_back(snapshot, packet)
    if homes is None or not packet.interface or packet.interface in homes or not sysctl.checks_senders(snapshot):
        return ""
    if homes and packet.interface in sysctl.loose(snapshot):
        return ""
    way = f"is by {homes[0]}" if homes else "is not known"
    return (
        f"The way back to {packet.source} {way}: the kernel drops a packet that comes with this address by "
        f"{packet.interface}."
    )


def _ways_back(snapshot: Snapshot, packet: Packet) -> list[str] | None:
    """The interface by which an answer leaves, if there is one; None where DHCP decides.

    As the kernel looks it up: the longest prefix, of the same ones the lowest metric; and where only default routes
    are left, an address with a source-based route has that one.
    """
    state = interfaces.wanted(snapshot)
    routes = [route for route in state.routes if route.version == 4]
    around = [route for route in routes if route.table == MAIN and not route.is_default]
    if near := nearest(snapshot, around, packet.source):
        home, connected = near
        return None if not connected and _asks(state, packet, home) else [home]
    own = own_table(packet.destination)
    for table in (own, MAIN):
        for route in routes:
            if route.table == table and route.is_default:
                return None if _asks(state, packet, route.device) else [route.device]
    return None if state.dhcp else []


def _asks(state: NetworkState, packet: Packet, home: str) -> bool:
    """Whether the sender may be in the network that DHCP brings to the interface where the packet comes in."""
    return packet.interface != home and packet.interface in state.dhcp


def _to_the_box(question: _Question) -> Verdict:
    snapshot, packet = question.snapshot, question.packet
    if service := _service(snapshot, packet):
        name = f"virtual service {quote(service.name)}"
        decided = _by_rules(question, Where.SERVICES, f"It goes to {name}.")
        if decided is None:
            decided = Verdict(Fate.PASSED, f"It goes to {name}, which is open to everybody.", Where.SERVICES)
        if decided.fate is Fate.PASSED:
            return Verdict(Fate.PASSED, decided.words, Where.SERVICES, decided.rule, service)
        return decided
    if decided := _from_peer(snapshot, packet):
        return decided
    if _is_dhcp(question):
        return Verdict(Fate.PASSED, "It is an answer of a DHCP server, for an interface that asks for one.", Where.BOX)
    if question.is_tcp and packet.port in snapshot.own_ports:
        return _to_own_port(question)
    if decided := _as_message(packet):
        return decided
    if decided := _by_rules(question, Where.BOX, "It reaches the box."):
        return decided
    if packet.protocol is RuleProtocol.PING:
        return Verdict(Fate.PASSED, "The box answers pings, at most 50 a second.", Where.BOX)
    return Verdict(Fate.DROPPED, "No rule allows it: what nobody allowed is dropped.", Where.BOX)


def _link_address(snapshot: Snapshot, own: bool) -> str:
    """The address of the box, or that of its peer, on the link between them; "" without a pair."""
    both = sides(snapshot)
    return ADDRESSES[both.number if own else 1 - both.number].partition("/")[0] if both else ""


def _by_link(snapshot: Snapshot, packet: Packet) -> str:
    """Why nothing of it comes by the link between the boxes of a pair; "" where it may."""
    both = sides(snapshot)
    if both is None or packet.interface != LINK:
        return ""
    if packet.source != _link_address(snapshot, own=False):
        return f"By {LINK} comes only what has {both.peer.name}'s address there: WireGuard drops the rest."
    return ""


def _from_peer(snapshot: Snapshot, packet: Packet) -> Verdict | None:
    """What the two boxes of a pair say to each other; nobody else may say it, whatever the admin's rules allow."""
    both = sides(snapshot)
    if both is None or snapshot.pair is None:
        return None
    udp, peer = packet.protocol is RuleProtocol.UDP, both.peer.name
    if packet.interface == LINK:
        ports = {RuleProtocol.UDP: SYNC_PORT, RuleProtocol.TCP: CHANNEL_PORT}
        answers = packet.protocol is RuleProtocol.ICMP and packet.icmp in _OF_PEER
        said = packet.protocol is RuleProtocol.PING or answers
        if said or ports.get(packet.protocol) == packet.port:
            return Verdict(Fate.PASSED, f"It is a message of {peer}, the other box of the pair.", Where.BOX)
        return Verdict(Fate.DROPPED, f"By {LINK} the boxes of the pair take their own messages only.", Where.BOX)
    if udp and packet.port == SYNC_PORT:
        return Verdict(Fate.DROPPED, f"Connections are taken from {peer} by {LINK} only.", Where.BOX)
    if udp and packet.port == LINK_PORT:
        cable = (both.own.cable, both.peer.cable_address.partition("/")[0])
        if (packet.interface, packet.source) == cable:
            return Verdict(Fate.PASSED, f"It belongs to the link to {peer}.", Where.BOX)
        return Verdict(Fate.DROPPED, f"The link to {peer} is over the pair cable only.", Where.BOX)
    if packet.protocol is RuleProtocol.VRRP:
        beats = [(one.interface, one.peer) for one in heartbeats(snapshot.pair, both.number)]
        if (packet.interface, packet.source) in beats:
            return Verdict(Fate.PASSED, f"It is an advertisement of {peer}.", Where.BOX)
        return Verdict(Fate.DROPPED, f"Advertisements are taken from {peer} only, at its own addresses.", Where.BOX)
    return None


_OF_PEER = (0, 3)  # types of ICMP: the answers to pings, and that something is not reached


def _as_message(packet: Packet) -> Verdict | None:
    """What is decided by the message of ICMP alone, before the admin's rules."""
    message = _message(packet)
    care = message.care if message else Care.RULES
    if care is Care.TAKEN:
        return Verdict(Fate.PASSED, "The box needs it to live in its network; no rule can forbid it.", Where.BOX)
    if care is Care.NEAR and _in_any(packet.source, icmp.NEAR_SOURCES):
        words = "Switches and routers learn from it who listens to which group; no rule can forbid it."
        return Verdict(Fate.PASSED, words, Where.BOX)
    if care is Care.SILENT:
        words = "The box takes routes and addresses from its configuration only, and is nobody's router for IPv6."
        return Verdict(Fate.DROPPED, words, Where.BOX)
    return None


def _message(packet: Packet) -> Message | None:
    return icmp.message(version(packet.source), packet.icmp) if packet.protocol is RuleProtocol.ICMP else None


def _to_own_port(question: _Question) -> Verdict:
    packet = question.packet
    if packet.port != question.snapshot.management.port:
        return Verdict(Fate.DROPPED, "The sorry page is reached by its service only.", Where.BOX)
    if packet.destination in question.vips - question.own:
        return Verdict(Fate.DROPPED, "The web UI does not answer at virtual addresses.", Where.BOX)
    management = question.snapshot.management
    if not management.answers_on(packet.interface):
        only = f"The web UI answers on {' and '.join(management.interfaces)} only, by the list of interfaces"
        return Verdict(Fate.DROPPED, f"{only}; this packet arrives on {packet.interface}.", Where.BOX)
    if _in_any(packet.source, management.allow):
        return Verdict(Fate.PASSED, "The access list lets it open the web UI.", Where.BOX)
    return Verdict(Fate.DROPPED, f"The access list for the web UI does not contain {packet.source}.", Where.BOX)


def _is_dhcp(question: _Question) -> bool:
    packet = question.packet
    asks = {interface.name for interface in question.snapshot.network.interfaces if interface.on and interface.dhcp}
    places = (packet.source_port, packet.port) == (67, 68)
    return packet.protocol is RuleProtocol.UDP and places and packet.interface in asks


def _through(question: _Question) -> Verdict:
    snapshot, packet = question.snapshot, question.packet
    if packet.interface == LINK or packet.destination == _link_address(snapshot, own=False):
        return Verdict(Fate.DROPPED, f"Nothing is routed by {LINK}, the link to the other box.", Where.THROUGH)
    if packet.destination in peers_addresses(snapshot):
        return Verdict(Fate.PASSED, "It is routed to the other box of the pair, which may have asked.", Where.THROUGH)
    if _is_reply(snapshot, packet):
        return Verdict(
            Fate.DROPPED,
            "It comes from the address and port of a real server: only answers of balanced connections leave from "
            "there, and this packet begins a new one.",
            None,
        )
    message = _message(packet)
    if message and message.error and (snapshot.firewall.of(Where.THROUGH) or any(snapshot.enabled_services)):
        return Verdict(Fate.PASSED, "It tells a sender what became of an earlier packet.", Where.THROUGH)
    if message and (message.version, message.type) in _ANSWERS:
        return Verdict(Fate.DROPPED, "It belongs to nothing that passed before.", Where.THROUGH)
    if decided := _by_rules(question, Where.THROUGH, f"It is routed to {packet.destination}."):
        return decided
    return Verdict(Fate.DROPPED, "No rule allows it: the box routes only what a rule allows.", Where.THROUGH)


# Version and type of what connection tracking finds invalid where it knows nothing that it belongs to.
_ANSWERS = {(4, 0), (4, 5), (6, 129), (6, 137)}


def _is_reply(snapshot: Snapshot, packet: Packet) -> bool:
    return any(
        server.address == packet.source
        and packet.protocol in service.protocol.parts
        and _covers(((server.port, server.port),) if server.port else service.port_ranges, packet.source_port)
        for service in snapshot.enabled_services
        for server in service.machines
    )


def _service(snapshot: Snapshot, packet: Packet) -> VirtualService | None:
    return next(
        (
            one
            for one in snapshot.enabled_services
            if packet.destination in one.vips
            and packet.protocol in one.protocol.parts
            and _covers(one.port_ranges, packet.port)
        ),
        None,
    )


def _by_rules(question: _Question, where: Where, passed: str) -> Verdict | None:
    """The first rule of the admin that matches."""
    for rule in question.snapshot.firewall.of(where):
        if matches(rule, question.packet):
            fate, words = _FATES[rule.action]
            said = f"Rule {quote(rule.name)} {words} {_limit(rule)}{passed if fate is Fate.PASSED else ''}".strip()
            return Verdict(fate, said, where, rule)
    return None


_FATES = {
    Action.ALLOW: (Fate.PASSED, "allows it."),
    Action.DENY: (Fate.DROPPED, "denies it; the sender is told nothing."),
    Action.REJECT: (Fate.REJECTED, "rejects it; the sender is told so."),
}


def _limit(rule: Rule) -> str:
    return "That is, until its limit is reached. " if rule.limit.rate else ""


def matches(rule: Rule, packet: Packet) -> bool:
    """Whether the fields of the rule fit, whatever place it has."""
    tests: tuple[Callable[[], bool], ...] = (
        lambda: rule.interface in ("", packet.interface),
        lambda: _protocol_fits(rule.protocol, packet.protocol),
        lambda: not rule.ports or _covers(rule.port_ranges, packet.port),
        lambda: not rule.sources or _in_any(packet.source, rule.sources),
        lambda: not rule.destinations or _in_any(packet.destination, rule.destinations),
    )
    return all(test() for test in tests)


def _protocol_fits(wanted: RuleProtocol, given: RuleProtocol) -> bool:
    if wanted is RuleProtocol.ICMP:
        return given in (RuleProtocol.PING, RuleProtocol.ICMP)
    return wanted is RuleProtocol.ANY or given in wanted.parts


def _covers(ranges: tuple[tuple[int, int], ...], port: int) -> bool:
    return any(first <= port <= last for first, last in ranges)


def _in_any(address: str, networks: Collection[str]) -> bool:
    return any(contains(parse_network(text), address) for text in networks)
