"""A change that can cut the admin off waits to be confirmed, and goes back by itself."""

import dataclasses
import json
import time

import confirm_box
import pytest
from box import ONE, TWO, running_one
from confirm_box import HARMLESS, is_back, outcome, refusal, waiting

from applier.apply import deadline
from applier.apply.deadline import Deadline, Decision
from applier.apply.runs import confirmed_sentence, in_vain_sentence, waits_words
from applier.host import ipvs_listing
from applier.wire.shapes import ENDED
from lbconfig.diff.cutoff import NETWORK_WORDS
from lbconfig.diff.services import REFUSED

quick, box = confirm_box.quick, confirm_box.box

RENAMED = dataclasses.replace(ONE, network=dataclasses.replace(ONE.network, hostname="other"))


# --- what asks --------------------------------------------------------------------------------------


@pytest.mark.parametrize("snapshot", [RENAMED, HARMLESS])
def test_what_cuts_nobody_off_is_confirmed_at_once(box, snapshot):
    box.begin(snapshot)
    assert box.until("waiting", *ENDED)["state"] == "done"
    assert box.secret == "" and box.applier.status()["apply"]["confirm"] is None


def test_what_may_cut_the_admin_off_waits(box):
    name = waiting(box)
    status = box.applier.status()
    run = status["apply"]
    assert (run["id"], run["state"], run["user"]) == (name, "waiting", "ann")
    assert run["confirm"]["addresses"] == ["192.168.10.3", "10.2.0.1", "172.20.0.1"]
    assert run["confirm"]["dhcp"] == ["eth0"]
    assert NETWORK_WORDS["gateway"] in run["confirm"]["reasons"]
    assert run["confirm"]["within"] == 90 == run["confirm"]["left"] and run["confirm"]["waited"] == 0
    assert (status["generation"], status["confirmed"]) == (2, 1)
    assert status["snapshot"]["network"]["hostname"] == "two"
    assert {step["name"]: step["state"] for step in run["steps"]}["confirm"] == "waiting"
    assert outcome(box) == "waiting"
    box.boottime += 30
    run = box.applier.status()["apply"]
    assert (run["confirm"]["left"], run["confirm"]["waited"]) == (60, 30)


def test_whoever_wishes_is_asked_in_any_case_and_for_as_long(box):
    waiting(box, HARMLESS, confirm_within=600)
    run = box.applier.status()["apply"]
    assert run["confirm"]["reasons"] == [] and run["confirm"]["left"] == 600
    assert box.applier.applies.confirm("", box.secret, "")["state"] == "done"


def test_the_check_says_so_before(box):
    assert box.applier.check(dataclasses.asdict(HARMLESS))["reach"]["reasons"] == []
    reach = box.applier.check(dataclasses.asdict(TWO))["reach"]
    assert "The addresses of eth0 change." in reach["reasons"]
    assert reach["addresses"] == ["192.168.10.3", "10.2.0.1", "172.20.0.1"]


def test_the_way_to_the_admin_may_change_but_not_the_door(box):
    lost = dataclasses.replace(ONE.network, gateway="")
    name = waiting(box, dataclasses.replace(ONE, network=lost), client="192.168.77.7")
    box.applier.applies.roll_back(name, "", "ann")
    box.until("not confirmed")
    shut = dataclasses.replace(ONE.management, allow=("192.168.10.0/24",))
    new = dataclasses.replace(ONE, management=shut)
    assert refusal(box.begin, new, client="192.168.77.7").code == "lock-out"
    nobody = dataclasses.asdict(dataclasses.replace(ONE, management=dataclasses.replace(shut, allow=())))
    assert "nobody could reach" in str(box.applier.check(nobody)["problems"])


# --- who decides ------------------------------------------------------------------------------------


def test_with_the_secret_alone(box):
    waiting(box)
    run = box.applier.applies.confirm("", box.secret, "")
    assert run["state"] == "done" and run["message"] == confirmed_sentence(2)
    assert outcome(box) == "confirmed" and box.applier.generations.confirmed_number() == 2
    assert box.paths.pending not in box.host.files
    assert refusal(box.applier.applies.confirm, "", box.secret, "").code == "not-waiting"  # it is spent
    box.power_cut()
    assert box.applier.status()["generation"] == 2


def test_a_second_admin_by_name_and_the_message_says_who(box):
    name = waiting(box)
    run = box.applier.applies.confirm(name, "", "bob")
    assert run["state"] == "done" and run["message"] == confirmed_sentence(2, "bob")


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        (("", "x" * 32, "ann"), "wrong-secret"),
        (("APPLY", "x" * 32, "ann"), "wrong-secret"),
        (("", "", "ann"), "wrong-secret"),
        (("APPLY", "", ""), "wrong-secret"),
        (("", "", ""), "wrong-secret"),
        (("apply-2-00000000", "SECRET", "ann"), "not-waiting"),
        (("apply-1-00000000", "", "ann"), "not-waiting"),
    ],
)
@pytest.mark.parametrize("verb", ["confirm", "roll_back"])
def test_nobody_else_decides(box, verb, fields, code):
    name = waiting(box)
    given = [{"APPLY": name, "SECRET": box.secret}.get(field, field) for field in fields]
    assert refusal(getattr(box.applier.applies, verb), *given).code == code
    assert box.applier.status()["apply"]["state"] == "waiting"


def test_without_anything_that_waits(box):
    for verb in (box.applier.applies.confirm, box.applier.applies.roll_back):
        assert refusal(verb, "", "x" * 32, "").code == "not-waiting"


def test_back_at_once(box):
    before = box.host.state()
    name = waiting(box)
    box.applier.applies.roll_back(name, "", "bob")
    run = box.until(*ENDED)
    assert run["state"] == "not confirmed"
    assert run["message"] == "bob took the changes back before they were confirmed. Everything was put back."
    assert outcome(box) == "not confirmed"
    is_back(box, before)


def test_while_it_waits_everything_else_is_refused_and_told_why(box):
    waiting(box)
    box.boottime += 42
    for call in (lambda: box.begin(HARMLESS), box.applier.make_room):
        refused = refusal(call)
        assert refused.code == "busy"
        assert waits_words("ann", 48) in refused.message


def test_two_decide_at_once_and_the_first_counts(box):
    name = waiting(box)
    waits = box.applier.applies._waiting.deadline
    assert waits.decide(Decision("back", "bob"))
    assert not waits.decide(Decision("keep", "ann"))
    assert box.until(*ENDED)["state"] == "not confirmed"
    assert refusal(box.applier.applies.confirm, name, box.secret, "ann").code == "not-waiting"


def test_the_secret_lies_nowhere(box):
    waiting(box)
    assert len(box.secret) >= 32
    kept = [*box.host.files.values(), *(path.read_text() for path in box.paths.state.rglob("*.json*"))]
    assert not [text for text in kept if box.secret in text]
    assert box.secret not in json.dumps(box.applier.status())


# --- the deadline -----------------------------------------------------------------------------------


def test_nobody_confirms(box):
    before = box.host.state()
    waiting(box)
    secret = box.secret
    box.boottime += 90
    run = box.until(*ENDED)
    assert run["state"] == "not confirmed"
    assert in_vain_sentence(90) in run["message"]
    assert {step["state"] for step in run["steps"]} == {"undone", "skipped"}
    assert outcome(box) == "not confirmed"
    is_back(box, before)
    late = refusal(box.applier.applies.confirm, "", secret, "")
    assert late.code == "not-waiting" and in_vain_sentence(90) in late.message
    assert box.apply(TWO)["state"] == "done"


def test_a_change_of_the_wall_clock_moves_nothing(box, monkeypatch):
    waiting(box)
    real = time.time
    for jump in (-(10**8), 10**8):
        monkeypatch.setattr(time, "time", lambda jump=jump: real() + jump)
        time.sleep(0.05)
        assert box.applier.status()["apply"]["state"] == "waiting"
        assert 30 < box.applier.status()["apply"]["confirm"]["left"] <= 90


def test_the_timer_counts_on_a_clock_that_nobody_sets():
    first = deadline.boottime()
    assert abs(first - time.clock_gettime(time.CLOCK_BOOTTIME)) < 20
    assert deadline.boottime() >= first


def test_a_decision_at_the_last_moment_and_one_after_it():
    now = [0.0]
    timer = Deadline(0.0, 90.0, lambda: now[0])
    now[0] = 89.9
    assert timer.decide(Decision("keep", "ann")) and timer.wait() == Decision("keep", "ann")
    late = Deadline(0.0, 90.0, lambda: 90.0)
    assert not late.decide(Decision("keep", "ann")) and late.wait() == deadline.OVER


def test_servers_that_died_while_it_waited_are_not_raised_by_the_return(box):
    waiting(box)
    box.host.dead.add(("10.2.0.11", 80))
    box.host.sleep(30)
    box.boottime += 90
    box.until("not confirmed")
    weights = box.host.table[("tcp", "192.168.10.80", 80)][1]
    assert weights[("10.2.0.11", 80)] == 0 and not box.host.violations


@pytest.mark.parametrize("how", ["before", "half", "after"])
def test_a_failure_at_any_change_of_the_return_ends_in_the_state_before(tmp_path, how):
    probe = running_one(tmp_path / "probe")
    waiting(probe)
    first = probe.host.changes
    probe.boottime += 90
    probe.until("not confirmed")
    for number in range(first, probe.host.changes):
        box = running_one(tmp_path / f"{how}{number}")
        before = box.host.state()
        waiting(box)
        box.host.fail_at, box.host.fail_how = number, how
        box.boottime += 90
        run = box.until(*ENDED)
        box.host.fail_at = None
        place = f"{how} change {number}: {box.host.log[number]}"
        assert run["state"] == "not confirmed", (place, run)
        box.host.sleep(30)
        after = box.host.state()
        for state in (after, before):
            state["files"] = {path: text for path, text in state["files"].items() if "/run/" not in path}
        assert after == before and not box.host.violations, place
        box.restart_daemon()
        assert box.applier.status()["generation"] == 1 and not box.faults(), place
        assert box.paths.pending not in box.host.files, place


@pytest.mark.parametrize("error", [ZeroDivisionError("a mistake"), SystemExit("a mistake")])
def test_a_mistake_of_ours_while_it_waits_ends_it_with_a_fault(box, monkeypatch, error):
    def broken(_):
        raise error

    monkeypatch.setattr(Deadline, "wait", broken)
    box.begin(TWO)
    assert repr(error) in box.until(*ENDED)["message"]
    assert repr(error) in box.faults()["not-restored"]
    assert refusal(box.applier.applies.confirm, "", box.secret, "").code == "not-waiting"
    assert not box.applier.turn.taken


def test_a_confirmation_that_the_disk_does_not_take_puts_everything_back(box, monkeypatch):
    before = box.host.state()
    waiting(box)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(box.applier.generations), "confirm", full)
    run = box.applier.applies.confirm("", box.secret, "")
    assert run["state"] == "rolled back" and "No space left" in run["message"]
    is_back(box, before)


# --- the impact ---------------------------------------------------------------------------------------


def test_where_the_table_cannot_be_read_no_number_is_told(box, monkeypatch):
    assert box.applier.check(dataclasses.asdict(HARMLESS))["impact"]["sentence"].startswith("No connection is open")

    read = box.host.read
    monkeypatch.setattr(box.host, "read", lambda path: None if path == ipvs_listing.PATH else read(path))
    review = box.applier.check(dataclasses.asdict(HARMLESS))
    assert review["impact"] is None and review["reach"] is not None
    assert REFUSED in str(review["changes"])
