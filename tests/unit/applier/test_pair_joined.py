"""What two real appliers know of each other by their beats: how they stand, what they lack, and a hand-over."""

import dataclasses

import pytest
import two_boxes
from two_boxes import NEW, Two

from applier.apply import both
from applier.pair import standing
from applier.pair.fitness import Observed
from applier.pair.roles import LEADS


@pytest.fixture
def two(tmp_path, monkeypatch):
    monkeypatch.setattr(both, "Share", two_boxes.WatchedShare)
    found = Two(tmp_path)
    for box in found.boxes:
        box.host.files[box.paths.first_round] = ""
        box.paths.first_round.touch()
    found.beat(2)
    return found


def said(box) -> str:
    return box.applier.status()["pair"]["sentence"]


def test_both_say_the_same_of_the_pair(two):
    first, second = two.boxes
    assert said(first) == said(second) == "lb1 leads, lb2 stands by and is in step; it knows 0 of 0 connections."
    assert first.applier.pairs.pair()["refusal"] == ""
    second.applier.own.observed = Observed(links=("eth1",))
    two.beat()
    assert first.applier.pairs.pair()["boxes"][1]["lacks"] == ["1 interface has no link."]


def test_who_missed_an_apply_is_behind_until_it_follows(two):
    first, second = two.boxes
    two.stop(1)
    two.beat(40)
    assert said(first).startswith(standing.away("lb2", " ").rstrip())
    first.begin(NEW)
    two.until(lambda: first.confirmed == NEW)
    two.on[1] = True
    two.until(lambda: second.runs == NEW)
    two.until(
        lambda: said(first) == said(second) == "lb1 leads, lb2 stands by and is in step; it knows 0 of 0 connections."
    )


def test_the_verb_hands_over_once_the_other_one_says_that_it_leads(two, monkeypatch):
    first, second = two.boxes
    told = []
    monkeypatch.setattr(first.applier.pairs, "_tell", lambda core: told.append(first.host.pair.rival))
    monkeypatch.setattr(first.applier.errands, "ask", lambda *_: {"established": 0})  # nobody carries it meanwhile

    def sleep(seconds):
        second.may_lead(first.host.pair.rival)
        two.beat()

    monkeypatch.setattr(first.host, "sleep", sleep)
    found = first.applier.pairs.pair_hand_over("ann")
    assert [one["role"] for one in found["boxes"]][1] == LEADS and len(told) == 2
    assert said(second).startswith("lb2 leads, lb1 ")


def test_a_box_that_leaves_its_pair_knows_no_other_one(two):
    first, _ = two.boxes
    running = first.applier.running
    first.applier.running = dataclasses.replace(running, snapshot=dataclasses.replace(running.snapshot, pair=None))
    assert first.applier.status()["pair"] is None and first.applier.pairs.pair()["boxes"] == []


def test_a_pair_that_checks_nothing_hands_over_as_well(two):
    first, second = two.boxes
    for box in two.boxes:
        box.paths.first_round.unlink()
    two.beat()
    assert first.applier.pairs.pair()["refusal"] == "lb2 is not ready: its first checks are not over."
    running = second.applier.running
    second.applier.running = dataclasses.replace(running, snapshot=dataclasses.replace(running.snapshot, services=()))
    assert second.applier.ready


def test_a_box_shows_of_itself_what_it_tells_the_other_one(two):
    first, second = two.boxes
    second.paths.first_round.unlink()
    second.host.files[second.paths.role] = None
    two.beat()
    here, there = first.applier.pairs.pair()["boxes"][1], second.applier.pairs.pair()["boxes"][1]
    told = ("role", "reason", "revision", "ready", "connections")
    assert (
        [here[name] for name in told]
        == [there[name] for name in told]
        == ["fault", "the floater does not run", 1, False, 0]
    )
