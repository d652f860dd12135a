"""A join whose messages are lost or late, or of which a box loses its power: the code is entered once more."""

import contextlib
import itertools
import socket
import time

import pytest
from board.machines.wait import PATIENCE
from tests.fake.joining import InThread
from tests.peers.joining_boxes import Linked, agreed

from applier.host.host import HostError
from applier.kept import pair_key
from applier.pair.joining import record
from applier.pair.joining.messages import JoinError
from applier.pair.joining.worker import Lines
from applier.wire.errors import ApplierRefused


class Cut(InThread):
    """The power goes at the box after so many lines to or from the program."""

    left = 0

    def _one(self) -> None:
        self.left -= 1
        if self.left < 0:
            self.end()
            raise HostError("worker", None, "the power is gone")

    def say(self, line: str) -> None:
        self._one()
        super().say(line)

    def lines(self, seconds: float):
        for line in super().lines(seconds):
            if '"waiting"' not in line:
                self._one()
            yield line


def cut_off(two, monkeypatch, box: str, left: int) -> None:
    """That box says and hears so many messages, and no more."""

    def start(argv):
        if argv[-1] != box:
            return InThread(argv[-1])
        program = Cut(argv[-1])
        program.left = left
        return program

    for one in (two.first, two.second):
        monkeypatch.setattr(one.host, "start", start)


@pytest.mark.parametrize("box", ["first", "second"])
@pytest.mark.parametrize("left", range(8))
def test_a_power_cut_at_any_message_leaves_no_pair_on_both_or_the_same_agreement(two, box, left, monkeypatch):
    """The first box, which makes the pair, never knows one that the second does not."""
    cut_off(two, monkeypatch, box, left)
    with contextlib.suppress(ApplierRefused, HostError):
        two.join(two.invite())
    if box == "first":
        two.settled()
    two.until_it_waits()
    first, second = record.load(two.first.paths), record.load(two.second.paths)
    assert first is None or (second is not None and (first.id, first.keys) == (second.id, second.keys))
    for one in (two.first, two.second):
        monkeypatch.undo()
        one.verbs.pair_forget("admin")
    assert record.load(two.first.paths) is None is record.load(two.second.paths)


def restarted(box: Linked) -> None:
    """Its applier, with whatever it has on its disk."""
    opened = box.verbs._open
    if opened is not None:
        opened.program.end()
        opened.thread.join(PATIENCE)
    box.begin()


@pytest.mark.parametrize("box", ["first", "second"])
@pytest.mark.parametrize("left", range(8))
def test_after_a_power_cut_at_any_message_the_code_is_entered_once_more(two, box, left, monkeypatch):
    """The same one as long as it is shown; if the first box was restarted, a new one."""
    cut_off(two, monkeypatch, box, left)
    code = ""
    with contextlib.suppress(ApplierRefused, HostError):
        code = two.invite()
        two.join(code)
    two.until_it_waits()
    restarted(getattr(two, box))
    monkeypatch.undo()
    if not two.joined():
        assert not (agreed(two.first) and not agreed(two.second)), "the first one waits for a box that knows nothing"
        two.join(code if two.first.verbs.pair_joining()["invitation"] else two.invite())
    assert two.joined()


WRITES = {
    "first": [(record, "keep")],
    "second": [(record, "forget"), (pair_key, "keep"), (record, "keep")],
}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("box", "write"), [(box, write) for box, all_of in WRITES.items() for write in all_of])
def test_after_a_power_cut_at_any_write_the_code_is_entered_once_more(two, box, write, after, monkeypatch):
    """Also at a box that was joined to a third one before."""
    module, name = write
    real, cut = getattr(module, name), getattr(two, box)
    old = record.Record("e" * 32, 1, ("a" * 42 + "A=", "b" * 42 + "A="), "old", "10.0.2.99", 1, None, ())
    pair_key.make(two.second.host, two.second.paths)
    record.keep(two.second.paths, old)

    def stops(paths, *rest):
        if paths is not cut.paths:
            return real(paths, *rest)
        if after:
            real(paths, *rest)
        raise HostError("worker", None, "the power is gone")

    code = two.invite()
    monkeypatch.setattr(module, name, stops)
    with contextlib.suppress(ApplierRefused):  # unless the other one is heard by then
        two.join(code)
    two.until_it_waits()
    restarted(cut)
    monkeypatch.undo()
    if not two.joined():
        assert agreed(two.first) is None or agreed(two.first) == agreed(two.second)
        two.join(code if two.first.verbs.pair_joining()["invitation"] else two.invite())
    assert two.joined()


class Wire:
    """What becomes of the message of this number between the two boxes, counted over both directions."""

    def __init__(self, at: int, fate: str) -> None:
        self.at, self.fate, self.count = at, fate, itertools.count()
        self.real, self.real_more = Lines.send, Lines._more

    def sender(self):
        def send(lines: Lines, message) -> None:
            if isinstance(lines._sink, int) or next(self.count) != self.at:
                self.real(lines, message)
                return
            if self.fate == "late":
                time.sleep(4 * SHORT)
            if self.fate != "lost":
                with contextlib.suppress(JoinError):
                    self.real(lines, message)
            with contextlib.suppress(OSError):
                lines._sink.shutdown(socket.SHUT_RDWR)
            raise JoinError("The connection between the two boxes was lost.")

        return send

    def reader(self):
        def more(lines: Lines, seconds: float) -> bytes:
            return self.real_more(lines, seconds if isinstance(lines._source, int) else min(seconds, SHORT))

        return more


SHORT = 0.2
MESSAGES = 10  # between the two, from Hello to Done


@pytest.mark.parametrize("at", range(MESSAGES))
@pytest.mark.parametrize("fate", ["lost", "last", "late"])
def test_the_same_code_is_answered_again_whichever_message_was_lost(two, at, fate, monkeypatch):
    """The message itself, all that come after it, or it comes when nobody waits for it any more."""
    wire = Wire(at, fate)
    code = two.invite()
    monkeypatch.setattr(Lines, "send", wire.sender())
    if fate == "late":
        monkeypatch.setattr(Lines, "_more", wire.reader())
    before = two.first.verbs.pair_joining()["invitation"]["tries"]
    with contextlib.suppress(ApplierRefused):
        two.join(code)
    two.until_it_waits()  # it may still be keeping what it was told last
    monkeypatch.undo()
    if agreed(two.first):
        assert two.joined(), "the first box has kept it, so the link goes up whatever the second one was told"
    elif agreed(two.second):
        assert not two.second.link["heard"]
    here = two.join(code)["joined"]
    assert two.joined() and here["other"] == "lb1"
    assert two.settled()["said"] == "" and before == 3, "no try was lost by it"
