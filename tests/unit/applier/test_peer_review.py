"""A change is reviewed by both boxes of a pair: what only the other one refuses is told before anything is applied."""

import dataclasses
import threading

import pytest
import two_boxes
from two_boxes import NEW, Two

from applier.apply import both
from applier.apply import review as review_module
from applier.apply.peer_review import LONGEST, MOST, asked
from applier.apply.review import review
from applier.wire.errors import ApplierRefused
from lbconfig.model.kept import Reading
from lbconfig.model.snapshot import Interface, plain, to_data


@pytest.fixture
def two(tmp_path, monkeypatch):
    monkeypatch.setattr(both, "Share", two_boxes.WatchedShare)
    found = Two(tmp_path)
    for box in found.boxes:
        del box.applier.peer_review.both
    found.beat(2)
    return found


def reviewed(two, new, number=0):
    answers = []
    asker = threading.Thread(target=lambda: answers.append(two.boxes[number].applier.check(to_data(new))))
    asker.start()

    def answered():
        asker.join(0.02)
        return not asker.is_alive()

    two.until(answered, beats=3000)
    return answers[0]


def test_what_both_boxes_take_is_shown_as_it_is(two):
    found = reviewed(two, NEW)
    assert found["problems"] == [] and found["digest"] and found["other_box"] == ""


def test_what_only_the_other_box_refuses_is_shown_with_its_name(two):
    second = two.boxes[1]
    del second.host.links["eth1"]
    pair = NEW.pair
    more = dataclasses.replace(
        pair.boxes[1].network,
        interfaces=(*pair.boxes[1].network.interfaces, Interface("eth7", addresses=("10.7.0.3/24",))),
    )
    boxes = (pair.boxes[0], dataclasses.replace(pair.boxes[1], network=more))
    new = dataclasses.replace(NEW, pair=dataclasses.replace(pair, boxes=boxes))
    found = reviewed(two, new)
    assert found["digest"] == "" and found["changes"] == []
    [problem] = found["problems"]
    assert problem["object"].endswith("(lb2)") and "eth7" in problem["object"]
    assert reviewed(two, new, 1)["problems"][0]["object"] + " (lb2)" == problem["object"]


def test_the_services_that_both_run_are_told_by_their_names(two, monkeypatch):
    verbs, sent, forgets = two.boxes[1].applier.verbs, [], []
    real = verbs["peer_check"]

    def check(snapshot, services):
        sent.append(services)
        if forgets:
            monkeypatch.setattr(review_module, "_reading", forgets.pop())
        return real(snapshot, services)

    verbs["peer_check"] = check
    assert reviewed(two, NEW)["problems"] == [] and sent == [[plain(NEW.services[0])]]
    forgets.append(Reading())
    found = reviewed(two, NEW)
    assert found["problems"] == [] and found["other_box"] == ""
    assert sent[1:] == [[plain(NEW.services[0])], [plain(one) for one in NEW.services]]


def test_other_software_is_told_before_an_apply(two):
    two.boxes[1].applier.verbs["peer_check"] = lambda snapshot, services: {"problems": [], "files": "f" * 64}
    [problem] = reviewed(two, NEW)["problems"]
    assert problem["object"] == "the software of lb2" and "update both boxes to the same version" in problem["message"]


def test_a_box_that_is_away_is_told_and_nothing_is_refused(two):
    two.stop(1)
    two.beat(30)
    found = reviewed(two, NEW)
    assert found["problems"] == [] and found["other_box"] == "lb2 was not asked: lb2 is not heard."
    assert reviewed(two, dataclasses.replace(NEW, pair=None, network=NEW.pair.boxes[0].network))["other_box"] == ""


@pytest.mark.parametrize(
    "answer",
    [
        {}, {"problems": "no", "files": ""}, {"problems": [], "files": "../x"}, {"problems": [{}], "files": ""},
        {"problems": [{"object": "a\nb", "field": "", "message": "", "path": ""}], "files": ""},
        {"problems": [{"object": "x" * (LONGEST + 1), "field": "", "message": "", "path": ""}], "files": ""},
        {"problems": [{"object": 1, "field": "", "message": "", "path": ""}], "files": ""},
        {"problems": [{"object": "", "field": "", "message": "", "path": ""}] * (MOST + 1), "files": ""},
    ],
)  # fmt: skip
def test_an_answer_is_read_by_its_shape(answer):
    found = review(two_boxes.OLD, two_boxes.OLD, None, key=two_boxes.KEYS[0])
    told = asked(found, "lb2", "lb1", lambda: answer)
    assert told["other_box"].startswith("lb2 was not asked: its answer is wrong (") and told["problems"] == []


def test_a_refusal_of_the_other_box_is_told():
    def ask():
        raise ApplierRefused("too-large", "What lb2 is asked has 9000000 bytes.")

    found = review(two_boxes.OLD, two_boxes.OLD, None, key=two_boxes.KEYS[0])
    assert asked(found, "lb2", "lb1", ask)["other_box"] == "lb2 was not asked: What lb2 is asked has 9000000 bytes."
