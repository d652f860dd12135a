"""The word to the floater that the applier is alive comes from what does the work, and ends with it."""

import os
import threading

import pytest
from board.machines.wait import until
from pair_world import World

from applier.base.paths import Paths
from applier.kept.loop import Loop
from applier.pair import pulse as pulse_module
from applier.pair.pulse import Pulse, Work
from applier.wire.server import Server


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def stuck_loop(world, name="the agreement"):
    """A loop that comes round whenever it is told to, by the clock of the world."""
    return Loop(name, lambda: None, lambda: None, clock=lambda: world.clock)


def test_the_pulse_ends_once_something_hangs_and_goes_on_with_it(world, caplog):
    first = world.boxes[0]
    agrees, looks = stuck_loop(world), stuck_loop(world, "how the pair stands")
    pulse = Pulse(first.core, first.lookout, (Work(agrees, 30.0), Work(looks, 150.0)))

    def told(seconds, *rounds):
        first.host.asked.clear()
        for _ in range(seconds):
            world.watched(1)
            for loop in rounds:
                loop.turn()
            pulse.tick()
        return first.host.asked

    assert told(5, agrees, looks) == 5 * ["alive relieved"]
    assert told(30, looks) == 30 * ["alive relieved"]  # whatever takes long has its time
    assert told(20, looks) == [] and caplog.text.count("the agreement: no end for 31 s") == 1
    assert told(3, agrees, looks) == 3 * ["alive relieved"]
    assert told(150, agrees) == 150 * ["alive relieved"] and told(1, agrees) == []
    assert "how the pair stands: no end for 151 s" in caplog.text


def test_an_applier_that_is_only_slow_goes_on_saying_so(world, caplog):
    """Without a processor the pulse comes round as seldom as what it watches."""
    first = world.boxes[0]
    agrees = stuck_loop(world)
    pulse = Pulse(first.core, first.lookout, (Work(agrees, 30.0),))
    first.host.asked.clear()
    for _ in range(20):
        world.watched(10)
        pulse.tick()
    assert len(first.host.asked) == 20 and "no end" not in caplog.text


def test_what_hangs_and_hears_nothing_any_more_does_not_make_the_other_box_away(world):
    """Else the floater would be told that nobody can lead instead, just before it is told nothing."""
    first = world.boxes[0]
    agrees = stuck_loop(world)
    pulse = Pulse(first.core, first.lookout, (Work(agrees, 30.0),))
    world.watched(1)
    agrees.turn()
    pulse.tick()
    world.path = False
    world.watched(10)
    first.host.asked.clear()
    pulse.tick()
    assert not first.lookout.relieved and first.host.asked == ["alive relieved"]
    with first.core.turn.take("the changes of bob are being applied"):
        pulse.tick()  # nothing moves meanwhile
    assert first.host.asked == ["alive relieved", "alive"]
    agrees.turn()
    pulse.tick()
    assert first.host.asked[-1] == "alive"  # it is away indeed


def test_the_applier_asks_itself_and_a_deadlock_of_its_verbs_is_no_answer(tmp_path, monkeypatch):
    monkeypatch.setattr(pulse_module, "ASKS", 0.01)
    monkeypatch.setattr(pulse_module, "ANSWERS", 0.1)
    lock, asked = threading.Lock(), []

    def handle(request, _):
        asked.append(request.verb)
        with lock:
            return None

    paths = Paths(run=tmp_path)
    loop = pulse_module.answers(paths)
    server = Server(paths.socket, handle, {os.getuid()})
    threading.Thread(target=server.serve, daemon=True).start()
    loop.turn()
    assert asked == ["progress"]
    lock.acquire()
    asking = threading.Thread(target=loop.turn)
    asking.start()
    until("it to ask again", lambda: len(asked) > 3)
    assert asking.is_alive()
    late = loop.late
    lock.release()
    asking.join(20)
    assert not asking.is_alive() and loop.late < late
    server.close()
