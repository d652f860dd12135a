"""Every field of every object takes what it should and refuses the rest by its name."""

import dataclasses

import pytest
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

from lbconfig.snapshot import FACTORY, CheckKind, Interface, Network, Protocol, RealServer, Snapshot, VirtualService
from lbconfig.validate import Problem, admin_problem, lease_problems, validate, worst_case_detection

# What must never get through any field of text: separators and quotes of every grammar that is
# rendered, shell characters, and characters that look like the allowed ones.
HOSTILE = (
    "a\nb",
    "a\n    checkcommand=/bin/sh",
    "a\r",
    "a\tb",
    "a\x00b",
    "a\x7fb",
    "a\u2028b",
    'a"b',
    "a'b",
    "a`id`",
    "$(reboot)",
    "a;reboot",
    "a|b",
    "a&b",
    "a#b",
    "a{b}",
    "a\\b",
    "a<b>",
    "-a",
    "../a",
    " a",
    "a ",
    "\uff41",  # a full-width a
    "\u0661",  # an Arabic digit
    "a" * 1000,
    "",
)
NUMBERS = (0, -1, 65536, 10**30, 10**5000)
ADDRESSES = (
    "",
    "10.0.2",
    "10.0.2.300",
    "010.0.2.100",
    "10.0.2.100 ",
    "10.0.2.100\n",
    "10.0.2.100/24",
    "10.0.2.100:80",
    "\u0661\u0660.0.2.100",
    "0x0a000264",
    "167772772",
    "host.example.org",
    "0.0.0.0",
    "0.1.2.3",
    "127.0.0.1",
    "224.0.0.5",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "fe80::1",
    "2001:db8::1",
    "::ffff:10.0.2.100",
    "10.0.2.0",  # the network's own address
    "10.0.2.255",  # its broadcast address
    *HOSTILE,
)
BAD_PATHS = ("alive", "/a b", "/a#b", '/a"b', "/a\nb", "/\xe9", "/" + "a" * 200, "/a\\", "/^")
BAD_HOSTS = ("a..b", "-a.b", "a-.b", "a_b", "a:80", ".", "a.", "a" * 64, "\xe9.org")
WRONG_TYPES = (None, 1.5, True, b"x", [], {}, ("a",), object())


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


@pytest.mark.parametrize("make", [with_service, with_check, with_server, with_network, with_interface])
@pytest.mark.parametrize("wrong", WRONG_TYPES, ids=repr)
def test_a_wrong_type_is_a_problem_and_no_crash(make, wrong):
    for field in dataclasses.fields(TYPES[make]):
        if field.name in ("dhcp", "enabled") and wrong is True:
            continue
        if wrong in ([], ()) and field.name in ("real_servers", "addresses", "interfaces"):
            continue
        if wrong == ("a",) and field.name == "addresses":
            continue
        found = validate(make(**{field.name: wrong}))
        assert [problem.object for problem in found] == ["snapshot"]
        assert field.name in found[0].path or (wrong == {} and field.name == "check")


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
        "fe80::/64",
        "::/0",
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


def test_ipv6_is_refused_clearly():
    for snapshot in (
        with_service(address="2001:db8::1"),
        with_interface(addresses=("2001:db8::1/64",)),
        with_allow("::/0"),
    ):
        assert any("IPv6 is not supported yet" in problem.message for problem in validate(snapshot))


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
    # web: two servers x 2 s, dns: one enabled server x 2 s, 2 s between rounds, two failures
    assert worst_case_detection(WEB) == 2 * (2 + 2 * 2)
    assert worst_case_detection(WEB, SAMPLE) == 2 * (2 + 2 * 2 + 2)
    assert worst_case_detection(dataclasses.replace(WEB, check=type(WEB.check)(CheckKind.OFF))) == 0


def test_nothing_is_changed():
    before = repr(SAMPLE)
    validate(SAMPLE)
    assert repr(SAMPLE) == before
