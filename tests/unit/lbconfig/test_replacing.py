"""The part of a dead box for a new one: its network on other cards, with another key."""

import dataclasses

import pytest
from lbconfig_pairs import KEYS, PAIR, drawn_pairs

from lbconfig.joining import Facts
from lbconfig.model.snapshot import Network, Tuning
from lbconfig.replacing import alive, cards, own_addresses, problems, replaced
from lbconfig.validate.cards import Card
from lbconfig.validate.services import validate

KEY = "c" * 42 + "A="


def facts(*names: str) -> Facts:
    found = tuple(Card(name, mac=f"52:54:00:00:00:{number:02}") for number, name in enumerate(names))
    return Facts("1", "0" * 64, (*found, Card("bond0", "bond")), Network(), Tuning(), 0)


@pytest.mark.parametrize(
    ("there", "wanted"),
    [
        (("eth0", "eth1", "eth2"), ("eth0", "eth1", "eth2")),
        (("ens1", "eth1", "eth0"), ("eth0", "eth1", "ens1")),
        (("ens1", "ens2", "ens3"), ("ens1", "ens2", "ens3")),
        (("eth0", "ens1"), ("eth0", "ens1", "eth2")),  # there is none for the last one
    ],
)
def test_cards_of_the_same_name_first_and_then_those_that_nothing_needs(there, wanted):
    found = cards(PAIR.pair.boxes[1], facts(*there))
    assert found == tuple(zip(("eth0", "eth1", "eth2"), wanted, strict=True))


@pytest.mark.parametrize("box", [0, 1])
def test_all_but_its_key_and_its_cards_stays(box):
    found = replaced(PAIR, box, {"eth0": "ens1", "eth2": "ens2"}, KEY)
    old, new = PAIR.pair.boxes[box], found.pair.boxes[box]
    assert validate(found) == [] and found.pair.boxes[1 - box] == PAIR.pair.boxes[1 - box]
    assert (new.name, new.key, new.cable, new.cable_address) == (old.name, KEY, "ens2", old.cable_address)
    assert [one.addresses for one in new.network.interfaces] == [one.addresses for one in old.network.interfaces]
    assert dataclasses.replace(found, pair=None) == dataclasses.replace(PAIR, pair=None)


def test_of_any_pair_it_is_valid():
    for snapshot, box in ((one, box) for one in drawn_pairs() for box in (0, 1)):
        swaps = dict(cards(snapshot.pair.boxes[box], facts()))
        assert validate(replaced(snapshot, box, swaps, KEY)) == []


@pytest.mark.parametrize(
    ("swaps", "key", "path"),
    [
        ({"eth0": "eth0", "eth1": "eth1", "eth2": "ens9"}, KEY, "cards[2]"),
        ({"eth0": "eth0", "eth1": "eth0", "eth2": "eth2"}, KEY, "cards[1]"),
        ({"eth0": "eth0", "eth1": "eth1", "eth2": "eth2"}, KEYS[0], "pair.boxes[1].key"),
        ({"eth0": "eth0", "eth1": "eth1", "eth2": "eth2"}, "no key", "pair.boxes[1].key"),
    ],
)
def test_what_is_wrong_names_its_place(swaps, key, path):
    found = problems(PAIR, 1, facts("eth0", "eth1", "eth2"), swaps, key)
    assert path in {one.path for one in found}, found
    assert problems(PAIR, 1, facts("eth0", "eth1", "eth2"), {}, KEY) == []


def test_a_dead_box_answers_for_nothing():
    box = PAIR.pair.boxes[1]
    assert "10.0.2.15" not in own_addresses(box) and "192.0.2.2" in own_addresses(box)
    assert alive(box, {"10.0.2.15", "10.0.2.99"}) == ""
    assert alive(box, {"10.2.0.22"}) == "10.2.0.22, an address of 'lb2', is still in use. Switch 'lb2' off first."
