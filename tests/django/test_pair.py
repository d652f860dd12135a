"""Two boxes that are one director: the line on every page, the page about the pair, and the same by the API."""

from dataclasses import replace

import pytest
from api_robot import error, fields, robot
from forms_on_page import form_values, words
from tests import texts
from tests.fake import pair as fake_pair

from applier.pair import standing
from applier.pair.fitness import Observed
from applier.pair.roles import HELD, LEADS, STANDS_BY
from system.pair import answers


@pytest.fixture
def pair(box):
    box.pair = fake_pair.sample()
    return box.pair


# --- without a pair ---


def test_a_box_that_is_alone_says_what_a_pair_is(client, box):
    page = client.get("/system/pair/")
    text = words(page)
    assert "This box is alone" in text and "two boxes that are one director" in text
    for address in ("/system/pair/make/", "/system/pair/join/"):
        assert f'href="{address}"' in page.content.decode()
    assert 'id="strip"' not in client.get("/").content.decode()
    for name in ("hand-over", "hold", "release"):
        assert client.get(f"/system/pair/{name}/").headers["Location"] == "/system/pair/"


# --- the line ---


SILENT = answers({"alive": False, "ever": True, "silent": 700.0})


@pytest.mark.parametrize("url", ["/", "/network/", "/system/", "/changes/", "/live/overview/"])
def test_every_page_says_how_the_pair_stands(client, pair, url):
    assert "lb1 leads, lb2 stands by and is in step; it knows 1,238 of 1,240 connections." in words(client.get(url))
    pair.silent = 700.0
    assert standing.away("lb2", "") != standing.away("lb2", "then")
    assert standing.away("lb2", " ").rstrip() in words(client.get(url))


def test_what_the_line_says_gets_no_banner_as_well(client, box, pair):
    pair.peer = replace(pair.peer, role=LEADS)
    box.fault("pair-both", pair.line()["sentence"])
    box.fault("data-full", "The data partition is full.")
    page = client.get("/network/").content.decode()
    assert (
        page.count("Both lead: neither box hears the VRRP of the other one (protocol 112).") == 1
        and "The data partition is full." in page
    )


# --- the page ---


def test_both_boxes_stand_beside_each_other(client, pair):
    pair.observed = Observed(gateways=("192.168.10.1",))
    pair.peer = replace(pair.peer, lacks=(0, 1, 0, 0), version="0.1.9")
    pair.clock = -61.0
    text = words(client.get("/system/pair/"))
    for said in (
        "lb1 leads this box",
        "lb2 stands by",
        "1240 known",
        "1238 known",
        "No answer from the gateway 192.168.10.1.",
        "1 interface has no link.",
        "61.0 seconds behind this box",
        "https://192.168.10.22",
        "lb1 took the lead 2026-01-31T12:00:00Z : admin asked for it",
    ):
        assert said in text, said
    assert "https://192.168.10.21" not in text


def test_paths_and_what_only_one_box_sees(client, pair):
    text = words(client.get("/system/pair/"))
    assert "Pair cable, eth2: 192.0.2.2 answers" in text and "eth0: 192.168.10.22 answers" in text
    assert "A question to lb2 is answered after 4 ms." in text
    pair.paths[0] |= {"alive": False, "silent": 700.0}
    pair.paths[1] |= {"alive": False, "ever": False}
    pair.differences = ["rs1 (shop) answers lb1, not lb2: does its firewall let both boxes in?"]
    text = words(client.get("/live/pair/"))
    assert SILENT == "has been silent for 11 min"
    assert f"192.0.2.2 {SILENT}" in text and "192.168.10.22 has never answered" in text
    assert "rs1 (shop) answers lb1, not lb2" in text


def test_a_box_that_is_away_is_shown_as_it_was(client, pair):
    pair.silent = 700.0
    text = words(client.get("/system/pair/"))
    assert (
        "was: stands by" in text
        and "11 min ago" in text
        and "is the cable plugged in?" in text
        and "nobody would lead" in text
    )
    assert f"192.0.2.2 {SILENT}" in text and f"192.168.10.22 {SILENT}" in text
    pair.peer = None
    assert "192.0.2.2 has never answered" in words(client.get("/live/pair/"))
    assert "Nothing has been heard from it since this box started." in words(client.get("/live/pair/"))


def test_a_hand_over_is_one_question(client, pair):
    page = client.get("/system/pair/hand-over/")
    assert "Let lb2 lead?" in words(page) and pair.own.role == LEADS
    answer = client.post("/system/pair/hand-over/", follow=True)
    assert pair.own.role == STANDS_BY
    assert "lb2 leads, lb1 stands by and is in step; it knows" in words(answer)
    assert "Hand over at lb2." in words(answer) and 'id="hand-over"' not in answer.content.decode()


def test_a_drill_says_before_what_it_does_and_afterwards_what_it_has_shown(client, pair):
    assert "None yet. Try one before you need it" in words(client.get("/system/pair/"))
    text = words(client.get("/system/pair/drill/"))
    assert "This is a real hand-over: lb1 tells lb2 all connections" in text and not pair.drills
    text = words(client.post("/system/pair/drill/", {"back": "on"}, follow=True))
    assert (
        "The addresses answered at lb2 after 31 ms; 1,240 connections before, 1,238 after, 2 ended by clients." in text
    )
    assert "lb2 to lb1" in text and pair.own.role == LEADS
    pair.drilling = "lb1 hands over to lb2, asked for by ann"
    assert "Right now lb1 hands over to lb2, asked for by ann." in words(client.get("/live/pair/"))
    pair.peer = replace(pair.peer, ready=False)
    assert 'id="drill"' not in client.get("/system/pair/").content.decode()
    assert "Nothing was done. lb2 is not ready" in words(client.post("/system/pair/drill/", follow=True))


def test_a_drill_by_the_api(admin, pair):
    applier, reader = robot(admin, "apply"), robot(admin, "read")
    assert reader.get("/pair/drills").json() == {"running": "", "drills": []}
    answer = applier.post("/pair/drill", {})
    assert answer.status_code == 202 and answer.json()["drills"][0]["silence"] == 31
    assert reader.get("/pair/drills").json()["drills"][0]["took"] == "lb2" and pair.own.role == STANDS_BY
    assert error(applier.post("/pair/drill", {}))["code"] == "not-leading"
    assert fields(applier.post("/pair/drill", {"back": "yes"})) == [("request", "back")]


def test_what_is_refused_changes_nothing_and_says_why(client, pair):
    pair.peer = replace(pair.peer, ready=False)
    assert 'id="hand-over"' not in client.get("/system/pair/").content.decode()
    text = words(client.post("/system/pair/hand-over/", follow=True))
    assert "Nothing was done. lb2 is not ready: its first checks are not over." in text and pair.own.role == LEADS


def test_hold_and_release(client, pair):
    assert "Hold lb1?" in words(client.get("/system/pair/hold/"))
    assert client.post("/system/pair/hold/", {"hours": "5"}).status_code == 422
    text = words(client.post("/system/pair/hold/", {"hours": "4"}, follow=True))
    assert pair.own.role == HELD and "lb1 is held (by admin, for 4 hours)" in text
    assert texts.HOLDS in text and "for another 4 h 0 min" in text
    assert "Release lb1?" in words(client.get("/system/pair/release/"))
    assert "This box is held" not in words(client.post("/system/pair/release/", follow=True))
    assert "Nothing was done. lb1 is not held." in words(client.post("/system/pair/release/", follow=True))


def test_of_two_configurations_made_apart_one_is_kept(client, admin, pair):
    assert 'id="choose"' not in client.get("/system/pair/").content.decode()
    assert "Nothing was done. lb1 and lb2 do not differ" in words(client.post("/system/pair/choose/", follow=True))
    pair.peer = forked = replace(pair.peer, digest="c" * 64, lineage=("c" * 64,))
    assert "The boxes have two configurations that were made apart." in words(client.get("/system/pair/"))
    assert "Keep the configuration of lb1?" in words(client.get("/system/pair/choose/"))
    assert "is in step" in words(client.post("/system/pair/choose/", follow=True))
    pair.peer = forked
    assert robot(admin, "apply").post("/pair/choose").json()["step"] == "in step"
    assert error(robot(admin, "apply").post("/pair/choose"))["code"] == "nothing-to-choose"


def test_while_the_applier_does_not_answer(client, box, pair):
    box.reachable = False
    assert "Not known at the moment" in words(client.get("/system/pair/"))
    assert client.get("/system/pair/hold/").status_code == 302


def test_the_review_asks_both_boxes(client, pair):
    client.post("/services/1/", form_values(client.get("/services/1/")) | {"scheduler": "lc"})
    assert "was not asked" not in words(client.get("/changes/"))
    pair.silent = 60.0
    text = words(client.get("/changes/"))
    assert "lb2 was not asked: lb2 is not heard. What it would refuse shows when the changes are applied." in text
    pair.silent = 0.2
    pair.refuses = [{"object": "interface 'eth7'", "field": "name", "message": "is not in this box", "path": ""}]
    text = words(client.get("/changes/"))
    assert "This draft cannot be applied yet" in text and "Interface 'eth7' (lb2), name : is not in this box." in text


# --- the API ---


def test_the_api_shows_hands_over_holds_and_releases(admin, pair):
    reader, applier = robot(admin, "read"), robot(admin, "apply")
    found = reader.get("/pair").json()
    assert found["sentence"].startswith("lb1 leads, lb2 stands by and is in step;") and len(found["boxes"]) == 2
    assert applier.post("/pair/hand-over").json()["boxes"][1]["role"] == "leads"
    assert error(applier.post("/pair/hand-over"))["code"] == "not-leading"
    assert applier.post("/pair/hold", {"hours": 2}).json()["hold"]["hours"] == 2
    assert applier.post("/pair/hold", {}).json()["hold"]["hours"] == 0
    assert applier.delete("/pair/hold").json()["hold"] is None
    assert error(applier.delete("/pair/hold"))["code"] == "not-held"


@pytest.mark.parametrize("hours", [-1, 169, 1.5, "1", None])
def test_the_hours_of_a_hold_are_checked(admin, pair, hours):
    answer = robot(admin, "apply").post("/pair/hold", {"hours": hours})
    assert answer.status_code == 422 and fields(answer) == [("request", "hours")]
    assert pair.hold is None


def test_a_box_without_a_pair_is_no_mistake(admin, box):
    assert robot(admin, "read").get("/pair").json()["boxes"] == []
    answer = robot(admin, "apply").post("/pair/hand-over")
    assert answer.status_code == 409 and error(answer)["code"] == "no-pair"
