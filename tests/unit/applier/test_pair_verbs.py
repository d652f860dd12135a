"""Who of a pair leads: handed over, held, released, by an admin or because the other box is fitter."""

from dataclasses import replace

import pytest
from pair_world import SNAPSHOT, World

from applier.kept.lead_changes import MOST, LeadChanges
from applier.kept.pair_hold import HOUR, Hold, Moment
from applier.pair import standing
from applier.pair.pulse import Pulse
from applier.pair.ready import NOT_YET
from applier.pair.roles import FAULTY, HELD, LEADS, STANDS_BY
from applier.wire.errors import ApplierRefused
from applier.wire.protocol import parse
from lbconfig.model.snapshot import FACTORY
from lbconfig.target import Target


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    assert world.roles() == [LEADS, STANDS_BY]
    return world


def test_a_box_that_is_being_changed_is_seen_so(world):
    [first, _] = world.boxes
    places = first.pairs.boxes()
    assert not first.pairs.seen(places).working
    with first.core.turn.take("the changes of ann are being applied"):
        assert first.pairs.seen(places).working
    assert not first.pairs.seen(places).working


def test_what_is_known_of_both(world):
    first, second = world.boxes
    found = first.pairs.pair()
    assert found["sentence"] == "lb1 leads, lb2 stands by and is in step; it knows 7 of 7 connections."
    assert (found["good"], found["step"], found["refusal"]) == (True, "in step", "")
    assert [(one["hostname"], one["own"], one["role"]) for one in found["boxes"]] == [
        ("lb1", True, "leads"),
        ("lb2", False, "stands by"),
    ]
    assert found["boxes"][0]["connections"] == 7 and found["boxes"][0]["addresses"][0] == "10.0.2.21"
    assert "192.0.2.1" not in found["boxes"][0]["addresses"]
    there = second.pairs.pair()
    assert [one["own"] for one in there["boxes"]] == [False, True]
    assert there["refusal"] == "lb2 stands by, so it has nothing to hand over. Hand over at lb1."
    assert there["sentence"] == found["sentence"]


def test_a_box_without_a_pair_says_so(world):
    first = world.boxes[0]
    first.core.running = Target(None, FACTORY)
    assert first.pairs.pair()["boxes"] == [] and first.pairs.line() is None
    for ask in (
        lambda: first.pairs.pair_hand_over("ann"),
        lambda: first.pairs.pair_hold(0, "ann"),
        lambda: first.pairs.pair_release("ann"),
    ):
        assert first.refusal(ask) == ("no-pair", "This box is in no pair.")
    first.lookout.turn()
    assert first.core.faults.to_data() == []


def test_a_hand_over_tells_all_connections_before_and_after(world):
    first, second = world.boxes
    found = first.pairs.pair_hand_over("ann")
    assert world.roles() == [HELD, LEADS] and found["sentence"].startswith("lb2 leads, lb1 is handing over (ann")
    assert first.host.asked == ["hand-over ann asked for it"] and len(first.told) == 2 and not second.told
    world.pass_time(3)
    assert world.roles() == [STANDS_BY, LEADS]
    assert second.pairs.pair_hand_over("bob")["good"] is False  # for the moment that lb2 is held
    world.pass_time(3)
    assert world.roles() == [LEADS, STANDS_BY] and first.pairs.pair()["good"]


def test_what_came_last_is_told_as_soon_as_nothing_comes_any_more(world, monkeypatch):
    """A client repeats his words for some seconds, and the word that the other box leads may take one."""
    first = world.boxes[0]
    tell, seen = first.pairs._tell, []

    def watched(core):
        seen.append((first.pairs._role(), first.pairs._the_other_leads(first.pairs.boxes())))
        tell(core)

    monkeypatch.setattr(first.pairs, "_tell", watched)
    first.pairs.pair_hand_over("ann")
    assert seen == [(LEADS, False), (HELD, False)]


def test_a_table_that_takes_long_to_be_told_is_no_refusal(world, monkeypatch):
    """The other box took over meanwhile; how long the table takes is not its time."""
    first = world.boxes[0]
    tell = first.pairs._tell

    def slowly(core):
        tell(core)
        if first.pairs._role() != LEADS:
            monkeypatch.setattr(first.host, "now", lambda now=first.host.now: now() + 30)

    monkeypatch.setattr(first.pairs, "_tell", slowly)
    first.pairs.pair_hand_over("ann")
    assert world.roles() == [HELD, LEADS]


def test_who_does_not_know_the_connections_is_told_them_again_and_leads_only_for_an_admin(world):
    first, second = world.boxes
    first.core.open = 1000
    second.core.open = 879
    code, message = first.refusal(lambda: first.pairs.hand_over(first.pairs.boxes(), "it is fitter", False))
    assert code == "not-told" and message == (
        "lb2 knows 879 of 1,000 connections, although it was told all of them; the others would end."
    )
    assert world.roles()[0] == LEADS and len(first.told) == 3
    first.pairs.pair_hand_over("ann")
    assert world.roles()[1] == LEADS and len(first.told) == 3 + 4
    second.core.open = 880
    world.pass_time(5)
    first.core.open = 0
    second.pairs.hand_over(second.pairs.boxes(), "it is fitter", True)
    assert world.roles()[0] == LEADS


def test_whoever_does_not_take_the_connections_is_not_told_them_all_the_time(world):
    first = world.boxes[0]
    world.skip(300)
    world.watched(20)
    first.core.open = 1000
    first.host.answering = False
    world.watched(60)
    assert world.roles()[0] == LEADS and len(first.told) == 3
    first.host.settings["net/ipv4/ip_forward"] = "0"
    world.watched(20)
    assert world.roles()[1] == LEADS


@pytest.mark.parametrize(("connections", "arriving"), [(1000, 600), (140, 122)])
def test_connections_that_did_not_arrive_are_told_again_before_the_other_box_leads(
    world, monkeypatch, connections, arriving
):
    """Of few all must be known, of many all but a tenth."""
    first, second = world.boxes
    first.core.open = connections
    tell = first.pairs._tell

    def arrives(core):
        tell(core)
        second.core.open = min(second.core.open + arriving, connections)

    monkeypatch.setattr(first.pairs, "_tell", arrives)
    first.pairs.hand_over(first.pairs.boxes(), "it is fitter", False)
    assert world.roles()[1] == LEADS and second.core.open == connections and len(first.told) == 3


def test_a_hand_over_that_nobody_takes_up_is_told(world):
    first = world.boxes[0]
    world.slow = True
    code, message = first.refusal(lambda: first.pairs.pair_hand_over("ann"))
    assert code == "not-taken-over" and message.startswith("lb2 did not take over within 10 seconds")
    world.slow = False
    world.pass_time(1)
    assert LEADS in world.roles()


@pytest.mark.parametrize(
    ("arrange", "code", "message"),
    [
        (lambda w: w.ready.__setitem__(1, False), "peer-not-ready", "lb2 is not ready: its first checks are not over."),
        (lambda w: w.faulty.__setitem__(1, True), "peer-not-ready", "lb2 cannot lead (no link), so nobody would lead."),
        (lambda w: setattr(w, "path", False), "peer-away", "lb2 is not heard, so nobody would lead."),
        (
            lambda w: setattr(w.boxes[1].core, "running", Target(11, replace(SNAPSHOT, services=()), 1)),
            "not-in-step",
            "lb2 is not in step: it runs revision 11, lb1 12.",
        ),
    ],
)
def test_what_stops_a_hand_over_and_the_hold_of_the_leader(world, arrange, code, message):
    first = world.boxes[0]
    arrange(world)
    world.pass_time(5)
    for ask in (lambda: first.pairs.pair_hand_over("ann"), lambda: first.pairs.pair_hold(0, "ann")):
        assert first.refusal(ask) == (code, message)
    assert world.roles()[0] == LEADS and not first.host.asked and not first.core.paths.pair_hold.exists()


def test_while_something_else_is_changed_nobody_hands_over(world):
    first = world.boxes[0]
    with first.core.turn.take("the changes of bob are being applied"):
        code, message = first.refusal(lambda: first.pairs.pair_hand_over("ann"))
    assert code == "busy" and "bob" in message


def test_a_floater_that_does_not_answer_is_told(world):
    first = world.boxes[0]
    first.host.deaf = True
    code, message = first.refusal(lambda: first.pairs.pair_hand_over("ann"))
    assert code == "pair-error" and "floater: hand-over ann asked for it: Connection refused" in message


def test_who_holds_the_leader_lets_the_other_one_lead_first(world):
    first, second = world.boxes
    found = first.pairs.pair_hold(4, "ann")
    assert world.roles() == [HELD, LEADS] and len(first.told) == 2
    assert found["hold"]["user"] == "ann" and found["hold"]["left"] == pytest.approx(4 * HOUR, abs=60)
    world.skip(60)
    assert second.pairs.pair()["sentence"] == "lb2 leads, lb1 is held (by ann, for 4 hours) and is in step."
    assert first.pairs.pair_release("bob")["hold"] is None
    assert first.refusal(lambda: first.pairs.pair_release("bob")) == ("not-held", "lb1 is not held.")
    world.skip(60)
    assert world.roles() == [STANDS_BY, LEADS]


def test_a_hold_ends_with_its_time_and_outlives_a_restart(world):
    second = world.boxes[1]
    second.pairs.pair_hold(1, "ann")
    second.host.held = None  # as a restart has it
    world.watched(5)
    assert world.roles() == [LEADS, HELD] and second.host.held == "by ann, for 1 hour"
    world.skip(HOUR)
    world.watched(5)
    assert world.roles() == [LEADS, STANDS_BY] and not second.core.paths.pair_hold.exists()


def test_a_box_that_was_restarted_while_it_was_held_leads_once_it_is_ready(world):
    second = world.boxes[1]
    second.pairs.pair_hold(0, "ann")
    second.host.settings["kernel/random/boot_id"] = "two"
    second.host.held = NOT_YET
    world.watched(5)
    assert second.host.held == "by ann"
    second.pairs.pair_release("ann")
    assert second.host.asked[-1] == f"hold {NOT_YET}"  # which watch.py ends
    assert second.refusal(lambda: second.pairs.pair_release("ann")) == (
        "not-held",
        "Nobody holds lb2 (not ready yet); that ends by itself.",
    )


@pytest.mark.parametrize(
    ("later", "left"),
    [
        (Moment("one", 100.0 + HOUR, 0.0), HOUR),  # whatever the time of day was set to
        (Moment("two", 5.0, 1000.0 + HOUR), HOUR),
        (Moment("two", 5.0, 0.0), 2 * HOUR),  # set back: from the restart on
        (Moment("two", 5.0, 1e12), 0.0),
    ],
)
def test_how_long_a_hold_lasts_whatever_the_clock_shows(later, left):
    begun = Moment("one", 100.0, 1000.0)
    assert Hold("ann", "", 2, begun).left(later) == left
    assert Hold("ann", "", 0, begun).left(later) is None


def test_a_damaged_note_of_a_hold_holds_nothing(world):
    second = world.boxes[1]
    for text in ("", "[]", "{", '{"begun": {"boot": "", "boottime": 1e999, "unix": 0}, "user": 1, "since": 2}'):
        second.core.paths.shared.mkdir(exist_ok=True)
        second.core.paths.pair_hold.write_text(text)
        assert second.pairs.kept_hold() is None
    world.watched(5)
    assert not second.core.paths.pair_hold.exists() and world.roles() == [LEADS, STANDS_BY]


@pytest.mark.parametrize("hours", ["-1", "169", '"1"', "true", "null", "1.0"])
def test_the_hours_of_a_hold_are_checked(hours):
    with pytest.raises(ApplierRefused, match="hours must be a whole number of hours, 1 to 168"):
        parse(f'{{"verb": "pair_hold", "hours": {hours}, "user": "ann"}}'.encode())


# --- the lookout ---


def codes(box):
    return {fault["code"]: fault["message"] for fault in box.core.faults.to_data()}


def test_the_fitter_box_leads_once_and_says_why(world):
    first, second = world.boxes
    world.skip(300)
    world.watched(20)
    assert not first.host.asked
    first.host.answering = False
    world.watched(8)
    assert world.roles() == [LEADS, STANDS_BY]
    world.watched(8)
    assert world.roles() == [STANDS_BY, LEADS] and first.host.asked == ["hand-over the other box reaches more gateways"]
    assert first.pairs.pair()["boxes"][0]["lacks"] == ["No answer from the gateway 10.0.2.2."]
    assert second.pairs.pair()["boxes"][0]["lacks"] == ["1 gateway does not answer."]
    first.host.answering, second.host.answering = True, False
    world.skip(240)
    world.watched(30)
    assert world.roles() == [STANDS_BY, LEADS]  # it has led for less than five minutes
    world.watched(60)
    assert world.roles() == [LEADS, STANDS_BY]
    why = [(one["leads"], one["reason"]) for one in second.pairs.changes.newest()]
    assert why == [
        ("lb1", "the other box reaches more gateways"),
        ("lb2", "the other box reaches more gateways"),
    ]
    assert [one["leads"] for one in first.pairs.changes.newest()] == ["lb1", "lb2"]


def test_a_box_that_cannot_serve_hands_over_at_once(world):
    first = world.boxes[0]
    world.watched(20)
    first.core.faults.set("start", "Not all of revision 12 could be brought up.")
    world.watched(3)
    assert world.roles()[1] == LEADS
    first.core.faults.set("start", None)
    first.host.settings["net/ipv4/ip_forward"] = "0"
    assert "forwards nothing" in (world.watched(3) or first.pairs.pair()["boxes"][0]["lacks"][0])


def test_while_something_is_changed_the_fitter_box_waits(world, caplog):
    first = world.boxes[0]
    world.skip(300)
    first.host.answering = False
    with first.core.turn.take("the changes of bob are being applied"):
        world.watched(30)
    assert world.roles() == [LEADS, STANDS_BY] and not caplog.records
    world.watched(4)
    assert world.roles()[1] == LEADS


def test_a_pair_that_does_not_move_by_itself_stays(world):
    first = world.boxes[0]
    kept = replace(SNAPSHOT, pair=replace(SNAPSHOT.pair, hand_over_by_itself=False))
    for number, box in enumerate(world.boxes):
        box.core.running = Target(12, kept, number)
    first.host.carriers["eth1"] = "0\n"
    first.core.faults.set("start", "Not all could be brought up.")
    world.skip(400)
    world.watched(30)
    assert world.roles() == [LEADS, STANDS_BY]


def test_a_box_that_is_away_is_a_fault_until_it_is_back(world):
    first = world.boxes[0]
    world.watched(5)
    assert codes(first) == {}
    world.path = False
    world.watched(5)
    assert codes(first) == {}
    world.watched(10)
    assert codes(first)["pair-away"].startswith(standing.away("lb2", " ").rstrip())
    assert first.pairs.line()["sentence"] == codes(first)["pair-away"]
    world.path = True
    world.watched(2)
    assert codes(first) == {}


def test_both_lead_is_told_within_seconds(world):
    world.boxes[1].host.becomes(LEADS)
    world.watched(3)
    for box in world.boxes:
        assert codes(box) == {"pair-both": "Both lead: neither box hears the VRRP of the other one (protocol 112)."}


def test_a_take_over_is_written_down_with_its_reason(world):
    first, second = world.boxes
    world.watched(2)
    world.faulty[0] = True
    world.watched(2)
    assert world.roles() == [FAULTY, LEADS]
    assert second.pairs.changes.newest()[0]["reason"] == "no link"
    assert (first.pairs.changes.newest()[0]["leads"], first.pairs.changes.newest()[0]["reason"]) == ("lb2", "no link")


def test_the_list_of_changes_is_bounded_and_outlives_a_restart(tmp_path):
    path = tmp_path / "lead-changes"
    changes = LeadChanges(path)
    for number in range(MOST + 5):
        changes.note("lb1", f"why {number} " + "x" * 1000)
    path.write_bytes(b"{\n\xff\n" + path.read_bytes() + b'{"when": "never", "leads": 1, "reason": ""}\n[]\n')
    again = LeadChanges(path).newest()
    assert again[0]["reason"].startswith(f"why {MOST + 4} ") and len(again[0]["reason"]) == 300
    assert MOST - 4 <= len(again) <= MOST


def test_the_floater_is_told_whether_the_other_box_could_lead(world):
    first, second = world.boxes
    pulses = [Pulse(box.core, box.lookout, ()) for box in world.boxes]

    def told():
        world.watched(1)
        for box, pulse in zip(world.boxes, pulses, strict=True):
            box.host.asked.clear()
            pulse.tick()
        return [*first.host.asked, *second.host.asked]

    assert told() == ["alive relieved", "alive"]
    with first.core.turn.take("the changes of bob are being applied"):
        assert told() == ["alive", "alive"]
    world.ready[1] = False
    assert told() == ["alive", "alive"]
    world.ready[1] = True
    first.core.running = Target(12, replace(SNAPSHOT, pair=replace(SNAPSHOT.pair, hand_over_by_itself=False)), 0)
    second.core.running = Target(12, first.core.running.snapshot, 1)
    assert told() == ["alive", "alive"]
    first.core.running = second.core.running = Target(None, FACTORY)
    assert told() == []
