"""The update of both boxes: the page of either, the API, the command."""

from dataclasses import replace

import pytest
from api_robot import error, robot
from forms_on_page import words
from tests.fake import pair as fake_pair
from tests.fake import rolling

from applier.pair.roles import LEADS, STANDS_BY
from applier.update.rolling.course import Phase
from applier.wire.client import ApplierRefused

REVIEW = f"/system/updates/review/?source=upload:{'0' * 32}"
SOURCE = {"source": f"upload:{'0' * 32}"}
BUNDLE = b"hsqs" + bytes(5000)


@pytest.fixture(autouse=True)
def spool(settings, tmp_path):
    settings.UPLOADS = tmp_path / "uploads"


@pytest.fixture
def pair(box):
    box.pair = fake_pair.sample()
    return box


def page(client) -> str:
    return words(client.get("/live/pair/"))


# --- the pages ---


def test_a_bundle_is_for_both_boxes_of_a_pair_or_for_one(client, pair):
    answer = client.get(REVIEW)
    text = answer.content.decode()
    assert 'action="/system/pair/update/"' in text and 'formaction="/system/updates/install/"' in text
    assert "Update both boxes" in words(answer) and "Install on this box alone" in words(answer)
    pair.pair = None
    answer = client.get(REVIEW)
    assert 'action="/system/updates/install/"' in answer.content.decode() and "both boxes" not in words(answer)


def test_it_is_begun_and_shown_in_plain_words(client, pair, caplog):
    caplog.set_level("INFO")
    assert (
        "A new version goes to both boxes." in page(client)
        and 'id="to-update"' in client.get("/system/pair/").content.decode()
    )
    assert client.post("/system/pair/update/", SOURCE).headers["Location"] == "/system/pair/"
    text = page(client)
    for said in (
        "Both boxes are being updated to version 0.2.0…",
        "The bundle is sent to lb2: 50 %.",
        "Restart lb1 into version 0.2.0",
        "Started by admin at lb1",
        "Stop here",
    ):
        assert said in text, said
    assert "user admin began to update both boxes" in caplog.text
    for name in ("to-update", "hand-over", "hold"):
        assert f'id="{name}"' not in client.get("/system/pair/").content.decode()


@pytest.mark.parametrize("here", [True, False])
def test_a_stop_says_why_at_both_boxes_and_what_can_be_done(client, pair, here):
    pair.rolling.here = here
    pair.rolling.peer = replace(pair.rolling.peer, version="0.2.0")
    pair.rolling.course = rolling.sample(Phase.LEARNS, stopped="lb2 knows only 3 of 1,240 connections.")
    text = page(client)
    assert "The update to version 0.2.0 has stopped lb2 knows only 3 of 1,240 connections." in " ".join(
        text.replace("!", "").split()
    )
    for said in ("Go on", "Go back", "Leave both as they are", "stopped"):
        assert said in text, said
    assert client.post("/system/pair/update/choose/", {"choice": "go-back"}).status_code == 302
    assert "lb2 goes back to its version before." in page(client)
    answer = client.post("/system/pair/update/choose/", {"choice": "leave"}, follow=True)
    assert "Nothing was done. The update of both boxes cannot do that now. Possible: stop." in words(answer)
    client.post("/system/pair/update/choose/", {"choice": "dance"})
    assert pair.rolling.course.phase is Phase.BACK


@pytest.mark.parametrize(
    ("phase", "said"),
    [
        (Phase.DONE, "Both boxes run version 0.2.0."),
        (Phase.WENT_BACK, "lb2 went back to its version before."),
        (Phase.LEFT, "The update was ended, and the boxes were left as they were."),
    ],
)
def test_how_it_ended_stays_on_the_page(client, pair, phase, said):
    pair.rolling.course = rolling.sample(phase)
    text = page(client)
    assert said in text and "Choose a version" in text and "Stop here" not in text


def test_what_cannot_be_begun_says_why(client, pair):
    pair.pair.silent = 700.0
    answer = client.post("/system/pair/update/", SOURCE, follow=True)
    assert "Nothing was installed. lb2 is not heard, so nobody would lead." in words(answer)
    assert client.post("/system/pair/update/", {"source": "/etc/passwd"}).headers["Location"] == "/system/updates/"
    assert client.get("/system/pair/update/").status_code == 405
    assert pair.rolling.course is None


def test_the_box_that_stands_by_names_the_other_one(client, pair):
    pair.pair.own, pair.pair.peer = (
        replace(pair.pair.own, role=STANDS_BY),
        replace(pair.pair.peer, role=LEADS),
    )
    assert "Begin it at the box that leads." in page(client) and "Choose a version" not in page(client)


# --- the API ---


def send(api):
    return api.ask("POST", "/pair/update", BUNDLE, "application/octet-stream")


class Unread:
    """A body that nobody may read."""

    def read(self, *_):
        raise AssertionError("the body was read")

    readline = read


def unread(api, path):
    """The answer to a bundle that is refused by what is known before it comes."""
    body = {"wsgi.input": Unread(), "CONTENT_LENGTH": "1000000", "CONTENT_TYPE": "application/octet-stream"}
    return api.client.post(f"/api/v1{path}", **body)


def test_a_bundle_that_cannot_be_for_both_boxes_is_not_even_read(pair, admin):
    api = robot(admin)
    pair.pair.silent = 700.0
    assert "lb2 is not heard" in error(unread(api, "/pair/update"))["message"]
    pair.pair.silent = 0.2
    pair.pair.own, pair.pair.peer = replace(pair.pair.own, role=STANDS_BY), replace(pair.pair.peer, role=LEADS)
    answer = unread(api, "/pair/update")
    assert answer.status_code == 409 and error(answer)["code"] == "not-leading"
    pair.pair = None
    assert error(unread(api, "/pair/update"))["code"] == "no-pair"


def choose(api, choice):
    return api.post("/pair/update/choice", {"choice": choice})


def test_the_way_by_the_api(pair, admin):
    api = robot(admin)
    assert api.get("/pair/update").json()["state"] == "none"
    answer = send(api)
    assert (answer.status_code, answer.json()["state"], answer.json()["choices"]) == (202, "running", ["stop"])
    stopped = choose(api, "stop").json()
    assert (stopped["state"], stopped["choices"]) == ("stopped", ["leave"])
    assert stopped["sentence"] == "admin (token robot) has stopped the update."
    assert choose(api, "leave").json()["state"] == "left"


def test_what_the_api_refuses(pair, admin):
    api = robot(admin)
    refused = choose(api, "stop")
    assert (refused.status_code, error(refused)["code"]) == (409, "no-update")
    assert "must be one of stop, go-on, go-back, leave" in error(choose(api, "dance"))["problems"][0]["message"]
    pair.rolling.course = rolling.sample(Phase.OWN)
    refused = choose(api, "leave")
    assert (refused.status_code, error(refused)["code"]) == (409, "not-possible")
    pair.update.refuse = ApplierRefused("bundle-signature", "The bundle is not signed.")
    refused = send(api)
    assert (refused.status_code, error(refused)["code"]) == (422, "bundle-signature")
    pair.update.refuse, pair.pair = None, None
    refused = send(api)
    assert (refused.status_code, error(refused)["code"]) == (409, "no-pair")


def test_a_token_that_may_install_updates_brings_no_older_version(pair, admin):
    api = robot(admin, "update")
    pair.update.incoming = "0.0.9"
    assert send(api).status_code == 403
    pair.rolling.course = rolling.sample(Phase.LEARNS, stopped="A doubt.")
    pair.rolling.peer = replace(pair.rolling.peer, version="0.2.0")
    assert choose(api, "go-back").status_code == 403
    assert choose(api, "go-on").json()["state"] == "running"
    assert choose(robot(admin, "read"), "stop").status_code == 403
