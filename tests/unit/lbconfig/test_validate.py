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
from tests.texts import within

from lbconfig.model.snapshot import FACTORY, Interface, Network, Policy, RealServer, Snapshot, VirtualService
from lbconfig.validate.services import Problem, validate

WRONG_TYPES = (None, 1.5, True, b"x", [], {}, ("a",), pytest.param(object(), id="object"))


def cases(make, place, **fields):
    return [(make, field, value, f"{place}.{field}") for field, values in fields.items() for value in values]


REFUSED = [
    *cases(
        with_service,
        "services[id=3]",
        name=(*(text for text in HOSTILE if text not in ("\uff41", "\u0661")), "a" * 65, "a\xa0b", "."),  # letters
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
            *(text for text in HOSTILE if text and text != "\u0661"),  # which is sent as xn--9hb
            "a..b",
            "-a.b",
            "a-.b",
            "a:0",
            "a:65536",
            "a:",
            "a:b",
            ":80",
            "[::1]",
            ".",
            "a.",
            "a" * 64,
            "\xe9" * 64,
        ),
        statuses=(
            "200,",
            "200-",
            "300-200",
            "199",
            "600",
            "2xx",
            "200, 201",
            "200-299;",
            "\u0662\u0660\u0660",
            "a" * 201,
        ),
        login=("a:b",),
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
        address=(
            *(text for text in ADDRESSES if not text.startswith("10.0.2.")),
            "10.2.0.0",
            "10.2.0.255",
            "169.254.169.254",
        ),
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
        assert len(problem.message) < 400


BOOLEANS = ("dhcp", "enabled", "hash_port", "hash_next", "one_packet", "call_id", "verify", "old_tls", "on")
LISTS = ("routes", "policies", "dns", "search", "ntp", "floating")
TEXTS = ("addresses", "floating", "more_addresses", "tags", "dns", "search", "ntp")
KINDS = ("vlan", "bond", "bridge")


@pytest.mark.parametrize("make", [with_service, with_check, with_server, with_network, with_interface])
@pytest.mark.parametrize("wrong", WRONG_TYPES, ids=repr)
def test_a_wrong_type_is_a_problem_and_no_crash(make, wrong):
    for field in dataclasses.fields(TYPES[make]):
        if field.name in BOOLEANS and wrong is True:
            continue
        if wrong in ([], ()) and field.name in (
            "real_servers",
            "addresses",
            "interfaces",
            "more_addresses",
            "more_requests",
            "tags",
            *LISTS,
        ):
            continue
        if wrong == ("a",) and field.name in (
            "addresses",
            "floating",
            "more_addresses",
            "tags",
            "dns",
            "search",
            "ntp",
        ):
            continue
        if wrong is None and field.name in KINDS:
            continue
        if wrong is None and (make, field.name) == (with_server, "forwarding"):  # that of the service
            continue
        found = validate(make(**{field.name: wrong}))
        assert [problem.object for problem in found] == ["snapshot"]
        assert field.name in found[0].path or (
            wrong == {} and field.name in ("check", "fallback", "agent", "least_healthy", *KINDS)
        )


TYPES = {
    with_service: VirtualService,
    with_check: type(WEB.check),
    with_server: RealServer,
    with_network: Network,
    with_interface: Interface,
}


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
    assert problem == Problem("virtual service 'web'", "port", within(1, 65535, 0), "services[id=3].port")
    assert str(problem) == f"virtual service 'web', port: {within(1, 65535, 0)}"
    [problem] = validate(with_server(weight=0))
    assert str(problem) == f"real server 10.2.0.11:8000 of virtual service 'web', weight: {within(1, 65535, 0)}"
    assert problem.path == "services[id=3].real_servers[id=7].weight"


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


def test_nothing_is_changed():
    before = repr(SAMPLE)
    validate(SAMPLE)
    assert repr(SAMPLE) == before


@pytest.mark.parametrize("name", ["tcp_timeout", "fin_timeout", "udp_timeout"])
def test_timeouts_of_connections(name):
    for value, good in ((1, True), (31 * 24 * 3600, True), (0, False), (-1, False), (31 * 24 * 3600 + 1, False)):
        problems = validate(dataclasses.replace(SAMPLE, policy=Policy(**{name: value})))
        assert [problem.path for problem in problems] == ([] if good else [f"policy.{name}"])
