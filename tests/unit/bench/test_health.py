"""How figures of health checks at size are compared; nothing is measured here."""

import os

import pytest
from bench.health import Result, Span, share

from bench import health, health_servers


@pytest.mark.parametrize(
    ("one", "other", "text"),
    [
        (Span(3.0), Span(4.0), "0.75"),
        (Span(3.0), Span(180, beyond=True), "< 0.02"),
        (Span(120, beyond=True), Span(6.0), "> 20.00"),
        (Span(120, beyond=True), Span(180, beyond=True), "-"),
        (None, Span(4.0), "-"),
        (Span(3.0), None, "-"),
        (Span(3.0), Span(0.0), "-"),
    ],
)
def test_the_median_of_one_as_a_part_of_the_others(one, other, text):
    assert share(one, other) == text


def test_each_way_is_compared_with_the_first_and_ours_with_those_before():
    results = {
        "plain": Result(first=Span(180, beyond=True)),
        "ours": Result(Span(9.0), Span(2.0, 2.5), Span(4.0, 5.0)),
        "agents": Result(Span(9.0), Span(3.0, 3.5), Span(5.0, 6.0)),
        "before": Result(Span(6.0), Span(2.0, 2.5), Span(5.0, 6.0)),
    }
    assert [" ".join(line.split()) for line in health.comparison(results)] == [
        "ours / plain < 0.05 - - - -",
        "agents / plain < 0.05 - - - -",
        "before / plain < 0.03 - - - -",
        "ours / before 1.50 1.00 0.80 - -",
    ]


def test_the_columns_stand_below_their_names():
    full = Result(Span(119.5), *[Span(119.5, 119.9)] * 4, memory=190, agents=13.1)
    compared = health.comparison({"before-agents": full, "agents": full})
    assert {len(line) for line in (full.line(1000, "before-agents"), health.HEAD)} == {len(health.HEAD)}
    end = health.HEAD.index("leaves, 5 %") + len("leaves, 5 %")
    assert [line[end - 4 : end] for line in compared] == ["1.00"] * len(compared)
    assert full.line(1000, "before-agents")[:end].endswith("119.5 / 119.9")


def test_what_is_measured():
    assert health.arguments([]).ways == ["plain", "fork", "ours", "agents"]
    assert health.arguments(["1000"]).servers == [1000]
    assert health.arguments(["50", "--before", "HEAD"]).ways[-2:] == ["before", "before-agents"]
    assert health.arguments(["50", "--ways", "plain", "ours", "--patience", "900"]).patience == 900
    with pytest.raises(SystemExit):
        health.arguments(["--ways", "before"])


def test_the_first_questions_are_apart_until_the_file_is_empty_again(tmp_path):
    """Whoever waits for a first round reads this twice a second: what is read must not grow meanwhile."""
    file = tmp_path / "asked"
    log = health_servers.Log(str(file))
    first = tmp_path / "asked.first"

    def ports(file):
        return [int(line.split()[1]) for line in file.read_text().splitlines()]

    for port in (1, 2, 1, 1):
        log.note(port)
    assert (ports(file), ports(first)) == ([1, 2, 1, 1], [1, 2])
    os.truncate(file, 0)
    log.note(1)
    assert (ports(file), ports(first)) == ([1], [1])
