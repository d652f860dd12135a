"""One box asks the other one: what is answered, and what becomes of lines that are wrong, late, twice or too many."""

import dataclasses
import json
import threading
from types import SimpleNamespace

import pytest
from board.machines.wait import until
from two_boxes import OLD

from applier.pair import errand_lines, errands
from applier.pair.errand_lines import MAX_BODY, read_answer, read_ask
from applier.pair.errands import AT_ONCE, UNDER_WAY, Errands
from applier.pair.peer import Peer
from applier.wire.errors import ApplierRefused
from applier.wire.protocol import checked
from lbconfig.agreement_lines import LineError
from lbconfig.model.snapshot import FACTORY
from lbconfig.target import Target

VERBS = {"greet": {"name": lambda value: None if isinstance(value, str) else "must be text"}, "fail": {}, "wait": {}}
ID = "0123456789abcdef" * 2


class Core:
    """A box of the pair that knows three verbs."""

    joined_with = None  # test_first_apply.py has boxes that are

    def __init__(self, number: int) -> None:
        self.running = Target(1, OLD, number)
        self.peer = Peer()
        self.may_end = threading.Event()
        self.done: list[str] = []
        self.errands = Errands(self, lambda: 100.0, VERBS)

    def handle(self, request, uid):
        self.done.append(request.verb)
        if request.verb == "fail":
            wrong = {"object": "disk", "field": "room", "message": "is used up", "path": ""}
            raise ApplierRefused("no-room", "There is no room on lb2.", [wrong])
        if request.verb == "wait":
            assert self.may_end.wait(60)
        name = request.fields.get("name", "")
        if name == "mistake":
            raise KeyError(name)
        return {"said": f"hello {name}" * (MAX_BODY if name == "long" else 1)}


class Pair:
    """Two of them; what is said goes through JSON, in a thread, `copies` times, as long as the cable is not cut."""

    def __init__(self) -> None:
        self.cores = (Core(0), Core(1))
        self.copies = 1
        self.cut = False
        self.over = threading.Event()
        for core in self.cores:
            core.peer.says(SimpleNamespace(), 95.0)
        self.threads = [threading.Thread(target=self.carry, args=ends) for ends in (self.cores, self.cores[::-1])]
        for one in self.threads:
            one.start()

    def carry(self, sender, taker) -> None:
        while not self.over.is_set():
            for line in json.loads(json.dumps(sender.errands.pair_errands())) * self.copies:
                if self.cut:
                    continue
                if line["kind"] == "ask":
                    taker.errands.pair_asked(line["body"])
                else:
                    taker.errands.pair_answered(line["body"])

    def close(self) -> None:
        self.over.set()
        for core in self.cores:
            core.may_end.set()
        for one in self.threads:
            one.join(60)


@pytest.fixture
def pair(monkeypatch):
    monkeypatch.setattr(errands.agreement, "BEAT", 0.02)
    found = Pair()
    yield found
    found.close()


def refusal(call, *arguments) -> ApplierRefused:
    with pytest.raises(ApplierRefused) as caught:
        call(*arguments)
    return caught.value


def test_what_is_asked_is_answered_in_both_directions_and_once(pair):
    pair.copies = 3
    first, second = pair.cores
    assert first.errands.ask("greet", {"name": "lb2"}, 60) == {"said": "hello lb2"}
    assert second.errands.ask("greet", {"name": "lb1"}, 60) == {"said": "hello lb1"}
    assert first.done == second.done == ["greet"]


@pytest.mark.parametrize(
    ("verb", "arguments", "code", "words"),
    [
        ("fail", {}, "no-room", "There is no room on lb2. disk: room is used up."),
        ("greet", {"name": "mistake"}, "internal", "log says more"),
        ("greet", {"name": 3}, "bad-field", "name must be text"),
        ("greet", {}, "bad-field", "name is missing"),
        ("apply", {}, "unknown-verb", "no verb 'apply'"),
        ("greet", {"name": "long"}, "too-large", "The answer would have"),
        ("greet", {"name": "x" * MAX_BODY}, "too-large", "What lb2 is asked has"),
    ],
)
def test_a_refusal_comes_back_as_it_was(pair, verb, arguments, code, words):
    refused = refusal(pair.cores[0].errands.ask, verb, arguments, 60)
    assert refused.code == code and words in refused.message


def test_several_are_under_way_and_no_more_than_may_be(pair):
    first, second = pair.cores
    outcomes = []

    def ask() -> None:
        outcomes.append(first.errands.ask("wait", {}, 60))

    threads = [threading.Thread(target=ask) for _ in range(AT_ONCE)]
    for one in threads:
        one.start()
    until("all to be begun", lambda: second.done == ["wait"] * AT_ONCE, 60)
    assert refusal(first.errands.ask, "greet", {"name": "one more"}, 60).code == "overloaded"
    second.may_end.set()
    for one in threads:
        one.join(60)
    assert len(outcomes) == AT_ONCE
    assert first.errands.ask("greet", {"name": "lb2"}, 60)


def test_a_box_that_is_away_or_silent_is_told_apart_from_one_that_refuses(pair):
    first, second = pair.cores
    first.errands._clock = lambda: 105.1
    assert refusal(first.errands.ask, "greet", {"name": ""}, 60).message == "lb2 is not heard."
    first.errands._clock = lambda: 100.0
    pair.cut = True
    refused = refusal(first.errands.ask, "greet", {"name": ""}, 0.1)
    assert (refused.code, refused.message) == ("peer-away", "lb2 did not answer within 0.1 seconds.")
    pair.cut = False
    assert refusal(first.errands.ask, "wait", {}, 0.1).code == "peer-away"
    second.may_end.set()  # it comes late
    assert first.errands.ask("greet", {"name": "lb2"}, 60) == {"said": "hello lb2"}
    first.running = Target(1, FACTORY)
    assert refusal(first.errands.ask, "greet", {"name": ""}, 60).code == "no-pair"


def test_whoever_falls_silent_is_not_waited_for(pair, monkeypatch):
    monkeypatch.setattr(errands, "LOOKS", 0.02)
    first, second = pair.cores
    said = []
    thread = threading.Thread(target=lambda: said.append(refusal(first.errands.ask, "wait", {}, 600)))
    thread.start()
    until("it to be begun", lambda: second.done, 60)
    first.errands._clock = lambda: 200.0
    thread.join(60)
    assert [one.message for one in said] == ["lb2 went away before it had answered."]


def test_what_nobody_waits_for_any_more_is_not_sent_and_no_other_pair_hears_it(monkeypatch):
    monkeypatch.setattr(errands.agreement, "BEAT", 0.02)
    core = Core(0)
    core.peer.says(SimpleNamespace(), 95.0)
    assert refusal(core.errands.ask, "greet", {"name": "nobody carries it"}, 0.05).code == "peer-away"
    assert core.errands.has_lines and core.errands.pair_errands() == []
    core.errands.pair_asked({"id": ID, "verb": "greet", "arguments": {"name": ""}})
    until("the answer", lambda: core.errands.has_lines, 60)
    core.running = Target(1, dataclasses.replace(OLD, pair=dataclasses.replace(OLD.pair, id="f" * 32)), 0)
    assert core.errands.pair_errands() == []


def test_what_nobody_carries_takes_no_more_memory_than_may_be(monkeypatch):
    monkeypatch.setattr(errands, "KEPT", 1000)
    core = Core(0)
    for number in range(100):
        core.errands.pair_asked({"id": f"{number:032x}", "verb": "fail", "arguments": {}})
    until("the answers", lambda: core.errands._doing == 0, 60)
    assert sum(line.size for line in core.errands._lines) <= 1000
    core.peer.says(SimpleNamespace(), 95.0)
    core.errands._waiting = {f"{number:032x}": errands.Reply() for number in range(UNDER_WAY)}
    assert refusal(core.errands.ask, "greet", {"name": ""}, 1).code == "overloaded"


def test_what_the_tables_do_not_know_is_nothing_a_peer_may_ask():
    for verb in ("apply", "factory_reset", "new_setup_code", "pair_tells"):
        assert refusal(checked, verb, {}, VERBS).code == "unknown-verb"


@pytest.mark.parametrize(
    ("read", "body", "words"),
    [
        (read_ask, {"id": ID, "verb": "greet"}, "body: what is asked has"),
        (read_ask, {"id": ID, "verb": "greet", "arguments": []}, "arguments: must be an object"),
        (read_ask, {"id": ID, "verb": "x" * 41, "arguments": {}}, "verb: must be"),
        (read_ask, {"id": ID, "verb": None, "arguments": {}}, "verb: must be"),
        (read_ask, {"id": "../x", "verb": "greet", "arguments": {}}, "id: must be 32 hex"),
        (read_answer, {"id": ID}, "body: an answer has"),
        (read_answer, {"id": ID, "result": [1]}, "result: must be an object"),
        (read_answer, {"id": 7, "result": {}}, "id: must be 32 hex"),
        (read_answer, {"id": ID, "code": "No Room", "message": ""}, "code: must be"),
        (read_answer, {"id": ID, "code": "no-room", "message": "a\nb"}, "message: must be"),
        (read_answer, {"id": ID, "code": "no-room", "message": "x" * 1001}, "message: must be"),
    ],
)  # fmt: skip
def test_what_is_not_of_the_shape_is_refused_with_its_field(read, body, words):
    with pytest.raises(LineError, match=f"^{words}"):
        read(body)


def test_any_text_becomes_a_message_that_the_other_box_takes():
    said = errand_lines.refusal(ID, "internal", "a\nb\x00\ud800" + "x" * 5000)
    assert read_answer(json.loads(json.dumps(said.to_data()))).message.startswith("a b??x")
