"""When the weights that agents ask for are written (Fairlead::Weights), by a clock that the test moves."""

import pytest
from weighing import ONE, THREE, TWO


@pytest.fixture
def written(checks):
    """written((server, what it says, seconds until the next step), …) -> {server: weight} of each run of ipvsadm."""

    def run(*steps):
        one = checks()
        run.soon = [one.step(*step) for step in steps]
        return one.writes()

    return run


def test_what_agents_say_within_a_second_is_one_write(written):
    several = [(ONE, "60 -", 0.3), (TWO, "30 -", 0.3), (ONE, "50 -", 0.3)]
    assert written(*several) == []
    assert written(*several, (THREE, "100 -", 0.2), (THREE, "100 -", 0)) == [{ONE: 58, TWO: 30}]
    assert 0 < written.soon[0] <= 1, "and the loop looks again by then"


def test_answers_without_an_end_are_a_write_a_second(written):
    answers = [((ONE, TWO, THREE)[n % 3], f"{20 + n % 60} -", 0.1) for n in range(100)]
    assert 5 <= len(written(*answers)) <= 11


@pytest.mark.parametrize("word", ["drain", "maint", "down"])
def test_words_wait_for_nothing_and_take_along_what_waits(written, word):
    assert written((ONE, "60 -", 0.1), (TWO, f"100 {word}", 0.1)) == [{ONE: 60, TWO: 0}]
    there_and_back = written((TWO, f"100 {word}", 0.1), (TWO, "100 -", 0.1))
    assert there_and_back == [{TWO: 0}, {TWO: 100}]


def test_a_server_that_leaves_waits_for_nothing_and_takes_along_what_waits(written):
    assert written((ONE, "60 -", 0.1), (TWO, "down", 0.1), (THREE, "70 -", 2), (THREE, "70 -", 0)) == [
        {ONE: 60, TWO: 0},
        {THREE: 70},
    ]


def test_what_is_as_before_when_the_second_is_over_is_not_written(written):
    assert written((ONE, "94 -", 0.5), (ONE, "100 -", 2), (ONE, "100 -", 0)) == []


def test_a_turn_of_the_loop_looks_at_no_server_without_a_reason(checks):
    """There is one for each answer of any server: with a thousand servers the loop would do nothing else."""
    one = checks(slow=60)
    for _ in range(10):
        one.step(seconds=0.1)
        assert one.looks == 0
    one.step(ONE, "back")
    assert one.looks > 0
    one.step(seconds=0.9)
    assert one.looks == 0, "again within the second"


def test_a_slow_start_is_a_step_a_second(checks):
    one = checks(slow=10)
    one.step(ONE, "back")
    for _ in range(120):
        one.step(seconds=0.1)
    weights = [write[ONE] for write in one.writes()]
    assert weights[0] == 10 and weights[-1] == 100
    assert weights == sorted(set(weights)) and 9 <= len(weights) <= 12
    one.step(seconds=2)
    assert one.looks == 0, "it is over"
