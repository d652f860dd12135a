"""VLANs, bonds, bridges, routes, names and time: each wrong value is refused at its field."""

import dataclasses

import pytest
from lbconfig_hostile import ADDRESSES, HOSTILE
from tests.texts import NO_INTERFACE, no_address, twice, within

from lbconfig.model.snapshot import (
    Bond,
    BondMode,
    Bridge,
    Interface,
    Management,
    Network,
    Policy,
    PolicyRoute,
    RealServer,
    Snapshot,
    StaticRoute,
    VirtualService,
    Vlan,
)
from lbconfig.validate.routes import MAX_METRIC
from lbconfig.validate.services import admin_problem, validate

HOME = Interface("eth0", addresses=("10.0.0.2/24", "2001:db8::2/64"))
ACCESS = Management(("0.0.0.0/0", "::/0"))


def with_interfaces(*more: Interface) -> Snapshot:
    return Snapshot(network=Network(interfaces=(HOME, *more)), management=ACCESS)


def with_network(**fields) -> Snapshot:
    return Snapshot(network=Network(**{"interfaces": (HOME,)} | fields), management=ACCESS)


def bond(*members: str, **fields) -> Interface:
    return Interface("bond0", bond=Bond(members, **fields))


def vlan(name: str = "v7", parent: str = "eth0", number: int = 7, **fields) -> Interface:
    return Interface(name, vlan=Vlan(parent, number), **fields)


def bridge(*members: str) -> Interface:
    return Interface("br0", bridge=Bridge(members))


GOOD = {
    "a VLAN on a bond, in a bridge": with_interfaces(bond("eth1", "eth2"), vlan("v7", "bond0"), bridge("v7", "eth3")),
    "the longest name": with_interfaces(vlan("v" * 15)),
    "the ends of VLAN numbers": with_interfaces(vlan("a", number=1), vlan("b", number=4094)),
    "one number on two parents": with_interfaces(vlan("a"), vlan("b", "eth1")),
    "a VLAN in a VLAN": with_interfaces(vlan("a"), vlan("b", "a")),
    "a bond without members": with_interfaces(bond()),
    "an MTU as large as the parent's": with_interfaces(Interface("eth1", mtu=9000), vlan("a", "eth1", mtu=9000)),
    "IPv6 with the least": with_interfaces(Interface("eth1", mtu=1280, addresses=("2001:db8:1::1/64",))),
    "a small MTU without IPv6": with_interfaces(Interface("eth1", mtu=576, addresses=("10.1.0.1/24",))),
    "what is switched off may overlap": with_interfaces(Interface("eth1", on=False, addresses=("10.0.0.3/24",))),
    "a router of IPv6 by its link": with_network(routes=(StaticRoute("2001:db8:9::/48", "fe80::1", "eth0"),)),
    "two ways of different metric": with_network(
        routes=(StaticRoute("10.9.0.0/16", "10.0.0.8"), StaticRoute("10.9.0.0/16", "10.0.0.9", metric=5))
    ),
    "a network on the link": with_network(routes=(StaticRoute("10.9.0.0/16", interface="eth0"),)),
    "a way out of a VIP": with_network(policies=(PolicyRoute("10.0.0.80", "10.0.0.9"),)),
    "names and time": with_network(dns=("10.0.0.3", "2001:db8::3"), search=("example.org",), ntp=("pool.ntp.org",)),
}


@pytest.mark.parametrize("name", GOOD)
def test_what_is_possible_is_taken(name):
    assert validate(GOOD[name]) == []


def at(name: str, field: str) -> str:
    return f"network.interfaces[{name}].{field}"


BAD = [
    (with_interfaces(vlan(number=0)), at("v7", "vlan.id"), within(1, 4094, 0)),
    (with_interfaces(vlan(number=10**5000)), at("v7", "vlan.id"), "more than 20 digits"),
    (with_interfaces(vlan("a"), vlan("b")), at("b", "vlan.id"), "is VLAN 7 of 'eth0' already"),
    (with_interfaces(vlan("v7", "v7")), at("v7", "vlan.parent"), "cannot be its own parent"),
    (with_interfaces(bond("eth1"), vlan("a", "eth1")), at("a", "vlan.parent"), "is a member of 'bond0'"),
    (with_interfaces(Interface("eth1", on=False), vlan("a", "eth1")), at("a", "vlan.parent"), "switched off"),
    (with_interfaces(bond("eth1", "eth1")), at("bond0", "bond.members"), "named twice"),
    (with_interfaces(bond("bond0")), at("bond0", "bond.members"), "a member of itself"),
    (with_interfaces(bond("eth1"), bridge("eth1")), at("br0", "bridge.members"), "member of 'bond0' already"),
    (with_interfaces(bond("v7"), vlan()), at("bond0", "bond.members"), "is not a network card"),
    (with_interfaces(bridge("x"), Interface("x", bridge=Bridge())), at("br0", "bridge.members"), "is a bridge"),
    (with_interfaces(bond(*(f"e{n}" for n in range(33)))), at("bond0", "bond.members"), "more than 32"),
    (with_interfaces(bond("eth0")), at("eth0", "addresses"), "a member has none"),
    (with_interfaces(bond("eth1"), Interface("eth1", dhcp=True)), at("eth1", "dhcp"), "DHCP is asked there"),
    (with_interfaces(bond("eth1"), Interface("eth1", on=False)), at("eth1", "on"), "cannot be switched off"),
    (with_interfaces(bond("eth1"), Interface("eth1", mtu=1400)), at("eth1", "mtu"), "has its MTU"),
    (with_interfaces(bond("eth1", primary="eth2")), at("bond0", "bond.primary"), "not one of its members"),
    (
        with_interfaces(bond("eth1", primary="eth1", mode=BondMode.LACP)),
        at("bond0", "bond.primary"),
        "has no primary member",
    ),
    (with_interfaces(bond("eth1", miimon=0)), at("bond0", "bond.miimon"), within(10, 10000, 0)),
    (with_interfaces(vlan("a", "br0"), bridge("a")), at("a", "vlan"), "contains itself"),
    (with_interfaces(dataclasses.replace(vlan(), bridge=Bridge())), at("v7", "bridge"), "an interface is one thing"),
    (with_interfaces(Interface("eth1", mtu=1)), at("eth1", "mtu"), within(576, 9216, 1)),
    (with_interfaces(Interface("eth1", mtu=1500), vlan("a", "eth1", mtu=1501)), at("a", "mtu"), "not be larger than"),
    (
        with_interfaces(Interface("eth1", mtu=1279, addresses=("2001:db8:1::1/64",))),
        at("eth1", "mtu"),
        "IPv6 needs at least 1280",
    ),
    (with_interfaces(Interface("eth1", note="a" * 501)), at("eth1", "note"), "longer than 500"),
    (with_interfaces(*(Interface(f"e{n}") for n in range(512))), "network.interfaces", "more than 512"),
    (
        with_network(routes=(StaticRoute("10.9.0.1/16", "10.0.0.9"),)),
        "network.routes[10.9.0.1/16].destination",
        "meant to be 10.9.0.0/16",
    ),
    (with_network(routes=(StaticRoute("0.0.0.0/0", "10.0.0.9"),)), "network.routes[0.0.0.0/0].destination", "gateway"),
    (
        with_network(routes=(StaticRoute("10.0.0.0/24", "10.0.0.9"),)),
        "network.routes[10.0.0.0/24].destination",
        "this box",
    ),
    (with_network(routes=(StaticRoute("10.9.0.0/16"),)), "network.routes[10.9.0.0/16].via", "must name a router"),
    (
        with_network(routes=(StaticRoute("10.9.0.0/16", "10.7.0.9"),)),
        "network.routes[10.9.0.0/16].via",
        "in no network",
    ),
    (with_network(routes=(StaticRoute("10.9.0.0/16", "10.0.0.2"),)), "network.routes[10.9.0.0/16].via", "own address"),
    (with_network(routes=(StaticRoute("10.9.0.0/16", "2001:db8::9"),)), "network.routes[10.9.0.0/16].via", "an IPv4"),
    (
        with_network(routes=(StaticRoute("2001:db8:9::/48", "fe80::1"),)),
        "network.routes[2001:db8:9::/48].via",
        "name the interface",
    ),
    (
        with_network(routes=(StaticRoute("10.9.0.0/16", "10.0.0.9", "eth9"),)),
        "network.routes[10.9.0.0/16].interface",
        f"'eth9' {NO_INTERFACE}",
    ),
    (
        with_network(routes=(StaticRoute("10.9.0.0/16", "10.0.0.9"), StaticRoute("10.9.0.0/16", "10.0.0.8"))),
        "network.routes[10.9.0.0/16].destination",
        "another route leads there",
    ),
    (
        with_network(routes=(StaticRoute("10.9.0.0/16", "10.0.0.9", metric=-1),)),
        "network.routes[10.9.0.0/16].metric",
        within(0, MAX_METRIC, -1),
    ),
    (with_network(routes=(StaticRoute("10.9.0.0/16", "10.0.0.9"),) * 1001), "network.routes", "more than 1000"),
    (
        with_network(policies=(PolicyRoute("10.0.0.80", "10.0.0.9"), PolicyRoute("10.0.0.80", "10.0.0.8"))),
        "network.policies[10.0.0.80].source",
        "another entry",
    ),
    (
        with_network(policies=(PolicyRoute("10.0.0.80", ""),)),
        "network.policies[10.0.0.80].via",
        no_address(""),
    ),
    (with_network(dns=("10.0.0.3",) * 2), "network.dns", twice("10.0.0.3")),
    (with_network(dns=tuple(f"10.0.0.{n}" for n in range(3, 7))), "network.dns", "not be more than 3"),
    (with_network(ntp=tuple(f"t{n}.example.org" for n in range(9))), "network.ntp", "not be more than 8"),
]


@pytest.mark.parametrize(("snapshot", "path", "words"), BAD, ids=[f"{path} {words}" for _, path, words in BAD])
def test_what_is_impossible_is_refused_at_its_field(snapshot, path, words):
    found = [problem for problem in validate(snapshot) if problem.path == path]
    assert any(words in problem.message for problem in found), validate(snapshot)
    assert all(str(problem).isprintable() for problem in found)


@pytest.mark.parametrize(
    "text", [text for text in dict.fromkeys((*HOSTILE, *ADDRESSES)) if text.isprintable()], ids=ascii
)
def test_hostile_texts_reach_no_list(text):
    """Nothing of this may become a line of ip, resolv.conf or chrony.conf."""
    refused = {
        "network.search": with_network(search=(text,)),
        f"network.routes[{text}].destination": with_network(routes=(StaticRoute(text, "10.0.0.9"),)),
        "network.interfaces[v7].vlan.parent": with_interfaces(vlan(parent=text)),
        "network.interfaces[bond0].bond.members": with_interfaces(bond(text)),
    }
    for path, snapshot in refused.items():
        good = {"network.search": "host.example.org", "network.interfaces[v7].vlan.parent": "", "x": "a"}
        found = [problem.path for problem in validate(snapshot)]
        fits = {"host.example.org", "10.0.2", "10.0.2.300", "010.0.2.100", "167772772", "0x0a000264"}
        if text in fits or good.get(path) == text or _is_a_name(text):
            continue
        assert path in found, (text, found)


def _is_a_name(text: str) -> bool:
    """Of an interface, a domain, or a network of one address."""
    return bool(text) and all(one.isascii() and (one.isalnum() or one in ".-:") for one in text)


def test_a_way_out_needs_answers_that_are_looked_up_again():
    snapshot = with_network(policies=(PolicyRoute("10.0.0.80", "10.0.0.9"),))
    off = dataclasses.replace(snapshot, policy=Policy(route_answers=False))
    assert [problem.path for problem in validate(off)] == ["policy.route_answers"]


def test_a_real_server_behind_a_static_route_can_be_reached():
    shop = VirtualService(1, "shop", "10.0.0.80", 80, real_servers=(RealServer(1, "10.9.0.11", 80),))
    snapshot = dataclasses.replace(with_network(), services=(shop,))
    assert [problem.field for problem in validate(snapshot)] == ["address"]
    route = StaticRoute("10.9.0.0/16", "10.0.0.9")
    routed = dataclasses.replace(snapshot, network=dataclasses.replace(snapshot.network, routes=(route,)))
    assert validate(routed) == []


def test_the_admin_is_not_locked_out_by_a_switched_off_interface_and_comes_back_by_a_route():
    side = Interface("eth1", addresses=("10.1.0.2/24",))
    assert admin_problem(with_interfaces(side), "10.1.0.7") is None
    off = dataclasses.replace(side, on=False)
    assert admin_problem(with_interfaces(off), "10.1.0.7").field == "gateway"
    routed = with_network(routes=(StaticRoute("10.1.0.0/16", "10.0.0.9"),))
    assert admin_problem(routed, "10.1.0.7") is None


def answering(*names: str, network: Network) -> list[str]:
    """What is wrong with these interfaces of the web page."""
    snapshot = Snapshot(network=network, management=Management(("10.0.0.0/8",), interfaces=names))
    found = [problem for problem in validate(snapshot) if problem.path.startswith("management")]
    assert all((one.object, one.field, one.path) == ("access", "interfaces", "management.interfaces") for one in found)
    return [one.message for one in found]


PLACES = Network(
    interfaces=(
        Interface("bond0", addresses=("10.0.0.2/24",), bond=Bond(("eth0", "eth1"))),
        Interface("eth2", dhcp=True),
        Interface("eth3", addresses=("10.3.0.1/24",), on=False),
        Interface("eth4"),
        Interface("bond0.7", addresses=("10.7.0.1/24",), vlan=Vlan("bond0", 7)),
    )
)


@pytest.mark.parametrize("names", [(), ("bond0",), ("eth2", "bond0.7"), ("eth3", "bond0"), ("eth4", "eth2")])
def test_interfaces_that_the_web_page_can_answer_on(names):
    assert answering(*names, network=PLACES) == []


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (("eth9",), f"the web UI would answer on 'eth9', which {NO_INTERFACE}"),
        (("bond0", "eth9"), f"the web UI would answer on 'eth9', which {NO_INTERFACE}"),
        (("bond0", "eth1"), "'eth1' is a member of 'bond0', where its packets arrive: choose that one"),
        (("eth2", "eth2"), twice("'eth2'")),
        (
            ("eth3", "eth4"),
            "the web UI would answer on 'eth3', 'eth4' only, and the box has no address there: nobody could reach it",
        ),
    ],
)
def test_interfaces_that_would_shut_everybody_out(names, sentence):
    assert answering(*names, network=PLACES) == [sentence]


def test_the_only_interface_of_the_web_page_cannot_be_taken_out():
    assert answering("eth2", network=dataclasses.replace(PLACES, interfaces=PLACES.interfaces[:1]))
