"""Network cards that a configuration names and the box does not have, and others instead."""

import dataclasses
import typing

import pytest
from lbconfig_samples import SAMPLE

from lbconfig.model.firewall import Firewall, Rule
from lbconfig.model.network import Bond, Bridge, Interface, Network, PolicyRoute, StaticRoute, Vlan
from lbconfig.model.pair import Pair, PairBox
from lbconfig.model.snapshot import CardChoice, Fallback, HealthCheck, Management, Snapshot, Tuning, from_json, to_json
from lbconfig.validate import cards
from lbconfig.validate.cards import Card
from lbconfig.validate.services import validate

# Texts that name no interface. A new one is written down here, or marked with network_model.INTERFACE.
OTHER_TEXTS = {
    "Interface": {"addresses", "floating", "note"},
    "Management": {"allow", "certificate", "key"},
    "Network": {"dns", "gateway", "gateway6", "hostname", "ntp", "search"},
    "Pair": {"id"},
    "PairBox": {"cable_address", "key"},
    "PolicyRoute": {"source", "via"},
    "RealServer": {"address", "name"},
    "Rule": {"destinations", "name", "note", "ports", "sources"},
    "SettingChoice": {"key", "value"},
    "SorryPage": {"paragraphs", "title"},
    "StaticRoute": {"destination", "via"},
    "VirtualService": {"address", "more_addresses", "more_ports", "name", "note", "tags"},
}
OF_SERVERS = {HealthCheck, Fallback}  # what is asked there, and nothing of the box itself


def texts(kind, seen=OF_SERVERS):
    """(class, field, whether it is marked) of every text field that is in there, however deep."""
    hints = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):
        for inner in leaves(hints[field.name]):
            if inner is str:
                yield kind.__name__, field.name, bool(field.metadata.get("interface"))
            elif dataclasses.is_dataclass(inner) and inner not in seen:
                yield from texts(inner, seen | {inner})


def leaves(hint):
    inner = typing.get_args(hint)
    return [leaf for one in inner for leaf in leaves(one)] if inner else [hint]


def test_every_text_names_an_interface_or_does_not():
    assert {(kind, field) for kind, field, marked in texts(Snapshot) if not marked} == {
        (kind, field) for kind, fields in OTHER_TEXTS.items() for field in fields
    }


# The card c2 in every field that may name one. Not all of it can be had at once.
EVERYWHERE = dataclasses.replace(
    SAMPLE,
    network=Network(
        interfaces=(
            Interface("c1", addresses=("10.1.0.2/24",)),
            Interface("c2", addresses=("10.2.0.1/24",), note="servers"),
            Interface("vlan7", vlan=Vlan("c2", 7)),
            Interface("bond0", bond=Bond(("c1", "c2"), primary="c2")),
            Interface("br0", bridge=Bridge(("c2",))),
        ),
        routes=(StaticRoute("10.9.0.0/16", "10.2.0.9", "c2"), StaticRoute("10.8.0.0/16", "10.1.0.9", "c1")),
        policies=(PolicyRoute("10.2.0.1", "10.2.0.9", "c2"),),
    ),
    management=Management(("10.0.0.0/8",), interfaces=("c1", "c2")),
    firewall=Firewall((Rule(1, "servers", interface="c2"), Rule(2, "others", note="c2"))),
    tuning=Tuning(cards=(CardChoice("c2", queues=2),)),
    pair=Pair("0" * 32, (PairBox(Network(), Tuning(), "c2", "", ""), PairBox(Network(), Tuning(), "c1", "", ""))),
)


def test_the_sample_has_every_field_that_names_an_interface():
    marked = {(kind, field) for kind, field, is_marked in texts(Snapshot) if is_marked}
    assert {(kind, field) for kind, field in marked if not names(EVERYWHERE, kind, field)} == set()


def names(value, kind, field):
    """Whether this field says c2 anywhere in there."""
    if isinstance(value, tuple):
        return any(names(one, kind, field) for one in value)
    if not dataclasses.is_dataclass(value):
        return False
    if type(value).__name__ == kind and (getattr(value, field) == "c2" or "c2" in getattr(value, field)):
        return True
    return any(names(getattr(value, one.name), kind, field) for one in dataclasses.fields(value))


def test_another_card_is_taken_in_every_place_and_nothing_else_changes():
    text = to_json(EVERYWHERE)
    note = '"note": "c2"'  # somebody's own words
    assert text.count(note) == 1
    wanted = text.replace(note, "NOTE").replace('"c2"', '"enp3s0"').replace("NOTE", note)
    changed = cards.swapped(EVERYWHERE, {"c2": "enp3s0"})
    assert to_json(changed) == to_json(from_json(wanted))
    assert changed.services is EVERYWHERE.services
    assert cards.swapped(EVERYWHERE, {}) is EVERYWHERE


def test_two_cards_change_places_with_two_others():
    changed = cards.swapped(EVERYWHERE, {"c1": "p1", "c2": "p2"})
    assert changed.network.interfaces[3].bond == Bond(("p1", "p2"), primary="p2")
    assert [one.name for one in changed.network.interfaces[:2]] == ["p1", "p2"]


PRESENT = (
    Card("c1", mac="52:54:00:00:00:01", up=True, speed=1000),
    Card("enp3s0", mac="52:54:00:00:00:03", up=True),
    Card("enp4s0", mac="52:54:00:00:00:04"),
    Card("bond0", "bond", "52:54:00:00:00:01", up=True),
    Card("tunl0", mac="0.0.0.0"),
    Card("gretap0", mac="00:00:00:00:00:00"),
)
TWO = Snapshot(
    network=Network(
        interfaces=(
            Interface("c1", addresses=("10.1.0.2/24",)),
            Interface("c2", addresses=("10.2.0.1/24", "fd00::1/64"), note="servers"),
        )
    )
)


def with_interfaces(*more):
    network = dataclasses.replace(TWO.network, interfaces=(*TWO.network.interfaces, *more))
    return dataclasses.replace(TWO, network=network)


def test_what_is_missing_is_told_with_its_use():
    wish = with_interfaces(
        Interface("c5", dhcp=True), Interface("bond1", bond=Bond(("c6", "c1"))), Interface("v7", vlan=Vlan("c7", 7))
    )
    assert [one.sentence for one in cards.missing(wish.network, PRESENT)] == [
        "c2 (servers, 10.2.0.1/24, fd00::1/64) is not in this box.",
        "c5 (DHCP) is not in this box.",
        "c6 (member of bond1) is not in this box.",
        "c7 (carries v7) is not in this box.",
    ]
    assert cards.missing(with_interfaces(Interface("bond1", bond=Bond(("c1",)))).network, (*PRESENT, Card("c2"))) == ()


@pytest.mark.parametrize(
    ("wish", "names"),
    [
        (TWO, ["enp3s0", "enp4s0"]),
        (with_interfaces(Interface("enp4s0")), ["enp3s0", "enp4s0"]),  # an entry that sets nothing up
        (with_interfaces(Interface("enp4s0", on=False)), ["enp3s0", "enp4s0"]),
        (with_interfaces(Interface("enp4s0", note="the spare one")), ["enp3s0"]),
        (with_interfaces(Interface("v7", vlan=Vlan("enp4s0", 7))), ["enp3s0"]),
        (dataclasses.replace(TWO, firewall=Firewall((Rule(1, "a", interface="enp3s0"),))), ["enp4s0"]),
    ],
)
def test_cards_that_nothing_uses(wish, names):
    assert [card.name for card in cards.free(wish, PRESENT)] == names


def test_an_entry_that_sets_nothing_up_goes_for_the_card_that_is_taken():
    changed = cards.swapped(with_interfaces(Interface("enp4s0", on=False)), {"c2": "enp4s0"})
    assert [(one.name, one.note) for one in changed.network.interfaces] == [("c1", ""), ("enp4s0", "servers")]
    assert validate(dataclasses.replace(changed, management=SAMPLE.management)) == []


def test_what_the_box_cannot_make_is_a_problem_that_names_what_it_has():
    wish = with_interfaces(Interface("enp3s0", bond=Bond(("c1",))))
    assert [str(one) for one in cards.problems(wish, Snapshot(), PRESENT)] == [
        "interface 'c2', name: is not in this box; cards that nothing uses: enp4s0 (52:54:00:00:00:04, no link)",
        "interface 'enp3s0', name: is the name of a network card, so no bond can have it",
    ]
    assert "it has no card that nothing uses" in cards.problems(TWO, Snapshot(), PRESENT[:1])[0].message


def test_a_card_that_got_lost_while_it_ran_is_a_problem_only_where_it_changes():
    assert cards.problems(TWO, TWO, PRESENT) == []
    larger = dataclasses.replace(TWO.network.interfaces[1], mtu=9000)
    wish = dataclasses.replace(TWO, network=Network(interfaces=(TWO.network.interfaces[0], larger)))
    assert [one.path for one in cards.problems(wish, TWO, PRESENT)] == ["network.interfaces[c2].name"]


@pytest.mark.parametrize(
    ("swaps", "problem"),
    [
        ([("c2", "enp3s0")], None),
        ([("c1", "enp3s0"), ("c2", "enp4s0")], None),
        ([("c9", "enp3s0")], "card 'c9', name: the configuration has no card of this name"),
        ([("c2", "enp3s0"), ("c2", "enp4s0")], "card 'c2', name: it is named twice"),
        ([("c2", "c1")], "card 'c2', take: must be one of enp3s0, enp4s0, not 'c1'"),
        ([("c2", "")], "card 'c2', take: must be one of enp3s0, enp4s0, not ''"),
        ([("c1", "enp3s0"), ("c2", "enp3s0")], "card 'c2', take: 'enp3s0' is taken already"),
    ],
)
def test_which_cards_can_be_taken(swaps, problem):
    assert [str(one) for one in cards.swap_problems(TWO, swaps, PRESENT)] == ([problem] if problem else [])
    if problem is None:
        assert cards.missing(cards.swapped(TWO, dict(swaps)).network, PRESENT) == ()
