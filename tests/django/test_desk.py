"""On the box of a pair that does not lead the configuration can be read, and is edited at the other one."""

import dataclasses

import pytest
from api_robot import robot
from django.urls import NoReverseMatch, reverse
from forms_on_page import words
from tests.fake.pair import sample

from applier.pair.roles import LEADS, STANDS_BY
from changes import copies
from changes.desk import EDITS
from changes.models import SetAside
from draft import copies as drafts
from draft import store as draft
from fairlead.urls import urlpatterns
from lbconfig.model.snapshot import FACTORY

# Pages that take something and work on both boxes: what they change is the box's own, or goes along.
ON_BOTH = {
    "set-up", "login", "logout", "password", "set-up-restore", "set-up-restore-code", "token-make", "token-revoke",
    "drift-look", "drift-repair", "check-try-new", "check-try", "firewall-test", "keep", "take-back", "arrive",
    "hardware-tune", "backup", "factory-reset", "update-upload", "update-review", "update-install", "update-seen",
    "update-restart", "capacity-watch", "capacity-between", "capacity-stop", "pair-hand-over", "pair-hold",
    "pair-release", "pair-choose", "pair-leave", "pair-drill", "pair-alone", "pair-replace", "pair-replace-code",
    "pair-make", "pair-code", "pair-join", "pair-forget", "pair-draft-forget", "api-v1",
    "pair-update", "pair-update-choose",
}  # fmt: skip
# And pages that only show something.
SHOWN = {
    "overview", "live-overview", "drift", "live-drift", "service-detection", "doctor", "server-script",
    "sorry-preview", "firewall", "progress", "live-progress", "history", "compare", "revision", "transfer", "export",
    "schema", "help", "help-page", "search", "system", "hardware", "live-hardware", "restored", "updates",
    "update-restarting", "live-updates", "live-sticks", "live-restarting", "capacity", "live-capacity", "pair",
    "live-pair", "live-pair-code", "live-pair-joined", "live-pair-replace", "api", "api-document",
}  # fmt: skip


@pytest.fixture
def standing_by(client, box):
    box.pair = sample()
    box.pair.own = dataclasses.replace(box.pair.own, role=STANDS_BY)
    box.pair.peer = dataclasses.replace(box.pair.peer, role=LEADS)
    return client


def test_each_page_is_one_that_edits_the_draft_or_works_on_both_boxes():
    names = {one.name for one in urlpatterns}
    groups = (EDITS, ON_BOTH, SHOWN)
    assert names == set().union(*groups), names ^ set().union(*groups)
    assert sum(map(len, groups)) == len(names), "each page is in one of them"


def urls() -> list[str]:
    found = []
    for name in sorted(EDITS - {"pair-draft"}):
        for arguments in ([], [1], ["10.0.2.11"]):
            try:
                found.append(reverse(name, args=arguments))
            except NoReverseMatch:
                continue
            break
    assert len(found) == len(EDITS) - 1
    return found


def test_nothing_that_is_sent_there_changes_the_draft(standing_by):
    before = drafts.stamp()
    for url in urls():
        answer = standing_by.post(url, {"name": "x"})
        assert answer.status_code == 409 and "lb2 leads" in words(answer), url
        assert "https://192.168.10.22" in words(answer)
    assert drafts.stamp() == before


def test_its_forms_can_be_read_and_say_where_to_edit(standing_by, box):
    page = standing_by.get("/services/1/")
    text = page.content.decode()
    assert "is edited at lb2, which leads" in words(page) and '<fieldset class="elsewhere" disabled>' in text
    for url in ("/", "/system/pair/", "/password/"):
        assert "disabled>" not in standing_by.get(url).content.decode().partition("<main")[2].partition("<form")[0], url
    box.pair.silent = 600.0  # it is alone: the configuration is edited here
    assert "elsewhere" not in standing_by.get("/services/1/").content.decode()


def test_the_api_refuses_it_with_the_same_words(standing_by, admin, box):
    api = robot(admin)
    answer = api.post("/services/1/disable")
    assert answer.status_code == 409 and answer.json()["error"]["code"] == "not-the-desk"
    assert "edited at lb2, which leads. Open https://192.168.10.22" in answer.json()["error"]["message"]
    assert api.get("/services").status_code == 200
    box.pair.silent = 600.0
    assert api.post("/services/1/disable").status_code == 200


# --- drafts that were not taken --------------------------------------------------------------------------------


def test_a_draft_that_was_not_taken_becomes_the_draft_after_all(client, box):
    box.pair = sample()
    wanted = dataclasses.replace(draft.current(), services=FACTORY.services)
    copies.set_aside("a" * 64, "lb2", wanted)
    kept = SetAside.objects.get()
    assert "The draft of lb2" in words(client.get("/system/pair/"))
    page = client.get(f"/system/pair/drafts/{kept.pk}/")
    assert "Replace the draft with the draft that lb2 had on" in words(page)
    answer = client.post(f"/system/pair/drafts/{kept.pk}/", {"counter": page.context["found"].counter})
    assert answer.status_code == 302 and draft.same(draft.current(), wanted)
    assert "The draft of lb2" not in words(client.get("/system/pair/"))
    assert not copies.set_aside("a" * 64, "lb2", wanted)  # the other box does not bring it again
    assert client.get(f"/system/pair/drafts/{kept.pk}/").status_code == 404


def test_it_is_forgotten_and_one_that_cannot_be_read_is_told(client, box):
    box.pair = sample()
    kept = SetAside.objects.create(digest="a" * 64, hostname="lb2", snapshot="{")
    answer = client.get(f"/system/pair/drafts/{kept.pk}/", follow=True)
    assert "This draft cannot be read" in words(answer)
    assert "is gone" in words(client.post(f"/system/pair/drafts/{kept.pk}/forget/", follow=True))
    assert '"aaaa' in copies.text() and "Drafts that were not taken" not in words(client.get("/system/pair/"))
