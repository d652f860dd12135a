"""Addresses of the box, its web page, services and servers: which are refused, and who would be locked out."""

import dataclasses

import pytest
from lbconfig_hostile import HOSTILE
from lbconfig_samples import (
    DNS,
    SAMPLE,
    WEB,
    problems_at,
    with_allow,
    with_interface,
    with_network,
    with_server,
    with_service,
)
from tests.texts import within

from lbconfig.model.problem import written_as
from lbconfig.model.snapshot import (
    SORRY_PORT,
    Forwarding,
    Interface,
    Management,
    Network,
    Protocol,
    RealServer,
    Snapshot,
    StaticRoute,
)
from lbconfig.validate.reach import entrance_problem
from lbconfig.validate.services import admin_problem, lease_problems, validate


@pytest.mark.parametrize(
    "value",
    [
        "10.0.2.15",
        "10.0.2.15/33",
        "10.0.2.15/255.255.255.0",
        "10.0.2.15/024",
        "10.0.2.0/24",
        "10.0.2.255/24",
        "10.0.2.15/0",
        "10.0.2.15/7",
        "127.0.0.1/8",
        "224.0.0.1/24",
        "0.0.0.0/24",
        "fe80::1/64",
        "x/24",
        "/24",
        "10.0.2.15/",
        "10.0.2.15/24\n",
        "10.0.2.15/24 #",
        "\u0661.0.0.1/24",
        "10.0.2.15/\u0662\u0664",
        *HOSTILE,
    ],
    ids=ascii,
)
def test_interface_addresses(value):
    found = validate(with_interface(addresses=(value,)))
    assert [p for p in found if p.path in ("network.interfaces[eth0].addresses", "network.interfaces[0].addresses[0]")]


@pytest.mark.parametrize(
    "value", ["lo", "all", "default", "eth 0", "eth/0", "a" * 16, ".", "..", "eth0:1", "\xe9th0", *HOSTILE], ids=ascii
)
def test_interface_names(value):
    assert any(
        p.field == "name" and p.path.startswith("network.interfaces[") for p in validate(with_interface(name=value))
    )


@pytest.mark.parametrize("other", ["10.0.2.77/24", "10.0.0.1/16", "10.0.2.130/25"])
def test_networks_of_two_interfaces_do_not_overlap(other):
    interfaces = (Interface("eth0", addresses=("10.0.2.15/24",)), Interface("eth1", addresses=(other, "10.2.0.1/24")))
    assert problems_at(with_network(interfaces=interfaces), "network.interfaces[eth1].addresses")


def test_addresses_and_names_of_interfaces_are_unique():
    eth0 = SAMPLE.network.interfaces[0]
    assert problems_at(with_interface(addresses=eth0.addresses * 2), "network.interfaces[eth0].addresses")
    double = with_network(interfaces=(*SAMPLE.network.interfaces, Interface("eth0", dhcp=True)))
    assert problems_at(double, "network.interfaces[eth0].name")


def test_a_flood_of_addresses_ends_soon():
    many = tuple(f"10.{i // 250}.{i % 250}.1/32" for i in range(20_000))
    assert problems_at(with_interface(addresses=many), "network.interfaces[eth0].addresses")


SIX = Network(
    "lb1",
    "10.0.2.2",
    (
        Interface("eth0", addresses=("10.0.2.15/24", "2001:db8:1::15/64")),
        Interface("eth1", addresses=("10.2.0.1/24", "2001:db8:2::1/64")),
    ),
    "2001:db8:1::2",
)


def six(vip: str = "2001:db8:1::100", server: str = "2001:db8:2::11", network: Network = SIX, **fields) -> Snapshot:
    service = dataclasses.replace(WEB, address=vip, real_servers=(RealServer(7, server, 80),), **fields)
    return Snapshot((service,), network, Management(("10.0.2.0/24", "2001:db8::/32", "fe80::/10")))


def test_ipv6_is_as_good_as_ipv4():
    assert validate(six()) == []
    assert validate(six(persistence=60, persistence_prefix=64)) == []
    assert validate(six(server="2001:db8:9::11")) == []  # behind the gateway
    assert validate(six(forwarding=Forwarding.DIRECT)) == []


@pytest.mark.parametrize(
    ("snapshot", "field", "words"),
    [
        (six(vip="2001:DB8:1::100"), "address", written_as("2001:db8:1::100")),
        (six(vip="2001:db8:1:0::100"), "address", written_as("2001:db8:1::100")),
        (six(vip="::ffff:10.0.2.100"), "address", "an IPv4-mapped address"),
        (six(vip="fe80::1"), "address", "link-local"),
        (six(vip="fe80::1%eth0"), "address", "link-local"),
        (six(vip="ff02::1"), "address", "multicast"),
        (six(vip="::1"), "address", "loopback"),
        (six(vip="2001:db8:1::2"), "address", "is the default gateway"),
        (six(vip="2001:db8:1::"), "address", "the network address of 2001:db8:1::/64"),
        (six(server="10.2.0.11"), "address", "must be an IPv6 address, as the virtual address is"),
        (six(vip="10.0.2.100"), "address", "must be an IPv4 address, as the virtual address is"),
        (six(server="2001:db8:9::11", forwarding=Forwarding.DIRECT), "address", "does not pass routers"),
        (six(server="2001:db8:9::11", network=dataclasses.replace(SIX, gateway6="")), "address", "cannot be reached"),
        (six(vip="2001:db8:9::1", network=dataclasses.replace(SIX, gateway6="")), "address", "no interface can carry"),
        (six(network=dataclasses.replace(SIX, gateway6="10.0.2.2")), "gateway6", "must be an IPv6 address"),
        (six(network=dataclasses.replace(SIX, gateway="2001:db8:1::2")), "gateway", "must be an IPv4 address"),
        (six(network=dataclasses.replace(SIX, gateway6="2001:db8:9::2")), "gateway6", "in no network of an interface"),
        (six(network=dataclasses.replace(SIX, gateway6="2001:db8:1::15")), "gateway6", "this box's own address"),
        (six(persistence=60, persistence_prefix=129), "persistence_prefix", within(0, 128, 129)),
        (with_interface(addresses=("2001:db8::1/8",)), "addresses", "must have a prefix length of 16 to 128"),
        (with_interface(addresses=("2001:db8::/64",)), "addresses", "the network address of 2001:db8::/64"),
    ],
)
def test_what_cannot_be_in_ipv6(snapshot, field, words):
    found = [problem for problem in validate(snapshot) if problem.field == field]
    assert found
    assert words in found[0].message


def test_a_vip_may_be_the_boxs_address_but_not_its_web_ui():
    assert validate(with_service(address="10.0.2.15", port=80)) == []
    assert validate(with_service(address="10.0.2.100", port=443)) == []
    assert validate(with_service(address="10.0.2.15", port=443, protocol=Protocol.UDP, check=DNS.check)) == []
    [problem] = validate(with_service(address="10.0.2.15", port=443))
    assert problem.path == "services[id=3].port"


def test_a_vip_needs_a_place():
    isolated = Network(
        "lb1", "", (Interface("eth0", addresses=("10.0.2.15/24",)), Interface("eth1", addresses=("10.2.0.1/24",)))
    )
    away = dataclasses.replace(with_service(address="198.51.100.7"), network=isolated)
    assert problems_at(away, "services[id=3].address")
    assert problems_at(with_service(address="10.0.2.2"), "services[id=3].address")  # the gateway


def test_a_vip_that_dhcp_gave_to_the_box():
    [problem] = lease_problems(SAMPLE, {"eth0": "10.0.2.100/24"})[:1]
    assert problem.path == "services[id=3].address"
    assert lease_problems(SAMPLE, {"eth0": "10.0.2.101/24"}) == []


@pytest.mark.parametrize("address", ["10.0.2.15", "10.2.0.1", "10.0.2.100"])
def test_a_real_server_is_another_machine(address):
    assert problems_at(with_server(address=address), "services[id=3].real_servers[id=7].address")


def test_a_real_server_must_be_reachable():
    isolated = dataclasses.replace(SAMPLE.network, gateway="")
    away = dataclasses.replace(with_server(address="203.0.113.9"), network=isolated)
    [problem] = validate(away)
    assert problem.path == "services[id=3].real_servers[id=7].address"
    by_dhcp = dataclasses.replace(away, network=Network(interfaces=(Interface("eth0", dhcp=True),)))
    assert validate(by_dhcp) == []


@pytest.mark.parametrize("port", [81, 443, 1024, 8443, 32767, 61000, 65535])
def test_the_web_page_may_be_at_another_port(port):
    assert validate(at_port(port)) == []


@pytest.mark.parametrize(
    ("port", "words"),
    [
        *((port, within(1, 65535, port)) for port in (-1, 0, 65536, 2**64)),
        (80, "browsers speak HTTP"),
        (SORRY_PORT, "sorry page"),
        *((port, "for connections of its own") for port in (32768, 44443, 60999)),
        *((port, "browsers open no page") for port in (1, 22, 5060, 6000, 6667, 10080)),
    ],
)
def test_a_port_where_nobody_would_find_the_web_page_is_refused(port, words):
    [problem] = validate(at_port(port))
    assert (problem.path, problem.field) == ("management.port", "port") and words in problem.message


def test_a_service_where_the_web_page_is_told_at_both():
    shared = with_service(address="10.0.2.15", port=8443).services
    found = {one.path: one.message for one in validate(at_port(8443, shared))}
    assert found == {
        "services[id=3].port": "10.0.2.15 port 8443 is the web UI of this box: use another address or port",
        "management.port": "10.0.2.15 port 8443 is virtual service 'web': take another port",
    }
    assert validate(at_port(9443, shared)) == []
    assert validate(at_port(8443, (dataclasses.replace(shared[0], enabled=False),))) == []
    assert validate(at_port(8443, with_service(address="10.0.2.15", port=443).services)) == []


def at_port(port: int, services=SAMPLE.services) -> Snapshot:
    return dataclasses.replace(SAMPLE, services=services, management=dataclasses.replace(SAMPLE.management, port=port))


@pytest.mark.parametrize(
    "value",
    [
        "10.0.2.1/24",
        "10.0.2.0",
        "10.0.2.0/33",
        "10.0.2.0/255.255.255.0",
        "2001:DB8::/32",
        "2001:db8::1/32",
        "::/129",
        "any",
        "0.0.0.0",
        "010.0.0.0/8",
        "10.0.2.0/24\n",
        "10.0.2.0/24, 0.0.0.0/0",
        *HOSTILE,
    ],
    ids=ascii,
)
def test_management_networks(value):
    found = validate(with_allow("10.0.2.0/25", value))
    assert [p for p in found if p.path.startswith("management.allow")]


def test_management_must_not_be_empty_or_double():
    assert problems_at(with_allow(), "management.allow")
    assert problems_at(with_allow("10.0.2.0/24", "10.0.2.0/24"), "management.allow")
    assert validate(with_allow("10.0.0.0/8", "10.0.2.0/24", "0.0.0.0/0")) == []


@pytest.mark.parametrize(
    ("address", "good"),
    [
        ("10.0.2.77", True),
        ("", True),
        ("127.0.0.1", True),
        ("::1", True),
        ("::ffff:10.0.2.77", True),
        ("10.0.3.77", False),
        ("2001:db8::5", False),
        ("nonsense\n", False),
    ],
)
def test_the_admin_is_not_locked_out(address, good):
    problem = admin_problem(SAMPLE, address)
    assert (problem is None) == good
    assert problem is None or problem.path == "management.allow"


def test_the_admin_needs_a_way_back():
    isolated = dataclasses.replace(SAMPLE, network=dataclasses.replace(SAMPLE.network, gateway=""))
    everywhere = dataclasses.replace(isolated, management=with_allow("0.0.0.0/0").management)
    assert admin_problem(everywhere, "10.0.2.77") is None
    assert admin_problem(everywhere, "192.0.2.77").path == "network.gateway"


def test_an_admin_by_ipv6_is_not_locked_out():
    assert admin_problem(six(), "2001:db8:7::7") is None
    assert admin_problem(six(), "::ffff:10.0.2.9") is None
    assert "none of these networks" in str(admin_problem(six(), "2001:dead::7"))
    lost = dataclasses.replace(SIX, gateway6="")
    assert admin_problem(six(network=lost), "2001:db8:1::7") is None
    assert "no way back to you" in str(admin_problem(six(network=lost), "2001:db8:7::7"))


@pytest.mark.parametrize(
    ("address", "interface"),
    [
        ("10.0.2.77", "eth0"),  # its own network
        ("10.2.0.77", "eth1"),
        ("10.9.0.7", "eth1"),  # a static route
        ("192.0.2.7", "eth0"),  # the default gateway
        ("::ffff:10.2.0.77", "eth1"),
        ("2001:db8::7", None),  # no way is known
        ("127.0.0.1", None),
        ("", None),
    ],
)
def test_whether_the_web_page_answers_where_the_admin_comes_in(address, interface):
    network = dataclasses.replace(SAMPLE.network, routes=(StaticRoute("10.9.0.0/16", "10.2.0.11"),))
    plain = dataclasses.replace(SAMPLE, network=network)
    for chosen in ("eth0", "eth1"):
        snapshot = dataclasses.replace(plain, management=dataclasses.replace(plain.management, interfaces=(chosen,)))
        problem = entrance_problem(snapshot, address)
        assert (problem is None) == (interface in (None, chosen)), problem
        if problem:
            assert f"arrives on {interface}, and it answers on {chosen} only" in problem.message
    assert entrance_problem(plain, address) is None


def test_nobody_can_say_where_the_admin_comes_in_if_dhcp_brings_networks():
    first, second = SAMPLE.network.interfaces
    network = dataclasses.replace(SAMPLE.network, interfaces=(first, dataclasses.replace(second, dhcp=True)))
    snapshot = dataclasses.replace(
        SAMPLE, network=network, management=dataclasses.replace(SAMPLE.management, interfaces=("eth1",))
    )
    assert entrance_problem(snapshot, "192.0.2.7") is None
    assert entrance_problem(snapshot, "10.0.2.7")
