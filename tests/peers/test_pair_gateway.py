"""A gateway that comes and goes for one box of a pair, or for both: how often the lead moves.

The boxes ask for its address every two seconds (applier.pair.lookout); keepalived and the floater are the real ones.
"""

from __future__ import annotations

import contextlib
import os
import time

import pytest
from board.lab import build
from board.machines.wait import until
from tests.lab.fixtures import thorough
from tests.peers.pair import Pair
from tests.peers.pair_appliers import appliers

from applier.pair.fitness import USUAL
from applier.pair.looking import FORWARDING

FLAPS = 60  # times that it answers for 5 s and is silent for 5 s
HALF = 5.0  # seconds
STILL = 30.0  # seconds in which a lead that should move would have moved
pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="not root: there can be no boxes of their own"),
    pytest.mark.timeout(1500),
]


@pytest.fixture
def pair():
    with contextlib.closing(Pair(build.base_tree())) as pair:
        for box in pair.boxes:
            box.do(f"echo 1 >/proc/sys/{FORWARDING}")
        pair.start()
        yield pair


@thorough
def test_a_gateway_that_flaps_moves_no_lead_and_one_that_is_dead_moves_it_once(pair, tmp_path, record_property):
    leading = pair.settle()
    other = pair.other(leading)
    with appliers(pair, tmp_path, looking=True) as both:
        here, there = both[leading.number], both[other.number]
        until("both to see that all is well", lambda: here.client.pair()["good"] and there.client.pair()["good"])

        def moves() -> list[str]:
            return [change["leads"] for change in here.client.pair()["changes"]]

        def lacking() -> list[str]:
            return here.client.pair()["boxes"][leading.number]["lacks"]

        silences = 0
        for _ in range(FLAPS):
            pair.answer(other)
            time.sleep(HALF)
            silences += bool(lacking())
            pair.answer(leading, other)
            time.sleep(HALF)
        flapped = len(moves())
        assert silences > FLAPS / 2, "it was seen"
        assert flapped == 0
        assert time.clock_gettime(time.CLOCK_BOOTTIME) - leading.role.since > USUAL.apart, "it might have handed over"

        pair.answer(other)
        begun = time.monotonic()
        pair.leads(other)
        took = time.monotonic() - begun
        until("it to be noted", moves)
        assert here.client.pair()["changes"][0]["reason"] == "the other box reaches more gateways"

        for answered in ((), (leading,), (leading, other)):
            pair.answer(*answered)
            time.sleep(STILL)
            assert moves() == [there.name], [box.name for box in answered]
        pair.leads(other)
    figures = (
        f"a gateway that flapped {FLAPS} times: {flapped} changes of role; once dead: handed over after {took:.1f} s"
    )
    record_property("figures", figures)
    print(figures)
