"""Both boxes of a pair are updated as one act, by their real updates: every way there, back, and to a stop."""

import base64
import dataclasses
import threading

import pytest
from rolling_world import NEW, OLD, RollingWorld
from tests.parts import ALL
from update_box import bundle_bytes

from applier.pair import standing
from applier.pair.errand_lines import ASK, Ask
from applier.pair.roles import LEADS, STANDS_BY
from applier.update.rolling import receiving, verbs
from applier.update.rolling.course import Phase
from applier.update.rolling.verbs import NOT_MEANWHILE
from applier.wire.errors import ApplierRefused
from lbconfig.agreement_lines import Writer
from lbconfig.model.snapshot import FACTORY
from lbconfig.target import Target


@pytest.fixture
def world(tmp_path):
    return RollingWorld(tmp_path)


def refusal(ask) -> tuple[str, str]:
    with pytest.raises(ApplierRefused) as refused:
        ask()
    return refused.value.code, refused.value.message


def test_both_boxes_get_the_version_one_after_the_other(world):
    assert world.state()["state"] == "none"
    found = world.start()
    assert (found["state"], found["here"], found["desk"], found["choices"]) == ("running", True, "lb1", ["stop"])
    assert found["sentence"] == "The bundle is sent to lb2: 0 %."
    sentences = []

    def ended():
        sentences.append(world.state()["sentence"])
        return world.phase() is Phase.DONE and world.phase(1) is Phase.DONE

    world.until(ended)
    assert world.versions() == [NEW, NEW] and world.roles() == [STANDS_BY, LEADS]
    assert [box.host.reboots for box in world.boxes] == [[STANDS_BY]] * 2
    assert [one for one in dict.fromkeys(sentences) if "installed" not in one and "sent" not in one] == [
        "lb2 restarts into version 0.2.0; lb1 leads.",
        "lb2 runs version 0.2.0 and learns all connections.",
        "lb1 hands over to lb2.",
        "lb2 leads with version 0.2.0, and is watched for 60 seconds.",
        "lb1 restarts into version 0.2.0; lb2 leads.",
        "Both boxes run version 0.2.0.",
    ]
    assert [box.core.turn.taken for box in world.boxes] == [False, False]
    for number in (0, 1):
        found = world.state(number)
        assert (found["state"], found["user"], found["here"]) == ("done", "ann", number == 0)
        assert not found["choices"] and {one["state"] for one in found["steps"]} == {"done"}
        world.restart_daemon(number)
        assert world.state(number)["state"] == "done", "it is on the disk"


def test_what_is_known_before_the_bundle_is_refused_before_it_comes(world):
    first, second = (box.core.rolling for box in world.boxes)
    assert first.pair_update_ready() == {}
    assert refusal(second.pair_update_ready) == ("not-leading", "lb2 does not lead. Update both boxes at lb1.")
    world.start()
    assert refusal(first.pair_update_ready)[0] == "busy" == refusal(second.pair_update_ready)[0]


def test_nothing_else_is_changed_meanwhile_at_either_box(world):
    world.start()
    world.turns(10)
    for box in world.boxes:
        for verb in NOT_MEANWHILE:
            code, text = refusal(lambda box=box, verb=verb: box.core.rolling.refuse_meanwhile(verb))
            assert code == "busy" and "Right now both boxes are being updated to version 0.2.0 by ann" in text
        box.core.rolling.refuse_meanwhile("status")
    assert refusal(world.start)[0] == "busy"
    world.power_cut(0)
    world.turns(40)
    world.boxes[1].core.rolling.refuse_meanwhile("apply")  # the desk is away, and this box is needed


def test_a_piece_holds_up_the_beats_of_a_slow_line_for_less_than_makes_a_box_away():
    """All lines go one behind the other, by one connection."""
    piece = {"id": "0" * 32, "offset": 0, "data": base64.b64encode(bytes(receiving.PIECE)).decode()}
    line = Writer("0" * 16, 0).other(ASK, Ask("0" * 32, "peer_update_piece", piece).to_data())
    assert 8 * len(line) / 2e6 < standing.AWAY / 2


def test_a_choice_of_the_admin_does_not_wait_for_the_pieces(world, monkeypatch):
    monkeypatch.setattr(verbs, "PIECE", 100)
    world.start()
    world.until(lambda: world.phase() is Phase.SENDS)
    sent = []

    def stop(verb):
        if verb == "peer_update_piece":
            sent.append(world.state()["sentence"])
            if len(sent) == 3:
                world.boxes[0].core.rolling.pair_update_choose("stop", "ann")

    world.on_ask = stop
    world.turns(3)
    assert len(sent) == 3 and len(set(sent)) > 1, "told as it goes"
    assert world.state()["state"] == "stopped"


def test_a_piece_does_not_cost_a_look_at_the_slots(world, monkeypatch):
    monkeypatch.setattr(verbs, "PIECE", 1000)
    other = world.boxes[1].core.updates
    slots, looks, pieces = other.slots, [], []
    monkeypatch.setattr(other, "slots", lambda: (looks.append(1), slots())[1])
    world.on_ask = lambda verb: verb == "peer_update_piece" and pieces.append(len(looks))
    world.start()
    world.until(lambda: world.phase() is not Phase.SENDS)
    assert len(pieces) > 3 and len(set(pieces)) == 1


def test_a_lost_channel_goes_on_where_it_was(world, monkeypatch):
    monkeypatch.setattr(verbs, "PIECE", 1000)
    pieces = []

    def cut(verb):
        if verb == "peer_update_piece":
            pieces.append(verb)
            world.path = len(pieces) != 3
            if len(pieces) in (3, 5):  # the cable is out; and one where the answer alone is late
                raise ApplierRefused("peer-away", "lb2 did not answer.")

    world.on_ask = cut
    world.start()
    world.turns(6)
    assert world.phase() is Phase.SENDS and len(pieces) == 3
    world.turns(30)
    world.path = True
    world.until(lambda: world.phase() is Phase.RESTARTS)
    assert len(pieces) == 2 + -(-len(bundle_bytes()) // 1000), "what had arrived was sent again"


CUTS = [
    (cut, phase, number)
    for phase in Phase
    if phase not in (Phase.BACK, Phase.WENT_BACK, Phase.LEFT)
    for cut in ("restart_daemon", "power_cut")
    for number in (0, 1)
]
QUICK = [
    ("power_cut", Phase.SENDS, 0),
    ("restart_daemon", Phase.INSTALLS, 1),
    ("power_cut", Phase.LEARNS, 0),
    ("power_cut", Phase.WATCHES, 1),
    ("restart_daemon", Phase.WATCHES, 0),
    ("power_cut", Phase.OWN, 1),
]


@pytest.mark.parametrize(("cut", "phase", "number"), CUTS if ALL else QUICK)
def test_whoever_is_cut_short_in_whatever_phase_comes_to_an_end_with_clients_served(world, cut, phase, number):
    world.start()
    world.until(lambda: world.phase() is phase)
    getattr(world, cut)(number)
    world.until(lambda: world.state()["state"] != "running")
    found = world.state()
    roles = [role for box in world.boxes for role in box.host.reboots]
    assert LEADS not in roles, "the box that led was restarted"
    if found["state"] == "done":
        assert world.versions() == [NEW, NEW]
    else:
        assert found["state"] == "stopped" and found["sentence"].startswith(("lb1 ", "lb2 ")), found
        assert "leave" in found["choices"]
        world.boxes[0].core.rolling.refuse_meanwhile("apply")  # nothing is kept from an admin
        world.turns(200)
    assert world.roles().count(LEADS) == 1


def test_a_version_that_does_not_come_up_stops_it_with_both_in_service(world):
    world.comes_up[1] = False
    world.start()
    world.until(lambda: world.state()["state"] == "stopped")
    found = world.state()
    assert found["sentence"].startswith("lb2: Version 0.2.0 did not come up") and found["choices"] == ["leave"]
    assert world.roles() == [LEADS, STANDS_BY] and world.versions() == [OLD, OLD]
    world.turns(10)
    assert [world.state(number)["state"] for number in (0, 1)] == ["stopped", "stopped"]
    left = world.boxes[1].core.rolling.pair_update_choose("leave", "bob")
    assert left["state"] == "left"
    world.turns(10)
    assert world.phase() is Phase.LEFT


def test_a_second_box_that_does_not_come_up_leaves_the_first_one_leading(world):
    world.comes_up[0] = False
    world.start()
    world.until(lambda: world.state()["state"] == "stopped")
    assert world.state()["sentence"].startswith("lb1: Version 0.2.0 did not come up")
    assert world.versions() == [OLD, NEW] and world.roles() == [STANDS_BY, LEADS]
    assert world.state()["choices"] == ["go-back", "leave"]


def test_the_updated_box_goes_back(world):
    world.start()
    world.until(lambda: world.phase() is Phase.WATCHES)
    stopped = world.boxes[1].core.rolling.pair_update_choose("stop", "bob")  # at the other box
    assert stopped["state"] in ("running", "stopped")
    world.turns(4)
    found = world.state(1)
    assert found["sentence"] == "bob has stopped the update." and found["choices"] == ["go-on", "go-back", "leave"]
    world.boxes[0].core.rolling.pair_update_choose("go-back", "bob")
    world.until(lambda: world.phase() is Phase.WENT_BACK)
    assert world.versions() == [OLD, OLD] and world.roles() == [LEADS, STANDS_BY]
    assert world.boxes[1].host.reboots == [STANDS_BY] * 2
    assert world.state()["sentence"] == "lb2 went back to its version before."


def test_it_goes_on_despite_a_doubt_that_an_admin_accepts(world):
    world.start()
    world.until(lambda: world.phase() is Phase.WATCHES)
    world.boxes[1].core.faults.set("table", "The table differs.")
    world.until(lambda: world.state()["state"] == "stopped")
    assert world.state()["sentence"] == "lb2 has a fault that lb1 has not: The table differs."
    assert not world.boxes[0].host.reboots
    world.boxes[0].core.rolling.pair_update_choose("go-on", "ann")
    world.until(lambda: world.phase() is Phase.DONE)


def test_it_goes_on_after_the_updated_box_has_lost_the_lead_for_a_while(world):
    world.start()
    world.until(lambda: world.phase() is Phase.WATCHES)
    world.power_cut(1)
    world.until(lambda: world.state()["state"] == "stopped")
    assert world.state()["sentence"] == "lb1 leads again, so it was not restarted."
    world.turns(100)
    world.boxes[0].core.rolling.pair_update_choose("go-on", "ann")
    world.until(lambda: world.phase() is Phase.DONE)
    assert world.versions() == [NEW, NEW] and world.roles() == [STANDS_BY, LEADS]


@pytest.mark.parametrize("phase", [Phase.SENDS, Phase.INSTALLS, Phase.LEARNS, Phase.HANDS_OVER, Phase.WATCHES])
def test_a_link_that_is_gone_for_half_a_minute_stops_nothing(world, monkeypatch, phase):
    monkeypatch.setattr(verbs, "PIECE", 1000)
    world.start()
    world.until(lambda: world.phase() is phase)
    world.path = False
    world.turns(30)
    assert world.state()["state"] == "running" and world.phase() is phase
    world.path = True
    world.until(lambda: world.phase() is Phase.DONE)
    assert world.versions() == [NEW, NEW] and world.roles() == [STANDS_BY, LEADS]


def test_the_watch_begins_anew_after_a_silence_and_ends_with_a_long_one(world):
    world.start()
    world.until(lambda: world.phase() is Phase.WATCHES)
    world.turns(50)
    world.path = False
    world.turns(20)
    world.restart_daemon(0)  # what it has not heard since is no silence of before
    world.turns(10)
    world.path = True
    world.turns(50)
    assert world.phase() is Phase.WATCHES and world.state()["state"] == "running"
    world.turns(14)
    assert world.phase() is Phase.OWN
    world.restart_daemon(0)


def test_a_long_silence_stops_the_watch_and_says_so(world):
    world.start()
    world.until(lambda: world.phase() is Phase.WATCHES)
    world.path = False
    world.turns(70)
    said = "lb2 was to lead with version 0.2.0, but has not answered for 60 seconds."
    assert (world.state()["state"], world.state()["sentence"]) == ("stopped", said)
    assert world.versions() == [OLD, NEW] and not world.boxes[0].host.reboots


def test_an_install_whose_answer_was_lost_is_not_begun_twice(world):
    lost = []

    def already(verb):
        if verb == "peer_update_install" and not lost:
            second = world.boxes[1].core.rolling
            lost.append(second.peer_update_install(second._kept.id)["job"])

    world.on_ask = already
    world.start()
    world.until(lambda: world.phase() is Phase.RESTARTS)
    assert world.boxes[0].core.rolling._kept.jobs[1] == lost[0]


def test_where_the_desk_is_gone_the_other_box_can_end_it(world):
    world.start()
    world.until(lambda: world.phase() is Phase.WATCHES)
    world.power_cut(0)
    world.turns(40)
    second = world.boxes[1].core.rolling
    assert "lb1, which does the rest, is not heard at the moment." in world.state(1)["sentence"]
    assert refusal(lambda: second.pair_update_choose("stop", "bob"))[0] == "peer-away"
    assert world.state(1)["choices"] == ["leave"]
    assert second.pair_update_choose("leave", "bob")["state"] == "left"
    world.turns(200)
    assert (world.phase(), world.versions(), world.roles()) == (Phase.LEFT, [OLD, NEW], [STANDS_BY, LEADS])


def test_what_cannot_be_begun_says_why(world):
    assert refusal(lambda: world.start(1)) == ("not-leading", "lb2 does not lead. Update both boxes at lb1.")
    assert refusal(lambda: world.boxes[0].core.rolling.pair_update_choose("stop", "ann"))[0] == "no-update"
    world.path = False
    world.skip(100)
    assert refusal(world.start)[0] == "peer-away"
    world.path = True
    world.pass_time(2)
    with world.boxes[0].core.turn.take("something is done"):
        assert refusal(world.start)[0] == "busy"
    boot_state = world.boxes[1].core.paths.boot_state
    boot_state.rename(boot_state.with_name("away"))
    assert refusal(world.start) == (
        "no-slots",
        "lb2 does not run from a disk with two slots, so it is not updated.",
    )
    boot_state.with_name("away").rename(boot_state)
    for box in world.boxes:
        box.core.paths.version_file.write_text(NEW)
    world.pass_time(2)
    assert refusal(world.start) == ("version-runs", "Both boxes run version 0.2.0 already.")
    assert world.state()["state"] == "none"
    world.boxes[0].core.running = Target(None, FACTORY)
    assert refusal(world.start)[0] == "no-pair"


def test_the_other_box_believes_nothing_that_it_need_not(world):
    world.start()
    first, second = (box.core.rolling for box in world.boxes)
    course, half = dataclasses.asdict(first._kept), dataclasses.asdict(first._half(first._kept))
    id = course["id"]
    for field, value in (("desk", 1), ("pair", "f" * 32), ("phase", "sleeps"), ("size", -1)):
        code, text = refusal(lambda field=field, value=value: second.peer_update_look({**course, field: value}, half))
        assert code == "bad-field" and "The update of both boxes" in text
    assert refusal(lambda: second.peer_update_look(course, {"version": 1}))[0] == "bad-field"
    for ask in (
        lambda: second.peer_update_piece("f" * 32, 0, ""),
        lambda: second.peer_update_install("f" * 32),
        lambda: second.peer_update_restart("f" * 32, NEW),
        lambda: second.peer_update_hand_over("f" * 32),
        lambda: first.peer_update_install(id),  # it is the desk itself
    ):
        assert refusal(ask)[0] == "no-update"
    assert refusal(lambda: second.peer_update_piece(id, 0, "not base64"))[0] == "bad-field"
    assert refusal(lambda: second.peer_update_restart(id, NEW)) == (
        "slot-empty",
        "lb2 was to start version 0.2.0, and its other slot holds nothing.",
    )
    world.boxes[0].host.becomes(STANDS_BY)
    world.boxes[1].host.becomes(LEADS)
    assert refusal(lambda: second.peer_update_restart(id, NEW)) == ("leads", "lb2 leads, so it was not restarted.")


# --- the bundle in pieces ----------------------------------------------------------------------------------


SUM = "5e3c6f7d9e2f4f4bb1f0b4d6c9c0f0d3a8a5b6c7d8e9f0a1b2c3d4e5f6a7b8c9"
NAME = "a" * 32


@pytest.fixture
def coming(world):
    return receiving.Receiving(world.boxes[1].core.paths)


def test_pieces_become_a_bundle_whatever_comes_twice_or_late(coming, world):
    data = bundle_bytes()
    size, digest = len(data), receiving.hashlib.sha256(data).hexdigest()
    taken = world.boxes[1].core.paths.taken

    def take(offset, length=3000):
        return coming.take(NAME, size, digest, 1 << 20, offset, data[offset : offset + length])

    assert take(3000) == 0 and take(0) == 3000 and take(0) == 3000 and take(6000) == 3000
    assert (taken / f".{NAME}.part").stat().st_size == size, "the room is reserved"
    assert take(3000) == 6000 and take(6000, 9000) == size == coming.received(NAME)
    assert take(0) == size
    assert [one.name for one in taken.iterdir()] == [f"{NAME}.raucb"]
    assert (taken / f"{NAME}.raucb").read_bytes() == data
    (taken / f"{NAME}.raucb").unlink()
    assert coming.received(NAME) == 0, "an upload has taken its place"


@pytest.mark.parametrize(("slow", "offset"), [("pwrite", 3000), ("fsync", 6000)])
def test_a_piece_that_is_sent_again_while_the_disk_is_slow_is_taken_once(coming, world, monkeypatch, slow, offset):
    data = bundle_bytes()
    size, digest = len(data), receiving.hashlib.sha256(data).hexdigest()
    goes_on, entered = threading.Event(), threading.Event()
    real = getattr(receiving.os, slow)
    taken, answers = world.boxes[1].core.paths.taken, []

    def slowly(*words):
        entered.set()
        assert goes_on.wait(20)
        return real(*words)

    def take(at, length=3000):
        answers.append(coming.take(NAME, size, digest, 1 << 20, at, data[at : at + length]))

    for at in range(0, offset, 3000):
        take(at)
    monkeypatch.setattr(receiving.os, slow, slowly)
    threads = [threading.Thread(target=take, args=(offset, size)) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert entered.wait(20) and coming.received(NAME) == offset, "it is not here yet"
    with monkeypatch.context() as patch:
        patch.setattr(receiving, "WAITS", 0.1)
        take(offset, size)
    assert answers.pop() == offset, "whoever sends it once more does not wait for good"
    goes_on.set()
    for thread in threads:
        thread.join(20)
    assert answers[-3:] == [size] * 3 and (taken / f"{NAME}.raucb").read_bytes() == data


def test_a_bundle_that_does_not_fit_or_is_damaged_leaves_nothing(coming, world, monkeypatch):
    taken = world.boxes[1].core.paths.taken
    assert refusal(lambda: coming.take(NAME, 2000, SUM, 1000, 0, b"x"))[0] == "bundle-too-large"
    assert refusal(lambda: coming.take(NAME, 4, SUM, 1000, 0, b"data")) == (
        "bundle-damaged",
        "The bundle did not arrive as it was sent: its digest is another one. Begin again.",
    )
    assert not list(taken.iterdir()) and coming.received(NAME) == 0
    code, text = refusal(lambda: coming.take(NAME, 1 << 50, SUM, 1 << 60, 0, b"x"))
    assert code == "data-full" and "There is no room for the bundle" in text
    monkeypatch.setattr(receiving.os, "pwrite", full)
    assert refusal(lambda: coming.take(NAME, 9, SUM, 1000, 0, b"data"))[0] == "data-full"
    assert not list(taken.iterdir()) and coming.received(NAME) == 0


def full(*_):
    raise OSError(28, "No space left on device")
