"""Review, apply, progress, discard, history."""

import pytest
from forms_on_page import form_values, words
from tests import texts
from tests.fake import appliance

from applier.wire.errors import ApplierRefused
from changes import actions, diffs
from changes.models import Revision
from draft import store as draft
from draft.models import Draft, Service
from lbconfig.diff.services import REFUSED


@pytest.fixture
def changed(client):
    """A draft with one change."""
    client.post("/services/1/", form_values(client.get("/services/1/")) | {"scheduler": "lc"})


def apply(client, **changes):
    return client.post("/changes/apply/", form_values(client.get("/changes/")) | changes)


def test_nothing_to_apply(client):
    assert "The box runs exactly what the draft says" in words(client.get("/changes/"))


def test_the_review_in_plain_words_and_in_full(client, changed):
    text = words(client.get("/changes/"))
    assert "changes from weighted round robin (wrr) to least connections (lc)" in text
    assert REFUSED in text
    assert "--A -t 192.168.10.80:80 -s wrr" in text
    assert "+-A -t 192.168.10.80:80 -s lc" in text


def test_apply_and_watch(client, changed, box):
    answer = apply(client, comment="for the night")
    page = client.get(answer.headers["Location"])
    assert texts.APPLIED in words(page)
    assert "every 1s" not in page.content.decode()
    revision = Revision.objects.first()
    assert (revision.number, revision.user, revision.comment, revision.outcome) == (
        4,
        "admin",
        "for the night",
        "confirmed",
    )
    assert '"lc"' in revision.snapshot
    assert texts.NOT_APPLIED not in words(client.get("/"))


def test_progress_while_it_runs(client, changed, box):
    box.instant = False
    url = apply(client).headers["Location"]
    page = client.get(url)
    assert texts.APPLYING in words(page)
    assert "every 1s" in page.content.decode()
    assert '<meta http-equiv="refresh"' in page.content.decode()
    assert "admin is applying changes" in words(client.get("/"))
    box.finish()
    assert texts.APPLIED in words(client.get(f"/live{url.removeprefix('/changes')}"))


def test_a_failed_apply_says_what_was_undone_and_keeps_the_draft(client, changed, box):
    box.failing_step = appliance.ALONE[4]
    text = words(client.get(apply(client).headers["Location"]))
    assert "the apply failed and was undone" in text
    assert "The box runs revision 3, as before. Your draft is kept." in text
    assert draft.current().services[0].scheduler == "lc"
    assert "rolled back" in words(client.get("/history/"))


def test_the_draft_moved_since_it_was_reviewed(client, alice, changed):
    reviewed = form_values(client.get("/changes/"))
    alice.post("/services/2/", form_values(alice.get("/services/2/")) | {"name": "mail in"})
    answer = client.post("/changes/apply/", reviewed | {"comment": "kept words"})
    assert answer.status_code == 409
    assert "Nothing was applied." in words(answer)
    assert "mail in" in words(answer)
    assert form_values(answer)["comment"] == "kept words"
    assert client.post("/changes/apply/", form_values(answer)).status_code == 302


def test_the_box_moved_since_it_was_reviewed(client, changed, box):
    reviewed = form_values(client.get("/changes/"))
    box.confirmed = 9
    answer = client.post("/changes/apply/", reviewed)
    assert answer.status_code == 409
    assert "Nothing was applied." in words(answer)


def test_somebody_else_applies_already(client, alice, changed, box):
    box.instant = False
    reviewed = form_values(client.get("/changes/"))
    apply(alice)
    answer = client.post("/changes/apply/", reviewed)
    assert answer.status_code == 409
    assert "The changes of alice are being applied" in words(answer)


def test_a_refusal_is_shown_as_the_applier_says_it(client, changed, box):
    box.refuse = ApplierRefused("data-full", "The data partition is full.")
    assert "The data partition is full." in words(client.get("/changes/"))


@pytest.mark.parametrize(
    ("field", "value"),
    [("digest", "x"), ("digest", ""), ("base", "-1"), ("base", "many"), ("comment", "c" * 201), ("comment", "a\x07b")],
)
def test_a_wrong_field_applies_nothing(client, changed, box, field, value):
    answer = apply(client, **{field: value})
    assert answer.status_code == 422
    assert box.run is None


def test_apply_is_no_link(client):
    assert client.get("/changes/apply/").status_code == 405


def test_discard_asks_and_goes_back_to_what_runs(client, changed):
    assert "Discard the draft?" in words(client.get("/changes/discard/"))
    assert Service.objects.get(pk=1).wish.scheduler == "lc"
    client.post("/changes/discard/")
    assert Service.objects.get(pk=1).wish.scheduler == "wrr"


def test_a_form_from_before_the_discard_is_recognised(client, changed):
    old = form_values(client.get("/services/1/"))
    client.post("/changes/discard/")
    assert client.post("/services/1/", old | {"name": "late"}).status_code == 409


def test_discard_brings_back_and_takes_away_services(client):
    ids = [service.id for service in draft.current().services]
    client.post("/services/1/delete/", form_values(client.get("/services/1/delete/")))
    Service.objects.get(pk=2).delete()
    client.post("/changes/discard/")
    assert [service.id for service in draft.current().services] == ids


def test_history(client):
    text = words(client.get("/history/"))
    assert "mail added" in text
    assert "▲ runs" in text
    assert "Store the new configuration" in words(client.get("/history/2/"))
    assert client.get("/history/99/").status_code == 404


def test_history_without_the_applier(client, box):
    client.get("/history/")
    box.reachable = False
    text = words(client.get("/history/"))
    assert "mail added" in text
    assert "The newest entries may be missing" in text


def test_the_first_draft_is_what_runs(admin, box):
    assert not draft.is_filled()
    actions.fill_if_empty()
    assert draft.same(draft.current(), box.snapshot)
    assert Draft.objects.count() == 1


def test_without_the_applier_there_is_no_first_draft(stranger, admin, box):
    box.reachable = False
    stranger.force_login(admin, backend="django.contrib.auth.backends.ModelBackend")
    answer = stranger.get("/")
    assert answer.status_code == 503
    assert "The box has not answered yet" in words(answer)
    assert not draft.is_filled()


def test_a_removed_line_that_looks_like_the_head_of_a_diff():
    file = diffs.read("x", "--- running/x\n+++ new/x\n@@ -1 +1 @@\n---A\n+-A\n")
    assert [line.kind for line in file.lines] == ["file", "file", "place", "removed", "added"]
    assert (file.added, file.removed) == (1, 1)
