"""What the parts of make bench make of their figures: ratios, peaks, shares."""

import dataclasses

import pytest
from bench.lisa2001 import Configuration
from bench.load import Log
from bench.result import Measured
from bench.stage import WAYS, Loaded

from bench import aries, lisa2001, netpipe, papers, peers, sizes

LOG = Log(10, 1000, 900, 0, 1, {"timeout": 100, "refused": 0}, 1.0, 2.0, 3.0, 4.0, tuple([(90, 90)] * 10))


def loaded(rate: float, director: float = 0.5, **changed) -> Loaded:
    return Loaded(dataclasses.replace(LOG, replies=round(rate * 10), **changed), director, 0.1)


def of(table, row: int) -> dict:
    return dict(zip(table.columns, table.rows[row], strict=True))


CURVES = {
    Configuration("direct", 1): {500.0: [loaded(400), loaded(402)], 900.0: [loaded(390), loaded(391)]},
    Configuration("NAT", 4): {500.0: [loaded(300, 0.9), loaded(310, 0.8)], 900.0: [loaded(200), loaded(201)]},
    Configuration("DR", 4): {500.0: [loaded(500), loaded(500)], 900.0: [loaded(800), loaded(802)]},
}


def test_lisa_shows_the_highest_rate_of_each_way_beside_the_papers():
    table = lisa2001.peaks(1, CURVES)
    nat, routed = of(table, 1), of(table, 2)
    assert (nat["offered/s"], nat["most replies/s"]) == (500.0, Measured((300.0, 310.0)))
    assert nat["times direct"] == pytest.approx(305 / 401)
    assert nat["paper: times direct"] == pytest.approx(4270 / 3962.93)
    assert nat["director's CPU, %"] == Measured((90.0, 80.0))
    assert routed["offered/s"] == 900.0
    assert of(table, 0)["director's CPU, %"] is None  # nothing goes through it
    assert of(lisa2001.peaks(2, CURVES), 1)["paper: times direct"] is None  # the paper has no such director with NAT


def test_lisa_tells_the_errors_of_too_much():
    row = of(lisa2001.times(1, CURVES), 1)
    assert row["errors, %"].median == 10.0 and row["replies/s"] == Measured((200.0, 201.0))


def test_a_picture_has_a_line_for_each_way():
    drawn = lisa2001.picture(1, CURVES)
    assert [one.name for one in drawn.series] == ["direct, 1 server", "NAT, 4 servers", "DR, 4 servers"]
    assert drawn.series[2].y == (500.0, 801.0) and drawn.series[2].high == (500.0, 802.0)


def test_ways_have_addresses_of_their_own():
    places = [Configuration(way, count).place for way in ("direct", *WAYS) for count in (1, 2, 4)]
    assert len(set(places)) == 1 + 3 * 3  # without a director there is one server


def test_netpipe_shows_ratios_and_whether_the_page_came():
    found = {
        (way, count): [netpipe.Piped({64: 1000.0, 65536: 1.0, 262144: 50.0 * number}, 0, 0.4, (0.1, 0.3), 1)]
        for number, way in enumerate(netpipe.WAYS, 1)
        for count in (1, 2)
    }
    rates = netpipe.throughput(found, (1, 2)).rows[0]
    assert rates[1:4] == (Measured((50.0,)), Measured((100.0,)), Measured((150.0,)))
    assert rates[4:] == (2.0, 60 / 50, 3.0, 1.0)
    pages = netpipe.reached(found, netpipe.Piped({}, 0, 0.0, (0.2,), 0))
    assert of(pages, 0)["pages"] == 1 and of(pages, 0)["director's CPU, %"] is None
    row = of(pages, 1)
    assert (row["pages"], row["not answered"], row["median, s"], row["longest, s"]) == (2, 1, 0.2, 0.3)


def test_a_page_that_never_came_has_no_seconds():
    silent = netpipe.Piped({65536: 1.0}, 1, 0.4, (), 3)
    row = of(netpipe.reached({("NAT", 1): [silent]}, silent), 1)
    assert (row["pages"], row["not answered"], row["median, s"], row["broken connections"]) == (0, 3, None, 1)


def test_object_sizes_are_compared_by_the_shape_of_the_curve():
    def curve(*pairs):
        return {
            size: sizes.Point(Measured((hits,)), Measured((8.0 * size * hits,)), Measured((50.0,)), 0)
            for size, hits in pairs
        }

    found = dict.fromkeys(sizes.WAYS, curve((64, 1000.0), (1024, 900.0), (65536, 100.0)))
    row = of(sizes.paper(found), 0)
    assert row["most hits/s"] == 1000.0
    assert row["bytes at which half of that is reached"] == 65536
    assert of(sizes.paper(found), 3)["most hits/s"] == papers.HAPROXY_HITS


def test_aries_compares_with_the_clients_that_ask_the_servers_themselves():
    rates = {(way, 2): Measured((100.0 / number,)) for number, way in enumerate(aries.WAYS, 1)}
    table = aries.scaling(rates, (2,))
    assert of(table, 0)["NAT ÷ direct"] == 0.5
    assert of(table, 1)["NAT ÷ direct"] == pytest.approx(1790 / 7116)


def test_peers_stand_beside_this_box_by_nat():
    found = {"this box, NAT": [loaded(400)], "HAProxy TCP": [loaded(100, 1.0)]}
    row = of(peers.table(found), 1)
    assert row["times this box with NAT"] == 0.25
    assert row["CPU for a reply, µs"].median == pytest.approx(10_000)
