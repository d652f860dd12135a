"""A drill: a hand-over that is measured, the connections that are compared, and the list of both boxes."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from board.machines.wait import until
from pair_world import World

from applier.base import frames
from applier.host.host import OutOfTime
from applier.kept import drills as kept
from applier.kept.drills import MOST, DrillList
from applier.pair import asking, drills
from applier.pair.drill import sentence
from applier.pair.drills import Drills
from applier.pair.leases import Place
from applier.pair.roles import LEADS, STANDS_BY
from applier.parts.pair import comparing
from applier.parts.pair.comparing import Table
from applier.wire.errors import ApplierRefused
from applier.wire.protocol import FOR_PEER, checked

FIRST = kept.read(
    {
        "id": "1", "when": "2026-01-31T12:00:00Z", "user": "ann", "gave": "lb1", "took": "lb2", "failed": "",
        "silence": 31, "unanswered": [], "part": 1, "before": 1240, "after": 1238, "ended": 2, "lost": 0,
    }
)  # fmt: skip


class Errands:
    """As those of the daemon: a request is checked, and the other box carries it out."""

    def __init__(self):
        self.other, self.away = None, False

    def ask(self, verb, arguments, within):
        if self.away:
            raise ApplierRefused("peer-away", "lb2 is not heard.")
        request = checked(verb, json.loads(json.dumps(arguments)), FOR_PEER)
        return json.loads(json.dumps(self.other[request.verb](**request.fields)))


class Tried(World):
    """Both with their drills; `tables` are what each reads of its connections, one after the other."""

    def __init__(self, folder):
        super().__init__(folder)
        self.tables = [[table({1, 2, 3})], [table({1, 2, 3})]]
        for box in self.boxes:
            box.core.errands = Errands()
            box.drills = Drills(box.core, box.pairs, lambda _, part, box=box: self._read(box.host.number))
        for box, other in (self.boxes, self.boxes[::-1]):
            drills = other.drills
            done = (drills.drill_compare, drills.drill_done, drills.drill_back, other.pairs.pair_knows)
            box.core.errands.other = {one.__name__: one for one in done}

    def _read(self, number):
        rest = self.tables[number]
        return rest.pop(0) if len(rest) > 1 else rest[0]

    def drill(self, number=0, back=False):
        box = self.boxes[number]
        box.drills.pair_drill(back, "ann")
        until("the drill to end", lambda: not box.drills.pair_drills()["running"], interval=0.002)
        return box.drills.pair_drills()["drills"][0]


def table(opened=(), ending=(), part=1, whole=True):
    return Table(part, frozenset(opened), frozenset(ending), whole)


@pytest.fixture
def world(tmp_path):
    found = Tried(tmp_path)
    assert found.roles() == [LEADS, STANDS_BY]
    return found


def test_a_drill_hands_over_measures_and_both_boxes_keep_it(world):
    first, second = world.boxes
    found = world.drill()
    assert found["sentence"] == "The addresses answered at lb2 after 31 ms; 3 connections before, 3 after."
    assert world.roles()[1] == LEADS and len(first.told) == 2
    assert first.host.asked[0] == "hand-over drill by ann" and first.host.questions
    assert first.drills.pair_drills() == second.drills.pair_drills() == {"running": "", "drills": [found]}
    assert not first.core.turn.taken


def test_connections_that_ended_are_told_apart_from_those_that_were_lost(world):
    world.tables = [[table({1, 2, 3, 4, 5}), table({3})], [table({1}, ending={2})]]
    found = world.drill()
    assert (found["before"], found["after"], found["ended"], found["lost"]) == (5, 1, 3, 1)
    assert found["sentence"].endswith("5 connections before, 1 after, 3 ended by clients, 1 lost.")


def test_and_back_again(world):
    first, second = world.boxes
    world.drill(back=True)
    until("both drills", lambda: len(first.drills.pair_drills()["drills"]) == 2, interval=0.002)
    until("its end", lambda: not second.core.turn.taken, interval=0.002)
    assert [one["gave"] for one in second.drills.pair_drills()["drills"]] == ["lb2", "lb1"]
    assert world.roles()[0] == LEADS


def test_what_would_stop_a_hand_over_stops_a_drill(world):
    first, second = world.boxes
    world.ready[1] = False
    world.pass_time(1)
    assert first.refusal(lambda: first.drills.pair_drill(False, "ann"))[0] == "peer-not-ready"
    assert second.refusal(lambda: second.drills.pair_drill(False, "ann"))[0] == "not-leading"
    with first.core.turn.take("the changes of bob are being applied"):
        assert first.refusal(lambda: first.drills.pair_drill(False, "ann"))[0] == "busy"
    assert first.drills.pair_drills() == {"running": "", "drills": []} and not first.core.turn.taken


def test_what_comes_to_nothing_is_told_and_gives_the_turn_back(world):
    first = world.boxes[0]
    world.slow = True
    assert world.drill()["sentence"].startswith("lb2 did not take over within 10 seconds")
    assert not first.core.turn.taken


def test_an_address_that_does_not_answer_is_named(world, monkeypatch):
    monkeypatch.setattr(drills, "ANSWERS", 0.1)
    world.answering = ["10.0.2.15"]
    found = world.drill()
    assert found["sentence"] == "10.0.2.100 did not answer at lb2; 3 connections before, 3 after."


def test_without_the_other_boxs_word_the_silence_is_told_all_the_same(world):
    first = world.boxes[0]
    first.core.errands.away = True
    found = world.drill()
    assert found["sentence"] == (
        "The addresses answered at lb2 after 31 ms; the connections were not compared: lb2 is not heard."
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", 1), ("when", "yesterday"), ("when", None), ("user", "a\nb"), ("gave", "x" * 301), ("failed", None),
        ("silence", "31"), ("silence", -1), ("silence", True), ("unanswered", ["x"] * 17), ("unanswered", [1]),
        ("part", 0), ("before", -1), ("after", 1.5), ("ended", True), ("lost", 10**10),
    ],
)  # fmt: skip
def test_what_the_other_box_tells_of_a_drill_is_read_by_its_shape(world, field, value):
    second = world.boxes[1]
    code, message = second.refusal(lambda: second.drills.drill_done({**FIRST, field: value}))
    assert code == "bad-field" and f" {field}: must be " in message
    assert second.drills.pair_drills()["drills"] == []


def test_the_list_is_bounded_outlives_a_restart_and_a_damaged_line(tmp_path):
    path = tmp_path / "shared/drills"
    one = DrillList(path)
    for number in range(MOST + 3):
        one.note({**FIRST, "id": str(number)})
    one.note({**FIRST, "id": "52", "user": "bob"})  # told twice
    path.write_bytes(path.read_bytes() + b"{\n[]\n\xff\n")
    found = DrillList(path).newest()
    assert len(found) == MOST - 3 and found[0] == {**FIRST, "id": "52", "user": "bob"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "The addresses answered at lb2 after 31 ms; 1,240 connections before, 1,238 after, 2 ended by clients."),
        ({"before": 1, "after": 1, "ended": 0, "part": 4}, "31 ms; of each 4 connections one was compared: 1 conn"),
        ({"silence": None}, "lb2 leads; how long the addresses were silent is not known; 1,240"),
        ({"silence": None, "unanswered": list("abcd")}, "a, b, c and 1 more did not answer at lb2; 1,240"),
    ],
)
def test_a_drill_in_words(changes, words):
    assert words in sentence({**FIRST, **changes})


# --- which connections ---


def line(client, state="ESTABLISHED", protocol="TCP"):
    return f"{protocol} 0A01000A {client:04X} 0A010064 0050 0A020003 0050 {state:11} 899\n".encode()


def host_of(*lines):
    return SimpleNamespace(lines=lambda path, seconds: iter(lines))


def test_open_connections_are_those_that_go_on():
    head = b"Pro FromIP   FPrt ToIP     TPrt DestIP   DPrt State       Expires PEName PEData\n"
    found = comparing.read(
        host_of(
            head, line(1), line(2, "FIN_WAIT"), line(3, "UDP", "UDP"), line(0, "NONE"), b"nonsense\n", line(4, "CLOSE")
        )
    )
    assert (len(found.open), len(found.ending), found.part, found.whole) == (2, 2, 1, True)
    same = comparing.read(host_of(line(2), line(3, "UDP", "UDP")))
    known = comparing.compare(found.open, same)
    assert (known.open, known.ending, len(known.missing)) == (1, 0, 1)


def test_of_a_large_table_both_boxes_look_at_the_same_part(monkeypatch):
    monkeypatch.setattr(comparing, "MOST", 100)
    lines = [line(number) for number in range(1, 1000)]
    found = comparing.read(host_of(*lines))
    assert found.part >= 8 and 20 <= len(found.open) <= 100
    there = comparing.read(host_of(*lines[::-1]), found.part)
    assert there.open == found.open
    assert not comparing.read(host_of(*lines), 1).whole


def test_a_table_that_takes_too_long_is_not_whole():
    def lines(path, seconds):
        yield line(1)
        raise OutOfTime("read", None, "too long")

    assert comparing.read(SimpleNamespace(lines=lines)) == table(comparing.read(host_of(line(1))).open, whole=False)


def test_numbers_go_through_text_and_nothing_else_does():
    some = {0, 1, 2**64 - 1}
    assert comparing.from_text(comparing.to_text(some)) == some
    for text in ("AAAA", "not base64!", comparing.to_text(range(comparing.MOST + 1))):
        with pytest.raises(ValueError):
            comparing.from_text(text)


# --- which addresses ---


def test_the_first_and_the_last_address_of_each_network_are_asked_for():
    places = [Place("eth0", f"10.1.0.{at}") for at in range(1, 200)]
    places += [Place("eth0", "2001:db8::1"), Place("eth1", "10.2.0.1"), Place("eth1", "10.2.0.2")]
    assert asking.chosen(places) == (
        Place("eth0", "10.1.0.1"),
        Place("eth0", "10.1.0.199"),
        Place("eth0", "2001:db8::1"),
        Place("eth1", "10.2.0.2"),
    )
    assert len(asking.chosen([Place(f"eth{at}", "10.1.0.1") for at in range(40)])) == asking.MOST
    assert asking.chosen([]) == ()


def test_questions_and_answers_on_the_wire():
    mac = "52:54:00:00:00:01"
    asked = frames.question(mac, "10.1.0.1", "10.1.0.100")
    assert asked.hex() == (
        "ffffffffffff525400000001080600010800060400015254000000010a0100010000000000000a010064"
    ).replace(" ", "")
    six = frames.question(mac, "2001:db8::1", "2001:db8::12:3456")
    assert six[:6].hex(":") == "33:33:ff:12:34:56" and len(six) == 14 + 40 + 32 and six[54] == 135
    reply = asked[:20] + b"\0\2" + asked[22:]
    assert frames.answer(reply) == "10.1.0.1"
    assert frames.answer(frames.announcement(mac, "2001:db8::1")) == "2001:db8::1"
    for nothing in (asked, six, frames.announcement(mac, "10.1.0.1"), reply[:41], six[:70], b""):
        assert frames.answer(nothing) is None


def test_whoever_has_no_address_there_asks_without_one():
    read = {
        Path("/sys/class/net/eth0/address"): "52:54:00:00:00:01\n",
        asking.LINK_LOCAL: "fe80" + "0" * 27 + "1 02 40 20 80 eth0\n",
    }
    ask = asking.Asking(SimpleNamespace(read=read.get), None, (), SimpleNamespace(interfaces=()))
    assert ask._own(Place("eth0", "10.1.0.1")) == "0.0.0.0" and ask._own(Place("eth0", "2001:db8::1")) == "fe80::1"
