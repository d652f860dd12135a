"""A pair that is made, changed and ended, in sentences."""

import dataclasses
import itertools

import pytest
from lbconfig_pairs import KEYS, PAIR, drawn_pairs, network, with_both, with_box, with_network, with_pair

from lbconfig.diff.pair import cuts_the_link
from lbconfig.diff.services import summary
from lbconfig.model.snapshot import Bond, Interface, Snapshot, Tuning, Vlan
from lbconfig.pair import view
from lbconfig.render import render

ALONE = dataclasses.replace(view(PAIR, 0), pair=None)


def said(old: Snapshot, new: Snapshot) -> dict[str, tuple[str, ...]]:
    return {f"{one.kind} {one.object}": one.sentences for one in summary(old, new)}


def test_a_pair_is_made():
    found = said(ALONE, PAIR)
    assert found["added pair"] == (
        "lb1 and lb2 become one director: if one fails, the other one takes over.",
        "lb1 is the first box; its end of the pair cable is eth2 (192.0.2.1/30).",
        "lb2 is the second box; its end of the pair cable is eth2 (192.0.2.2/30).",
        "The box that leads announces itself every 250 ms.",
        "The box that leads hands over by itself when the other one is fitter.",
        "Floating address 10.0.2.15/24 is held by the box that leads.",
        "Floating address 2001:db8:1::15/64 is held by the box that leads.",
        "Floating address 10.2.0.1/24 is held by the box that leads.",
        "lb2 has 10.0.2.22/24, 2001:db8:1::22/64 on eth0 and 10.2.0.22/24, 2001:db8:2::22/64 on eth1 and "
        "192.0.2.2/30 on eth2.",
    )
    moved = dataclasses.replace(ALONE, network=dataclasses.replace(ALONE.network, gateway=""))
    assert said(moved, PAIR)["changed lb1: network"] == ("Default gateway changes from none to 10.0.2.2.",)


@pytest.mark.parametrize(
    ("new", "cuts"),
    [
        (PAIR, False),
        (with_pair(advert=1000), False),
        (with_network(0, hostname="other"), False),
        (with_both("eth0", addresses=("10.0.2.77/24",)), False),
        (with_both("eth2", floating=("192.0.2.3/30",)), False),
        (with_box(1, key=KEYS[0]), True),
        (with_box(1, cable_address="192.0.2.6/30"), True),
        (with_box(0, cable="eth0", cable_address="10.0.2.21/24"), True),
        (with_both("eth2", mtu=9000), True),
        (ALONE, True),
    ],
)
def test_what_cuts_the_link_is_tried_by_both_at_once(new, cuts):
    assert cuts_the_link(PAIR, new) is cuts is cuts_the_link(new, PAIR)


def test_below_a_cable_that_is_a_vlan_lies_its_bond():
    def over(parent):
        bond = Interface("bond0", bond=Bond((parent,)))
        vlan = Interface("eth2", addresses=("192.0.2.1/30",), vlan=Vlan("bond0", 5))
        return with_network(0, interfaces=(*network(0).interfaces[:2], bond, vlan))

    assert cuts_the_link(over("eth3"), over("eth4")) and not cuts_the_link(over("eth3"), over("eth3"))


def test_a_pair_is_ended():
    found = summary(PAIR, ALONE)[0]
    assert (found.kind, found.object) == ("removed", "pair") and found.impact
    assert found.sentences[0] == "lb1 and lb2 are no longer one director."
    assert "Floating address 10.2.0.1/24 is removed." in found.sentences


@pytest.mark.parametrize(
    ("new", "thing", "sentence", "impact"),
    [
        (with_pair(advert=100), "pair", "The box that leads announces itself every 100 ms.", ""),
        (
            with_pair(hand_over_by_itself=False),
            "pair",
            "The box that leads hands over only when it is told to.",
            "",
        ),
        (with_pair(id="f" * 32), "pair", "This is another pair.", ""),
        (
            with_both("eth1", floating=("10.2.0.1/24", "10.2.0.2/24")),
            "pair",
            "Floating address 10.2.0.2/24 is added.",
            "",
        ),
        (with_both("eth1", floating=()), "pair", "Floating address 10.2.0.1/24 is removed.", "Connections to this"),
        (
            with_box(1, key=KEYS[0]),
            "pair",
            "lb2 has another key for the link between the boxes.",
            "link is set up again",
        ),
        (
            with_box(1, cable="eth1", cable_address="10.2.0.22/24"),
            "pair",
            "lb2: the pair cable ends at eth1 (10.2.0.22/24) instead of eth2 (192.0.2.2/30).",
            "link is set up again",
        ),
        (with_network(1, gateway=""), "lb2: network", "Default gateway changes from 10.0.2.2 to none.", "reached"),
        (
            with_box(1, tuning=Tuning(spread=False)),
            "lb2: hardware",
            "Queues and interrupts of the network cards are left as the kernel has them.",
            "",
        ),
    ],
)
def test_a_pair_changes(new, thing, sentence, impact):
    found = next(one for one in summary(PAIR, new) if one.object == thing)
    assert sentence in found.sentences and impact in (found.impact or "")


def test_one_common_network_is_told():
    boxes = tuple(
        dataclasses.replace(one, network=dataclasses.replace(one.network, interfaces=network(n).interfaces[2:]))
        for n, one in enumerate(PAIR.pair.boxes)
    )
    found = next(one for one in summary(PAIR, with_pair(boxes=boxes)) if one.object == "pair")
    assert "only one network" in found.impact


def test_what_cannot_be_read_is_told_anyway():
    """An import shows what it would become beside what is wrong with it."""
    broken = with_box(1, cable_address="x", network=dataclasses.replace(network(1), interfaces=()))
    assert "pair" in {one.object for one in summary(PAIR, broken)}
    assert "pair" in {one.object for one in summary(ALONE, broken)}


def test_nothing_changes():
    assert summary(PAIR, PAIR) == []


def test_whatever_changes_a_file_is_told():
    """But for services, which have tests of their own."""
    for old, other in itertools.pairwise(drawn_pairs()):
        new = dataclasses.replace(other, services=old.services, firewall=old.firewall)
        if render(old) != render(new):
            changes = summary(old, new)
            assert changes and all(one.sentences and all(one.sentences) for one in changes)
