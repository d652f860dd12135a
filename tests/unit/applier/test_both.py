"""Two boxes come to one configuration by their real applies: both new, both old, or one behind that follows."""

import dataclasses
import hashlib
import json
import threading

import pytest
import two_boxes
from box import running_one
from tests.parts import ALL
from two_boxes import NEW, OLD, THIRD, Two, network, with_other_addresses

from applier.apply import both, review
from applier.apply.runs import confirmed_sentence
from applier.wire.errors import ApplierRefused
from lbconfig.model import canonical
from lbconfig.model.kept import Reading
from lbconfig.model.snapshot import plain, to_data
from lbconfig.target import Target


@pytest.fixture
def two(tmp_path, monkeypatch):
    monkeypatch.setattr(both, "Share", two_boxes.WatchedShare)
    found = Two(tmp_path)
    found.beat(2)
    return found


def ended(two: Two) -> bool:
    """Nothing is under way at any box that is on."""
    here = [box for box in two.boxes if two.on[box.number]]
    return not any(box.both._box is None or box.both._box.job or box.applier.turn.taken for box in here)


def test_an_apply_is_for_both(two):
    first, second = two.boxes
    first.begin(NEW)
    assert first.runs == OLD
    two.until(lambda: second.runs == NEW)
    assert first.runs == OLD, "the desk tried it before the other box"
    two.until(lambda: ended(two))
    assert [(box.runs, box.confirmed) for box in two.boxes] == [(NEW, NEW)] * 2
    assert [box.note()["outcome"] for box in two.boxes] == ["confirmed"] * 2
    assert [box.note()["user"] for box in two.boxes] == ["ann", "ann"]
    assert first.applier.generations.lineage() == second.applier.generations.lineage()
    assert first.applier.applies.record.message == confirmed_sentence(2)


def waits(two: Two) -> bool:
    return all(box.both._box.job and box.both._box.job.stage == "waits" for box in two.boxes)


def states(two: Two) -> list:
    return [(box.runs, box.confirmed) for box in two.boxes]


def messages(two: Two) -> list[str]:
    """Of the last apply at each box; the power takes them along."""
    records = [box.applier.applies.record for box in two.boxes]
    return [record.message if record else "" for record in records]


def refusal(call, *arguments, **fields) -> ApplierRefused:
    with pytest.raises(ApplierRefused) as caught:
        call(*arguments, **fields)
    return caught.value


@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize("how", ["secret", "name"])
def test_what_is_asked_for_is_confirmed_through_either_box(two, at, how):
    name = two.boxes[0].begin(NEW, confirm_within=60)
    two.until(lambda: waits(two))
    secret = two.boxes[0].secret if how == "secret" else ""
    assert [box.applier.applies.record.state for box in two.boxes] == ["waiting", "waiting"]
    assert "wait to be confirmed (" in refusal(two.boxes[at].begin, THIRD).message
    # The answer comes once it is confirmed, which at the other box takes some beats.
    verb = two.boxes[at].applier.applies
    asker = threading.Thread(target=verb.confirm, args=(name, secret, "" if secret else "bob"))
    asker.start()
    two.until(lambda: ended(two))
    asker.join(20)
    assert states(two) == [(NEW, NEW)] * 2
    assert messages(two)[at] == confirmed_sentence(2, "bob" if how == "name" else "")


@pytest.mark.parametrize("at", [0, 1])
def test_an_admin_takes_it_back_at_either_box(two, at):
    name = two.boxes[0].begin(NEW, confirm_within=60)
    two.until(lambda: waits(two))
    two.boxes[at].applier.applies.roll_back(name, "", "bob")
    two.until(lambda: ended(two))
    assert states(two) == [(OLD, OLD)] * 2
    assert all("bob took the changes back before they were confirmed." in message for message in messages(two))
    assert [box.note()["outcome"] for box in two.boxes] == ["not confirmed"] * 2


def test_nobody_confirms_it(two):
    two.boxes[0].begin(NEW, confirm_within=60)
    two.until(lambda: waits(two))
    two.beat(130)
    assert ended(two) and states(two) == [(OLD, OLD)] * 2
    assert messages(two)[0] == "Nobody confirmed it in time. Everything was put back."


@pytest.mark.parametrize("at", [0, 1])
def test_a_step_fails_at_either_box(two, at):
    two.boxes[at].host.bad_checks = "line 3"
    two.boxes[0].begin(NEW)
    two.until(lambda: ended(two))
    assert states(two) == [(OLD, OLD)] * 2
    assert ("lb2: " in messages(two)[0]) == (at == 1) and "line 3" in messages(two)[0]
    if at == 1:
        assert {step["state"] for step in two.boxes[0].applier.status()["apply"]["steps"]} == {"skipped"}
    assert [box.note()["outcome"] for box in two.boxes] == ["rolled back", "rolled back" if at else "not confirmed"]


@pytest.mark.parametrize("at", [0, 1])
def test_the_disk_of_either_box_does_not_take_the_confirmation(two, at, monkeypatch):
    """At the desk both go back. At the other box the decision has fallen: that one follows once it can write."""

    def full(number, seconds=0.0, lineage=()):
        raise OSError(28, "No space left on device")

    two.boxes[0].begin(NEW, confirm_within=60)
    two.until(lambda: waits(two))
    with monkeypatch.context() as patch:
        patch.setattr(two.boxes[at].applier.generations, "confirm", full)
        two.boxes[0].both.prove(two.boxes[0].both._box.job.revision.id, "ann")
        two.until(lambda: ended(two))
        assert states(two) == ([(OLD, OLD)] * 2 if at == 0 else [(NEW, NEW), (OLD, OLD)])
        assert "No space left" in messages(two)[at]
        two.beat(4)
    two.beat(130)
    assert ended(two) and states(two) == ([(OLD, OLD)] * 2 if at == 0 else [(NEW, NEW)] * 2)


def test_software_that_makes_other_files_is_named(two, monkeypatch):
    real = both.files_digest
    monkeypatch.setattr(both, "files_digest", lambda files: real(files)[::-1])
    two.boxes[0].begin(NEW)
    two.until(lambda: ended(two))
    assert states(two) == [(OLD, OLD)] * 2
    assert "lb2: The software of this box makes other files of the configuration than that of lb1." in messages(two)[0]


def test_only_the_box_that_leads_is_asked(two):
    assert refusal(two.boxes[1].begin, NEW).message == "lb1 leads. Apply the changes there."
    two.boxes[0].begin(NEW)
    two.until(lambda: ended(two))
    assert states(two) == [(NEW, NEW)] * 2


def test_the_other_box_is_away_for_five_applies_and_follows_alone(two):
    two.cut = True
    two.beat(25)
    for snapshot in (NEW, THIRD, OLD, NEW, THIRD):
        two.boxes[0].begin(snapshot)
        two.until(lambda: ended(two))
    assert states(two) == [(THIRD, THIRD), (OLD, OLD)]
    assert messages(two)[0] == f"{confirmed_sentence(6)} lb2 is away, and follows when it is back."
    two.cut = False
    two.beat(2)
    assert two.boxes[1].both._box.job or states(two)[1] == (THIRD, THIRD)
    two.until(lambda: ended(two))
    assert states(two) == [(THIRD, THIRD)] * 2
    assert (two.boxes[1].note()["user"], two.boxes[1].note()["comment"]) == ("pair", "as lb1 runs it")
    assert two.boxes[1].note()["number"] == 6
    assert two.boxes[0].applier.generations.lineage() == two.boxes[1].applier.generations.lineage()


def test_a_box_that_has_just_started_does_not_take_the_other_one_for_away(two):
    two.start(0, "restart_daemon")
    refused = refusal(two.boxes[0].begin, NEW)
    assert refused.message == "lb1 has just started, and listens for lb2; try again."
    two.lead(0)
    two.boxes[0].begin(NEW)
    two.until(lambda: ended(two))
    assert states(two) == [(NEW, NEW)] * 2
    two.stop(1)
    two.start(0, "restart_daemon")
    two.beat(25)
    two.boxes[0].begin(THIRD)
    two.until(lambda: ended(two))
    assert states(two) == [(THIRD, THIRD), (NEW, NEW)]


def fork(two: Two) -> None:
    two.cut = True
    two.beat(25)
    for box, snapshot in zip(two.boxes, (NEW, THIRD), strict=True):
        box.begin(snapshot)
        two.until(lambda: ended(two))
    two.cut = False
    two.beat(4)


@pytest.mark.parametrize("chosen", [0, 1])
def test_a_fork_is_told_on_both_and_one_is_chosen(two, chosen):
    fork(two)
    assert states(two) == [(NEW, NEW), (THIRD, THIRD)]
    for box in two.boxes:
        assert "Choose which one stays" in box.faults()["pair-forked"]
        assert refusal(box.begin, OLD).code == "not-in-step"
    two.boxes[chosen].both.pair_choose("ann")
    two.until(lambda: ended(two) and len({*states(two)}) == 1)
    two.beat(2)
    stays = (NEW, THIRD)[chosen]
    assert states(two) == [(stays, stays)] * 2
    assert not any("pair-forked" in box.faults() for box in two.boxes)
    outcomes = {one["number"]: one["outcome"] for one in two.boxes[1 - chosen].applier.list_generations()}
    assert outcomes == {1: "confirmed", 2: "not chosen", 3: "confirmed"}
    assert refusal(two.boxes[0].both.pair_choose, "ann").code == "nothing-to-choose"


def test_both_made_the_same_while_they_were_apart(two):
    two.cut = True
    two.beat(25)
    for box in two.boxes:
        box.begin(NEW)
        two.until(lambda: ended(two))
    two.cut = False
    two.until(lambda: two.boxes[0].applier.generations.lineage() == two.boxes[1].applier.generations.lineage())
    assert states(two) == [(NEW, NEW)] * 2 and not any("pair-forked" in box.faults() for box in two.boxes)


def other_than(snapshot):
    return THIRD if snapshot == NEW else NEW


def come_to_rest(two: Two, old, new) -> None:
    """However it went: both boxes run and have confirmed the same, the old configuration or the new one."""
    two.until(lambda: ended(two) and len({*states(two)}) == 1, beats=400)
    assert states(two)[0] in ((old, old), (new, new))
    two.beat(2)
    assert not any(box.both.silent() or box.host.violations or box.faults() for box in two.boxes)
    assert two.boxes[0].applier.generations.lineage() == two.boxes[1].applier.generations.lineage()


FATES = {
    "lost": [],
    "late": [1.2],
    "twice": [0.0, 0.0],
    "again much later": [0.0, 3.0],
}
MESSAGES = 14 if ALL else 8  # of an apply of both


@pytest.mark.parametrize("fate", [*FATES, "and all after it are lost for a while"])
def test_whatever_becomes_of_each_message(two, fate):
    seen = set()
    for number in range(MESSAGES):
        old = two.boxes[0].runs
        new = other_than(old)
        two.lead(number % 2)
        desk = two.boxes[number % 2]
        first = next(two.counter) + number + 1
        if fate in FATES:
            two.fate = lambda sender, at, first=first: FATES[fate] if at == first else [0.0]
        else:
            two.fate = lambda sender, at, first=first: [0.0] if at < first else []
        desk.begin(new)
        two.beat(10 if fate in FATES else 30)
        two.fate = lambda sender, at: [0.0]
        come_to_rest(two, old, new)
        seen.add(two.boxes[0].runs == new)
    assert True in seen


BEATS = 7 if ALL else 5  # until an apply of both is over


@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize(("how", "away"), [("restart_daemon", 0), ("power_cut", 30)])
def test_either_box_is_killed_at_each_point(two, at, how, away):
    for beats in range(BEATS):
        old = two.boxes[0].runs
        new = other_than(old)
        two.boxes[0].begin(new)
        two.beat(beats)
        two.stop(at)
        two.beat(away)
        two.start(at, how)
        come_to_rest(two, old, new)


@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize("how", ["restart_daemon", "power_cut"])
def test_either_box_is_killed_while_both_wait_for_the_admin(two, at, how):
    two.boxes[0].begin(NEW, confirm_within=60)
    two.until(lambda: waits(two))
    two.stop(at)
    two.start(at, how)
    come_to_rest(two, OLD, NEW)
    assert states(two)[0] == (OLD, OLD)
    why = "lb1 gave it up." if at == 0 else "lb2 has started anew."
    assert messages(two)[1 - at] == f"{why} Everything was put back."


@pytest.mark.parametrize("how", ["restart_daemon", "power_cut"])
def test_the_desk_dies_right_after_its_decision(two, how, monkeypatch):
    """That is on its disk, and nobody has heard of it: the other box goes back, and follows when it does."""
    desk, other = two.boxes
    real = desk.applier.generations.confirm

    def confirm(*arguments):
        real(*arguments)
        two.stop(0)

    desk.begin(NEW, confirm_within=60)
    two.until(lambda: waits(two))
    monkeypatch.setattr(desk.applier.generations, "confirm", confirm)
    desk.both.prove(desk.both._box.job.revision.id, "ann")
    assert (desk.confirmed, other.confirmed) == (NEW, OLD)
    two.beat(260)
    assert ended(two) and states(two)[1] == (OLD, OLD)
    two.start(0, how)
    come_to_rest(two, OLD, NEW)
    assert states(two)[0] == (NEW, NEW)


def test_a_configuration_that_never_arrives(two, monkeypatch):
    monkeypatch.setattr(two.boxes[0].both, "pair_content", lambda id, whole: {})
    two.boxes[0].begin(NEW)
    two.beat(70)
    assert ended(two) and states(two) == [(OLD, OLD)] * 2
    assert "lb2: It did not get the configuration from lb1." in messages(two)[0]


def test_another_configuration_than_the_one_that_was_announced(two, monkeypatch):
    real = two.boxes[0].both.pair_content
    monkeypatch.setattr(
        two.boxes[0].both, "pair_content", lambda id, whole: real(id, whole) | {"snapshot": to_data(THIRD)}
    )
    two.boxes[0].begin(NEW)
    two.until(lambda: ended(two))
    assert states(two) == [(OLD, OLD)] * 2
    assert "The configuration that lb1 sent is not the one that it speaks of." in messages(two)[0]


def test_a_service_goes_to_the_other_box_where_it_may_be_new_there(two, monkeypatch):
    real, sent = two.boxes[0].both.pair_content, []
    monkeypatch.setattr(two.boxes[0].both, "pair_content", lambda *wanted: sent.append(real(*wanted)) or sent[-1])
    two.boxes[0].begin(NEW)
    two.until(lambda: ended(two))
    [content] = sent
    assert content["services"] == [plain(NEW.services[0])] and NEW.services[1] == OLD.services[1]
    assert content["snapshot"]["services"] == [canonical.service_name(one) for one in NEW.services]


@pytest.mark.parametrize("new", [NEW, with_other_addresses(NEW, ("eth2",))], ids=["one after the other", "at once"])
def test_a_box_that_does_not_know_a_service_by_its_name_asks_for_all(two, monkeypatch, new):
    real, asked = two.boxes[0].both.pair_content, []

    def forgotten(id, whole):
        asked.append(whole)
        found = real(id, whole)
        monkeypatch.setattr(review, "_reading", Reading())
        return found

    monkeypatch.setattr(two.boxes[0].both, "pair_content", forgotten)
    two.boxes[0].begin(new, confirm_within=60)
    two.until(lambda: waits(two))
    two.boxes[0].both.prove(two.boxes[0].both._box.job.revision.id, "ann")
    two.until(lambda: ended(two))
    assert asked == [False, True] and states(two) == [(new, new)] * 2


def test_a_change_of_the_cable_is_tried_at_both_at_once(two):
    boxes = tuple(
        dataclasses.replace(one, cable_address=f"192.0.2.{5 + n}/30", network=with_cable(one.network, 5 + n))
        for n, one in enumerate(OLD.pair.boxes)
    )
    new = dataclasses.replace(OLD, pair=dataclasses.replace(OLD.pair, boxes=boxes))
    two.boxes[0].begin(new, confirm_within=60)
    two.until(lambda: two.boxes[0].both._box.job.together)
    two.until(lambda: waits(two))
    two.boxes[0].both.prove(two.boxes[0].both._box.job.revision.id, "ann")
    two.until(lambda: ended(two))
    assert states(two) == [(new, new)] * 2


@pytest.mark.parametrize("cards", [("eth0", "eth1"), ("eth0", "eth1", "eth2")], ids=["beside the cable", "all"])
@pytest.mark.parametrize("at", [0, 1, None], ids=["desk", "other box", "nobody"])
def test_own_addresses_of_both_boxes_change(two, cards, at):
    """Confirmed by reaching either of them; if nobody does, both have their former addresses."""
    new = with_other_addresses(OLD, cards)
    name = two.boxes[0].begin(new, confirm_within=60)
    two.until(lambda: waits(two))
    assert two.boxes[0].both._box.job.together == ("eth2" in cards)
    if at is None:
        since = {}  # each box is back
        for _ in range(130):
            two.beat()
            for box in two.boxes:
                if box.runs == OLD and not box.applier.turn.taken:
                    since.setdefault(box.number, two.now)
        assert abs(since[0] - since[1]) <= 5.0
    else:
        verb = two.boxes[at].applier.applies
        asker = threading.Thread(target=verb.confirm, args=(name, two.boxes[0].secret, ""))
        asker.start()
        two.until(lambda: ended(two))
        asker.join(20)
    expected = OLD if at is None else new
    assert ended(two) and states(two) == [(expected, expected)] * 2
    for number, box in enumerate(two.boxes):
        own = 2 + number if at is None else 5 + number
        assert f"192.168.10.{own}/24" in str(box.host.links["eth0"].addresses)
        assert not box.both.silent() and not box.host.violations and not box.faults()


def with_cable(network, number):
    cable = dataclasses.replace(network.interfaces[2], addresses=(f"192.0.2.{number}/30",))
    return dataclasses.replace(network, interfaces=(*network.interfaces[:2], cable))


def test_who_is_behind_does_not_lead_before_it_follows_but_where_the_other_box_is_away(two):
    two.cut = True
    two.beat(25)
    two.boxes[0].begin(NEW)
    two.until(lambda: ended(two))
    second = two.boxes[1]
    second.host.bad_checks = "line 3"
    two.cut = False
    two.beat(4)
    assert second.held() == "it follows the other box" and ended(two)
    assert "“Try the new files” failed" in second.faults()["pair-behind"]
    two.cut = True
    two.beat(25)
    assert second.held() is None
    second.host.pair.rival = True
    second.host.pair.elect()
    two.cut, second.host.bad_checks = False, ""
    two.beat(2)
    assert second.held() == "it follows the other box"
    two.beat(130)
    assert states(two) == [(NEW, NEW)] * 2 and second.held() is None and not second.faults()


def test_a_box_that_leaves_the_pair_asks_nobody(two):
    first = two.boxes[0]
    assert first.host.pair.services["pair"], "nobody talks with the other box"
    alone = dataclasses.replace(OLD, network=network(0, floats=False), pair=None)
    run = first.apply(alone)
    assert run["state"] == "done", run
    assert not first.host.pair.services["pair"]
    two.beat(2)
    assert first.both.place is None and first.both.pair_tells(-1, "") == {} and first.applier.peer.beat is None
    assert refusal(first.both.pair_choose, "ann").code == "no-pair"


def test_a_box_that_is_in_no_pair_hears_nothing(tmp_path):
    box = running_one(tmp_path)
    box.applier.both.tick()
    assert box.applier.both.pair_tells(-1, "") == {}
    assert box.applier.both.pair_hears({"x": 1}) == {"known": True}
    assert box.applier.both.pair_content("a" * 32, False) == {}


def test_what_is_wrong_is_refused_though_it_comes_from_a_process_of_ours(two):
    both = two.boxes[0].both
    assert refusal(both.pair_hears, {"epoch": "x"}).code == "bad-field"
    assert refusal(both.pair_brings, {"about": {}}).code == "bad-field"
    assert "role: is missing" in refusal(both.peer_says, {"hostname": "x", "since": 1}).message


def in_older_words(box: two_boxes.Half) -> None:
    """What is confirmed there was written by an older version, which had a line more."""
    generations = box.applier.generations
    folder = generations._path(generations.confirmed_number())
    text = folder.joinpath("snapshot.json").read_text() + "\n"
    folder.joinpath("snapshot.json").write_text(text)
    meta = json.loads(folder.joinpath("meta.json").read_text())
    old, new = meta["snapshot_digest"], hashlib.sha256(text.encode()).hexdigest()
    meta["snapshot_digest"] = meta["pair"]["digest"] = new
    folder.joinpath("meta.json").write_text(json.dumps(meta))
    generations.descent.write_text(generations.descent.read_text().replace(old, new))


def test_a_box_follows_what_an_older_version_has_confirmed(two):
    first, second = two.boxes
    two.stop(1)
    two.beat(25)
    first.begin(NEW)
    two.until(lambda: ended(two))
    in_older_words(first)
    for number in (0, 1):
        two.start(number, "restart_daemon")
    two.until(lambda: ended(two) and second.confirmed == NEW)
    two.start(1, "restart_daemon")
    two.beat(6)
    lineages = [box.applier.generations.lineage() for box in two.boxes]
    assert lineages[0] == lineages[1] and lineages[0][-1].digest != canonical.digest(NEW)
    assert first.applier.pairs.pair()["step"] == second.applier.pairs.pair()["step"] == "in step"
    assert not {"pair-forked", "pair-behind"} & {*first.faults(), *second.faults()}


class OfAnotherVersion(Target):
    """What runs, by a version that writes the same configuration in other words."""

    @property
    def digest(self) -> str:
        return "f" * 64


def test_two_versions_that_write_it_in_other_words_are_in_step(two):
    second = two.boxes[1]
    running = second.applier.running
    second.applier.running = OfAnotherVersion(running.number, running.snapshot, running.box)
    two.beat(4)
    for box in two.boxes:
        found = box.applier.pairs.pair()
        assert found["step"] == "in step" and "is in step" in found["sentence"], found["sentence"]
