"""Who of a pair leads, at the console."""

from dataclasses import replace

import pytest
from tests.fake import pair as fake_pair
from tests.fake import rolling

from applier.pair.roles import HELD, LEADS, STANDS_BY
from applier.update.rolling.course import Phase
from console import pair, screen, state
from console.dialogue import NOTHING_DONE


@pytest.fixture
def both(fake):
    fake.box.pair = fake_pair.sample()
    return fake.box.pair


def begin(person, *lines: str) -> str:
    person.terminal.begin(pair.change_roles(), True)
    person.work()
    for line in lines:
        person.type(line)
    return person.look()


def test_the_screen_says_how_the_pair_stands():
    shown = screen.screen(state.State(pair="lb1 leads, lb2 stands by and is in step."), [])
    assert "  Pair           lb1 leads, lb2 stands by and is in step." in shown
    assert "Pair " not in screen.screen(state.State(), [])


def test_what_the_line_says_is_no_fault_as_well(fake, both, monkeypatch, tmp_path):
    both.peer = replace(both.peer, role=LEADS)
    fake.box.fault("pair-both", both.line()["sentence"])
    fake.box.fault("data-full", "The data partition is full.")
    monkeypatch.setattr(state, "Client", lambda *_: fake.Fake())
    found = state.gather(tmp_path)
    assert found.pair == "Both lead: neither box hears the VRRP of the other one (protocol 112)." and found.faults == (
        "The data partition is full.",
    )


def test_a_box_that_is_in_no_pair(person, fake):
    assert begin(person) == "This box is in no pair.\n"


def test_hand_over(person, both):
    shown = begin(person, "7", "1", "yes")
    assert "There is no such number" in shown and "lb2 leads, lb1 stands by and is in step; it knows" in shown
    assert both.own.role == STANDS_BY


@pytest.mark.parametrize("lines", [("",), ("1", ""), ("2", "no")])
def test_nothing_moves_before_a_yes(person, both, lines):
    assert begin(person, *lines).endswith(NOTHING_DONE) and both.own.role == LEADS


def test_hold_and_release(person, both):
    assert "lb1 is held (by console)" in begin(person, "2", "yes") and both.own.role == HELD
    begin(person, "3", "yes")
    assert both.own.role == STANDS_BY
    assert begin(person, "3", "yes").endswith("Nothing was done. lb1 is not held.\n")


def test_a_drill_and_back(person, both):
    shown = begin(person, "4", "yes")
    assert shown.count("The addresses answered at lb2 after 31 ms; 1,240 connections before") == 1
    assert shown.count("The addresses answered at lb1 after") == 1 and both.own.role == LEADS
    both.peer = replace(both.peer, ready=False)
    assert "Nothing was done. lb2 is not ready" in begin(person, "4", "yes")


def test_the_update_of_both_boxes_is_stopped_and_ended(person, fake, both):
    fake.box.rolling.course = rolling.sample(Phase.WATCHES)
    shown = begin(person, "5", "yes")
    assert "Update to version 0.2.0: lb2 leads with version 0.2.0, and is watched for 60 seconds.\n" in shown
    assert shown.endswith("console has stopped the update.\n")
    assert "the boxes were left as they were.\n" in begin(person, "6", "yes")
    assert "Nothing was done." in begin(person, "6", "yes") and "Update to" not in begin(person, "")


def test_without_an_applier(person, fake, both):
    fake.box.reachable = False
    assert "cannot be reached" in begin(person)
