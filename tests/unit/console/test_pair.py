"""The pair at the console: who leads, how two boxes are joined and parted. The other box has the real protocol."""

import re
import socket
from dataclasses import replace

import pytest
from board.machines.wait import until
from lbconfig_pairs import PAIR
from tests.fake import pair as fake_pair
from tests.fake import rolling
from tests.fake.joining import JoiningBox

from applier.pair.roles import HELD, LEADS, STANDS_BY
from applier.update.rolling.course import Phase
from applier.wire.client import connect
from console import pair, screen, state
from console.dialogue import NOTHING_DONE
from lbconfig.model.snapshot import Interface, Network, Snapshot
from lbconfig.validate.cards import Card

CARDS = tuple(Card(f"eth{number}", mac=f"52:54:00:00:00:0{number}") for number in range(4))
OTHER = Snapshot(network=Network("lb2", interfaces=(Interface("eth0", addresses=("192.168.10.9/24",)),)))
CODE = re.compile(r"The code for the other box: ([A-Z2-7-]{19})\n")


@pytest.fixture
def both(fake):
    fake.box.snapshot, fake.box.pair = PAIR, fake_pair.sample()
    yield fake.box.pair
    fake.box.joining.close()


@pytest.fixture
def other(fake):
    """Another box; both look for each other at this port."""
    with socket.create_server(("", 0)) as free:
        fake.box.joining.port = free.getsockname()[1]
    other = JoiningBox(lambda: OTHER, lambda: CARDS, fake.box.joining.port)
    yield other
    other.verbs.pair_forget("test")
    fake.box.joining.close()


def begin(person, *lines: str) -> str:
    person.terminal.begin(pair.change(), True)
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
    assert begin(person) == (
        "This box is in no pair.\n  1  Make a pair: show a code for the other box\n"
        "  2  Join the box that shows a code\nNumber; an empty line cancels: "
    )


def test_hand_over(person, both):
    shown = begin(person, "10", "1", "yes")
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


def test_the_other_box_joins_this_one(person, fake, other):
    shown = begin(person, "1", "yes")
    assert "The address of this box: " in shown and "for 10 more minutes, and for 3 tries." in shown
    code = CODE.search(shown)[1]
    assert code in begin(person, "") and "  3  Wait for no other box any more\n" in begin(person, "")
    other.verbs.pair_join("127.0.0.2", code, "admin")
    until("the other box", lambda: connect().pair_joining()["joined"])
    shown = begin(person, "")
    assert "This box and lb2 have joined. It is heard. Go on at the web page of this box" in shown
    assert "  1  Forget lb2\n" in shown and "  2  " not in shown
    begin(person, "1", "yes")
    assert "  2  Join the box that shows a code\n" in begin(person, "")


def test_this_box_joins_the_other_one(person, fake, other):
    code = other.verbs.pair_invite("admin")["invitation"]["code"]
    shown = begin(person, "2", "127.0.0.2", code.lower().replace("-", " "))
    assert shown.endswith(
        "have joined. It is heard. Go on at the web page of lb2: Pair shows what both boxes become.\n"
    )


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (("2", ""), ""),
        (("2", "127.0.0.2", ""), ""),
        (("2", "nowhere; reboot", "abcd"), "Nothing was done. "),
        (("2", "127.0.0.2", "ABCD-EFGH"), "A code has sixteen letters and digits, as in ABCD-EFGH-IJKL-MN23."),
        (("2", "127.0.0.2", "\u00e4" * 16), "A code has sixteen letters and digits"),
        (("2", "127.0.0.2", "ABCD-EFGH-IJKL-MN23"), "Nothing was done. "),
        (("1", "no"), NOTHING_DONE),
    ],
)
def test_what_is_wrong_is_said_and_nobody_is_joined(person, other, lines, said):
    assert said in begin(person, *lines)
    assert connect().pair_joining()["joined"] is None


def test_an_invitation_is_taken_back(person, other):
    begin(person, "1", "yes")
    assert begin(person, "3", "yes").endswith("This box waits for no other one, and knows none.\n")
    assert connect().pair_joining()["invitation"] is None


def test_the_box_leaves_and_the_other_one_goes_on(person, fake, both):
    shown = begin(person, "7", "yes")
    assert "lb1 keeps its own addresses. Its services are switched off.\n" in shown
    assert fake.box.snapshot.pair is None and not any(one.enabled for one in fake.box.snapshot.services)
    assert "This box is in no pair." in begin(person, "")


def test_the_box_goes_on_without_the_other_one(person, fake, both):
    both.peer = None
    assert "Nothing was done. lb2 is not heard, so nobody would go on with the services." in begin(person, "7", "yes")
    assert "If lb2 is dead, it must stay off" in begin(person, "8", "yes")
    assert fake.box.snapshot.pair is None and any(one.enabled for one in fake.box.snapshot.services)


def test_a_new_box_takes_the_place_of_the_dead_one(person, fake, both):
    assert "Nothing was done. lb2 is there." in begin(person, "9", "yes")
    both.peer = None
    assert "The code for the new box that takes the place of lb2: " in begin(person, "9", "yes")
    assert "The code for the new box that takes the place of lb2: " in begin(person, "")
