"""Every field of every object takes what it should and refuses the rest by its name."""

import dataclasses

import pytest
from lbconfig_hostile import ADDRESSES, HOSTILE, NUMBERS
from lbconfig_samples import (
    DNS,
    SAMPLE,
    WEB,
    with_allow,
    with_check,
    with_interface,
    with_network,
    with_server,
    with_service,
)

from lbconfig.snapshot import (
    FACTORY,
    SORRY_PORT,
    CheckKind,
    Fallback,
    FallbackKind,
    Forwarding,
    HealthCheck,
    Interface,
    Management,
    Network,
    Policy,
    Protocol,
    RealServer,
    Snapshot,
    SorryPage,
    VirtualService,
)
from lbconfig.validate import Problem, admin_problem, lease_problems, validate, worst_case_detection

BAD_PATHS = ("alive", "/a b", "/a#b", '/a"b', "/a\nb", "/\xe9", "/" + "a" * 200, "/a\\", "/^")
BAD_HOSTS = ("a..b", "-a.b", "a-.b", "a_b", "a:80", ".", "a.", "a" * 64, "\xe9.org")
WRONG_TYPES = (None, 1.5, True, b"x", [], {}, ("a",), pytest.param(object(), id="object"))


def problems_at(snapshot, path):
    return [problem for problem in validate(snapshot) if problem.path == path]


def cases(make, place, **fields):
    return [(make, field, value, f"{place}.{field}") for field, values in fields.items() for value in values]


REFUSED = [
    *cases(
        with_service,
        "services[id=3]",
        name=(*(text for text in HOSTILE if text != "a'b"), "a'b", "a" * 65, "caf\xe9", "a\xa0b", "."),
        address=ADDRESSES,
        port=NUMBERS,
    ),
    *cases(
        with_check,
        "services[id=3].check",
        port=(-1, 65536, 10**5000),
        path=(
            *(text for text in HOSTILE),
            "alive",
            "/a b",
            "/a#b",
            '/a"b',
            "/a\nb",
            "/\xe9",
            "/" + "a" * 200,
            "/a\\",
            "/^",
        ),
        host=(
            *(text for text in HOSTILE if text),
            "a..b",
            "-a.b",
            "a-.b",
            "a_b",
            "a:80",
            ".",
            "a.",
            "a" * 64,
            "\xe9.org",
        ),
        expect=("a" * 201, "a\nb", "a\tb", "a\x00", "\ud800", "\u202e", "\u2028"),
        interval=(0, -1, 3601, 10**5000),
        timeout=(0, -1, 61, 10**5000),
        failures=(0, -1, 101, 10**5000),
        connects=(-1, 101, 10**5000),
        authority=(
            "ü",
            "\x00",
            "a" * 50_001,
            "-----BEGIN CERTIFICATE-----",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        ),
    ),
    *cases(
        with_server,
        "services[id=3].real_servers[id=7]",
        address=(*(text for text in ADDRESSES if not text.startswith("10.0.2.")), "10.2.0.0", "10.2.0.255"),
        port=NUMBERS,
        weight=(0, -1, 65536, 10**5000),
    ),
    *cases(
        with_network,
        "network",
        hostname=(*HOSTILE, "a_b", "a..b", "a.", "-", "a" * 65, "10.0.0.1", "1", "\xe9"),
        gateway=(*(text for text in ADDRESSES if text), "10.0.2.15", "192.0.2.1"),
        interfaces=((), (Interface("eth0"),)),
    ),
]


@pytest.mark.parametrize(
    ("make", "field", "value", "path"), REFUSED, ids=[f"{path}-{i}" for i, (*_, path) in enumerate(REFUSED)]
)
def test_a_wrong_value_is_refused_by_name(make, field, value, path):
    found = validate(make(**{field: value}))
    assert found
    # A character that cannot be printed is refused with the shape; every other value by its rule.
    named = [problem for problem in found if problem.path == path or (problem.object == "snapshot")]
    assert named, found
    assert all(problem.field == field for problem in named)
    for problem in found:
        assert str(problem).isprintable()
        assert str(problem).isascii() or problem.object == "snapshot"
        assert len(problem.message) < 400


BOOLEANS = ("dhcp", "enabled", "hash_port", "hash_next", "one_packet", "call_id", "verify", "on")


LISTS = ("routes", "policies", "dns", "search", "ntp")
KINDS = ("vlan", "bond", "bridge")


@pytest.mark.parametrize("make", [with_service, with_check, with_server, with_network, with_interface])
@pytest.mark.parametrize("wrong", WRONG_TYPES, ids=repr)
def test_a_wrong_type_is_a_problem_and_no_crash(make, wrong):
    for field in dataclasses.fields(TYPES[make]):
        if field.name in BOOLEANS and wrong is True:
            continue
        if wrong in ([], ()) and field.name in ("real_servers", "addresses", "interfaces", "more_addresses", *LISTS):
            continue
        if wrong == ("a",) and field.name in ("addresses", "more_addresses", "dns", "search", "ntp"):
            continue
        if wrong is None and field.name in KINDS:
            continue
        if wrong is None and (make, field.name) == (with_server, "forwarding"):  # that of the service
            continue
        found = validate(make(**{field.name: wrong}))
        assert [problem.object for problem in found] == ["snapshot"]
        assert field.name in found[0].path or (wrong == {} and field.name in ("check", "fallback", *KINDS))


TYPES = {
    with_service: VirtualService,
    with_check: type(WEB.check),
    with_server: RealServer,
    with_network: Network,
    with_interface: Interface,
}


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


def test_good_snapshots():
    assert validate(SAMPLE) == []
    assert validate(FACTORY) == []
    for good in (
        with_service(name="A 1.b_c-D", port=65535),
        with_service(name="a" * 64, address="198.51.100.1"),
        with_check(
            path="/" + "a" * 199, expect="x" * 200, host="", port=65535, interval=3600, timeout=60, failures=100
        ),
        with_check(expect='"#$\\ \xe9 \U0001f600'),
        with_server(weight=65535, port=1),
        with_server(address="203.0.113.9"),  # behind the gateway
        with_interface(name="eth0.100", addresses=("10.0.2.15/24", "10.0.2.16/24")),
        with_interface(name="a" * 15, addresses=("10.0.2.15/24", "192.0.2.1/32", "192.0.2.4/31")),
        with_network(hostname="lb-1.example.org"),
    ):
        assert validate(good) == []


def test_a_problem_reads_as_a_sentence():
    [problem] = validate(with_service(port=0))
    assert problem == Problem("virtual service 'web'", "port", "must be 1 to 65535, not 0", "services[id=3].port")
    assert str(problem) == "virtual service 'web', port: must be 1 to 65535, not 0"
    [problem] = validate(with_server(weight=0))
    assert str(problem) == "real server 10.2.0.11:8000 of virtual service 'web', weight: must be 1 to 65535, not 0"
    assert problem.path == "services[id=3].real_servers[id=7].weight"


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
        (six(vip="2001:DB8:1::100"), "address", "must be written as 2001:db8:1::100"),
        (six(vip="2001:db8:1:0::100"), "address", "must be written as 2001:db8:1::100"),
        (six(vip="::ffff:10.0.2.100"), "address", "an IPv4 address in disguise"),
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
        (six(persistence=60, persistence_prefix=129), "persistence_prefix", "must be 0 to 128"),
        (with_interface(addresses=("2001:db8::1/8",)), "addresses", "must have a prefix length of 16 to 128"),
        (with_interface(addresses=("2001:db8::/64",)), "addresses", "the network address of 2001:db8::/64"),
    ],
)
def test_what_cannot_be_in_ipv6(snapshot, field, words):
    found = [problem for problem in validate(snapshot) if problem.field == field]
    assert found
    assert words in found[0].message


def test_an_admin_by_ipv6_is_not_locked_out():
    assert admin_problem(six(), "2001:db8:7::7") is None
    assert admin_problem(six(), "::ffff:10.0.2.9") is None
    assert "none of these networks" in str(admin_problem(six(), "2001:dead::7"))
    lost = dataclasses.replace(SIX, gateway6="")
    assert admin_problem(six(network=lost), "2001:db8:1::7") is None
    assert "no way back to you" in str(admin_problem(six(network=lost), "2001:db8:7::7"))


def several(more_ports: str = "443,8000-8100", port: int = 80, server_port: int = 0, **fields) -> Snapshot:
    servers = (RealServer(7, "10.2.0.11", server_port),)
    return with_service(more_ports=more_ports, port=port, real_servers=servers, **fields)


def test_a_service_of_several_ports_or_protocols():
    for snapshot in (several(), several("", protocol=Protocol.TCP_UDP), several(protocol=Protocol.TCP_UDP)):
        assert validate(snapshot) == []
        assert snapshot.services[0].by_mark
    assert several().services[0].port_ranges == ((80, 80), (443, 443), (8000, 8100))
    assert not WEB.by_mark


@pytest.mark.parametrize(
    ("snapshot", "field", "words"),
    [
        (several("443, 8000"), "more_ports", "must be written as 443,8000"),
        (several("8000,443"), "more_ports", "must be written as 443,8000"),
        (several("443,444"), "more_ports", "must be written as 443-444"),
        (several("443-440"), "more_ports", "ends before it begins"),
        (several("0"), "more_ports", "not 1 to 65535"),
        (several("65536"), "more_ports", "not 1 to 65535"),
        (several("99999999999999"), "more_ports", "ports and ranges such as"),
        (several("http"), "more_ports", "ports and ranges such as"),
        (several("443;reboot"), "more_ports", "ports and ranges such as"),
        (several("٤٤٣"), "more_ports", "ports and ranges such as"),
        (several(",".join(str(n) for n in range(1000, 1400, 2))), "more_ports", "more than 64"),
        (several("79-81"), "more_ports", "must not contain 80"),
        (several(server_port=80), "port", "must be empty"),
        (several("53", protocol=Protocol.UDP), "port", "is 10.0.2.100 port 53 udp already"),
        (several("50-60", protocol=Protocol.TCP_UDP), "port", "is 10.0.2.100 port 53 udp already"),
        (several("442-444", address="10.0.2.15"), "port", "is the web UI of this box"),
        (with_server(port=0), "port", "must be 1 to 65535, not 0"),
    ],
)
def test_what_several_ports_cannot_be(snapshot, field, words):
    found = [problem.message for problem in validate(snapshot) if problem.field == field]
    assert any(words in message for message in found), validate(snapshot)


def falling_back(address="10.2.0.99", port=0, kind=FallbackKind.SERVER, **fields):
    return with_service(fallback=Fallback(kind, address, port), **fields)


def test_who_may_answer_while_all_are_down():
    page = with_service(fallback=Fallback(FallbackKind.PAGE))
    for snapshot in (
        page, falling_back(), falling_back(port=8080), falling_back(port=8080, more_ports="443", real_servers=()),
        falling_back(forwarding=Forwarding.DIRECT, real_servers=()),
    ):  # fmt: skip
        assert validate(snapshot) == []
    assert page.services[0].fallback_server == RealServer(0, "10.0.2.100", 64503, forwarding=Forwarding.NAT)
    assert page.services[0].machines == WEB.real_servers
    assert falling_back().services[0].machines[-1] == RealServer(0, "10.2.0.99", 80)


@pytest.mark.parametrize(
    ("snapshot", "field", "words"),
    [
        (falling_back(""), "address", "must be an IP address"),
        (falling_back("10.2.0.99; reboot"), "address", "must be an IP address"),
        (falling_back("2001:db8::1"), "address", "must be an IPv4 address"),
        (falling_back("10.0.2.15"), "address", "this box's own address"),
        (falling_back("10.0.2.100"), "address", "is the address of virtual service"),
        (falling_back("10.2.0.11", 8000), "address", "this service has a real server"),
        (falling_back(port=65536), "port", "must be 0 to 65535"),
        (falling_back(port=8080, forwarding=Forwarding.DIRECT, real_servers=()), "port", "must be 80, as the service"),
        (falling_back(more_ports="443", real_servers=()), "port", "connections to all ports of this service go there"),
        (falling_back(check=HealthCheck(CheckKind.OFF)), "kind", "needs a health check"),
        (falling_back("", kind=FallbackKind.PAGE, check=HealthCheck(CheckKind.OFF)), "kind", "needs a health check"),
        (falling_back("", kind=FallbackKind.PAGE, protocol=Protocol.UDP), "kind", "is for TCP services"),
        (falling_back(kind=FallbackKind.PAGE), "address", "must be empty"),
        (falling_back("", 80, FallbackKind.NONE), "port", "must be empty"),
        (falling_back("", kind=FallbackKind.PAGE, more_ports="64000-65000"), "kind", "which the sorry page needs"),
    ],
)  # fmt: skip
def test_who_may_not(snapshot, field, words):
    found = [problem.message for problem in validate(snapshot) if problem.path == f"services[id=3].fallback.{field}"]
    assert any(words in message for message in found), validate(snapshot)


@pytest.mark.parametrize(
    ("page", "path"),
    [
        (SorryPage(title=""), "sorry.title"),
        (SorryPage(title="a" * 101), "sorry.title"),
        (SorryPage(paragraphs=("a", "")), "sorry.paragraphs"),
        (SorryPage(paragraphs=("a" * 501,)), "sorry.paragraphs"),
        (SorryPage(paragraphs=("a",) * 21), "sorry.paragraphs"),
    ],
)
def test_the_sorry_page(page, path):
    assert [problem.path for problem in validate(dataclasses.replace(SAMPLE, sorry=page))] == [path]
    assert validate(dataclasses.replace(SAMPLE, sorry=SorryPage("<b>&", ("\U0001f600 \u4f60", '"')))) == []


def test_an_id_that_is_no_mark_is_refused():
    assert [one.field for one in validate(several(id=2**31))] == ["id"]
    assert validate(with_service(id=2**31)) == []


def test_problems_stand_in_the_order_of_the_snapshot():
    snapshot = Snapshot(
        (dataclasses.replace(WEB, port=0), dataclasses.replace(DNS, port=0)),
        dataclasses.replace(SAMPLE.network, hostname="-"),
        with_allow().management,
    )
    assert [problem.path for problem in validate(snapshot)] == [
        "services[id=3].port",
        "services[id=4].port",
        "network.hostname",
        "management.allow",
    ]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"id": 3}, "services[id=3].id"),
        ({"name": "WEB"}, "services[id=4].name"),
        ({"port": 80, "protocol": Protocol.TCP}, "services[id=4].port"),
        ({"real_servers": WEB.real_servers[:1]}, "services[id=4].real_servers[id=7].id"),
        (
            {"real_servers": (RealServer(20, "10.2.0.13", 53), RealServer(21, "10.2.0.13", 53, weight=5))},
            "services[id=4].real_servers[id=21].address",
        ),
    ],
)
def test_what_must_be_unique(change, path):
    [problem] = validate(dataclasses.replace(SAMPLE, services=(WEB, dataclasses.replace(DNS, **change))))
    assert problem.path == path


def test_same_place_with_another_protocol_is_another_service():
    assert validate(dataclasses.replace(SAMPLE, services=(WEB, dataclasses.replace(DNS, port=80)))) == []


def test_a_vip_may_be_the_boxs_address_but_not_its_web_ui():
    assert validate(with_service(address="10.0.2.15", port=80)) == []
    assert validate(with_service(address="10.0.2.100", port=443)) == []
    assert validate(with_service(address="10.0.2.15", port=443, protocol=Protocol.UDP, check=DNS.check)) == []
    [problem] = validate(with_service(address="10.0.2.15", port=443))
    assert problem.path == "services[id=3].port"


@pytest.mark.parametrize("port", [81, 443, 1024, 8443, 32767, 61000, 65535])
def test_the_web_page_may_be_at_another_port(port):
    assert validate(at_port(port)) == []


@pytest.mark.parametrize(
    ("port", "words"),
    [
        *((port, "must be 1 to 65535") for port in (-1, 0, 65536, 2**64)),
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
        "services[id=3].port": "10.0.2.15 port 8443 is the web UI of this box: take another address or port",
        "management.port": "10.0.2.15 port 8443 is virtual service 'web': take another port",
    }
    assert validate(at_port(9443, shared)) == []
    assert validate(at_port(8443, (dataclasses.replace(shared[0], enabled=False),))) == []
    assert validate(at_port(8443, with_service(address="10.0.2.15", port=443).services)) == []


def at_port(port: int, services=SAMPLE.services) -> Snapshot:
    return dataclasses.replace(SAMPLE, services=services, management=dataclasses.replace(SAMPLE.management, port=port))


def test_a_vip_needs_a_place():
    isolated = Network(
        "lb1", "", (Interface("eth0", addresses=("10.0.2.15/24",)), Interface("eth1", addresses=("10.2.0.1/24",)))
    )
    away = dataclasses.replace(with_service(address="198.51.100.7"), network=isolated)
    assert problems_at(away, "services[id=3].address")
    assert problems_at(with_service(address="10.0.2.2"), "services[id=3].address")  # the gateway


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


def test_udp_cannot_be_checked_by_connecting():
    def udp(**check):
        return with_service(protocol=Protocol.UDP, check=dataclasses.replace(WEB.check, **check))

    assert problems_at(udp(kind=CheckKind.CONNECT), "services[id=3].check.kind")
    assert problems_at(udp(kind=CheckKind.HTTP), "services[id=3].check.port")
    assert validate(udp(kind=CheckKind.HTTP, port=8080)) == []
    assert validate(udp(kind=CheckKind.PING)) == validate(udp(kind=CheckKind.OFF)) == []


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


def test_a_vip_that_dhcp_gave_to_the_box():
    [problem] = lease_problems(SAMPLE, {"eth0": "10.0.2.100/24"})[:1]
    assert problem.path == "services[id=3].address"
    assert lease_problems(SAMPLE, {"eth0": "10.0.2.101/24"}) == []


def test_worst_case_detection():
    # It dies right after a check began: the next one begins an interval later, and each takes its whole timeout.
    assert worst_case_detection(HealthCheck(interval=2, timeout=1, failures=1)) == 2 + 1
    assert worst_case_detection(HealthCheck(interval=2, timeout=1, failures=3)) == 2 + 2 + 2 + 1
    assert worst_case_detection(HealthCheck(interval=2, timeout=5, failures=3)) == 2 + 5 + 5 + 5
    assert worst_case_detection(HealthCheck(CheckKind.OFF)) == 0
    # It goes on taking connections: the plain connects in between pass, and the whole check comes after them.
    assert (
        worst_case_detection(HealthCheck(CheckKind.HTTP, interval=2, timeout=1, failures=2, connects=5)) == 12 + 2 + 1
    )
    assert worst_case_detection(HealthCheck(CheckKind.PING, interval=2, timeout=1, failures=1, connects=5)) == 2 + 1


def test_nothing_is_changed():
    before = repr(SAMPLE)
    validate(SAMPLE)
    assert repr(SAMPLE) == before


@pytest.mark.parametrize(
    ("snapshot", "field", "words"),
    [
        (with_service(hash_port=True), "hash_port", "source and Maglev hashing (sh, mh), not of wlc"),
        (with_service(hash_next=True), "hash_next", "source and Maglev hashing"),
        (with_service(one_packet=True), "one_packet", "for UDP only"),
        (with_service(call_id=True, persistence=60), "call_id", "SIP by UDP only"),
        (
            with_service(call_id=True, protocol=Protocol.UDP, check=HealthCheck(CheckKind.PING)),
            "call_id",
            "persistence",
        ),
        (with_service(persistence=-1), "persistence", "must be 0 to 2678400, not -1"),
        (with_service(persistence=2678401), "persistence", "must be 0 to 2678400"),
        (with_service(persistence_prefix=-1), "persistence_prefix", "must be 0 to 32, not -1"),
        (with_service(persistence_prefix=33), "persistence_prefix", "must be 0 to 32"),
        (with_service(note="x" * 501), "note", "longer than 500 characters, and has 501"),
        (with_server(upper=-1), "upper", "must be 0 to 2147483647"),
        (with_server(upper=2**31), "upper", "must be 0 to 2147483647"),
        (with_server(lower=5), "lower", "needs an upper threshold"),
        (with_server(upper=5, lower=6), "lower", "must not be above the upper threshold, 5"),
    ],
)
def test_options_that_cannot_be(snapshot, field, words):
    [problem] = validate(snapshot)
    assert problem.field == field
    assert words in problem.message


@pytest.mark.parametrize(
    ("protocol", "check", "words"),
    [
        (Protocol.UDP, HealthCheck(CheckKind.CONNECT), "UDP servers take no TCP connections"),
        (Protocol.SCTP, HealthCheck(CheckKind.CONNECT), "SCTP servers take no TCP connections"),
        (Protocol.SCTP, HealthCheck(CheckKind.HTTP), "the TCP port on which they answer the check (HTTP)"),
        (Protocol.SCTP, HealthCheck(CheckKind.HTTP, port=80), ""),
    ],
)
def test_sctp_and_udp_are_checked_by_other_ways(protocol, check, words):
    service = dataclasses.replace(WEB, protocol=protocol, check=check, real_servers=())
    problems = validate(dataclasses.replace(SAMPLE, services=(service,)))
    assert [words in problem.message for problem in problems] == ([True] if words else [])
    assert service.by_mark == (protocol is Protocol.SCTP)


@pytest.mark.parametrize("name", ["tcp_timeout", "fin_timeout", "udp_timeout"])
def test_timeouts_of_connections(name):
    for value, good in ((1, True), (31 * 24 * 3600, True), (0, False), (-1, False), (31 * 24 * 3600 + 1, False)):
        problems = validate(dataclasses.replace(SAMPLE, policy=Policy(**{name: value})))
        assert [problem.path for problem in problems] == ([] if good else [f"policy.{name}"])


def test_one_packet_scheduling_and_persistence_exclude_each_other_but_for_calls():
    both = dataclasses.replace(
        WEB, protocol=Protocol.UDP, one_packet=True, persistence=60, check=HealthCheck(CheckKind.PING)
    )
    [problem] = validate(dataclasses.replace(SAMPLE, services=(both,)))
    assert problem.field == "persistence"
    calls = dataclasses.replace(both, call_id=True)
    assert validate(dataclasses.replace(SAMPLE, services=(calls,))) == []


def test_a_disabled_service_may_stand_where_another_one_is_or_belong_to_another_network():
    spare = dataclasses.replace(WEB, id=11, name="spare", enabled=False, real_servers=())
    elsewhere = dataclasses.replace(spare, id=12, name="elsewhere", address="192.0.2.77")
    assert validate(dataclasses.replace(SAMPLE, services=(*SAMPLE.services, spare, elsewhere))) == []
