"""What is chosen about the hardware: in the draft, by the API, in the review, and applied to a pretended box."""

import dataclasses

import pytest
from api_robot import error, robot
from forms_on_page import words
from tests.fake import appliance

from applier.wire.client import connect
from draft import store as draft
from lbconfig.model.snapshot import CardChoice, Power, SettingChoice, Tuning

CHOSEN = Tuning(
    (SettingChoice("net/core/somaxconn", "512"),), (CardChoice("eth0", 2, 512, 0),), spread=True, power=Power.LATENCY
)


@pytest.fixture
def one(client, admin):
    return robot(admin)


def test_a_draft_comes_back_as_it_was_stored(client):
    assert draft.current().tuning == Tuning()
    wish = dataclasses.replace(draft.current(), tuning=CHOSEN)
    draft.replace(wish, "ann")
    assert draft.current() == wish
    draft.replace(dataclasses.replace(wish, tuning=Tuning()), "ann")
    assert draft.current().tuning == Tuning()


def test_by_the_api_it_is_a_part_like_the_others(one):
    answer = one.get("/tuning")
    assert answer.json() == {"settings": [], "cards": [], "spread": True, "power": "balanced"}
    wish = {"settings": [{"key": "net/core/somaxconn", "value": "512"}], "power": "board"}
    assert one.put("/tuning", wish, If_Match=answer.headers["ETag"]).status_code == 200
    assert draft.current().tuning == Tuning((SettingChoice("net/core/somaxconn", "512"),), power=Power.BOARD)


@pytest.mark.parametrize(
    ("wish", "path"),
    [
        ({"settings": [{"key": "kernel/panic", "value": "0"}]}, "tuning.settings[0].key"),
        ({"settings": [{"key": "net/core/somaxconn", "value": "1; reboot"}]}, "tuning.settings[0].value"),
        ({"cards": [{"name": "eth0", "queues": 257}]}, "tuning.cards[0].queues"),
    ],
)
def test_what_makes_no_sense_is_refused_by_field(one, wish, path):
    answer = one.put("/tuning", wish, If_Match="*")
    assert answer.status_code == 422
    assert path in [problem["path"] for problem in error(answer)["problems"]]
    assert draft.current().tuning == Tuning()


def test_the_review_says_it_and_the_box_follows(client):
    appliance.reset(instant=True)
    draft.replace(dataclasses.replace(draft.current(), tuning=CHOSEN), "ann")
    said = words(client.get("/changes/"))
    assert "Kernel setting net/core/somaxconn" in said
    assert "512 instead of the box's own value." in said
    assert "Queues: 2 instead of the box's choice." in said
    snapshot = draft.current()
    review = connect().check(snapshot)
    assert review["diff"].keys() == {"tuning.conf"}
    connect().apply(snapshot, review["digest"], review["base"], "ann")
    settings = {one["key"]: one for one in connect().hardware()["settings"]}
    assert (settings["net/core/somaxconn"]["value"], settings["net/core/somaxconn"]["standard"]) == ("512", "4096")


def test_the_pretended_box_is_tuned_when_somebody_asks(client):
    appliance.reset()
    before = {one["state"] for one in connect().hardware()["actions"]}
    after = {one["state"] for one in connect().tune("", "ann")["actions"]}
    assert before == {"done", "differs"} and after == {"done"} and appliance.box.machine.tuned == [("", "ann")]
