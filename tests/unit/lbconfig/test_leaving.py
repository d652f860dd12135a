"""What the boxes of a pair become when it ends: both valid, and no address twice."""

import dataclasses

import pytest
from lbconfig_pairs import PAIR, drawn_pairs

from lbconfig.leaving import leaving, staying
from lbconfig.model.snapshot import Interface, PolicyRoute
from lbconfig.validate.services import validate
from lbconfig.wanted.table import wanted


def addresses(snapshot) -> set[str]:
    return {text.partition("/")[0] for one in snapshot.network.interfaces for text in one.addresses}


@pytest.mark.parametrize("box", [0, 1])
def test_who_stays_has_what_floated_and_serves_as_before(box):
    found = staying(PAIR, box)
    assert found.pair is None and validate(found) == []
    before, after = PAIR.pair.boxes[box].network.interfaces[0], found.network.interfaces[0]
    assert after.addresses == (*before.addresses, *before.floating) and after.floating == ()
    assert found.network.hostname == f"lb{box + 1}" and found.services == PAIR.services
    assert wanted(found) == wanted(PAIR)


@pytest.mark.parametrize("box", [0, 1])
def test_who_leaves_keeps_its_network_and_serves_nobody(box):
    found = leaving(PAIR, box)
    assert found.pair is None and validate(found) == [] and not found.enabled_services
    own = PAIR.pair.boxes[box].network.interfaces
    assert [one.addresses for one in found.network.interfaces] == [one.addresses for one in own]
    assert found.network.policies == ()  # it is for an address that floats
    assert len(found.services) == len(PAIR.services)
    assert not addresses(found) & addresses(staying(PAIR, 1 - box))


def test_what_is_each_boxs_own_stays():
    boxes = list(PAIR.pair.boxes)
    policy = PolicyRoute("10.0.2.22", "10.0.2.9")
    network = dataclasses.replace(boxes[1].network, policies=(policy, *boxes[1].network.policies))
    boxes[1] = dataclasses.replace(boxes[1], network=network)
    snapshot = dataclasses.replace(PAIR, pair=dataclasses.replace(PAIR.pair, boxes=tuple(boxes)))
    assert leaving(snapshot, 1).network.policies == (policy,)
    assert leaving(snapshot, 1).network.interfaces[2] == Interface("eth2", addresses=("192.0.2.2/30",))


def test_of_any_pair_both_are_valid():
    for snapshot, box in ((one, box) for one in drawn_pairs() for box in (0, 1)):
        assert validate(staying(snapshot, box)) == []
        assert validate(leaving(snapshot, box)) == []
