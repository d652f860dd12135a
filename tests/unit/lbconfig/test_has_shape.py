"""What consists of the classes of the model is known without building it anew; the slow way is the judge."""

import dataclasses

import pytest
from lbconfig_pairs import PAIR
from lbconfig_samples import EVERY_NAT, EVERY_RULE, SAMPLE, SORRY_PAGE, with_check, with_network, with_service

from lbconfig.model.reading import MAX_ITEMS, SnapshotError, has_shape
from lbconfig.model.snapshot import FACTORY, Management, Snapshot, from_data
from lbconfig.validate.services import validate


class Port(int):
    pass


GOOD = [FACTORY, SAMPLE, EVERY_NAT, EVERY_RULE, SORRY_PAGE, PAIR]
WRONG = {
    "no number": with_service(port=True),
    "a number of a class of its own": with_service(port=Port(80)),
    "no text": with_service(name=None),
    "a list": with_service(real_servers=[]),
    "of another class": with_service(check=Management()),
    "too long": with_service(note="x" * 1025),
    "unprintable": with_check(expect="a\x07"),
    "no member": with_service(scheduler="wlc?"),
    "a blank in lines": with_check(authority="a\tb"),
    "too many": with_network(dns=("10.0.2.3",) * (MAX_ITEMS + 1)),
    "not in a tuple": dataclasses.replace(SAMPLE, services=[]),
    "half a pair": dataclasses.replace(PAIR, pair=dataclasses.replace(PAIR.pair, boxes=PAIR.pair.boxes[:1])),
    "no pair": dataclasses.replace(SAMPLE, pair=SAMPLE),
}


def can_be_built(snapshot: Snapshot) -> bool:
    try:
        return from_data(dataclasses.asdict(snapshot), exact=True) == snapshot
    except SnapshotError:
        return False


@pytest.mark.parametrize("snapshot", GOOD)
def test_what_can_be_built_has_the_shape(snapshot):
    assert can_be_built(snapshot) and has_shape(Snapshot, snapshot)


@pytest.mark.parametrize("snapshot", WRONG.values(), ids=WRONG)
def test_what_cannot_be_built_has_not(snapshot):
    assert not has_shape(Snapshot, snapshot) and not can_be_built(snapshot)
    assert len(validate(snapshot)) == 1


def test_a_tab_is_part_of_a_program_only():
    assert has_shape(Snapshot, with_check(program="#!/bin/sh\n\texit 0\n"))
