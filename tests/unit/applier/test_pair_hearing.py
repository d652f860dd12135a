"""Which paths between the boxes are alive, and what the other box sees otherwise."""

from types import SimpleNamespace

import pytest
from pair_world import SNAPSHOT

from applier.base import frames
from applier.pair import hearing
from applier.pair.hearing import Hearing
from applier.pair.seeing import MOST, Seeing
from applier.wire.errors import ApplierRefused
from lbconfig.model.snapshot import FACTORY
from lbconfig.pair import heartbeats
from lbconfig.target import Target

PATHS = heartbeats(SNAPSHOT.pair, 0)
SERVICE = next(one for one in SNAPSHOT.services if one.enabled and len(one.real_servers) > 1)
FIRST, SECOND = SERVICE.real_servers[:2]


class Links:
    """The cards of the first box; `alive`: interfaces on which the other one answers."""

    def __init__(self):
        self.now, self.alive, self.cards, self.asked, self.closed = (
            100.0,
            set(),
            {path.interface for path in PATHS},
            [],
            0,
        )

    def read(self, path):
        return "52:54:00:00:00:01\n" if path.parent.name in self.cards else None

    def neighbours(self, interfaces):
        assert set(interfaces) <= self.cards
        return self

    def ask(self, interface, frame):
        self.asked.append((interface, frame))

    def answers(self, seconds):
        for path in PATHS:
            if path.interface in self.alive:
                yield path.interface, path.peer, self.now
                yield path.interface, "10.99.99.99", self.now

    def close(self):
        self.closed += 1


@pytest.fixture
def links():
    return Links()


def heard(links, running=None):
    core = SimpleNamespace(host=links, running=running or Target(12, SNAPSHOT, 0))
    return Hearing(core, lambda: links.now)


def test_each_path_is_asked_from_its_own_address_and_told_since_when_it_is_silent(links):
    assert PATHS[0].cable and len(PATHS) > 1
    links.alive = {path.interface for path in PATHS}
    found = heard(links)
    found.look()
    assert [one["alive"] for one in found.shown()] == [True] * len(PATHS) and found.shown()[0]["cable"]
    first = PATHS[0]
    assert links.asked[0] == (first.interface, frames.question("52:54:00:00:00:01", first.address, first.peer))
    links.alive.discard(first.interface)
    links.now += 60
    found.look()
    cable, other = found.shown()[:2]
    assert (cable["alive"], cable["silent"], cable["ever"]) == (False, 60.0, True)
    assert (other["alive"], other["silent"]) == (True, 0.0)
    assert links.closed == 2


def test_a_path_that_has_never_answered_is_given_a_moment(links):
    found = heard(links)
    found.look()
    assert [(one["alive"], one["ever"]) for one in found.shown()] == [(True, False)] * len(PATHS)
    links.now += hearing.SILENT + 1
    assert not any(one["alive"] for one in found.shown())


def test_a_card_that_is_gone_keeps_no_other_path_from_being_asked(links):
    links.alive = {path.interface for path in PATHS}
    links.cards.discard(PATHS[0].interface)
    found = heard(links)
    found.look()
    links.now += 1
    assert [one["ever"] for one in found.shown()] == [False] + [True] * (len(PATHS) - 1)


def test_a_box_without_a_pair_asks_nobody(links):
    found = heard(links, Target(None, FACTORY))
    found.look()
    assert found.shown() == [] and not links.asked


# --- what the other box sees ---


class Two:
    """Both, each asking the other one."""

    def __init__(self):
        self.away, self.answer = False, None
        self.boxes = []
        for number in (0, 1):
            core = SimpleNamespace(
                running=Target(12, SNAPSHOT, number), reasons=SimpleNamespace(downs={}), errands=self
            )
            self.boxes.append(Seeing(core))

    def ask(self, verb, arguments, within):
        assert (verb, arguments) == ("pair_sees", {})
        if self.away:
            raise ApplierRefused("peer-away", "lb2 is not heard.")
        return self.answer or self.boxes[1].pair_sees()

    def down(self, number, *servers):
        places = {(one.address, one.port): {"state": "down"} for one in servers}
        self.boxes[number]._core.reasons.downs = {SERVICE.id: places}

    def look(self):
        times = iter((5.0, 5.012))
        self.boxes[0].look(lambda: next(times))
        return self.boxes[0].sentences("lb1", "lb2")


def test_a_server_that_answers_one_box_alone_is_told_once_that_lasts():
    two = Two()
    two.down(1, FIRST)
    assert two.look() == []  # it may just go down
    [sentence] = two.look()
    assert sentence == (
        f"{FIRST.name or FIRST.address} ({SERVICE.name}) answers lb1, not lb2: does its firewall let both boxes in?"
    )
    assert two.boxes[0].lag == pytest.approx(0.012)
    two.down(0, FIRST, SECOND)
    two.look()
    [sentence] = two.look()
    assert f"{SECOND.name or SECOND.address} ({SERVICE.name}) answers lb2, not lb1" in sentence


def test_without_an_answer_nothing_is_known():
    two = Two()
    two.down(1, FIRST)
    two.look()
    two.look()
    two.away = True
    assert two.look() == [] and two.boxes[0].lag is None
    two.away = False
    two.boxes[0]._core.running = Target(None, FACTORY)
    two.boxes[0].look(lambda: 0.0)
    assert two.boxes[0].lag is None


@pytest.mark.parametrize(
    "answer",
    [{"x": 1}, {"downs": {}}, {"downs": [[1, "a"]]}, {"downs": [["1", "a", 2]]}, {"downs": [[True, "a", 2]]},
     {"downs": [[1, "a", 2]] * (MOST + 1)}],
)  # fmt: skip
def test_an_answer_that_is_wrong_is_none(answer):
    two = Two()
    two.answer = answer
    assert two.look() == [] and two.boxes[0].lag is None
