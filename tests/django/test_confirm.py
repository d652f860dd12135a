"""A change that waits to be confirmed: the review before it, the page of it, and a second admin."""

import re

import confirm_on_page
import pytest
from confirm_on_page import HERE, NEW, ago, apply, new_connection
from forms_on_page import form_values, words
from tests import texts

from applier.apply.runs import in_vain_sentence
from changes.models import Revision
from lbconfig.diff.cutoff import NETWORK_WORDS
from lbconfig.diff.services import REFUSED

moved = confirm_on_page.moved


@pytest.fixture
def gateway(client):
    """A draft whose change may cut the admin off; the address that he uses stays."""
    client.post("/network/", form_values(client.get("/network/")) | {"gateway": "192.168.10.254"})


def live(path: str) -> str:
    return f"/live{path.removeprefix('/changes')}"


def confirm(client, box, **extra):
    return client.post("/changes/confirm/", {"apply": box.run.id}, **HERE, **extra)


# --- before the click ---------------------------------------------------------------------------------


def test_the_review_says_that_it_will_ask_and_why(client, gateway):
    text = words(client.get("/changes/", **HERE))
    assert texts.ASKS in text and NETWORK_WORDS["gateway"] in text
    assert "If it cannot within 90 seconds, the box goes back to what it runs now." in text
    assert "This page goes on at" not in text


def test_the_review_says_where_the_page_goes_on(client, moved):
    assert f"This page goes on at https://{NEW}/" in words(client.get("/changes/", secure=True, **HERE))
    assert "goes on at" not in words(client.get("/changes/", HTTP_HOST="box.example"))


def test_a_change_that_cuts_nobody_off_asks_only_if_wished(client, box):
    client.post("/services/1/", form_values(client.get("/services/1/")) | {"scheduler": "lc"})
    text = words(client.get("/changes/"))
    assert "You will be asked" not in text and "More: ask me to confirm" in text
    apply(client, confirm_within="600")
    assert box.run.state == "waiting" and box.run.ask.within == 600


def test_the_page_of_an_apply_has_no_banner_that_leads_to_it(client, gateway):
    """It is the answer to the form, at the form's address; every other page has the banner."""
    answer = client.post("/changes/apply/", form_values(client.get("/changes/", **HERE)), **HERE)
    assert texts.KEEP_IT in words(answer) and 'id="watch"' not in answer.text
    assert 'id="watch"' in client.get("/", **HERE).text


@pytest.mark.parametrize("value", ["9", "3601", "-1", "many", "1e9", "９９９９９"])
def test_a_wrong_time_is_told_beside_its_field(client, box, gateway, value):
    answer = client.post(
        "/changes/apply/", form_values(client.get("/changes/")) | {"confirm_within": value, "comment": "kept"}
    )
    assert answer.status_code == 422 and box.run is None
    page = answer.content.decode()
    assert re.search(r'class="field wrong">\s*<label for="id_confirm_within"', page)
    assert form_values(answer)["comment"] == "kept" and form_values(answer)["confirm_within"] == value


def test_the_impact_in_numbers(client):
    """The sample's shop has 25 connections on one server."""
    client.post("/services/1/delete/", form_values(client.get("/services/1/delete/")))
    text = words(client.get("/changes/"))
    assert "25 connections of 1 service are closed, 109 are kept." in text
    assert "25 connections through it are closed." in text
    assert "Service closed kept new ones shop 25 0 –" in text


def test_the_impact_of_another_scheduler(client):
    client.post("/services/1/", form_values(client.get("/services/1/")) | {"scheduler": "lc"})
    text = words(client.get("/changes/"))
    assert "No connection is closed" in text and "1 service may refuse new connections for a moment." in text
    assert f"{REFUSED} 25 connections are kept." in text


# --- the page that waits ------------------------------------------------------------------------------


def test_the_page_counts_down_and_keeps_nothing_over_an_old_connection(client, box, gateway):
    path = apply(client)
    ago(box)
    for extra in ({}, new_connection(31), new_connection(29.0), {"HTTP_X_CONNECTION_AGE": "nan"}):
        page = client.get(live(path), **HERE, **extra)
        assert texts.KEEP_IT in words(page), extra
        assert 'hx-trigger="load"' not in page.content.decode()
    page = client.get(path, **HERE)
    assert "every 1s" in page.content.decode() and '<meta http-equiv="refresh"' in page.content.decode()
    assert form_values(page)["apply"] == box.run.id


def test_a_new_connection_is_the_proof_and_the_page_confirms_by_itself(client, box, gateway):
    path = apply(client)
    ago(box)
    page = client.get(live(path), **HERE, **new_connection(27.9))
    assert texts.REACHED in words(page)
    assert 'hx-trigger="load"' in page.content.decode()
    answer = confirm(client, box, **new_connection())
    assert answer.headers["Location"] == path
    assert texts.APPLIED in words(client.get(path, **HERE))
    assert Revision.objects.get(number=4).outcome == "confirmed"
    confirm(client, box, **new_connection())  # the page may ask twice
    assert "wait to be confirmed any more" not in words(client.get(path, **HERE))


def test_a_get_confirms_nothing(client, box, gateway):
    path = apply(client)
    ago(box)
    for url in (path, live(path), "/changes/confirm/"):
        client.get(url, **HERE, **new_connection())
    assert client.get("/changes/take-back/").status_code == 405
    assert box.run.state == "waiting"


def test_a_click_over_an_old_connection_is_asked_for_once_more(client, box, gateway):
    path = apply(client)
    ago(box)
    confirm(client, box, **new_connection(40))
    assert box.run.state == "waiting"
    assert "please try once more" in words(client.get(path, **HERE))
    assert confirm(client, box, HTTP_HX_REQUEST="true", **new_connection(40)).status_code == 204
    confirm(client, box, **new_connection())
    assert box.run.state == "done"


def test_where_nobody_knows_the_age_a_click_is_believed(client, box, gateway):
    apply(client)
    confirm(client, box)
    assert box.run.state == "done"


def test_who_wants_to_look_first_decides_by_a_click(client, box, gateway):
    path = apply(client, decide="on")
    ago(box)
    page = client.get(live(path), **HERE, **new_connection())
    assert texts.KEEP_BUTTON in words(page) and 'hx-trigger="load"' not in page.content.decode()
    assert "You need not click" not in words(page)


def test_back_at_once(client, box, gateway):
    path = apply(client)
    client.post("/changes/take-back/", {"apply": box.run.id}, **HERE)
    text = words(client.get(path, **HERE))
    assert texts.WENT_BACK in text
    assert "admin took the changes back" in text and "Your draft is kept." in text
    assert "not confirmed" in words(client.get("/history/"))
    assert "not confirmed" in words(client.get("/history/4/"))


def test_nobody_confirms_and_the_page_says_so(client, box, gateway):
    path = apply(client)
    box.expire()
    text = words(client.get(live(path), **HERE))
    assert texts.WENT_BACK in text
    assert in_vain_sentence(90) in text
    assert "It runs revision 3, as before the change." in text
    assert "every 1s" not in client.get(live(path), **HERE).content.decode()
    late = confirm(client, box, **new_connection())
    assert late.status_code == 302
    assert "No changes wait to be confirmed any more." in words(client.get(path, **HERE))


def test_what_waits_is_not_in_the_history_yet(client, box, gateway):
    apply(client)
    client.get("/history/")
    assert not Revision.objects.filter(number=4).exists()


def test_the_history_shows_what_waits(client, alice, box, gateway):
    path = apply(client)
    for reader in (client, alice):
        answer = reader.get("/history/")
        assert "4 now admin – waits to be confirmed" in words(answer)
        assert answer.content.decode().count(f'href="{path}"') >= 2
    ago(box)
    confirm(client, box, **new_connection())
    assert "waits to be confirmed" not in words(client.get("/history/"))


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        ("confirmed", "These changes were applied"),
        ("not confirmed", "These changes were not confirmed Nobody confirmed them in time."),
        ("interrupted", "These changes were interrupted"),
        ("not chosen", "These changes were not chosen"),
    ],
)
def test_after_a_reboot_the_page_tells_the_outcome(client, box, gateway, outcome, said):
    path = apply(client)
    box.generations[0]["outcome"] = outcome
    box.run = None  # the applier that has started anew knows of no apply
    for one in (path, live(path)):
        answer = client.get(one, **HERE)
        assert said in words(answer) and 'href="/history/4/"' in answer.content.decode()
    assert "This apply is over" in words(client.get("/changes/progress/apply-77/"))
    assert "This apply is over" in words(client.get("/changes/progress/<apply>/"))


def test_other_changes_wait_by_now(client, box, gateway):
    apply(client)
    client.post("/changes/confirm/", {"apply": "apply-99"}, **HERE)
    assert box.run.state == "waiting"
    client.post("/changes/take-back/", {"apply": "apply-99"}, **HERE)
    assert box.run.state == "waiting"


# --- a second admin -----------------------------------------------------------------------------------


def test_a_second_admin_sees_whose_it_is_on_every_page(client, alice, box, gateway):
    apply(client)
    for url in ("/", "/network/", "/history/", "/system/"):
        text = words(alice.get(url))
        assert "The changes of admin wait to be confirmed:" in text and "seconds, then the box goes back" in text, url


def test_a_second_admin_may_go_back_and_may_keep_after_a_question(client, alice, box, gateway):
    path = apply(client)
    ago(box)
    page = alice.get(path, **new_connection())
    assert "The changes of admin wait to be confirmed" in words(page)
    assert 'hx-trigger="load"' not in page.content.decode()
    assert "Keep the changes of admin?" in words(alice.get("/changes/confirm/"))
    assert box.run.state == "waiting"
    alice.post("/changes/confirm/", {"apply": box.run.id}, **new_connection())
    assert box.run.state == "done"
    client.post("/network/", form_values(client.get("/network/")) | {"gateway": "192.168.10.253"})
    apply(client)
    alice.post("/changes/take-back/", {"apply": box.run.id})
    assert box.run.state == "not confirmed" and "alice took the changes back" in box.run.message


def test_while_it_waits_nobody_else_applies(client, alice, box, gateway):
    apply(client)
    alice.post("/services/1/", form_values(alice.get("/services/1/")) | {"scheduler": "lc"})
    page = alice.get("/changes/")
    assert "<button disabled>Apply</button>" in page.content.decode()
    answer = alice.post("/changes/apply/", form_values(page))
    assert answer.status_code == 409 and "wait to be confirmed" in words(answer)
