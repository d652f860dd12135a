"""Firewall rules and packets, drawn so that they often meet."""

import dataclasses
import ipaddress

from hypothesis import strategies as st

from lbconfig.model.addresses import contains
from lbconfig.model.firewall import Action, Firewall, Packet, Per, RateLimit, Rule, RuleProtocol, Where

SOURCES = [
    *("192.168.50.2", "192.168.50.77", "10.2.0.11", "203.0.113.7", "192.168.50.101"),
    *("2001:db8:50::2", "2001:db8:2::11", "2001:db8:9::1", "2001:db8:50::100"),
]
BEHIND = {"10.2.0.11", "2001:db8:2::11"}
DESTINATIONS = [
    *("192.168.50.1", "10.2.0.1", "192.168.50.100", "192.168.50.101", "10.2.0.11", "198.51.100.9"),
    *("2001:db8:50::1", "2001:db8:50::100", "2001:db8:2::11", "2001:db8:99::9"),
]
PORTS = [22, 53, 80, 443, 7000, 7001, 64503]
INTERFACES = ["up0", "down0"]
NETWORKS = [
    *("0.0.0.0/0", "192.168.50.0/24", "192.168.50.2/32", "192.168.50.100/32", "10.0.0.0/8", "10.2.0.0/24"),
    *("203.0.113.0/24", "198.51.100.0/24", "::/0", "2001:db8:50::/48", "2001:db8:50::2/128", "2001:db8:2::/64"),
]

networks = st.just(()) | st.lists(st.sampled_from(NETWORKS), max_size=4, unique=True).map(tuple)
names = st.integers(1, 999).map("Rule_{}. -x".format)  # drawn in one piece, as there is room for so many draws only
limits = st.builds(RateLimit, st.integers(1, 1000), st.sampled_from(Per), st.integers(20, 100), st.booleans())


def rules(interfaces: list[str]) -> st.SearchStrategy[Rule]:
    return st.builds(
        Rule,
        st.integers(1, 2**53 - 1),
        names,
        st.sampled_from(Action),
        st.sampled_from(Where),
        networks,
        networks,
        st.just(RuleProtocol.ANY) | st.sampled_from(RuleProtocol),
        st.sampled_from(["", "", "22", "80,7000-7001", "1-65535", "443"]),
        st.sampled_from(["", "", "", *interfaces]),
        st.just(RateLimit()) | limits,
        st.booleans(),
        st.booleans(),
        st.sampled_from([True, True, True, True, False]),
        st.sampled_from(["", "a note; with $(things)"]),
    ).map(possible)


def possible(rule: Rule) -> Rule:
    """Without what it cannot have."""
    protocol = rule.protocol
    if rule.where is Where.SERVICES and not (protocol.has_ports or protocol is RuleProtocol.ANY):
        protocol = RuleProtocol.TCP
    own = rule.where is Where.BOX and protocol is RuleProtocol.TCP and rule.ports == "443"
    allows = rule.action is Action.ALLOW
    return dataclasses.replace(
        rule,
        protocol=protocol,
        ports=rule.ports if protocol.has_ports and not own else "",
        limit=rule.limit if allows else RateLimit(),
        masquerade=rule.masquerade and allows and rule.where is Where.THROUGH,
        destinations=rule.destinations if rule.families() else (),
    )


def firewalls(interfaces: list[str], most: int = 6) -> st.SearchStrategy[Firewall]:
    return st.lists(rules(interfaces), max_size=most).map(distinct)


def distinct(found: list[Rule]) -> Firewall:
    by_id = {rule.id: rule for rule in found}
    return Firewall(tuple({rule.name.casefold(): rule for rule in by_id.values()}.values()))


PLACES = [
    *(("192.168.50.100", RuleProtocol.TCP, 80), ("192.168.50.101", RuleProtocol.UDP, 7001)),
    *(("2001:db8:50::100", RuleProtocol.TCP, 443), ("192.168.50.101", RuleProtocol.SCTP, 80)),
]  # of virtual services
# What no packet is of; messages of ICMP have a test of their own.
ABSTRACT = (RuleProtocol.ANY, RuleProtocol.TCP_UDP, RuleProtocol.ICMP)
AT_HOME = {
    Where.BOX: ["192.168.50.1", "10.2.0.1", "2001:db8:50::1", "192.168.50.100"],
    Where.THROUGH: ["198.51.100.9", "192.168.50.2", "2001:db8:99::9"],
}


@st.composite
def packets(draw: st.DrawFn) -> Packet:
    source = draw(st.sampled_from(SOURCES))
    same = [one for one in DESTINATIONS if (":" in one) == (":" in source) and one != source]
    protocol = draw(st.just(RuleProtocol.TCP) | st.sampled_from([one for one in RuleProtocol if one not in ABSTRACT]))
    port = draw(st.sampled_from(PORTS)) if protocol.has_ports else 0
    interface = draw(st.just(_home(source)) | st.sampled_from(INTERFACES))
    return Packet(source, draw(st.sampled_from(same)), protocol, port, interface)


@st.composite
def aimed(draw: st.DrawFn, rule: Rule) -> Packet:
    """One that the rule is likely to match."""
    if rule.where is Where.SERVICES:
        target, protocol, port = draw(st.sampled_from(PLACES))
    else:
        target = draw(st.sampled_from(_inside(AT_HOME[rule.where], rule.destinations)))
        protocol = draw(st.sampled_from([one for one in rule.protocol.parts if one not in ABSTRACT] or [*NO_PORTS]))
        port = draw(st.sampled_from(PORTS)) if protocol.has_ports else 0
    same = [one for one in SOURCES if (":" in one) == (":" in target) and one != target]
    source = draw(st.sampled_from(_inside(same, rule.sources)))
    return Packet(source, target, protocol, port, _home(source))


NO_PORTS = (RuleProtocol.PING, RuleProtocol.ESP)


def _inside(addresses: list[str], networks: tuple[str, ...]) -> list[str]:
    nets = [ipaddress.ip_network(text) for text in networks]
    return [one for one in addresses if not nets or any(contains(net, one) for net in nets)] or addresses


def _home(source: str) -> str:
    return "down0" if source in BEHIND else "up0"
