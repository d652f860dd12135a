"""A daemon that is killed while a change waits to be confirmed, and power that goes."""

import contextlib
import json

import confirm_box
import pytest
from box import TWO, Box, running_one
from confirm_box import HARMLESS, is_back, outcome, refusal, waiting

from applier.apply import pending
from applier.apply.deadline import Deadline, Decision
from applier.apply.pending import Ask, Pending
from applier.apply.runs import in_vain_sentence, waits_words
from applier.apply.verbs import Applies
from applier.wire.shapes import ENDED

quick, box = confirm_box.quick, confirm_box.box


def is_back_but_for_what_nobody_speaks_of(box: Box, before: dict) -> None:
    """By the way of the boot: settings and state of an interface that no configuration names are left."""
    after = box.host.state()
    after["network"]["links"]["eth2"] = before["network"]["links"]["eth2"]
    after["settings"] |= {key: value for key, value in before["settings"].items() if "/eth2/" in key}
    box.host.state = lambda: after
    is_back(box, before)


def killed(box: Box) -> Box:
    """The box as a new daemon finds it. (A thread of the old one that waits must be `cut` before.)"""
    new = Box.__new__(Box)
    new.paths, new.host, new.boottime, new.secret = box.paths, box.host, box.boottime, box.secret
    new.applier = new._daemon()
    new.applier.start()
    return new


@pytest.fixture
def cut(monkeypatch):
    """Call it: for the threads that wait now, time stands still, so they never say another word."""
    held = []
    real = Deadline.wait

    def wait(self):
        held.append(self)
        return real(self)

    monkeypatch.setattr(Deadline, "wait", wait)

    def cut_one():
        for timer in held:
            timer._clock = lambda: 0.0
        held.clear()

    return cut_one


def test_a_new_daemon_goes_on_with_the_time_that_is_left(box, cut):
    name = waiting(box)
    state = box.host.state()
    box.boottime += 60
    cut()
    changes = box.host.changes
    new = killed(box)
    assert new.until("waiting")["id"] == name
    run = new.applier.status()["apply"]
    assert (run["user"], run["confirm"]["left"], run["confirm"]["waited"]) == ("ann", 30, 60)
    assert run["steps"][0]["state"] == "done" and run["steps"][-1]["state"] == "waiting"
    assert [step["state"] for step in run["steps"]].count("waiting") == 1, "a box has no step that was never begun"
    assert new.host.state() == state and set(new.host.log[changes:]) <= {"put running.json"}
    assert new.applier.status()["start"]["state"] == "done"
    assert waits_words("ann", 30) in refusal(new.begin, HARMLESS).message
    assert refusal(new.applier.applies.confirm, "", "x" * 32, "").code == "wrong-secret"
    assert new.applier.applies.confirm("", box.secret, "")["state"] == "done"
    assert outcome(new) == "confirmed"
    assert new.power_cut().applier.status()["generation"] == 2


def test_a_new_daemon_goes_back_at_its_deadline(box, cut):
    before = box.host.state()
    waiting(box)
    cut()
    new = killed(box)
    new.until("waiting")
    cut()
    new = killed(new)  # and once more
    new.until("waiting")
    new.boottime += 90
    run = new.until(*ENDED)
    assert run["state"] == "not confirmed" and {step["state"] for step in run["steps"]} == {"undone", "skipped"}
    assert outcome(new) == "not confirmed"
    is_back_but_for_what_nobody_speaks_of(new, before)
    assert new.apply(TWO)["state"] == "done"


def test_a_new_daemon_that_comes_too_late_goes_back_at_once(box, cut):
    before = box.host.state()
    name = waiting(box)
    cut()
    box.boottime += 200
    new = killed(box)
    run = new.applier.status()["apply"]
    assert (run["id"], run["state"]) == (name, "not confirmed")
    assert in_vain_sentence(90) in run["message"]
    assert outcome(new) == "not confirmed"
    is_back_but_for_what_nobody_speaks_of(new, before)


class Killed(BaseException):
    pass


@pytest.mark.parametrize("decision", ["keep", "back"])
def test_a_kill_at_any_moment_around_the_decision(tmp_path, cut, decision):
    """Before, in and after the waiting: what runs then is what was confirmed, or it still waits."""
    probe = running_one(tmp_path / "probe")
    box_run(probe, decision)
    count = probe.host.changes
    waited = 0
    for number in range(count + 1):
        box = running_one(tmp_path / str(number))
        before = box.host.state()
        change = box.host.change

        def dying(name, action, half=None, change=change, number=number, box=box):
            if box.host.changes >= number:
                raise Killed
            return change(name, action, half)

        box.host.change = dying
        run_and_die(box, decision)
        box.host.change = change
        cut()
        confirmed = box.applier.generations.confirmed_number()
        new = killed(box)
        place = f"{decision}, change {number} of {count}"
        if new.applier.applies.record and new.applier.applies.record.state not in ENDED:
            new.until("waiting")
            waited += 1
            assert confirmed == 1 and outcome(new) == "waiting", place
            new.boottime += 90
            new.until("not confirmed")
        assert new.applier.status()["generation"] == new.applier.status()["confirmed"] == confirmed, place
        assert not new.faults() and not new.host.violations, place
        assert new.paths.pending not in new.host.files, place
        if confirmed == 1:
            assert outcome(new) in ("not confirmed", "interrupted"), place
            is_back_but_for_what_nobody_speaks_of(new, before)
        else:
            assert outcome(new) == "confirmed", place
        del new.host.__dict__["change"]
        new.host.__dict__.pop("state", None)
        assert new.power_cut().applier.status()["generation"] == confirmed, place
    assert waited >= 1


def box_run(box: Box, decision: str) -> None:
    name = waiting(box)
    if decision == "keep":
        box.applier.applies.confirm(name, "", "ann")
    else:
        box.applier.applies.roll_back(name, "", "ann")
    box.until(*ENDED)


def run_and_die(box: Box, decision: str) -> None:
    """The steps in this thread, so that a kill ends them where it strikes."""
    applies: Applies = box.applier.applies
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Deadline, "wait", lambda self: Decision(decision, "ann"))
        patch.setattr(applies, "begin", lambda held, record, action: action())
        with contextlib.suppress(Killed):
            box.begin(TWO)


def test_a_power_cut_while_it_waits_boots_what_was_confirmed(box, cut):
    before = box.host.state()
    waiting(box)
    cut()
    box.power_cut()
    assert box.applier.status()["generation"] == 1 and not box.faults()
    assert outcome(box) == "not confirmed"
    assert box.host.state()["network"] == before["network"]
    assert box.applier.status()["apply"] is None


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "7", '{"apply": 1}', json.dumps({"apply": "x", "ask": {}}), "\u202e" * 9],
)
def test_a_note_that_nobody_can_read_ends_at_the_confirmed_generation(box, cut, text):
    before = box.host.state()
    waiting(box)
    cut()
    box.host.files[box.paths.pending] = text
    new = killed(box)
    assert outcome(new) == "not confirmed"
    is_back_but_for_what_nobody_speaks_of(new, before)


def test_a_damaged_generation_is_not_waited_for(box, cut):
    before = box.host.state()
    waiting(box)
    cut()
    path = box.paths.state / "generations/000002/snapshot.json"
    path.write_text(path.read_text()[:-9])
    new = killed(box)
    assert new.applier.status()["generation"] == 1
    assert sorted(new.host.links["eth0"].addresses) == before["network"]["links"]["eth0"].addresses


def test_the_note_is_read_as_it_was_written():
    note = Pending("apply-2-ab", "ann", 2, None, 5.5, 95.5, "0" * 64, Ask(90, ("why",), ("192.0.2.1",), ("eth0",)))
    assert pending.read(note.to_json()) == note
    assert pending.read(note.going_back("bob did").to_json()).returning == "bob did"
    for wrong in ({"until": 10**9}, {"until": 1.0}, {"number": "2"}, {"user": None}, {"more": 1}, {"begun": "x"}):
        with pytest.raises(ValueError):
            pending.read(json.dumps(json.loads(note.to_json()) | wrong))
