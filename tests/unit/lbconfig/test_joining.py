"""From two boxes to the proposal of a pair, and what is wrong with a choice."""

import dataclasses

import pytest
from lbconfig_pairs import ID, KEYS, SERVICES
from tests.texts import NO_INTERFACE

from lbconfig.joining import Choice, Facts, candidates, clocks, differences, joined, problems, proposed
from lbconfig.model.snapshot import (
    Bond,
    Interface,
    Management,
    Network,
    PolicyRoute,
    RealServer,
    Snapshot,
    Tuning,
    Vlan,
)
from lbconfig.pair import heartbeats, named_floating, view
from lbconfig.validate.cards import Card
from lbconfig.validate.services import validate


def alone(*addresses: str) -> Snapshot:
    """A box without services, and one card."""
    network = Network("lb1", interfaces=(Interface("eth0", addresses=addresses),))
    return Snapshot(network=network, management=Management(("10.0.2.0/24",)))


FIRST = Snapshot(
    (SERVICES[0],),
    Network(
        "lb1",
        "10.0.2.2",
        (Interface("eth0", addresses=("10.0.2.15/24",)), Interface("eth1", addresses=("10.2.0.1/24",))),
        policies=(PolicyRoute("10.0.2.100", "10.0.2.9"),),
    ),
    Management(("10.0.2.0/24",)),
)


def cards(*names: str) -> tuple[Card, ...]:
    return tuple(Card(name, mac=f"52:54:00:00:00:{number:02}") for number, name in enumerate(names, 1))


def facts(**fields) -> Facts:
    network = Network("lb2", interfaces=(Interface("eth0", addresses=("10.0.2.30/24",)),))
    return dataclasses.replace(Facts("1.4", "s", cards("eth0", "eth1", "eth2"), network, Tuning(), 1000), **fields)


def changed(choice: Choice, **fields) -> Choice:
    return dataclasses.replace(choice, **fields)


def end(choice: Choice, number: int, **fields) -> Choice:
    ends = list(choice.ends)
    ends[number] = dataclasses.replace(ends[number], **fields)
    return changed(choice, ends=tuple(ends))


def wrong(choice: Choice, snapshot: Snapshot | None = None, other: Facts | None = None, taken=()) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in problems(snapshot or FIRST, other or facts(), choice, ID, KEYS, taken):
        found[one.path] = f"{found.get(one.path, '')} {one.message}".strip()
    return found


def test_what_the_first_box_had_floats_and_each_box_has_others():
    choice = proposed(FIRST, facts())
    pair = joined(FIRST, facts(), choice, ID, KEYS).pair
    first, second = (one.network for one in pair.boxes)
    assert [one.addresses for one in first.interfaces] == [("10.0.2.16/24",), ("10.2.0.2/24",)]
    assert [one.addresses for one in second.interfaces] == [("10.0.2.30/24",), ("10.2.0.3/24",)]
    assert named_floating(first) == named_floating(second) == {"10.0.2.15": "eth0", "10.2.0.1": "eth1"}
    assert (first.hostname, second.hostname, second.gateway) == ("lb1", "lb2", "10.0.2.2")
    assert len(heartbeats(pair, 0)) == 2 and wrong(choice) == {}


@pytest.mark.parametrize(
    "interfaces",
    [
        (Interface("eth0", addresses=("10.0.2.15/24", "2001:db8:1::15/64")),),
        (
            Interface("eth0", addresses=("10.0.2.15/24",)),
            Interface("eth0.7", addresses=("10.7.0.1/16",), vlan=Vlan("eth0", 7)),
        ),
        (Interface("eth0", addresses=("10.0.2.15/24", "10.3.0.1/26")), Interface("eth1", dhcp=True)),
        (Interface("eth0", addresses=("10.0.2.15/24",)), Interface("eth1", addresses=("10.9.0.1/24",), on=False)),
        (Interface("eth0", addresses=("2001:db8::ffff/112",)),),
    ],
    ids=["both families", "VLAN", "DHCP beside", "switched off", "IPv6 alone"],
)
def test_boxes_of_many_kinds_get_a_proposal_without_a_problem(interfaces):
    box = dataclasses.replace(alone(), network=Network("lb1", interfaces=interfaces))
    other = facts(network=Network("lb2"))
    assert validate(box) == [] and wrong(proposed(box, other), box, other) == {}


def test_an_address_that_somebody_has_is_not_proposed():
    vip = dataclasses.replace(SERVICES[0], address="10.0.2.16", real_servers=(RealServer(1, "10.2.0.2", 80),))
    busy = dataclasses.replace(FIRST, services=(vip,))
    choice = proposed(busy, facts(network=Network("lb2")), taken=("10.0.2.17", "10.2.0.3"))
    assert [one.own for one in choice.ends] == [
        (("10.0.2.18/24",), ("10.0.2.19/24",)),
        (("10.2.0.4/24",), ("10.2.0.5/24",)),
    ]


def test_both_boxes_ask_for_the_next_free_addresses():
    found = candidates(FIRST, facts())
    assert len(found) == len(set(found)) == 12
    assert found[0] == "10.0.2.16" and "10.2.0.2" in found and "10.0.2.30" not in found


def test_the_search_goes_round_at_the_end_of_a_network():
    last = alone("10.0.2.254/24")
    assert proposed(last, facts(network=Network("lb2"))).ends[0].own == (("10.0.2.1/24",), ("10.0.2.2/24",))


def test_an_address_that_both_boxes_have_is_kept_by_neither():
    twin = alone("10.0.2.15/24")
    choice = proposed(twin, facts(network=dataclasses.replace(twin.network, hostname="lb2")))
    assert choice.ends[0].own == (("10.0.2.16/24",), ("10.0.2.17/24",))


def test_a_network_without_room_is_named_beside_its_field():
    full, other = alone("10.0.2.1/24", "10.9.0.1/30"), facts(network=Network("lb2"))
    choice = proposed(full, other)
    assert choice.ends[0].own == (("10.0.2.2/24", "10.9.0.2/30"), ("10.0.2.3/24",))
    assert "is not in a network of 'eth0'" in wrong(choice, full, other)["ends[0].own[1]"]


def test_a_tiny_network_of_nobody_else_is_the_cable_and_floats_not():
    ends = [
        Network(name, interfaces=(Interface("eth0", addresses=(front,)), Interface(card, addresses=(cable,))))
        for name, front, card, cable in (
            ("lb1", "10.0.2.15/24", "eth2", "192.0.2.1/30"),
            ("lb2", "10.0.2.30/24", "eth3", "192.0.2.2/30"),
        )
    ]
    first = dataclasses.replace(FIRST, services=(), network=ends[0])
    other = facts(network=ends[1], cards=cards("eth0", "eth3"))
    choice = proposed(first, other)
    assert choice.cables == ("eth2", "eth3") and choice.cards == (("eth0", "eth0"), ("eth2", "eth3"))
    assert choice.ends[1].floating == () and choice.ends[1].own == (("192.0.2.1/30",), ("192.0.2.2/30",))
    assert wrong(choice, first, other) == {}


def test_a_free_card_can_be_the_cable():
    ends = ("192.0.2.1/30", "192.0.2.2/30")
    choice = changed(proposed(FIRST, facts()), cables=("eth2", "eth2"), cable_addresses=ends)
    pair = joined(FIRST, facts(), choice, ID, KEYS).pair
    assert wrong(choice) == {} and pair.boxes[1].network.interfaces[-1] == Interface("eth2", addresses=ends[1:])
    assert next(one for one in heartbeats(pair, 0) if one.cable).peer == "192.0.2.2"


def test_what_is_made_of_cards_is_made_of_the_second_boxs_cards():
    made = Network("lb1", interfaces=(
        Interface("eth0"), Interface("eth1"),
        Interface("bond0", bond=Bond(("eth0", "eth1"))),
        Interface("bond0.7", addresses=("10.0.2.15/24",), vlan=Vlan("bond0", 7)),
    ))  # fmt: skip
    first = dataclasses.replace(FIRST, services=(), network=made)
    other = facts(network=Network("lb2"), cards=cards("ens1", "ens2"))
    choice = changed(proposed(first, other), cards=(("eth0", "ens1"), ("eth1", "ens2")))
    second = view(joined(first, other, choice, ID, KEYS), 1).network
    assert next(one for one in second.interfaces if one.bond).members == ("ens1", "ens2")
    assert wrong(choice, first, other) == {}


OWN = {
    "ends[0].own[0]": [
        ((), "for each box"),
        (("10.0.2.15/24",), "address of 'lb1' itself"),
        (("10.0.2.x/24",), "10.0.2.x"),
    ],
    "ends[0].own[1]": [(("10.0.2.16/24",), "also an address of 'lb1'")],
    "ends[1].own[0]": [(("10.2.0.11/24",), "virtual service 'web'")],
    "ends[1].own[1]": [(("10.7.0.3/24",), "not in a network"), (("10.2.0.3/25",), "prefix length")],
}


@pytest.mark.parametrize(("path", "given", "said"), [(path, *one) for path, some in OWN.items() for one in some])
def test_each_bad_address_is_named_beside_its_field(path, given, said):
    choice = proposed(FIRST, facts())
    number, box = int(path[5]), int(path[12])
    own = list(choice.ends[number].own)
    own[box] = given
    assert said in wrong(end(choice, number, own=tuple(own))).get(path, "")


@pytest.mark.parametrize(
    ("fields", "path", "said"),
    [
        ({"hostname": "lb1"}, "hostname", "on both boxes"),
        ({"hostname": "not a name"}, "hostname", "not a name"),
        (
            {"cards": (("eth0", "eth0"), ("eth1", "eth9"))},
            "cards[1]",
            "'eth9' is not in the second box; it has eth1, eth2",
        ),
        ({"cards": (("eth0", "eth0"), ("eth1", "eth0"))}, "cards[1]", "another card"),
        ({"cables": ("eth0", "eth7")}, "cables[1]", "'eth7' is not in the second box"),
        ({"cables": ("eth9", "eth0")}, "cables[0]", f"'eth9' {NO_INTERFACE}"),
        ({"cable_addresses": ("192.0.2.1/30", "192.0.2.9/30")}, "cable_addresses[1]", "192.0.2.0/30"),
    ],
)
def test_each_bad_input_is_named_beside_its_field(fields, path, said):
    assert said in wrong(changed(proposed(FIRST, facts()), **fields)).get(path, "")


def test_no_common_network_is_told():
    first = dataclasses.replace(FIRST, services=(), network=Network("lb1", interfaces=(Interface("eth0", dhcp=True),)))
    assert "must share a network in which both" in str(wrong(proposed(first, facts()), first))


def test_an_address_that_answers_is_refused_unless_the_box_has_it_already():
    choice = proposed(FIRST, facts())
    assert wrong(choice, taken=("10.0.2.16", "10.0.2.30")) == {
        "ends[0].own[0]": "10.0.2.16 is taken: somebody in that network answers for it"
    }


def test_another_version_or_schema_is_no_pair():
    mine = facts(network=Network("lb1"))
    assert not [*differences(mine, facts())]
    assert "version '1.5' and this box '1.4'" in next(differences(mine, facts(version="1.5")))
    assert "a different configuration format" in next(differences(mine, facts(schema="t")))


def test_a_clock_that_shows_1970_is_told():
    assert clocks(1_790_000_000, facts(time=1_790_000_030)) == ""
    assert "'lb2' is 20717 days behind" in clocks(1_790_000_000, facts(time=1000))
    for absurd in (-(10**30), 10**30):
        assert clocks(1000, facts(time=absurd))


def test_facts_of_any_kind_break_nothing():
    """They come from the other box, which may be anybody who knows the code."""
    none = Interface("", addresses=("", "1/2/3", "10.0.2.1/99", "::/0"))
    other = facts(network=Network("x" * 300, "?", (none, Interface("eth0", on=False))), cards=())
    assert candidates(FIRST, other) and wrong(proposed(FIRST, other), other=other)


@pytest.mark.parametrize(
    ("first", "second", "proposal"),
    [
        ("lb1", "lb7", "lb7"),
        ("fairlead", "fairlead", "fairlead-2"),
        ("Fairlead", "fairlead", "Fairlead-2"),
        ("lb1.example.net", "lb1.example.net", "lb2.example.net"),
        ("lb9", "lb9", "lb10"),
        ("x" * 63, "x" * 63, "x" * 61 + "-2"),
    ],
)
def test_two_boxes_of_one_name_get_two(first, second, proposal):
    here = dataclasses.replace(FIRST, network=dataclasses.replace(FIRST.network, hostname=first))
    there = facts(network=dataclasses.replace(facts().network, hostname=second))
    choice = proposed(here, there)
    assert choice.hostname == proposal
    assert not validate(joined(here, there, choice, ID, KEYS))
