"""Measuring between two ports: the search for the highest rate without a loss, and what the kernel's sender is told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbconfig.capacity import cable
from lbconfig.capacity.cable import CONNECTIONS, FIRST, LARGE, SHORT, SMALL, TRIALS, Trial, following, limit
from lbconfig.capacity.figures import WINDOW, Cpus, Rates
from lbconfig.validate.services import validate
from lbconfig.wanted import table as ipvs

IDLE = Cpus(0.5, 0.9, 0.4)


def searched(sender: float, box: float) -> list[Trial]:
    """All trials with a sender and a box that manage so many packets a second. A box that has more to do drops some."""
    trials: list[Trial] = []
    while (wanted := following(trials)) is not None:
        rate, seconds = wanted
        sent, came = (round(min(rate, *most) * seconds) for most in ((sender,), (sender, box)))
        trials.append(Trial(rate, seconds, sent, Rates(came / 5, came / seconds, came * 46), IDLE))
        assert len(trials) < 40
    return trials


@given(st.floats(1_000, 1e8), st.floats(1_000, 1e8))
def test_what_is_found_is_near_the_limit_and_lost_nothing(sender, box):
    trials = searched(sender, box)
    found = limit(trials)
    assert found is not None and found.held == "sender"
    reachable = min(sender, box)
    assert reachable * 0.9 <= found.rates.packets <= reachable * 1.001
    assert sum(one.lasted for one in trials) <= TRIALS
    # The box never gets much more than it can do.
    assert all(one.sent <= 2 * max(box, FIRST) * one.seconds for one in trials)


def test_a_sender_at_its_end_is_asked_once_more_and_that_is_it():
    assert [(one.asked, one.seconds) for one in searched(12_000, 1e9)] == [
        (5_000, SHORT), (10_000, SHORT), (20_000, SHORT), (12_000, WINDOW)
    ]  # fmt: skip


def test_nothing_comes_through():
    assert len(searched(50_000, 0)) == 1
    assert limit(searched(50_000, 0)) is None


def test_losing_at_every_rate_ends_without_a_limit():
    trials: list[Trial] = []
    while (wanted := following(trials)) is not None:
        trials.append(Trial(*wanted, 1000, Rates(1, 100, 1), IDLE))
    assert len(trials) == TRIALS + 1 and limit(trials) is None


def test_what_lasted_for_a_moment_does_not_count():
    assert limit([Trial(100, SHORT, 200, Rates(1, 100, 1), IDLE)]) is None


def test_the_box_that_measures_has_one_service_that_is_valid():
    snapshot = cable.snapshot("eth5")
    assert validate(snapshot) == []
    assert "-a -u 198.18.0.10:9 -r 198.18.0.20:9 -g" in ipvs.render(snapshot)


def test_what_the_sender_is_told():
    told = cable.orders(SMALL, "02:00:00:00:00:07", 1234.6)
    assert {"ratep 1235", "pkt_size 60", "dst_mac 02:00:00:00:00:07", "dst 198.18.0.10"} <= {*told}
    assert {"src_max 198.19.0.1", "udp_src_min 1024", "udp_src_max 2047"} <= {*told}
    assert {"src_max 198.19.255.254", "udp_src_max 65535", "flag UDPSRC_RND"} <= {*cable.orders(CONNECTIONS, "", 1)}
    assert "pkt_size 1514" in cable.orders(LARGE, "02:00:00:00:00:07", 1)


SAID = """Params: count 0  min_pkt_size: 60  max_pkt_size: 60
Current:
     pkts-sofar: 123456  errors: 0
     started: 1us  stopped: 2us idle: 3us
Result: OK: 5000000(c4990000+d10000) usec, 123456 (60byte,0frags)
"""


def test_what_the_sender_says():
    assert cable.read_sent(SAID) == 123456
    for text in ("", "Result: Idle", SAID.replace("OK", "No such parameter")):
        with pytest.raises(ValueError):
            cable.read_sent(text)
