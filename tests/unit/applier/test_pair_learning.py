"""A box that comes back is told all connections, and counts whether they came, before it may lead."""

import threading
from types import SimpleNamespace

import pytest

from applier.pair.learning import ARRIVES, LEARNS, TELLS, WAITS, Learning
from applier.wire.errors import ApplierRefused

LOST = ApplierRefused("peer-away", "lb1 did not answer.")
OLDER = ApplierRefused("unknown-verb", "There is no such verb.")


class Back:
    """`answers`: what the other box says, one after the other; the last one again and again."""

    def __init__(self, *answers, known=0):
        self.clock, self.known, self.asked = 1000.0, known, []
        self.answers = list(answers)
        self.may_answer = threading.Event()
        self.may_answer.set()
        core = SimpleNamespace(errands=self, established=lambda: self.known)
        self.learning = Learning(core, lambda: self.clock)

    def ask(self, verb, arguments, within):
        self.asked.append((verb, arguments))
        assert self.may_answer.wait(20)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def look(self, seconds=1.0):
        """What is missing once a second has gone by; whoever was asked has answered by then."""
        said = self.learning.missing()
        if self.may_answer.is_set():
            for thread in threading.enumerate():
                if thread.name == "learning":
                    thread.join(20)
        self.clock += seconds
        return said

    def until(self, end=LEARNS + 20):
        """Seconds that it has waited."""
        begun = self.clock
        while self.look():
            assert self.clock - begun < end
        return self.clock - begun - 1


def test_it_waits_until_the_other_box_has_told_all_and_enough_has_come():
    back = Back({"established": 1240})
    assert back.look() == back.look() == WAITS and back.asked == [("pair_retell", {})]
    back.known = 1000
    assert back.look(0.5) == WAITS
    back.known = 1240
    assert back.look() == back.look() == "" and len(back.asked) == 1


def test_a_few_that_are_missing_are_told_again_and_hold_nobody(caplog):
    caplog.set_level("INFO")
    back = Back({"established": 140}, known=122)
    assert TELLS * ARRIVES <= back.until() <= TELLS * (ARRIVES + 2)
    assert len(back.asked) == TELLS and "it knows 122 of 140 open ones" in caplog.text


def test_of_very_many_some_come_and_end_at_all_times():
    back = Back({"established": 50_000}, known=49_000)
    back.look()
    assert back.look() == "" and len(back.asked) == 1


def test_with_no_connections_nothing_is_waited_for_but_the_answer():
    assert Back({"established": 0}).until() == 1.0


def test_what_was_lost_is_told_again_and_not_for_ever(caplog):
    back = Back({"established": 1240}, known=400)
    assert TELLS * ARRIVES <= back.until() <= TELLS * (ARRIVES + 2)
    assert len(back.asked) == TELLS
    assert "knows 400 of 1,240 open connections, although it was told all" in caplog.text


def test_the_second_telling_may_be_the_one_that_arrives():
    back = Back({"established": 1240}, known=400)
    back.look()
    back.look(ARRIVES)
    back.look()
    back.known = 1240
    assert back.look() == "" and len(back.asked) == 2


@pytest.mark.parametrize("answer", [OLDER, {"established": "many"}, {"established": -1}, {}, ZeroDivisionError()])
def test_a_box_that_cannot_tell_keeps_nobody_waiting(answer, caplog):
    back = Back(answer)
    assert back.until() == 1.0 and len(back.asked) == 1
    assert "cannot tell it all connections" in caplog.text


def test_what_is_lost_on_the_way_is_asked_again():
    back = Back(LOST, LOST, {"established": 0})
    assert back.until() == 3.0 and len(back.asked) == 3


def test_a_channel_that_never_works_does_not_hold_the_box_for_ever(caplog):
    assert Back(LOST).until() == LEARNS
    assert f"was not told all connections within {LEARNS:g} seconds" in caplog.text


def test_an_answer_that_never_comes_blocks_nobody():
    back = Back({"established": 0})
    back.may_answer.clear()
    try:
        assert back.until() == LEARNS and len(back.asked) == 1
    finally:
        back.may_answer.set()


def test_a_box_that_comes_back_again_is_told_anew():
    back = Back({"established": 0})
    back.until()
    assert back.look() == "" and len(back.asked) == 1
    back.learning.forget()
    assert back.look() == WAITS and len(back.asked) == 2
