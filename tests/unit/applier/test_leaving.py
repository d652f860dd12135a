"""A pair ends: one box leaves it, the other one goes on alone, and no address is ever wanted by both."""

import threading

import pytest
import two_boxes
from two_boxes import OLD, Two

from applier.apply import both
from applier.apply import leaving as leavings
from applier.wire.errors import ApplierRefused
from lbconfig.leaving import leaving, staying
from lbconfig.model.canonical import digest
from lbconfig.replacing import replaced


@pytest.fixture
def two(tmp_path, monkeypatch):
    monkeypatch.setattr(both, "Share", two_boxes.WatchedShare)
    monkeypatch.setattr(leavings, "ANSWERED", 7.25)  # as long as nothing else is waited for
    found = Two(tmp_path)
    for box in found.boxes:
        box.host.sleep = answers_first(box, box.host.sleep)
    found.beat(2)
    return found


def answers_first(box, sleep):
    """The seconds for an answer to arrive are as long as it takes."""
    answered = [threading.Event()]
    lines = box.applier.errands.pair_errands

    def sent():
        found = lines()
        if any(line["kind"] == "answer" for line in found):
            answered[0].set()
        return found

    def sleeps(seconds: float) -> None:
        if seconds != leavings.ANSWERED:
            sleep(seconds)
            return
        this_time = answered[0]
        two_boxes.WatchedShare.waiting[threading.get_ident()] = lambda: not this_time.is_set()
        assert this_time.wait(60)
        answered[0] = threading.Event()

    box.applier.errands.pair_errands = sent
    return sleeps


def ask(two: Two, number: int, verb: str) -> ApplierRefused | None:
    """With the cable carrying what they ask each other meanwhile."""
    found: list[ApplierRefused | None] = []

    def work() -> None:
        try:
            getattr(two.boxes[number].applier.leavings, verb)("ann")
            found.append(None)
        except ApplierRefused as refused:
            found.append(refused)

    thread = threading.Thread(target=work, name="asks", daemon=True)
    thread.start()
    for _ in range(2000):
        thread.join(0.02)
        if not thread.is_alive():
            break
        two.beat()
    two.settle()
    return found[0]


def ended(two: Two) -> None:
    first, second = two.boxes
    assert (first.runs, second.runs) == (staying(OLD, 0), leaving(OLD, 1))
    for box in two.boxes:
        assert box.confirmed == box.runs and box.note()["outcome"] == "confirmed"
        assert not box.paths.pair_key.exists() and not box.paths.joined.exists()
        assert "pair0" not in box.host.links and not box.host.pair.daemons
        assert box.applier.pairs.pair()["boxes"] == [] and not box.host.violations
    assert "192.168.10.1/24" in first.host.links["eth0"].addresses
    assert "192.168.10.1/24" not in second.host.links["eth0"].addresses
    assert not second.host.table and first.host.table


def test_the_box_that_stands_by_leaves(two):
    assert ask(two, 1, "pair_leave") is None
    ended(two)
    assert [box.note()["user"] for box in two.boxes] == ["ann", "ann"]
    assert two.boxes[1].note()["comment"] == "left the pair with lb1"


def test_the_box_that_leads_sends_the_other_one_away(two):
    assert ask(two, 0, "pair_alone") is None
    ended(two)


def test_who_is_alone_goes_on_alone(two):
    two.stop(1)
    two.beat(30)
    assert ask(two, 0, "pair_alone") is None
    assert two.boxes[0].runs == staying(OLD, 0) and two.boxes[1].runs == OLD


def test_nobody_leaves_where_nobody_would_go_on(two):
    two.stop(0)
    two.beat(30)
    refused = ask(two, 1, "pair_leave")
    assert refused.code == "peer-away" and "nobody would go on" in refused.message
    assert two.boxes[1].runs == OLD and two.boxes[1].held() is None


@pytest.mark.parametrize("number", [0, 1])
def test_where_the_other_box_is_busy_nothing_is_done(two, number):
    with two.boxes[1 - number].applier.turn.take("somebody tunes the hardware"):
        refused = ask(two, number, "pair_leave" if number else "pair_alone")
    assert refused.code == "busy" and "tunes the hardware" in refused.message
    assert [box.runs for box in two.boxes] == [OLD, OLD] and two.boxes[1].held() is None
    assert all(box.paths.pair_key.exists() for box in two.boxes)


def test_a_box_that_could_not_leave_stays_held_and_tries_again(two):
    """The other one has all addresses as its own by then."""
    second = two.boxes[1]
    carry_out = second.applier.applies.carry_out
    second.applier.applies.carry_out = lambda target, run: "rolled back"
    assert ask(two, 1, "pair_leave") is None
    assert two.boxes[0].runs == staying(OLD, 0) and second.runs == OLD
    assert second.held() == "it leaves the pair" and second.paths.pair_key.exists()
    two.beat(30)
    second.applier.applies.carry_out = carry_out
    assert ask(two, 1, "pair_alone").code == "leaving"
    assert ask(two, 1, "pair_leave") is None
    ended(two)


def test_where_the_answer_is_lost_the_box_stays_held(two, monkeypatch):
    monkeypatch.setattr(leavings, "AGREES", 0.5)
    answers = two.boxes[1].applier.errands
    monkeypatch.setattr(answers, "pair_answered", lambda answer: {})
    refused = ask(two, 1, "pair_leave")
    assert refused.code == "peer-away" and "lb2 stays held, as the other box may be alone now" in refused.message
    two.until(lambda: two.boxes[0].runs == staying(OLD, 0))
    assert two.boxes[1].held() == "it leaves the pair" and two.boxes[1].runs == OLD
    two.beat(30)
    assert ask(two, 1, "pair_leave") is None
    ended(two)


def test_a_box_without_a_pair_leaves_none(two):
    assert ask(two, 1, "pair_leave") is None
    for verb in ("pair_leave", "pair_alone", "peer_stays", "peer_leaves"):
        assert ask(two, 0, verb).code == "no-pair"


def test_who_lives_gives_the_place_of_the_dead_box_to_another_one(two):
    """By a change of its own; the old box's key opens nothing from then on."""
    two.stop(1)
    two.beat(30)
    first, key = two.boxes[0], "c" * 42 + "A="
    new = replaced(OLD, 1, {}, key)
    first.begin(new)
    two.until(lambda: first.applier.applies.waiting)  # the pair cable changes, so it asks
    first.both.prove(first.both._box.job.revision.id, "ann")
    two.until(lambda: first.confirmed == new)
    assert f"PublicKey = {key}\n" in first.host.pair.conf and two_boxes.KEYS[1] not in first.host.pair.conf
    assert first.applier.generations.lineage()[-2].digest == digest(OLD)
