"""Configurations as files: export, the published schema, import."""

import dataclasses
import json

import jsonschema
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from forms_on_page import form_values, words

from changes import transfer
from changes.models import Candidate
from draft import store as draft
from lbconfig.model.problem import UNKNOWN_FIELD, UNPRINTABLE
from lbconfig.model.reading import wrong_type
from lbconfig.model.snapshot import CheckKind, HealthCheck, from_json, to_data, to_json


@pytest.fixture
def other(client):
    """Another configuration: one service less, another name."""
    now = draft.current()
    return dataclasses.replace(now, services=(dataclasses.replace(now.services[0], name="web"), now.services[1]))


def send(client, content, name="config.json"):
    content = content.encode() if isinstance(content, str) else content
    return client.post("/configuration/import/", {"file": SimpleUploadedFile(name, content)})


def secret(snapshot):
    check = HealthCheck(CheckKind.IMAP, login="kim", password="rope and tide")
    first, *others = snapshot.services
    return dataclasses.replace(snapshot, services=(dataclasses.replace(first, check=check), *others))


@pytest.mark.parametrize("key", ["draft", "running", "3"])
def test_export_is_the_canonical_text_and_the_schema_knows_it(client, box, key):
    client.get("/history/")
    answer = client.get(f"/configuration/export/{key}/")
    assert from_json(answer.content.decode()) == box.snapshot
    assert answer.content.decode() == to_json(box.snapshot)
    assert f'filename="sample-{key}-' in answer.headers["Content-Disposition"]
    jsonschema.validate(json.loads(answer.content), json.loads(client.get("/configuration/schema.json").content))


def test_export_without_passwords(client):
    draft.replace(secret(draft.current()), "admin")
    assert "The draft has passwords or a private key" in words(client.get("/configuration/"))
    assert b"rope and tide" in client.get("/configuration/export/draft/").content
    bare = client.get("/configuration/export/draft/?passwords=no")
    assert b"rope and tide" not in bare.content and b'"login": "kim"' in bare.content
    assert "without-passwords" in bare.headers["Content-Disposition"]


@pytest.mark.parametrize("key", ["99", "x", "../etc", "9" * 30])
def test_export_of_what_is_not_there(client, key):
    answer = client.get(f"/configuration/export/{key}/", follow=True)
    assert answer.status_code in (200, 404)
    assert "attachment" not in answer.headers.get("Content-Disposition", "")


def test_the_schema_is_public_and_the_rest_is_not(stranger, admin):
    assert stranger.get("/configuration/schema.json").headers["Content-Type"] == "application/schema+json"
    for path in ("", "export/draft/", "import/", "import/review/"):
        assert stranger.get(f"/configuration/{path}").headers["Location"].startswith("/login/")
    assert send(stranger, "{}").headers["Location"].startswith("/login/")


def test_import_shows_the_difference_first(client, other):
    before = draft.current()
    answer = send(client, to_json(other), "night.json")
    assert answer.headers["Location"] == "/configuration/import/review/"
    page = client.get("/configuration/import/review/")
    text = words(page)
    assert "Replace the draft with the configuration of night.json?" in text
    assert "Name changes from 'shop' to 'web'." in text and "Virtual service 'names'" in text
    assert draft.current() == before
    assert client.post("/configuration/import/review/", form_values(page)).headers["Location"] == "/changes/"
    assert draft.same(draft.current(), other)
    assert not Candidate.objects.exists()


def test_a_pasted_text_is_as_good(client, other):
    assert client.post("/configuration/import/", {"text": to_json(other)}).status_code == 302
    assert "the pasted text" in words(client.get("/configuration/import/review/"))


def test_a_text_with_a_byte_order_mark(client, other):
    assert send(client, b"\xef\xbb\xbf" + to_json(other).encode()).status_code == 302


def test_each_admin_has_an_import_of_his_own(client, alice, other):
    send(client, to_json(other))
    assert "There is no imported configuration that waits" in words(
        alice.get("/configuration/import/review/", follow=True)
    )


def test_a_draft_that_moved_meanwhile_is_asked_for_again(client, alice, other):
    send(client, to_json(other))
    looked = form_values(client.get("/configuration/import/review/"))
    alice.post("/services/2/", form_values(alice.get("/services/2/")) | {"name": "mail of alice"})
    answer = client.post("/configuration/import/review/", looked)
    assert answer.status_code == 409 and "Virtual service 'mail of alice': changed" in words(answer)
    assert Candidate.objects.exists()
    assert draft.current().services[1].name == "mail of alice"


def test_an_old_schema_is_brought_up_to_date(client, other):
    data = to_data(other) | {"schema": 1}
    for service in data["services"]:
        for server in service["real_servers"]:
            server["enabled"] = server.pop("state") != "disabled"
    assert send(client, json.dumps(data)).status_code == 302


def test_lost_passwords_are_told(client):
    draft.replace(secret(draft.current()), "admin")
    send(client, client.get("/configuration/export/draft/?passwords=no").content)
    assert "Services that lose them: shop" in words(client.get("/configuration/import/review/"))


SHAPES = [
    (b"", "is not JSON"),
    (b"hello", "is not JSON"),
    (b"\xff\xfe{}", "not UTF-8 text: byte 0"),
    (b"\x80" * 10, "not UTF-8 text"),
    (b"[" * 200_000, "is not JSON"),
    (b'{"a":' * 100_000, "is not JSON"),
    (b'{"schema": ' + b"9" * 5000 + b"}", "is not JSON"),
    (b"[]", "must be an object, not a list"),
    (b"null", "must be an object, not nothing"),
    (b'{"services": {}}', "services"),
    (b'{"schema": 99}', "this software reads no other"),
    (b'{"schema": 0}', "cannot read it any more"),
    (b'{"schema": "2"}', "must be 3"),
    (b'{"firewood": 1}', UNKNOWN_FIELD),
    (b'{"network": {"hostname": "\\ud800"}}', UNPRINTABLE),
    (b'{"network": {"hostname": "a\\u0000b"}}', UNPRINTABLE),
    (b'{"network": {"hostname": NaN}}', wrong_type(str, 1.5)),
    (b'{"network": {"hostname": 1e999}}', wrong_type(str, 1.5)),
    (b'{"services": [{"id": 1.0, "name": "a", "address": "10.0.0.1", "port": 80}]}', wrong_type(int, 1.0)),
]


@pytest.mark.parametrize(("content", "sentence"), SHAPES, ids=range(len(SHAPES)))
def test_what_has_not_the_shape_is_told_with_its_path_and_changes_nothing(client, content, sentence):
    before = draft.current()
    answer = send(client, content)
    assert answer.status_code == 422
    assert sentence.lower() in words(answer).lower()
    assert draft.current() == before
    assert not Candidate.objects.exists()


@pytest.mark.parametrize(
    ("field", "value", "where"),
    [
        ("port", 10**30, "services[id=1].port"),
        ("port", 0, "services[id=1].port"),
        ("address", "10.0.0.1; reboot", "services[id=1].address"),
        ("name", "$(reboot)", "services[id=1].name"),
        ("id", 2**63, "id"),
    ],
)
def test_problems_are_told_with_object_field_and_path(client, other, field, value, where):
    data = to_data(other)
    data["services"][0][field] = value
    answer = send(client, json.dumps(data))
    assert answer.status_code == 422
    assert where in words(answer)
    assert "Virtual service" in words(answer)
    assert "Nothing was imported." in words(answer)
    assert not Candidate.objects.exists()


@pytest.mark.parametrize(
    ("values", "sentence"),
    [({}, "Choose a file, or paste"), ({"text": "  \n"}, "Choose a file, or paste"), ({"file": "x"}, "Choose a file")],
)
def test_a_form_without_anything(client, values, sentence):
    answer = client.post("/configuration/import/", values)
    assert answer.status_code == 422 and sentence in words(answer)


def test_a_file_and_a_text_at_once(client, other):
    file = SimpleUploadedFile("a.json", to_json(other).encode())
    assert "not both" in words(client.post("/configuration/import/", {"file": file, "text": "{}"}))


def test_a_name_of_a_file_is_text_and_nothing_else(client, other):
    send(client, to_json(other), "<img src=x>\u202e.json")
    assert "<img" not in client.get("/configuration/import/review/").content.decode()


def test_too_large_a_file(client, monkeypatch, other):
    answer = send(client, b" " * (transfer.LIMIT + (2 << 20)))
    assert answer.status_code == 413 and "8 MB are accepted" in words(answer)
    assert client.post("/configuration/import/", {"text": " " * (2 << 20)}).status_code == 413
    # one that says it is small goes no further than it may
    assert send(client, b" " * (transfer.LIMIT + 1)).status_code in (400, 413, 422)
    assert not Candidate.objects.exists()


def test_a_form_that_is_no_form(client):
    answer = client.post("/configuration/import/", b"\xff" * 100, content_type="multipart/form-data; boundary=x")
    assert answer.status_code in (400, 422)
    assert client.post("/configuration/import/", b"x", content_type="multipart/form-data").status_code == 400


def test_nothing_is_left_in_the_folder(client, other, settings):
    send(client, to_json(other))
    assert list(settings.INCOMING.iterdir()) == []
