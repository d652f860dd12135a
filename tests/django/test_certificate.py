"""The certificate of the web page: seen, given as text or file, refused with a reason, reviewed, applied, confirmed."""

import dataclasses
import datetime

import lbconfig_certificates as pems
import pytest
from api_robot import fields, robot
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from forms_on_page import form_values, words
from tests import texts
from tests.fake import appliance

from applier.kept import page_key
from changes import actions
from draft import store as draft
from lbconfig.model import certificate
from lbconfig.model.snapshot import Snapshot, to_data, to_json

URL = "/access/certificate/"
PLACE = "192.168.10.2"
HERE = {"HTTP_HOST": PLACE, "REMOTE_ADDR": "192.168.10.50"}
SECRET = pems.LB_KEY.splitlines()[1]


def send(client, certificate="", key="", **more):
    seen = form_values(client.get(URL))["seen"]
    return client.post(URL, {"seen": seen, "certificate": certificate, "key": key} | more, **HERE)


def file(text, name="file.pem"):
    return SimpleUploadedFile(name, text.encode() if isinstance(text, str) else text)


def management():
    return draft.current().management


def showing(snapshot: Snapshot, chain: str, key: str) -> Snapshot:
    shown = dataclasses.replace(snapshot.management, certificate=chain, key=key)
    return dataclasses.replace(snapshot, management=shown)


@pytest.fixture
def given(client, box):
    """A box that runs one."""
    box.snapshot = showing(box.snapshot, pems.LB, pems.LB_KEY)
    draft.replace(box.snapshot, "admin")
    return box


# --- seeing it ----------------------------------------------------------------------------------------


def test_the_own_certificate_is_shown(client):
    text = words(client.get(URL))
    assert "The box's own certificate. It has signed it itself" in text
    assert "fairlead, localhost, 127.0.0.1" in text and "until 2099-12-31" in text
    own = certificate.first(appliance.box.recovery.certificate)
    assert own.fingerprint in text
    assert "Use the box's own" not in text
    assert "The web page shows the box's own certificate." in words(client.get("/access/"))


def test_the_given_one_is_shown_and_its_key_is_not(client, given):
    page = client.get(URL)
    text = words(page)
    assert "lb.example.org, www.example.org, 192.168.10.2" in text and "Example Root (Example Trust)" in text
    assert certificate.first(pems.LB).fingerprint in text and "Use the box's own" in text
    for url in (URL, "/access/", "/", "/changes/", "/system/", "/configuration/"):
        assert SECRET not in client.get(url).content.decode(), url
    assert "The web page shows the certificate for lb.example.org" in words(client.get("/access/"))


def test_a_box_that_does_not_answer(client, box):
    box.reachable = False
    assert "Not known while the box does not answer." in words(client.get(URL))
    assert send(client, pems.LB, pems.LB_KEY).status_code == 302 and management().certificate == pems.LB


def test_nobody_sees_it_without_a_log_in(stranger, admin):
    for answer in (stranger.get(URL), stranger.post(URL, {"own": "1"})):
        assert answer.headers["Location"].startswith("/login/")


# --- giving one ---------------------------------------------------------------------------------------

WAYS = {
    "two texts": {"certificate": pems.LB + pems.ROOT, "key": pems.LB_KEY},
    "two files": {"certificate_file": pems.LB + pems.ROOT, "key_file": pems.LB_KEY},
    "one text of all": {"certificate": pems.LB_KEY + pems.LB + pems.ROOT},
    "one file of all": {"certificate_file": pems.LB + pems.ROOT + pems.LB_KEY},
    "lines of Windows": {"certificate": (pems.LB + pems.ROOT).replace("\n", "\r\n"), "key": pems.LB_KEY},
    "words around": {"certificate": f"Bag Attributes\n  name: é\n{pems.LB}issuer=x\n{pems.ROOT}", "key": pems.LB_KEY},
    "blanks for lines": {"certificate": (pems.LB + pems.ROOT).replace("\n", " \n  "), "key": f"\n\n {pems.LB_KEY}"},
    "parameters of its curve": {
        "certificate": pems.LB + pems.ROOT,
        "key": f"-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n{pems.LB_KEY}",
    },
}


@pytest.mark.parametrize("fields", WAYS.values(), ids=WAYS)
def test_it_is_given(client, fields):
    values = {name: file(text) if name.endswith("_file") else text for name, text in fields.items()}
    answer = send(client, **values)
    assert answer.headers["Location"] == URL, words(answer)
    assert (management().certificate, management().key) == (pems.LB + pems.ROOT, pems.LB_KEY)
    text = words(client.get(URL))
    assert "Saved to the draft: the certificate for lb.example.org" in text and "In the draft" in text
    assert "browsers will warn of it" not in text  # it is for the address that this browser uses


def test_one_for_another_name_is_told(client):
    send(client, pems.OTHER, pems.OTHER_KEY)
    assert f"It is not for {PLACE}, by which you have opened this page" in words(client.get(URL))


def test_a_renewed_one_needs_no_key(client, given):
    assert send(client, pems.RENEWED).status_code == 302
    assert (management().certificate, management().key) == (pems.RENEWED, pems.LB_KEY)
    answer = send(client, pems.OTHER)
    assert answer.status_code == 422 and "The private key does not belong to the certificate." in words(answer)


def test_back_to_the_own_one(client, given):
    assert send(client, own="1").headers["Location"] == URL
    assert (management().certificate, management().key) == ("", "")
    assert "the box's own certificate. Review and apply" in words(client.get(URL))


def test_the_rest_of_the_access_stays(client, given):
    allow = management().allow
    send(client, pems.RENEWED)
    assert management().allow == allow
    values = form_values(client.get("/access/")) | {"port": "8443"}
    assert client.post("/access/", values, REMOTE_ADDR="127.0.0.1").status_code == 302
    assert (management().port, management().certificate, management().key) == (8443, pems.RENEWED, pems.LB_KEY)


REFUSED = {
    "nothing": ({}, "certificate", "Paste the certificate, or choose its file."),
    "no key": ({"certificate": pems.LB}, "key", "Paste the private key of the certificate"),
    "no certificate": ({"key": pems.LB_KEY}, "certificate", "Paste the certificate, or choose its file."),
    "words": ({"certificate": "hello <b>you</b>; $(reboot)", "key": pems.LB_KEY}, "certificate", "not PEM text"),
    "bytes": ({"certificate_file": b"\x30\x82\x00\xff" * 40, "key": pems.LB_KEY}, "certificate", "not PEM text"),
    "an empty file": ({"certificate_file": b"", "key": pems.LB_KEY}, "certificate", "Paste the certificate"),
    "both ways": (
        {"certificate": pems.LB, "certificate_file": pems.LB, "key": pems.LB_KEY}, "certificate", "not both",
    ),
    "a request": (
        {"certificate": pems.LB.replace(" CERTIFICATE", " CERTIFICATE REQUEST"), "key": pems.LB_KEY},
        "certificate",
        "This is the request for a certificate",
    ),
    "locked": ({"certificate": pems.LB, "key": pems.LB_KEY_LOCKED}, "key", "The private key must not be encrypted"),
    "locked of old": ({"certificate": pems.LB, "key": pems.LB_KEY_LOCKED_OF_EC}, "key", "must not be encrypted"),
    "two keys": ({"certificate": pems.LB, "key": pems.LB_KEY + pems.OTHER_KEY}, "key", "there are 2 blocks"),
    "of another": ({"certificate": pems.LB, "key": pems.OTHER_KEY}, "key", "does not belong to the certificate"),
    "of another kind": ({"certificate": pems.LB, "key": pems.RSA_KEY}, "key", "does not belong to the certificate"),
    "ended": ({"certificate": pems.ENDED, "key": pems.ENDED_KEY}, "certificate", "The certificate ended on 2021-01-01"),
    "not begun": ({"certificate": pems.LATER, "key": pems.LATER_KEY}, "certificate", "valid only from 2098-01-01"),
    "weak": ({"certificate": pems.WEAK, "key": pems.RSA_KEY}, "certificate", "has one of 1024"),
    "out of order": ({"certificate": pems.ROOT + pems.LB, "key": pems.LB_KEY}, "certificate", "must be in order"),
    "cut off": ({"certificate": pems.LB[:200], "key": pems.LB_KEY}, "certificate", "This is not PEM text"),
    "damaged": ({"certificate": pems.LB.replace("MII", "AAA"), "key": pems.LB_KEY}, "certificate", "cannot be read"),
    "long": ({"certificate": pems.LB * 100, "key": pems.LB_KEY}, "certificate", "at most 50000 characters"),
    "a long file": ({"certificate_file": pems.LB * 100, "key": pems.LB_KEY}, "certificate", "longer than 50000"),
    "Unicode": ({"certificate": pems.LB, "key": "\u202e\U0001f511"}, "key", "This is not PEM text"),
    "NUL": ({"certificate": "\x00", "key": pems.LB_KEY}, "certificate", "Null characters are not allowed"),
}  # fmt: skip


@pytest.mark.parametrize(("fields", "field", "sentence"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_beside_its_field(client, fields, field, sentence):
    before = draft.current()
    values = {name: file(text) if name.endswith("_file") else text for name, text in fields.items()}
    answer = send(client, **values)
    assert answer.status_code == 422 and draft.current() == before
    shown = answer.content.decode()
    place = shown.index(f'data-field="{field}"')
    assert sentence in words(answer) and shown.index('class="error"', place) < shown.find("data-field", place + 1)
    if "<" not in fields.get("certificate", "") and "\x00" not in fields.get("certificate", ""):
        kept = form_values(answer)
        assert kept["certificate"].strip() == fields.get("certificate", kept["certificate"]).strip()
    assert "<b>you</b>" not in shown


def test_what_came_as_a_file_is_not_lost(client):
    answer = send(client, certificate_file=file(pems.LB), key_file=file(pems.OTHER_KEY))
    kept = form_values(answer)
    assert answer.status_code == 422
    assert (kept["certificate"].strip(), kept["key"].strip()) == (pems.LB.strip(), pems.OTHER_KEY.strip())


def test_a_file_that_is_far_too_large(client):
    assert send(client, certificate_file=file(b"x" * 8_000_000)).status_code == 413


def test_two_admins(client):
    page = form_values(client.get(URL))
    draft.write_part("management", dataclasses.replace(management(), certificate=pems.OTHER, key=pems.OTHER_KEY), "bob")
    answer = client.post(URL, {"seen": page["seen"], "certificate_file": file(pems.LB), "key": pems.LB_KEY})
    assert answer.status_code == 409 and "bob saved another certificate" in words(answer)
    assert management().certificate == pems.OTHER
    again = form_values(answer)
    assert client.post(URL, again).status_code == 302 and management().certificate == pems.LB


def test_another_admin_who_saves_something_else_is_in_nobodys_way(client):
    page = form_values(client.get(URL))
    draft.write_part("management", dataclasses.replace(management(), port=8443), "bob")
    answer = client.post(URL, {"seen": page["seen"], "certificate": pems.LB, "key": pems.LB_KEY})
    assert answer.status_code == 302 and management().port == 8443


# --- applying it --------------------------------------------------------------------------------------


def apply(client) -> str:
    values = form_values(client.get("/changes/", secure=True, **HERE))
    answer = client.post("/changes/apply/", values, secure=True, **HERE)
    assert answer.status_code == 200, words(answer)
    return reverse("progress", args=[appliance.box.run.id])


def test_the_review_tells_what_browsers_will_do(client):
    send(client, pems.LB, pems.LB_KEY)
    page = client.get("/changes/", **HERE)
    text = words(page)
    assert "The web page shows the certificate for lb.example.org" in text
    assert texts.ASKS in text and texts.MAY_WARN in text
    assert "ssl_certificate /run/fairlead/certificates/" in text and SECRET not in page.content.decode()


def test_the_page_opens_itself_anew_and_that_confirms(client, box):
    """The background questions of a browser that does not trust the certificate all fail; a whole page warns."""
    send(client, pems.LB, pems.LB_KEY)
    path = apply(client)
    box.finish()
    page = client.get(path, secure=True, **HERE)
    shown = page.content.decode()
    follow = f"https://{PLACE}{reverse('arrive', args=[box.change.secret])}"
    assert f'data-follow="{follow}"' in shown and texts.SHOWS_OTHER in words(page)
    assert f"connect-src 'self' https://{PLACE} https://{PLACE}:44443;" in page.headers["Content-Security-Policy"]
    box.run.deadline.begun -= 30
    young = {"HTTP_X_CONNECTION_AGE": "1.0"}
    there = reverse("arrive", args=[box.change.secret])
    arrived = words(client.get(there, secure=True, **HERE))
    assert "It answers with its new certificate." in arrived and "not logged in here" not in arrived
    kept = words(client.post(there, {"keep": "1"}, secure=True, **HERE, **young))
    assert texts.KEPT in kept and "new address" not in kept
    assert box.run.state == "done" and box.snapshot.management.certificate == pems.LB


def test_a_browser_that_trusts_it_confirms_where_it_is(client, box):
    send(client, pems.LB, pems.LB_KEY)
    path = apply(client)
    box.finish()
    box.run.deadline.begun -= 30
    page = client.get(path.replace("/changes/", "/live/"), **HERE, HTTP_X_CONNECTION_AGE="1.0")
    assert texts.REACHED in words(page)


def test_another_change_does_not_speak_of_certificates(client, given):
    values = form_values(client.get("/access/")) | {"port": "8443"}
    client.post("/access/", values, REMOTE_ADDR="127.0.0.1")
    assert "warn of the new certificate" not in words(client.get("/changes/", **HERE))
    page = client.get(apply(client), secure=True, **HERE)
    assert "another certificate" not in words(page)


def test_nobody_confirms(client, box):
    send(client, pems.LB, pems.LB_KEY)
    path = apply(client)
    box.finish()
    box.expire()
    assert texts.WENT_BACK in words(client.get(path, **HERE))
    assert box.snapshot.management.certificate == "" and management().certificate == pems.LB


def test_one_that_has_ended_since_is_told_at_the_review_and_leads_to_its_page(client, monkeypatch):
    monkeypatch.setattr(page_key, "now", lambda: "2020-06-01T00:00:00Z")
    send(client, pems.ENDED, pems.ENDED_KEY)
    monkeypatch.undo()
    page = client.get("/changes/", **HERE)
    assert (
        "Access, certificate : ended on 2021-01-01: browsers refuse it. Fix this" in words(page)
        and f'href="{URL}"' in page.content.decode()
    )


@pytest.mark.parametrize(
    ("days", "words_of_it"),
    [
        (31, ""),
        (29, "ends on 2099-12-31. Give the box a new one."),
        (-1, "ended on 2099-12-31: browsers refuse it. Give the box a new one."),
    ],
)
def test_its_end_is_told_on_every_page_in_time(client, given, monkeypatch, days, words_of_it):
    from draft import frame

    end = datetime.datetime(2099, 12, 31, 23, 59, 59, tzinfo=datetime.UTC)
    monkeypatch.setattr(frame.timezone, "now", lambda: end - datetime.timedelta(days=days))
    shown = frame.Frame(status=appliance.Fake().status())
    assert shown.certificate_end == (f"The certificate of this web page {words_of_it}" if words_of_it else "")


def test_the_end_stands_in_a_banner(client, box):
    box.snapshot = showing(box.snapshot, pems.ENDED, pems.ENDED_KEY)
    page = client.get("/")
    assert "The certificate of this web page ended on 2021-01-01" in words(page)
    assert f'href="{URL}" id="to-certificate"' in page.content.decode()


# --- files, history, API ------------------------------------------------------------------------------


def test_the_file_without_passwords_comes_back(client, given):
    bare = client.get("/configuration/export/draft/?passwords=no").content.decode()
    whole = client.get("/configuration/export/draft/").content.decode()
    assert SECRET in whole and SECRET not in bare and pems.LB.splitlines()[1] in bare
    client.post("/configuration/import/", {"file": file(bare, "bare.json")})
    assert texts.NO_CHANGE in words(client.get("/configuration/import/review/"))


def test_on_another_box_its_certificate_is_left_out(client, box):
    bare = to_json(showing(box.snapshot, pems.LB, ""))
    answer = client.post("/configuration/import/", {"file": file(bare, "bare.json")})
    assert answer.headers["Location"] == "/configuration/import/review/"
    text = words(client.get("/configuration/import/review/"))
    assert "the private key is not in the file" in text and texts.NO_CHANGE in text


def test_the_history_hides_the_key_and_restores_it(client, given):
    send(client, own="1")
    apply(client)
    given.finish()
    client.post("/changes/confirm/", {"apply": given.run.id}, **HERE)
    assert given.snapshot.management.certificate == ""
    send(client, pems.LB, pems.LB_KEY)
    apply(client)
    given.finish()
    client.post("/changes/confirm/", {"apply": given.run.id}, **HERE)
    actions.keep_history()
    newest = f"/history/{given.confirmed}/"
    page = client.get(newest)
    assert page.status_code == 200 and SECRET not in page.content.decode()
    assert texts.NOT_SHOWN in words(page)
    assert "The web page shows the certificate for lb.example.org" in words(page)
    send(client, own="1")
    values = form_values(client.get(f"{newest}restore/"))
    client.post(f"{newest}restore/", values)
    assert (management().certificate, management().key) == (pems.LB, pems.LB_KEY)


def test_the_draft_as_data(client, given):
    assert to_data(draft.current())["management"]["key"] == pems.LB_KEY
    assert draft.same(draft.current(), given.snapshot)


def test_a_program_that_only_reads_is_not_told_the_key(given, admin):
    reader, changer = robot(admin, "read"), robot(admin)
    for path in ("/management", "/draft", "/running", "/status", "/changes"):
        assert SECRET not in reader.get(path).content.decode(), path
    assert reader.get("/management").json()["certificate"] == pems.LB
    assert changer.get("/management").json()["key"] == pems.LB_KEY


def test_a_program_gives_it(client, admin):
    one = robot(admin)
    refused = one.patch("/management", {"certificate": pems.LB, "key": pems.OTHER_KEY})
    assert refused.status_code == 422 and fields(refused) == [("access", "key")]
    ended = one.patch("/management", {"certificate": pems.ENDED, "key": pems.ENDED_KEY})
    assert ended.status_code == 422 and fields(ended) == [("access", "certificate")]
    for wrong in ("$(reboot)", "\N{SNOWMAN}", "\x00", "x" * 60_000, 10**30, [], "********"):
        assert one.patch("/management", {"certificate": pems.LB, "key": wrong}).status_code in (400, 422), wrong
    assert management().certificate == ""
    stored = one.patch("/management", {"certificate": pems.LB, "key": pems.LB_KEY})
    assert stored.status_code == 200 and management().key == pems.LB_KEY
    assert one.patch("/management", {"certificate": None, "key": None}).status_code == 200
    assert management().page_key == ""
