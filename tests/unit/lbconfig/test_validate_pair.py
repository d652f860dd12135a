"""What is wrong with a pair is told by its box, its object and its field."""

import dataclasses
import random

import pytest
from lbconfig_hostile import HOSTILE, NUMBERS
from lbconfig_mutations import mutated
from lbconfig_pairs import (
    ID,
    KEYS,
    PAIR,
    SERVICES,
    network,
    with_both,
    with_box,
    with_interface,
    with_network,
    with_pair,
    with_service,
)
from lbconfig_samples import SAMPLE
from tests.texts import NO_INTERFACE, twice, within

from applier.apply.review import review
from lbconfig.model.network import Bond, Vlan
from lbconfig.model.snapshot import (
    Interface,
    Management,
    PolicyRoute,
    RealServer,
    SettingChoice,
    SnapshotError,
    Tuning,
    from_data,
    to_data,
)
from lbconfig.render import render
from lbconfig.validate.pair import MAX_FLOATING, membership_problems, pair_warnings
from lbconfig.validate.reach import admin_problem
from lbconfig.validate.services import validate


def floats(*texts: str):
    """On eth1 of both boxes."""
    return with_both("eth1", floating=texts)


def networks(count: int):
    """So many that both boxes have, and the cable."""
    boxes = []
    for number in (0, 1):
        more = [Interface(f"p{n}", addresses=(f"10.9.{n}.{number + 1}/24",)) for n in range(count - 3)]
        own = dataclasses.replace(network(number), interfaces=(*network(number).interfaces, *more))
        boxes.append(dataclasses.replace(PAIR.pair.boxes[number], network=own))
    return with_pair(boxes=tuple(boxes))


def many_floating(count: int):
    return floats(*(f"10.2.{n // 250}.{n % 250 + 1}/16" for n in range(300, 300 + count)))


PRINTABLE = tuple(text for text in HOSTILE if text.isprintable())  # the others are of the wrong shape
FIRST, SECOND = "pair.boxes[0]", "pair.boxes[1]"
ETH = "network.interfaces[{}].{}".format


@pytest.mark.parametrize(
    ("snapshot", "path", "words"),
    [
        *(
            (with_pair(id=text), "pair.id", "must be 32 lower-case hexadecimal digits")
            for text in (*PRINTABLE, ID.upper(), ID[1:])
        ),
        *((with_pair(advert=value), "pair.advert", within(100, 10000, value)) for value in (*NUMBERS, 99, 10_001)),
        *(
            (with_box(1, key=text), f"{SECOND}.key", "must be a WireGuard public key")
            for text in (*PRINTABLE, KEYS[1][:-1], KEYS[1][:-2] + "F=", "A" * 44, KEYS[1] * 2, "=" * 44)
        ),
        (with_box(1, key=KEYS[0]), f"{SECOND}.key", "must not also be the key of 'lb1'"),
        (with_network(1, hostname="LB1"), f"{SECOND}.network.hostname", "must not be 'LB1' on both boxes"),
        *((with_box(0, cable=text), f"{FIRST}.cable", "") for text in (*PRINTABLE, "eth9", "lo", "pair0", "x" * 16)),
        (with_interface(0, "eth2", on=False), f"{FIRST}.cable", "'eth2' is switched off"),
        (with_interface(0, "eth2", dhcp=True), f"{FIRST}.cable", "'eth2' uses DHCP"),
        (with_box(0, cable_address="192.0.2.1"), f"{FIRST}.cable_address", "must be an IP address with its prefix"),
        (with_box(0, cable_address="10.0.2.21/24"), f"{FIRST}.cable_address", "is not an address of 'eth2'"),
        (
            with_box(
                1,
                cable_address="192.0.2.9/30",
                network=with_interface(1, "eth2", addresses=("192.0.2.9/30",)).pair.boxes[1].network,
            ),
            f"{SECOND}.cable_address",
            "must be in 192.0.2.0/30, where the pair cable of 'lb1' ends",
        ),
        (with_interface(0, "eth2", mtu=1279), f"{FIRST}.{ETH('eth2', 'mtu')}", "must be at least 1280"),
        (
            with_interface(1, "eth0", addresses=("10.0.2.21/24", "2001:db8:1::22/64")),
            f"{SECOND}.{ETH('eth0', 'addresses')}",
            "10.0.2.21 is also an address of 'lb1'",
        ),
        (
            with_interface(1, "eth0", addresses=("10.0.2.22/25", "2001:db8:1::22/64")),
            f"{SECOND}.{ETH('eth0', 'addresses')}",
            "a different prefix length from the network 10.0.2.0/24 of 'lb1'",
        ),
        (
            with_network(0, interfaces=(*network(0).interfaces, Interface("pair0"))),
            f"{FIRST}.{ETH('pair0', 'name')}",
            "is the link between the boxes",
        ),
        (
            with_network(1, interfaces=(*network(1).interfaces, Interface("bond0", bond=Bond(("pair0",))))),
            f"{SECOND}.{ETH('pair0', 'name')}",
            "is the link between the boxes",
        ),
        (
            with_interface(1, "eth1", addresses=("10.2.0.22/24", "169.254.64.2/16")),
            f"{SECOND}.{ETH('eth1', 'addresses')}",
            "is in 169.254.64.0/30, the network of the link",
        ),
        (
            with_interface(1, "eth1", addresses=tuple(f"10.2.{n}.22/24" for n in range(255)) * 2),
            f"{SECOND}.{ETH('eth1', 'addresses')}",
            "more than 256 addresses",
        ),
        # Floating addresses.
        *(
            (floats(text), f"{FIRST}.{ETH('eth1', 'floating')}", words)
            for text, words in (
                ("10.2.0.21/24", "is an address of 'lb1' itself"),
                ("10.2.0.22/24", "is an address of 'lb2' itself"),
                ("10.2.0.11/24", "is a real server of virtual service 'web'"),
                ("10.2.0.0/24", "is the network address"),
                ("10.2.0.255/24", "is the broadcast address"),
                ("10.3.0.1/24", "is not in a network of 'eth1'"),
                ("10.2.0.1/16", "is not in a network of 'eth1'"),
                ("10.0.2.16/24", "is not in a network of 'eth1'"),
                ("10.2.0.1", "must be an IP address with its prefix length"),
                ("\u0661", "must be an IP address with its prefix length"),
                ("fe80::1/64", "must be the address of one host"),
                ("224.0.0.81/24", "must be the address of one host"),
            )
        ),
        (floats("10.2.0.1/24", "10.2.0.1/24"), f"{FIRST}.{ETH('eth1', 'floating')}", twice("10.2.0.1/24")),
        (
            with_both("eth0", floating=("10.0.2.15/24", "10.0.2.2/24")),
            f"{FIRST}.{ETH('eth0', 'floating')}",
            "10.0.2.2 is the default gateway",
        ),
        (
            with_interface(1, "eth1", floating=()),
            f"{FIRST}.{ETH('eth1', 'floating')}",
            "10.2.0.1/24 is missing on 'lb2'",
        ),
        (
            with_interface(0, "eth1", dhcp=True),
            f"{FIRST}.{ETH('eth1', 'floating')}",
            "cannot be on 'eth1', which uses DHCP",
        ),
        (
            with_interface(0, "eth1", on=False),
            f"{FIRST}.{ETH('eth1', 'floating')}",
            "cannot be on 'eth1', which is switched off",
        ),
        (many_floating(MAX_FLOATING), "pair.boxes", "must not have more than 4096 floating addresses"),
        # Services.
        (with_service(address="10.0.2.21"), "services[id=1].address", "10.0.2.21 is an address of 'lb1' itself"),
        (
            with_service(more_addresses=("10.0.2.22",)),
            "services[id=1].more_addresses",
            "10.0.2.22 is an address of 'lb2' itself",
        ),
        (with_service(address="10.0.2.15", port=443), "services[id=1].port", "is the web UI of the pair"),
        (
            with_interface(1, "eth0", dhcp=True),
            "services[id=1].address",
            "10.0.2.100 would be on 'eth0' of 'lb2', which uses DHCP",
        ),
        (
            with_service(real_servers=(RealServer(1, "10.0.2.22", 80),)),
            "services[id=1].real_servers[id=1].address",
            "is this box's own address on eth0",
        ),
        (
            # The kernel's sync refuses to tell of it.
            with_service(real_servers=(RealServer(1, "2001:db8:2::11", 80),)),
            "services[id=1].real_servers[id=1].address",
            "must be an IPv4 address, as the virtual address is",
        ),
        # What only one of the boxes has.
        (
            with_interface(1, "eth0", addresses=("10.7.0.22/24", "2001:db8:1::22/64")),
            "services[id=1].address",
            "no interface can carry 10.0.2.100",
        ),
        (
            dataclasses.replace(PAIR, management=Management(("10.0.2.0/24",), interfaces=("eth3",))),
            "management.interfaces",
            f"'eth3', which {NO_INTERFACE}",
        ),
        (
            dataclasses.replace(PAIR, management=Management(("10.0.2.0/24",), port=64504)),
            "management.port",
            "the boxes of the pair talk to each other on it",
        ),
        (
            with_network(0, policies=(PolicyRoute("10.0.2.22", "10.0.2.9"),)),
            f"{FIRST}.network.policies[10.0.2.22].source",
            "10.0.2.22 is an address of 'lb2' itself",
        ),
        # What a box that is alone has, and what its rules say.
        (dataclasses.replace(PAIR, network=SAMPLE.network), "network.hostname", "must be left out in a pair"),
        (
            dataclasses.replace(PAIR, tuning=Tuning((SettingChoice("net/core/somaxconn", "9"),))),
            "tuning.settings",
            "must be left out in a pair",
        ),
        (with_network(1, gateway="10.9.9.9"), f"{SECOND}.network.gateway", "is in no network of an interface"),
        (with_box(1, tuning=Tuning((SettingChoice("x", "9"),))), f"{SECOND}.tuning.settings[0].key", ""),
        (networks(9), "pair.boxes", "more than 8 networks"),
        (
            dataclasses.replace(SAMPLE, network=network(0)),
            "network.interfaces[eth0].floating",
            "has no meaning for a box that is not in a pair",
        ),
    ],
)
def test_it_is_refused_by_object_and_field(snapshot, path, words):
    found = [one for one in validate(snapshot) if one.path == path]
    assert any(words in one.message for one in found), validate(snapshot)
    assert all(one.object and one.path.endswith(f".{one.field}") and str(one).isprintable() for one in found)


def test_a_pair_that_uses_everything_is_good():
    assert validate(PAIR) == [] and pair_warnings(PAIR) == []
    assert validate(networks(8)) == []
    most = many_floating(MAX_FLOATING - 5)  # the virtual addresses count, too
    assert not [one for one in validate(most) if "4096" in one.message]


def test_a_problem_of_one_box_names_it_and_one_of_both_is_told_once():
    [one] = validate(with_network(1, gateway="10.9.9.9"))
    assert str(one).startswith("network of the second box 'lb2', gateway: ")
    [one] = validate(with_service(port=0, real_servers=()))
    assert one.object == "virtual service 'web'"
    only_first = Interface("eth7", addresses=("10.7.0.1/24",))
    snapshot = with_network(0, interfaces=(*network(0).interfaces, only_first))
    service = dataclasses.replace(SERVICES[0], address="10.7.0.100")
    found = validate(dataclasses.replace(snapshot, services=(service,)))
    assert [one.object for one in found if one.path == "services[id=1].address"] == []  # the gateway may lead there
    bare = dataclasses.replace(snapshot, services=(service,))
    boxes = [
        dataclasses.replace(one, network=dataclasses.replace(one.network, gateway="", policies=()))
        for one in bare.pair.boxes
    ]
    found = validate(dataclasses.replace(bare, pair=dataclasses.replace(bare.pair, boxes=tuple(boxes))))
    assert [one.object for one in found] == ["virtual service 'web' on the second box 'lb2'"]


def test_the_cable_has_the_mtu_of_what_it_stands_on():
    small = (Interface("eth3", mtu=1000), Interface("eth2", addresses=("192.0.2.1/30",), vlan=Vlan("eth3", 7)))
    snapshot = with_network(0, interfaces=(*network(0).interfaces[:2], *small))
    assert [one.path for one in validate(snapshot)] == [f"{FIRST}.{ETH('eth2', 'mtu')}"]


def test_boxes_without_a_common_network_do_not_hear_each_other():
    alone = Interface("eth2", addresses=("192.0.2.9/30",))
    others = tuple(
        dataclasses.replace(one, addresses=(f"10.{n}.7.1/24",), floating=())
        for n, one in enumerate(network(1).interfaces[:2], 7)
    )
    snapshot = with_box(
        1,
        cable_address="192.0.2.9/30",
        network=dataclasses.replace(network(1), gateway="", policies=(), interfaces=(*others, alone)),
    )
    assert any("so that each hears whether the other is alive" in one.message for one in validate(snapshot))


def test_one_common_network_is_a_warning():
    boxes = tuple(
        dataclasses.replace(one, network=dataclasses.replace(one.network, gateway="", policies=(), interfaces=(only,)))
        for one, only in zip(PAIR.pair.boxes, (network(0).interfaces[2], network(1).interfaces[2]), strict=True)
    )
    snapshot = dataclasses.replace(with_pair(boxes=boxes), services=())
    assert validate(snapshot) == []
    [warning] = pair_warnings(snapshot)
    assert (warning.path, warning.field) == ("pair.boxes", "boxes") and "only one network" in warning.message


def test_a_member_of_a_bond_is_no_cable():
    bond = Interface("bond0", bond=Bond(("eth2", "eth3")))
    snapshot = with_network(0, interfaces=(*network(0).interfaces, bond))
    assert any(one.path == f"{FIRST}.{ETH('eth2', 'addresses')}" for one in validate(snapshot))


def test_a_box_takes_the_configuration_of_a_pair_that_has_its_key():
    for new, key, refused in (
        (PAIR, KEYS[0], False),
        (PAIR, KEYS[1], False),
        (PAIR, "f" * 43 + "=", True),
        (PAIR, "", True),
        (SAMPLE, "", False),
    ):
        assert [one.path for one in membership_problems(new, key)] == ["pair.id"] * refused


def test_a_pair_with_any_other_value_is_refused_by_a_field_or_harmless():
    choices, refused = random.Random(7), 0
    data = to_data(PAIR)
    while refused < 100:
        mutation = mutated(data, choices)
        try:
            snapshot = from_data(mutation.data)
        except SnapshotError as error:
            assert error.path.startswith(mutation.path), mutation.what
            refused += 1
            continue
        found = validate(snapshot)
        assert all(one.object and one.field and one.message and str(one).isprintable() for one in found), mutation.what
        refused += bool(found)
        if not found:
            assert render(snapshot) == render(snapshot)


def test_both_boxes_are_reviewed_and_no_other_box_takes_it():
    assert [one["path"] for one in review(PAIR, SAMPLE, None)["problems"]] == ["pair.id"]
    found = review(with_pair(advert=300), PAIR, None, key=KEYS[1])
    assert found["problems"] == [] and set(found["diff"]) == {"lb1/keepalived.conf", "lb2/keepalived.conf"}


def test_an_admin_needs_a_way_back_from_both_boxes():
    assert admin_problem(PAIR, "10.0.2.77") is None
    far = dataclasses.replace(PAIR, management=Management(("0.0.0.0/0",)))
    assert admin_problem(far, "198.51.100.1") is None
    boxes = (far.pair.boxes[0], with_network(1, gateway="").pair.boxes[1])
    problem = admin_problem(dataclasses.replace(far, pair=dataclasses.replace(far.pair, boxes=boxes)), "198.51.100.1")
    assert (problem.path, problem.object) == (f"{SECOND}.network.gateway", "network of the second box 'lb2'")


@pytest.mark.parametrize("interfaces", [(), ("eth0",)])
def test_the_web_page_may_answer_on_some_interfaces_of_both(interfaces):
    snapshot = dataclasses.replace(PAIR, management=Management(("10.0.2.0/24",), interfaces=interfaces))
    assert validate(snapshot) == []
