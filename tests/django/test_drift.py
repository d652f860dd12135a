"""Where the box does not run what it should: the page, the banner, and the way back."""

import pytest
from api_robot import error, robot
from forms_on_page import form_values, words
from tests import texts
from tests.fake import drift as fake_drift

from changes.models import Revision
from draft.models import Service


@pytest.fixture
def drifted(box):
    box.drift.found = fake_drift.sample()
    return box


BANNER = "The box does not run what it should: 2 differences."


def test_the_banner_leads_to_the_page(client, drifted):
    for url in ("/", "/network/", "/live/overview/"):
        assert BANNER in words(client.get(url)) and 'href="/drift/"' in client.get(url).content.decode()
    assert BANNER not in words(client.get("/drift/")) and BANNER not in words(client.get("/live/drift/"))
    drifted.drift.found = []
    assert texts.DIFFERS not in words(client.get("/"))


def test_each_difference_in_words_and_what_repairing_it_costs(client, drifted):
    text = words(client.get("/drift/"))
    assert "2 differences" in text and "Virtual service 'names'" in text
    assert "Should be round robin Is source hashing" in text
    assert "When repaired: New connections to it may be refused for a moment." in text
    assert "The box does not answer at this address" in text
    drifted.drift.found = drifted.drift.found[1:]
    assert "Repairing disturbs no connection." in words(client.get("/drift/"))


def test_a_box_that_runs_what_it_should(client, box):
    text = words(client.get("/drift/"))
    assert "It does" in text and "Repair" not in text
    box.drift.fresh = 1
    assert "1 more was seen just now" in words(client.get("/drift/"))
    box.drift.looked = ""
    assert "Not looked at yet" in words(client.get("/drift/"))
    box.drift.looked, box.drift.trouble = "2026-01-31T12:00:00Z", "nft ended with 1: no."
    text = words(client.get("/drift/"))
    assert "Not all could be compared: nft ended with 1: no." in text and "It does" not in text


def test_names_of_others_are_text_and_no_markup(client, drifted):
    drifted.drift.found[0]["object"] = "virtual service '<script>x</script>'"
    assert "<script>x" not in client.get("/drift/").content.decode()


def test_the_live_part_is_a_part(client, drifted):
    page = client.get("/live/drift/").content.decode()
    assert "<html" not in page and 'id="repair"' in page and 'hx-swap-oob="true"' in page


def test_look_again(client, box):
    assert client.get("/drift/look/").status_code == 405
    answer = client.post("/drift/look/", follow=True)
    assert box.drift.looks == 1 and "The box runs what it should." in words(answer)
    box.drift.found = fake_drift.sample()
    answer = client.post("/drift/look/", follow=True)
    assert "The box runs what it should." not in words(answer) and "2 differences" in words(answer)


def test_repair_is_a_run_that_is_shown_like_an_apply_and_leaves_draft_and_history(client, drifted):
    values = form_values(client.get("/services/1/"))
    client.post("/services/1/", values | {"name": "night shop"})
    assert client.get("/drift/repair/").status_code == 405 and drifted.run is None
    answer = client.post("/drift/repair/", follow=True)
    text = words(answer)
    assert (
        texts.REPAIRED in text and "2 differences repaired" in text and "Change the table of virtual services" in text
    )
    assert drifted.run.user == "admin" and drifted.run.kind == "repair"
    assert drifted.snapshot.services[0].name == "shop" and Service.objects.get(pk=1).wish.name == "night shop"
    client.get("/history/")
    assert Revision.objects.count() == 3
    assert texts.DIFFERS not in words(client.get("/"))


def test_a_repair_that_does_not_help(client, drifted):
    drifted.failing_step = "ipvs"
    text = words(client.post("/drift/repair/", follow=True))
    assert "Not everything could be repaired" in text and "virtual service 'names'" in text and "What differs" in text
    assert BANNER in words(client.get("/"))


def test_two_admins(client, alice, drifted):
    drifted.instant = False
    client.post("/drift/repair/")
    assert "The box is being repaired for admin." in words(alice.get("/"))
    text = words(alice.post("/drift/repair/", follow=True))
    assert "Nothing was repaired." in text and "being repaired for admin" in text
    assert "Nothing was looked at." in words(alice.post("/drift/look/", follow=True))
    drifted.finish()
    assert drifted.run.state == "done" and drifted.run.user == "admin"
    drifted.instant = True
    assert "Nothing differed." in words(alice.post("/drift/repair/", follow=True))


def test_not_while_a_change_waits_to_be_confirmed(client, drifted):
    values = form_values(client.get("/network/"))
    client.post("/network/", values | {"gateway": "192.168.10.254"})
    client.post("/changes/apply/", form_values(client.get("/changes/")))
    assert drifted.run.state == "waiting"
    text = words(client.post("/drift/repair/", follow=True))
    assert "Nothing was repaired." in text and "wait to be confirmed" in text
    assert drifted.run.state == "waiting" and drifted.run.kind == "apply"


def test_a_stranger_sees_nothing(stranger, admin, drifted):
    for url in ("/drift/", "/live/drift/"):
        assert stranger.get(url).status_code == 302
    for url in ("/drift/look/", "/drift/repair/"):
        assert stranger.post(url).headers["Location"].startswith("/login/")
    assert drifted.run is None and drifted.drift.looks == 0


def test_a_silent_applier(client, box):
    box.reachable = False
    assert "Status unavailable" in words(client.get("/drift/"))
    assert "Nothing was looked at." in words(client.post("/drift/look/", follow=True))
    assert "Nothing was repaired." in words(client.post("/drift/repair/", follow=True))


def test_by_the_api(client, admin, drifted):
    one = robot(admin)
    assert one.get("/drift").json()["count"] == 2 and one.get("/status").json()["drift"]["count"] == 2
    assert one.post("/drift/look").json()["differences"][0]["object"] == "virtual service 'names'"
    answer = one.post("/drift/repair")
    assert answer.status_code == 202, answer.content
    run = one.get(f"/applies/{answer.json()['apply']}").json()
    assert (run["kind"], run["state"], run["user"]) == ("repair", "done", "admin (token robot)")
    assert one.get("/drift").json()["count"] == 0
    drifted.instant = False
    one.post("/drift/repair")
    answer = one.post("/drift/repair")
    assert answer.status_code == 409 and error(answer)["code"] == "busy"


def test_a_token_that_may_only_read(client, admin, drifted):
    one = robot(admin, "read")
    assert one.get("/drift").status_code == 200 and one.post("/drift/look").status_code == 200
    assert one.post("/drift/repair").status_code == 403 and drifted.run is None
