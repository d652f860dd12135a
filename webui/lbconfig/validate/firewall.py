"""The rules for the admin's own firewall rules, and which of them can never match."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator

from lbconfig.model import ports
from lbconfig.model.firewall import Action, Firewall, RateLimit, Rule, RuleProtocol, Where
from lbconfig.model.problem import Place, Problem, Unseen, each, number, quote
from lbconfig.model.snapshot import Snapshot
from lbconfig.model.spelling import looks
from lbconfig.validate.fields import MAX_ID, allowed_network, in_range, note, service_name

MAX_RULES = 500  # each packet of a new connection may be compared with each
MAX_NETWORKS = 10_000  # of one field; they become a set, so their number costs a packet nothing
MAX_ALL_NETWORKS = 100_000  # of all rules together
MAX_RATE = 1_000_000  # new connections
MAX_BURST = 10_000
_SEEN_BY_SERVICES = frozenset(
    {RuleProtocol.ANY, RuleProtocol.TCP, RuleProtocol.UDP, RuleProtocol.TCP_UDP, RuleProtocol.SCTP}
)


def firewall_problems(snapshot: Snapshot) -> Iterator[Problem]:
    firewall = snapshot.firewall
    if len(firewall.rules) > MAX_RULES:
        yield Place("firewall", "firewall").problem("rules", f"must not be more than {MAX_RULES}")
        return
    first_id, first_name, networks = Unseen(), Unseen(), 0
    interfaces = {interface.name for interface in snapshot.network.interfaces}
    for rule in firewall.rules:
        place = Place(f"firewall rule {quote(rule.name)}", f"firewall.rules[id={number(rule.id)}]")
        yield from _fields(place, rule, interfaces, snapshot.own_ports)
        yield from _limit(place.inner("limit"), rule)
        networks += len(rule.sources) + len(rule.destinations)
        if networks > MAX_ALL_NETWORKS:
            yield place.problem("sources", f"must not be more than {MAX_ALL_NETWORKS} together with those of all rules")
            return
        if not first_id(rule.id):
            yield place.problem("id", f"{number(rule.id)} is the id of another firewall rule as well")
        if not first_name.all(looks(rule.name)):
            whose = "is the name of another firewall rule as well, or looks like it"
            yield place.problem("name", f"{quote(rule.name)} {whose}")


def _fields(place: Place, rule: Rule, interfaces: set[str], own_ports: Collection[int]) -> Iterator[Problem]:
    sources, destinations = _networks(rule.sources), _networks(rule.destinations)
    yield from each(
        place,
        id=in_range(rule.id, 1, MAX_ID),
        name=service_name(rule.name),
        protocol=_protocol(rule),
        ports=_ports(rule, own_ports),
        interface=_interface(rule, interfaces),
        sources=sources,
        destinations=destinations,
        masquerade=_masquerade(rule),
        note=note(rule.note),
    )
    if not (sources or destinations or rule.families()):
        yield place.problem("destinations", "must have an address of the same kind, IPv4 or IPv6, as the sources")


def _networks(texts: tuple[str, ...]) -> str | None:
    if len(texts) > MAX_NETWORKS:
        return f"must not be more than {number(MAX_NETWORKS)}, and are {len(texts)}"
    first = Unseen()
    for text in texts:
        if sentence := allowed_network(text):
            return sentence
        if not first(text):
            return f"must not name {text} twice"
    return None


def _protocol(rule: Rule) -> str | None:
    if rule.where is Where.SERVICES and rule.protocol not in _SEEN_BY_SERVICES:
        return "must be one that virtual services have: TCP, UDP or SCTP"
    return None


def _ports(rule: Rule, own_ports: Collection[int]) -> str | None:
    if rule.ports and not rule.protocol.has_ports:
        return "must be empty: ports are for TCP, UDP and SCTP only"
    if sentence := ports.problem(rule.ports):
        return sentence
    if rule.where is Where.BOX and rule.protocol is RuleProtocol.TCP and rule.ports and _all_in(rule, own_ports):
        return f"{rule.ports} is the web UI or the sorry page of this box: the access list decides who may open it"
    return None


def _all_in(rule: Rule, own_ports: Collection[int]) -> bool:
    return all(first == last and first in own_ports for first, last in rule.port_ranges)


def _interface(rule: Rule, known: set[str]) -> str | None:
    if rule.interface and rule.interface not in known:
        return f"must be an interface of this box, or empty for all; {quote(rule.interface)} is none"
    return None


def _masquerade(rule: Rule) -> str | None:
    if rule.masquerade and not (rule.action is Action.ALLOW and rule.where is Where.THROUGH):
        return "is for rules that allow traffic through the box"
    return None


def _limit(place: Place, rule: Rule) -> Iterator[Problem]:
    limit = rule.limit
    if not limit.rate:
        if limit != RateLimit():  # One meaning, one spelling.
            yield place.problem("rate", "must be 1 or more, or the rest of the limit empty")
        return
    if rule.action is not Action.ALLOW:
        yield place.problem("rate", "is for rules that allow: what is above it is dropped")
    yield from each(place, rate=in_range(limit.rate, 1, MAX_RATE), burst=in_range(limit.burst, 1, MAX_BURST))


MANY = 200  # networks; longer lists are not compared
_Spans = tuple[list[int], list[int]]  # first and last addresses of networks, in order and none inside another


def covered(firewall: Firewall) -> dict[int, Rule]:
    """Of valid rules: the id of each that never decides, and the earlier rule that always does in its place."""
    found = {}
    for where in Where:
        earlier: list[_Reach] = []
        for rule in firewall.of(where):
            reach = _Reach(rule)
            if (above := next((one for one in earlier if one.covers(reach)), None)) is not None:
                found[rule.id] = above.rule
            earlier.append(reach)
    return found


class _Reach:
    """What a rule matches, ready to be compared many times."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.protocols = {*rule.protocol.parts}
        if rule.protocol is RuleProtocol.ICMP:
            self.protocols.add(RuleProtocol.PING)
        self.ports = rule.port_ranges
        self.places = [_spans(rule, field) for field in ("sources", "destinations")]

    def covers(self, other: _Reach) -> bool:
        rule = self.rule
        if rule.interface not in ("", other.rule.interface):
            return False
        if rule.protocol is not RuleProtocol.ANY and not other.protocols <= self.protocols:
            return False
        if self.ports and not (other.ports and all(_inside(one, self.ports) for one in other.ports)):
            return False
        families = other.rule.families()
        return all(_all_inside(mine, its, families) for mine, its in zip(self.places, other.places, strict=True))


def _spans(rule: Rule, field: str) -> dict[int, _Spans] | None:
    """By family; {} where the rule asks for none, None where there are too many."""
    texts = getattr(rule, field)
    if len(texts) > MANY:
        return None
    found = {}
    for kind in (4, 6) if texts else ():
        nets = rule.networks(field, kind)
        found[kind] = ([int(net.network_address) for net in nets], [int(net.broadcast_address) for net in nets])
    return found


def _inside(ports_: ports.Range, ranges: tuple[ports.Range, ...]) -> bool:
    return any(first <= ports_[0] and ports_[1] <= last for first, last in ranges)


def _all_inside(mine: dict[int, _Spans] | None, its: dict[int, _Spans] | None, families: tuple[int, ...]) -> bool:
    if not mine or not its:
        return mine == {}
    return all(_spans_inside(its[kind], mine[kind]) for kind in families)


def _spans_inside(its: _Spans, mine: _Spans) -> bool:
    for first, last in zip(*its, strict=True):
        place = bisect_right(mine[0], first) - 1
        if place < 0 or last > mine[1][place]:
            return False
    return True
