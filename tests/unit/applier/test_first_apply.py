"""Two boxes that were joined, from there on: the first apply is for both, whatever happens, or they are none."""

import dataclasses
import threading

import pytest
import two_boxes
from box import DNS, WEB
from joined_boxes import ID, KEPT, LOST, Apart, alone, join
from tests.parts import ALL
from two_boxes import OLD, Half, Two

from applier.apply import both
from applier.pair.joining import record
from applier.wire.errors import ApplierRefused
from lbconfig.agreement import Revision
from lbconfig.model import canonical
from lbconfig.model.snapshot import Scheduler


@pytest.fixture
def make(tmp_path, monkeypatch):
    monkeypatch.setattr(both, "Share", two_boxes.WatchedShare)

    def made(place: str = KEPT, folder: str = "") -> Apart:
        found = Apart(tmp_path / folder, place)
        found.until(lambda: not any(box.both.silent() for box in found.boxes))
        found.before = states(found)
        return found

    return made


def states(two: Two) -> list:
    return [(box.runs, box.confirmed) for box in two.boxes]


def ended(two: Two) -> bool:
    here = [box for box in two.boxes if two.on[box.number]]
    return not any((box.both._box and box.both._box.job) or box.applier.turn.taken for box in here)


def waits(two: Two) -> bool:
    return all(box.both._box.job and box.both._box.job.stage == "waits" for box in two.boxes)


def refusal(call, *arguments, **fields) -> ApplierRefused:
    with pytest.raises(ApplierRefused) as caught:
        call(*arguments, **fields)
    return caught.value


def paired(two: Two) -> bool:
    return states(two) == [(OLD, OLD)] * 2


def test_joined_boxes_are_linked_and_hear_each_other_and_nothing_else_runs(make):
    two = make()
    for box in two.boxes:
        assert box.host.pair.services == {"pair": True, "vrrp": False, "floater": False}
        assert "169.254.64" in str(box.host.links["pair0"].addresses)
        assert box.applier.peer.beat.hostname == ("spare", "lb1")[box.number]
        assert not box.faults() and not box.host.violations
        assert not box.applier.drift.look()["differences"], "the link is as it should be"
    assert states(two) == [(alone(0, KEPT),) * 2, (alone(1, KEPT),) * 2]


@pytest.mark.parametrize("how", ["restart_daemon", "power_cut"])
def test_they_are_linked_again_after_a_start(make, how):
    two = make()
    for number in (0, 1):
        two.stop(number)
        two.start(number, how)
    two.beat(4)
    assert not any(box.both.silent() for box in two.boxes)


def test_an_ordinary_apply_of_either_box_leaves_the_link(make):
    two = make()
    first = two.boxes[0]
    changed = dataclasses.replace(alone(0, KEPT), services=(DNS,))
    assert first.apply(changed)["state"] == "done"
    two.beat(2)
    assert first.confirmed == changed and not any(box.both.silent() for box in two.boxes)
    assert not any("link delete dev pair0" in line for line in first.host.log), "it was cut for a moment"
    assert not first.applier.drift.look()["differences"]


@pytest.mark.parametrize("place", [KEPT, LOST])
def test_the_first_apply_is_for_both(make, place):
    two = make(place)
    first, second = two.boxes
    first.begin(OLD, confirm_within=60)
    two.until(lambda: first.both._box.job.stage == "tries" or second.runs == OLD)
    if place == KEPT:
        assert second.runs == OLD and first.runs != OLD, "the box that serves clients tried it first"
    two.until(lambda: waits(two))
    first.both.prove(first.both._box.job.revision.id, "ann")
    two.until(lambda: ended(two) and paired(two))
    two.beat(4)
    assert not any(box.paths.joined.exists() or box.faults() or box.host.violations for box in two.boxes)
    lineages = [box.applier.generations.lineage() for box in two.boxes]
    assert lineages[0] == lineages[1] and len(lineages[0]) == 2
    assert second.applier.list_generations()[1]["outcome"] == "confirmed", "what it was before is in its history"
    assert (first.host.pair.services, second.host.pair.services) == ({"pair": True, "vrrp": True, "floater": True},) * 2
    # From now on they are a pair like any other.
    second.may_lead(False)
    two.beat(2)
    new = dataclasses.replace(OLD, services=(dataclasses.replace(WEB, scheduler=Scheduler.RR), DNS))
    first.begin(new)
    two.until(lambda: ended(two) and states(two) == [(new, new)] * 2)


def test_it_begins_only_with_both_and_only_at_the_first_one(make):
    two = make()
    first, second = two.boxes
    assert "The pair is made at lb1" in refusal(second.begin, OLD).message
    plan = first.both.plan(OLD, "ann", "")
    two.cut = True
    two.beat(25)
    assert refusal(first.both.begin, plan, 9, "apply-9", "", 0).code == "peer-away"
    refused = refusal(first.begin, OLD)
    assert refused.code == "peer-away" and "spare is not heard at 192.168.10.3" in refused.message
    assert ended(two) and states(two) == two.before
    two.beat(130)
    assert "is not heard at 192.168.10.1" in second.faults()["joined-silent"]
    two.cut = False
    two.beat(2)
    assert not second.faults()


def test_the_second_box_changes_nothing_at_the_first_one(make):
    """Whatever it says: a change of its own, or one that it would have confirmed already."""
    two = make()
    first, second = two.boxes
    theirs = both.Plan(Revision("e" * 32, canonical.digest(OLD)), OLD, "spare", "eve", "")
    second.both.begin(theirs, 9, "apply-9", "", 0)
    two.beat(6)
    assert first.both._box.job is None and not first.applier.turn.taken
    second.both._box = dataclasses.replace(
        second.both._box, job=None, lineage=(*second.both._box.lineage, theirs.revision)
    )
    two.beat(6)
    assert states(two) == two.before and first.both._box.job is None


def test_a_second_box_that_has_moved_meanwhile_is_not_lost(make):
    """The link has heard it elsewhere since: at an address that it will not keep, so both try at once."""
    two = make()
    first = two.boxes[0]
    first.host.pair.conf = first.host.pair.conf.replace(f"{KEPT}:", f"{LOST}:")
    first.begin(OLD, confirm_within=60)
    assert first.both._box.job.together


def test_what_both_try_at_once_is_here_before_the_other_box_begins(make, monkeypatch):
    """The link is gone as soon as one of them begins."""
    two = make(LOST)
    first = two.boxes[0]
    real, asked = first.both.pair_content, []
    monkeypatch.setattr(
        first.both, "pair_content", lambda id, whole: real(id, whole) if asked.append(id) or len(asked) > 6 else {}
    )
    first.begin(OLD, confirm_within=60)
    two.until(lambda: len(asked) == 6)
    assert first.runs != OLD and first.both._box.job.stage == "asks"
    two.until(lambda: waits(two))


def test_what_the_second_box_cannot_run_is_not_begun_at_the_first_one(make, monkeypatch):
    two = make(LOST)
    first = two.boxes[0]
    real = both.files_digest
    monkeypatch.setattr(both, "files_digest", lambda files: real(files)[::-1])
    first.begin(OLD, confirm_within=60)
    two.until(lambda: ended(two))
    assert "spare: The software of this box makes other files" in first.applier.applies.record.message
    assert {step["state"] for step in first.applier.status()["apply"]["steps"]} == {"skipped"}
    assert states(two) == two.before and not any(box.both.silent() for box in two.boxes)


@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize("place", [KEPT, LOST])
def test_a_step_fails_at_either_box(make, at, place):
    two = make(place)
    two.boxes[at].host.bad_rules = True
    two.boxes[0].begin(OLD, confirm_within=60)
    two.until(lambda: ended(two) and states(two) == two.before)
    assert "nft_limit" in two.boxes[0].applier.applies.record.message
    two.boxes[at].host.bad_rules = False
    two.beat(4)
    assert not any(box.both.silent() or box.faults() or box.host.violations for box in two.boxes)
    complete(two)


def complete(two: Two) -> None:
    """It is applied once more, and comes to its end."""
    two.boxes[0].begin(OLD, confirm_within=60)
    two.until(lambda: waits(two))
    two.boxes[0].both.prove(two.boxes[0].both._box.job.revision.id, "ann")
    two.until(lambda: ended(two) and paired(two))


BEATS = range(6) if ALL else (0, 2, 5)  # after the last of them both wait for the admin


@pytest.mark.parametrize("place", [KEPT, LOST])
@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize("how", ["restart_daemon", "power_cut"])
def test_either_box_is_killed_at_each_point(make, place, at, how):
    """Both are what they were, or both are the pair."""
    two = make(place)
    for beats in BEATS:
        two.boxes[0].begin(OLD, confirm_within=60)
        two.beat(beats)
        two.stop(at)
        two.beat(30 if how == "power_cut" else 0)
        two.start(at, how)
        two.until(lambda: ended(two) and states(two) == two.before, beats=400)
        two.until(lambda: not any(box.both.silent() for box in two.boxes))
        assert not any(box.faults() or box.host.violations for box in two.boxes)
    complete(two)


@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize("how", ["restart_daemon", "power_cut"])
def test_the_power_goes_right_after_the_decision(make, at, how, monkeypatch):
    """It is on the first box's disk: the second one follows as soon as they hear each other."""
    two = make()
    first, second = two.boxes
    real = first.applier.generations.confirm

    def confirm(*arguments):
        real(*arguments)
        two.stop(at)

    first.begin(OLD, confirm_within=60)
    two.until(lambda: waits(two))
    monkeypatch.setattr(first.applier.generations, "confirm", confirm)
    first.both.prove(first.both._box.job.revision.id, "ann")
    two.beat(260)
    if at == 0:
        assert second.confirmed == alone(1, KEPT) and second.paths.joined.exists()
    else:
        assert first.confirmed == OLD and first.paths.joined.exists(), "the other box may speak from where it was"
    two.start(at, how)
    two.until(lambda: ended(two) and paired(two), beats=400)
    two.beat(4)
    assert not any(box.paths.joined.exists() for box in two.boxes)
    assert first.applier.generations.lineage() == second.applier.generations.lineage()


def test_the_firewall_of_a_pair_lets_the_other_box_in_until_that_one_has_followed(make):
    two = make()
    first, second = two.boxes
    first.begin(OLD, confirm_within=60)
    two.until(lambda: waits(two))
    assert "192.168.10.1" in second.host.joined and "192.168.10.3" in first.host.joined
    first.both.prove(first.both._box.job.revision.id, "ann")
    two.until(lambda: ended(two) and paired(two))
    two.beat(4)
    assert not first.host.joined and not second.host.joined


def test_a_box_that_is_joined_with_another_one_has_not_heard_that_one_yet(make):
    """It was heard a moment ago, and the record that says so is of another box now."""
    two = make()
    first = two.boxes[0]
    two.beat(2)
    assert first.applier.joined.link["heard"]
    two.stop(1)
    record.keep(first.paths, dataclasses.replace(record.load(first.paths), id="e" * 32))
    assert first.applier.joined.link is None
    for _ in range(4):
        two.beat()
        assert not first.applier.joined.link["heard"]


def test_what_is_forgotten_is_taken_down(make):
    two = make()
    first = two.boxes[0]
    first.begin(OLD, confirm_within=60)
    assert refusal(first.applier.joinings.pair_forget, "ann").code == "busy"
    two.until(lambda: waits(two))
    first.applier.applies.roll_back("", first.secret, "")
    two.until(lambda: ended(two))
    assert not any("sv stop pair" in box.host.log for box in two.boxes), "they go on talking"
    forget(two, first)
    assert "pair0" not in first.host.links and not first.host.pair.services["pair"]
    two.beat(6)
    for box in two.boxes:
        assert "pair0" not in box.host.links and not box.paths.joined.exists(), "the other one was told"
        assert box.both.place is None and box.applier.peer.beat is None
        assert not box.applier.drift.look()["differences"]


def forget(two: Two, box: Half) -> None:
    """It asks the other one, and waits for the answer."""
    asker = threading.Thread(target=box.applier.joinings.pair_forget, args=("ann",))
    asker.start()
    while asker.is_alive():
        two.errands()
        asker.join(0.01)


def test_a_box_that_cannot_be_told_says_that_the_other_one_is_silent(make):
    two = make()
    first, second = two.boxes
    two.stop(1)
    two.beat(25)
    first.applier.joinings.pair_forget("ann")
    assert "pair0" not in first.host.links
    two.on[1] = True
    two.beat(130)
    assert "forget lb1 under System, Pair" in second.faults()["joined-silent"]
    second.applier.joinings.pair_forget("ann")
    two.beat(2)
    assert not second.faults() and "pair0" not in second.host.links


def test_what_was_forgotten_late_takes_no_pair_apart(make):
    """The word of the other box came before the apply, and its time is over after it."""
    two = make()
    second = two.boxes[1]
    second.applier.joined.pair_forgotten(ID)
    second.applier.joined._forgotten = (ID, two.now + 1000)
    complete(two)
    second.applier.joined._forgotten = (ID, two.now - 1000)
    two.beat(2)
    assert "pair0" in second.host.links and paired(two) and not any(box.both.silent() for box in two.boxes)


def test_a_box_that_left_at_once_does_not_follow_the_other_one_back(make):
    two = make()
    first = two.boxes[0]
    complete(two)
    two.stop(1)
    two.beat(25)
    join(first)
    left = dataclasses.replace(alone(0, KEPT), services=(DNS,))
    assert first.apply(left)["state"] == "done"
    two.beat(2)
    assert first.both.place is None and not first.paths.joined.exists()
