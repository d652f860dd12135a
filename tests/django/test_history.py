"""The history: its pages, any two states side by side, back into the draft, how much is kept."""

import dataclasses
import json

import pytest
from forms_on_page import form_values, words
from tests import texts
from tests.fake import appliance

from applier.wire.errors import ApplierRefused
from changes import actions
from changes.models import Keeping, Revision
from draft import store as draft
from lbconfig.model.snapshot import CheckKind, HealthCheck, Scheduler, to_data, to_json


@pytest.fixture
def past(client, box):
    """The box ran something else before: revision 2 has another scheduler and one service less."""
    services = box.snapshot.services
    old = dataclasses.replace(
        box.snapshot, services=(dataclasses.replace(services[0], scheduler=Scheduler.LC), services[1])
    )
    for entry in box.generations:
        if entry["number"] < 3:
            entry["text"] = to_json(old)
    actions.keep_history()
    return old


def edit(client, name):
    client.post("/services/2/", form_values(client.get("/services/2/")) | {"name": name})


def test_a_revision_says_what_it_changed_and_how_it_differs_from_what_runs(client, past):
    text = words(client.get("/history/3/"))
    assert "What it changed" in text
    assert "changes from least connections (lc) to weighted round robin (wrr)" in text
    assert "Virtual service 'names'" in text
    assert "How it differs from what runs" not in text  # it is what runs
    text = words(client.get("/history/2/"))
    assert "No change from revision 1." in text
    assert "changes from weighted round robin (wrr) to least connections (lc)" in text
    assert "The history holds nothing that ran before it." in words(client.get("/history/1/"))


@pytest.mark.parametrize("page", ["/history/3/", "/history/3/restore/", "/history/compare/?old=2&new=3"])
def test_a_link_to_a_revision_may_come_before_the_history(client, box, page):
    """Nobody has opened the history since it was applied; the page System links to what runs."""
    assert not Revision.objects.exists()
    answer = client.get(page)
    assert answer.status_code == 200 and "evision 3" in words(answer)


@pytest.mark.parametrize(("old", "new"), [("2", "3"), ("2", "running"), ("2", "draft"), ("3", "2"), ("running", "2")])
def test_any_two_are_compared_in_words_and_by_file(client, past, old, new):
    text = words(client.get("/history/compare/", {"old": old, "new": new}))
    assert "least connections (lc)" in text and "Virtual service 'names'" in text
    sign = "+" if old == "2" else "-"
    assert f"{sign}-A -t 192.168.10.80:80 -s wrr" in text


def test_the_draft_can_be_compared_with_itself(client, past):
    assert "Both are the same" in words(client.get("/history/compare/?old=draft&new=running"))
    edit(client, "mail in")
    assert "mail in" in words(client.get("/history/compare/?old=running&new=draft"))


@pytest.mark.parametrize("query", ["", "old=1", "old=1&new=99", "old=1&new=x", "old=1&new=%00", "old=1&new=9999999999"])
def test_what_cannot_be_compared_is_said(client, past, query):
    answer = client.get(f"/history/compare/?{query}", follow=True)
    assert "The history does not have this revision any more." in words(answer)


def test_without_the_applier_the_past_can_still_be_compared(client, past, box):
    box.reachable = False
    assert "least connections (lc)" in words(client.get("/history/compare/?old=2&new=draft"))
    assert "does not answer" in words(client.get("/history/compare/?old=2&new=running", follow=True))


def test_a_draft_with_problems_is_compared_in_words_only(client, past):
    bad = draft.current()
    draft.replace(dataclasses.replace(bad, management=dataclasses.replace(bad.management, allow=())), "admin")
    assert "the draft has problems" in words(client.get("/history/compare/?old=2&new=draft"))


def test_an_old_schema_is_brought_up_to_date(client, past):
    data = to_data(past) | {"schema": 1}
    for service in data["services"]:
        for server in service["real_servers"]:
            server["enabled"] = server.pop("state") != "disabled"
    Revision.objects.filter(number=2).update(snapshot=json.dumps(data))
    assert "least connections (lc)" in words(client.get("/history/compare/?old=2&new=3"))


@pytest.mark.parametrize("text", ["", "{", '{"schema": 99}'])
def test_a_revision_that_cannot_be_read(client, past, text):
    Revision.objects.filter(number=2).update(snapshot=text)
    assert "cannot be read" in words(client.get("/history/2/"))
    assert "cannot be read" in words(client.get("/history/2/restore/", follow=True))
    assert draft.current().services[0].scheduler == "wrr"


def test_restore_says_what_is_lost_and_leads_to_the_review(client, alice, past):
    edit(alice, "mail of alice")
    page = client.get("/history/2/restore/")
    text = words(page)
    assert "The draft has 1 change that does not run." in text
    assert "edited by alice" in text
    assert "Virtual service 'mail of alice': changed" in text
    assert "What the draft becomes" in text and "least connections (lc)" in text
    assert draft.current().services[0].scheduler == "wrr"
    answer = client.post("/history/2/restore/", form_values(page))
    assert answer.headers["Location"] == "/changes/"
    assert draft.same(draft.current(), past)
    assert "The draft is revision 2 now." in words(client.get("/changes/"))


def test_a_draft_that_moved_between_look_and_restore_is_asked_for_again(client, alice, past):
    looked = form_values(client.get("/history/2/restore/"))
    edit(alice, "mail of alice")
    answer = client.post("/history/2/restore/", looked)
    assert answer.status_code == 409
    assert "The draft was changed since you opened this page." in words(answer)
    assert "edited by alice" in words(answer)
    assert draft.current().services[1].name == "mail of alice"
    assert client.post("/history/2/restore/", form_values(answer)).status_code == 302
    assert draft.same(draft.current(), past)


@pytest.mark.parametrize("counter", ["", "-1", "many", str(2**64)])
def test_a_form_without_its_counter_replaces_nothing(client, past, counter):
    assert client.post("/history/2/restore/", {"counter": counter}).status_code == 409
    assert draft.current().services[0].scheduler == "wrr"


def test_restore_what_the_draft_is_already(client, past):
    assert texts.NO_CHANGE in words(client.get("/history/3/restore/"))


def test_the_page_of_a_revision_shows_no_passwords(client, past, box):
    check = HealthCheck(CheckKind.RADIUS, login="kim", password="rope and tide", secret="between")
    secret = dataclasses.replace(past, services=(dataclasses.replace(past.services[0], check=check),))
    Revision.objects.filter(number=2).update(snapshot=to_json(secret))
    page = client.get("/history/2/")
    assert "rope and tide" not in page.content.decode()
    assert texts.NOT_SHOWN in words(page)
    assert b"rope and tide" in client.get("/configuration/export/2/").content


def test_a_comment_is_corrected_and_one_sees_by_whom(client, past):
    client.post("/history/2/comment/", {"comment": "for the night of the long queue"})
    text = words(client.get("/history/2/"))
    assert "for the night of the long queue" in text and "changed by admin" in text
    assert "for the night of the long queue" in words(client.get("/history/"))


@pytest.mark.parametrize("comment", ["c" * 201, "a\x07b"])
def test_a_comment_that_cannot_be_is_refused_beside_its_field(client, past, comment):
    assert client.post("/history/2/comment/", {"comment": comment}).status_code == 422
    assert Revision.objects.get(number=2).comment == "mail added"


def test_the_history_keeps_a_number_of_revisions(client, box):
    appliance.reset(instant=True, setup_done=True, confirmed=60)
    client.get("/history/")
    assert Revision.objects.count() == 60
    text = words(client.get("/history/?page=2"))
    assert "60 of at most 500 revisions" in text and "Page 2 of 2" in text
    assert client.post("/history/keep/", {"revisions": "20"}).status_code == 302
    assert sorted(Revision.objects.values_list("number", flat=True)) == list(range(41, 61))
    # the applier still has the others: they are not taken in again
    assert actions.keep_history() == 0
    assert Revision.objects.count() == 20
    box.generations.insert(0, box.generations[0] | {"number": 61})
    assert actions.keep_history() == 1
    assert (Revision.objects.count(), Revision.objects.last().number) == (20, 42)


def test_a_damaged_generation_does_not_keep_the_later_ones_out(client, past, box, monkeypatch):
    newest = box.generations[0]
    box.generations[:0] = [newest | {"number": 5}, newest | {"number": 4, "outcome": "damaged", "created": ""}]
    whole = appliance.Fake.generation

    def damaged(self, number, files=False):
        if number == 4:
            raise ApplierRefused("damaged-generation", "meta.json of revision 4 cannot be read.")
        return whole(self, number, files)

    monkeypatch.setattr(appliance.Fake, "generation", damaged)
    assert actions.keep_history() == 2
    assert client.get("/history/4/").status_code == 200
    assert Revision.objects.get(number=5).snapshot == newest["text"]


@pytest.mark.parametrize("count", ["", "9", "5001", "-1", "many", "1e3", "9" * 400])
def test_how_many_are_kept_is_bounded(client, past, count):
    answer = client.post("/history/keep/", {"revisions": count})
    assert answer.status_code == 422
    assert not Keeping.objects.exists()


@pytest.mark.parametrize("path", ["keep/", "1/comment/"])
def test_deeds_are_no_links(client, past, path):
    assert client.get(f"/history/{path}").status_code == 405


@pytest.mark.parametrize("path", ["", "1/", "1/restore/", "compare/?old=1&new=2"])
def test_the_history_is_for_admins(stranger, admin, path):
    assert stranger.get(f"/history/{path}").headers["Location"].startswith("/login/")


def test_what_is_not_there(client, past):
    for path in ("99/", "99/restore/", "99/comment/"):
        assert client.post(f"/history/{path}").status_code == 404
