"""Whose turn it is: who is refused meanwhile, how it is handed on, and when others hear that it is over."""

import threading

import pytest

from applier.kept.turn import OVERDUE, Turn
from applier.wire.errors import ApplierRefused

SOON = 20  # seconds


@pytest.fixture
def turn():
    return Turn()


def refused(turn: Turn) -> str:
    with pytest.raises(ApplierRefused) as caught, turn.take("something else happens"):
        pass
    assert caught.value.code == "busy"
    return caught.value.message


def test_it_is_one_callers_at_a_time_and_the_refusal_says_whose(turn):
    with turn.take("the box is being tuned for ann"):
        assert turn.taken and turn.refusal().message == refused(turn)
        assert refused(turn) == "Right now the box is being tuned for ann; wait until that has ended."
        turn.owned_by(lambda: "9 seconds are left")
        assert "9 seconds are left" in refused(turn)
    assert not turn.taken and turn.refusal() is None
    assert turn.count == 1, "who was refused does not count"


def test_what_has_gone_on_for_too_long_may_hang_and_says_what_to_do():
    now = [5000.0]
    turn = Turn(lambda: now[0])
    with turn.take("the changes of ann are being applied"):
        now[0] += OVERDUE
        assert not turn.overdue and "wait until" in refused(turn)
        now[0] += 60.0
        assert turn.overdue and refused(turn) == (
            "Right now the changes of ann are being applied, for 11 minutes already. If that does not end, restart the "
            "box where it hangs: what was not confirmed is taken back."
        )
        turn.owned_by("the changes of ann wait for lb2")
        assert not turn.overdue, "it has gone on"
        turn.owned_by(lambda: "the changes of ann wait to be confirmed")
        now[0] += 10 * OVERDUE
        assert not turn.overdue, "that ends by itself"
    assert not turn.overdue


def test_an_error_gives_it_back(turn):
    with pytest.raises(ValueError), turn.take("a change is being applied"):
        raise ValueError
    assert not turn.taken


def test_a_thread_gives_it_back_before_anybody_hears_of_the_end(turn):
    go, heard = threading.Event(), threading.Event()
    seen = []

    def tell(result):
        with turn.take("the next change is being applied"):
            seen.append(result)
        heard.set()

    with turn.take("a change is being applied") as held:
        held.hand_on("change", lambda: go.wait(SOON), repr, tell)
    assert "a change is being applied" in refused(turn)
    go.set()
    assert heard.wait(SOON) and seen == [True]
    assert not turn.taken


def test_what_goes_wrong_after_it_was_handed_on_leaves_it_to_the_thread(turn):
    go, heard = threading.Event(), threading.Event()
    with pytest.raises(ValueError), turn.take("a change is being applied") as held:
        held.hand_on("change", lambda: go.wait(SOON), repr, lambda _: heard.set())
        raise ValueError
    assert turn.taken
    go.set()
    assert heard.wait(SOON) and not turn.taken


@pytest.mark.parametrize("error", [ZeroDivisionError("a mistake"), MemoryError(), SystemExit("a mistake")])
def test_whatever_a_thread_raises_it_gives_it_back_and_its_end_is_heard(turn, error):
    heard, told = threading.Event(), []

    def work():
        raise error

    def tell(result):
        told.append((result, turn.taken))
        heard.set()

    with turn.take("a change is being applied") as held:
        held.hand_on("change", work, repr, tell)
    assert heard.wait(SOON) and told == [(repr(error), False)]


def test_where_there_is_no_thread_to_be_had_that_is_heard_too(turn, monkeypatch):
    def start(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    told = []
    with turn.take("a change is being applied") as held:
        held.hand_on("change", lambda: "done", str, told.append)
    assert told == ["can't start new thread"] and not turn.taken


def test_what_is_kept_stays_taken_until_it_is_given_back(turn):
    with turn.take("the box is restarted by ann") as held:
        held.keep()
    assert "restarted by ann" in refused(turn)
    held.give_back()
    assert not turn.taken
