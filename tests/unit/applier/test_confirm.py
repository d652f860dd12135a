"""A change that can cut the admin off waits to be confirmed, and goes back by itself."""

import contextlib
import dataclasses
import json
import time

import pytest
from box import ONE, TWO, WEB, Box, running_one

from applier import deadline, pending
from applier.applying import Applies
from applier.deadline import Deadline, Decision
from applier.errors import ApplierRefused
from applier.host import HostError
from applier.pending import Ask, Pending
from applier.shapes import ENDED
from lbconfig.snapshot import Scheduler

RENAMED = dataclasses.replace(ONE, network=dataclasses.replace(ONE.network, hostname="other"))
HARMLESS = dataclasses.replace(ONE, services=(dataclasses.replace(WEB, scheduler=Scheduler.RR),))


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(deadline, "TICK", 0.005)


@pytest.fixture
def box(tmp_path):
    return running_one(tmp_path)


def waiting(box: Box, snapshot=TWO, **fields) -> str:
    name = box.begin(snapshot, **fields)
    assert box.until("waiting", *ENDED)["state"] == "waiting"
    return name


def refusal(call, *arguments, **fields) -> ApplierRefused:
    with pytest.raises(ApplierRefused) as caught:
        call(*arguments, **fields)
    return caught.value


def outcome(box: Box, number=2) -> str:
    return box.applier.generations.entry(number)["outcome"]


def is_back(box: Box, before: dict) -> None:
    box.host.sleep(30)
    assert box.host.state() == before
    assert not box.host.violations and not box.faults()
    status = box.applier.status()
    assert (status["generation"], status["confirmed"]) == (1, 1)
    assert box.paths.pending not in box.host.files


def is_back_but_for_what_nobody_speaks_of(box: Box, before: dict) -> None:
    """By the way of the boot: settings and state of an interface that no configuration names are left."""
    after = box.host.state()
    after["network"]["links"]["eth2"] = before["network"]["links"]["eth2"]
    after["settings"] |= {key: value for key, value in before["settings"].items() if "/eth2/" in key}
    box.host.state = lambda: after
    is_back(box, before)


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
    assert "The default gateway changes." in run["confirm"]["reasons"]
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
    assert run["state"] == "done" and run["message"] == "Generation 2 runs and is confirmed."
    assert outcome(box) == "confirmed" and box.applier.generations.confirmed_number() == 2
    assert box.paths.pending not in box.host.files
    assert refusal(box.applier.applies.confirm, "", box.secret, "").code == "not-waiting"  # it is spent
    box.power_cut()
    assert box.applier.status()["generation"] == 2


def test_a_second_admin_by_name_and_the_message_says_who(box):
    name = waiting(box)
    run = box.applier.applies.confirm(name, "", "bob")
    assert run["state"] == "done" and "bob confirmed it" in run["message"]


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
        assert "the changes of ann wait to be confirmed (48 seconds left)" in refused.message


def test_two_decide_at_once_and_the_first_counts(box):
    name = waiting(box)
    waits = box.applier.applies._waiting.deadline
    assert waits.decide(Decision("back", "bob"))
    assert not waits.decide(Decision("keep", "ann"))
    assert box.until(*ENDED)["state"] == "not confirmed"
    assert refusal(box.applier.applies.confirm, name, box.secret, "ann").code == "not-waiting"


# --- the deadline -----------------------------------------------------------------------------------


def test_nobody_confirms(box):
    before = box.host.state()
    waiting(box)
    secret = box.secret
    box.boottime += 90
    run = box.until(*ENDED)
    assert run["state"] == "not confirmed"
    assert "Nobody confirmed the changes within 90 seconds, so the box went back by itself." in run["message"]
    assert {step["state"] for step in run["steps"]} == {"undone", "skipped"}
    assert outcome(box) == "not confirmed"
    is_back(box, before)
    late = refusal(box.applier.applies.confirm, "", secret, "")
    assert late.code == "not-waiting" and "Nobody confirmed the changes within 90 seconds" in late.message
    assert box.apply(TWO)["state"] == "done"


def test_a_change_of_the_wall_clock_moves_nothing(box, monkeypatch):
    waiting(box)
    real = time.time
    for jump in (-(10**8), 10**8):
        monkeypatch.setattr(time, "time", lambda jump=jump: real() + jump)
        time.sleep(0.05)
        assert box.applier.status()["apply"]["state"] == "waiting"
        assert box.applier.status()["apply"]["confirm"]["left"] == 90


def test_the_timer_counts_on_a_clock_that_nobody_sets():
    first = deadline.boottime()
    assert abs(first - time.clock_gettime(time.CLOCK_BOOTTIME)) < 5
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


def test_a_confirmation_that_the_disk_does_not_take_puts_everything_back(box, monkeypatch):
    before = box.host.state()
    waiting(box)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(box.applier.generations), "confirm", full)
    run = box.applier.applies.confirm("", box.secret, "")
    assert run["state"] == "rolled back" and "No space left" in run["message"]
    is_back(box, before)


# --- a daemon that is killed, and power that goes -----------------------------------------------------


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
    assert new.host.state() == state and set(new.host.log[changes:]) <= {"put running.json"}
    assert new.applier.status()["start"]["state"] == "done"
    assert "wait to be confirmed (30 seconds left)" in refusal(new.begin, HARMLESS).message
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
    assert "Nobody confirmed the changes within 90 seconds" in run["message"]
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
        patch.setattr(applies, "begin", lambda record, action: action())
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


def test_the_secret_lies_nowhere(box):
    waiting(box)
    assert len(box.secret) >= 32
    kept = [*box.host.files.values(), *(path.read_text() for path in box.paths.state.rglob("*.json*"))]
    assert not [text for text in kept if box.secret in text]
    assert box.secret not in json.dumps(box.applier.status())


# --- the impact ---------------------------------------------------------------------------------------


def test_where_the_table_cannot_be_read_no_number_is_told(box, monkeypatch):
    assert box.applier.check(dataclasses.asdict(HARMLESS))["impact"]["sentence"].startswith("No connection is closed")

    def broken(request):
        raise HostError("netlink", None, "no answer")

    monkeypatch.setattr(box.host, "netlink", broken)
    review = box.applier.check(dataclasses.asdict(HARMLESS))
    assert review["impact"] is None and review["reach"] is not None
    assert "New connections may be refused for a moment." in str(review["changes"])
