"""The page "Updates": every state of the slots, uploads that must not fill anything, and who may."""

import io
import logging
import os

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from forms_on_page import words
from tests import texts
from tests.fake import updates as fake_updates

from accounts.models import ApiToken
from applier.wire.client import ApplierRefused
from system import uploads
from web import room

BUNDLE = b"hsqs" + bytes(5000)
HEX = "0" * 32


@pytest.fixture(autouse=True)
def spool(settings, tmp_path):
    settings.UPLOADS = tmp_path / "uploads"
    return settings.UPLOADS


def send(client, data=BUNDLE, **headers):
    return client.post("/system/updates/upload/", data, content_type="application/octet-stream", **headers)


def page(client) -> str:
    return words(client.get("/system/updates/"))


# --- what the page says -------------------------------------------------------------------------------------


def test_a_box_as_delivered(client):
    text = page(client)
    assert "Runs now: version 0.1.0" in text
    assert "Slot B holds nothing that can be started" in text
    assert "Updates" in words(client.get("/system/"))


def test_a_box_without_slots_says_so(client, box):
    box.update.present = False
    text = page(client)
    assert "This box cannot be updated here" in text
    assert "Upload" not in text


def test_an_applier_that_is_away(client, box):
    box.reachable = False
    assert "cannot be reached" in page(client)


def test_the_whole_way_there_and_back(client, box, caplog):
    caplog.set_level(logging.INFO)
    answer = send(client)
    assert answer.status_code == 200
    text = words(client.get(answer.json()["next"]))
    assert "Install version 0.2.0?" in text and "Signed with a key that this box trusts" in text
    source = answer.json()["next"].partition("source=")[2].replace("%3A", ":")
    assert client.post("/system/updates/install/", {"source": source}).headers["Location"] == "/system/updates/"
    text = page(client)
    assert "Version 0.2.0 is installed and waits for a restart" in text
    assert "the box runs version 0.1.0 until you restart it" in text

    text = words(client.get("/system/updates/restart/B/"))
    assert "Restart into version 0.2.0?" in text
    assert "needed 21 seconds" in text and "starts with a copy of what the box has now" in text
    answer = client.post("/system/updates/restart/B/")
    assert answer.headers["Location"].startswith("/system/updates/restarting/B/?before=")
    assert box.update.restarts == ["B"] and box.update.booted == "B"
    text = page(client)
    assert "Runs now: version 0.2.0" in text and "The last update went well" in text
    assert "Back to version 0.1.0" in text

    text = words(client.get("/system/updates/restart/A/"))
    assert "Go back to version 0.1.0?" in text
    assert "The configuration returns with it: version 0.1.0 starts with revision 3 of" in text
    client.post("/system/updates/restart/A/")
    assert "Runs now: version 0.1.0" in page(client)
    said = caplog.text
    assert "user admin uploaded a bundle" in said and "user admin started to install" in said
    assert "user admin restarts the box into slot B, version 0.2.0" in said


def test_back_to_a_version_that_was_never_configured(client, box):
    client.post("/system/updates/install/", {"source": f"upload:{HEX}"})
    client.post("/system/updates/restart/B/")
    box.update.other_configuration = {"number": 0, "created": "", "comment": ""}
    text = words(client.get("/system/updates/restart/A/"))
    assert "version 0.1.0 starts as delivered, with nothing configured" in text
    assert "generation" not in text
    assert "Configuration as delivered" in page(client)


def test_one_that_does_not_come_up(client, box):
    box.update.fails = "the web page answers with 502"
    client.post("/system/updates/install/", {"source": f"upload:{HEX}"})
    client.post("/system/updates/restart/B/")
    said = "Version 0.2.0 did not come up: the web page answers with 502. The box went back to version 0.1.0."
    assert said in page(client)
    assert said in words(client.get("/"))  # on every page, until somebody has read it
    client.post("/system/updates/seen/")
    assert said not in words(client.get("/"))
    assert said in page(client) and "did not come up" in page(client)


def test_progress(client, box):
    box.instant = False
    client.post("/system/updates/install/", {"source": f"upload:{HEX}"})
    box.update._job_began -= 6.0
    text = words(client.get("/live/updates/"))
    assert "Installing version 0.2.0" in text and "50 %" in text and "Writing to slot B" in text
    assert "Restart the box" not in text
    client.post("/system/updates/install/", {"source": f"upload:{HEX}"})
    assert "Right now version 0.2.0 is being installed" in page(client)


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("bundle-signature", "The bundle is not signed with a key that this box trusts."),
        ("busy", "Right now the changes of alice are being applied."),
    ],
)
def test_a_refused_bundle(client, box, code, sentence):
    box.update.refuse = ApplierRefused(code, sentence)
    answer = client.get("/system/updates/review/", {"source": f"upload:{HEX}"})
    assert answer.status_code == 409
    assert sentence in words(answer) and texts.NOTHING_WRITTEN in words(answer)
    client.post("/system/updates/install/", {"source": f"upload:{HEX}"})
    assert f"Nothing was installed. {sentence}" in page(client)


def test_an_older_version_is_a_warning(client, box):
    box.update.incoming = "0.0.9"
    assert "older version" in words(client.get("/system/updates/review/", {"source": f"upload:{HEX}"}))


@pytest.mark.parametrize("source", ["", "upload:../../etc/passwd", "usb:1", "file:/dev/sda"])
def test_sources_that_are_none(client, box, source):
    assert client.get("/system/updates/review/", {"source": source}).headers["Location"] == "/system/updates/"
    client.post("/system/updates/install/", {"source": source})
    assert box.update.job is None


def test_sticks(client, box):
    box.update.sticks.append(fake_updates.stick_bundle("0.3.0", "The bundle is incomplete.", 2))
    text = words(client.get("/live/updates/sticks/"))
    assert "fairlead-0.2.0.raucb" in text and "version 0.2.0" in text and "The bundle is incomplete." in text
    box.update.sticks.clear()
    assert "No bundle was found" in words(client.get("/live/updates/sticks/"))
    box.reachable = False
    assert "cannot be reached" in words(client.get("/live/updates/sticks/"))


@pytest.mark.parametrize(("slot", "status"), [("B", 302), ("C", 404), ("AB", 404)])
def test_slots_that_cannot_be_started(client, box, slot, status):
    answer = client.post(f"/system/updates/restart/{slot}/")
    assert answer.status_code == status
    assert box.update.restarts == []


def test_a_plain_restart(client, box):
    assert "Restart the box?" in words(client.get("/system/updates/restart/A/"))
    client.post("/system/updates/restart/A/")
    assert box.update.restarts == ["A"] and box.update.booted == "A"


def test_a_restart_that_is_refused(client, box, monkeypatch):
    def refuse(*_, **__):
        raise ApplierRefused("busy", "The changes of alice are being applied.")

    monkeypatch.setattr(fake_updates.FakeUpdates, "reboot", refuse)
    client.post("/system/updates/restart/A/")
    assert "The box was not restarted. The changes of alice" in page(client)


def test_while_it_restarts_and_after(client, box):
    before = {"before": "100000"}
    client.post("/system/updates/install/", {"source": f"upload:{HEX}"})
    client.post("/system/updates/restart/B/")
    box.started -= 50  # it was not off, as far as its clock tells
    assert "The box restarts" in words(client.get("/system/updates/restarting/B/", {"before": "20"}))
    text = words(client.get("/live/updates/restarting/B/", before))
    assert "The box is back with version 0.2.0" in text and "came up, passed its checks" in text
    box.update.record = box.update.record.now("trying")
    assert "checks itself now" in words(client.get("/live/updates/restarting/B/", before))
    box.update.record, box.update.booted = box.update.record.now("failed", "it is odd"), "A"
    box.update.version, box.update.other = "0.1.0", "0.2.0"
    assert "did not come up: it is odd" in words(client.get("/live/updates/restarting/B/", before))


# --- uploads ------------------------------------------------------------------------------------------------


def test_an_upload_lies_in_the_spool_under_a_name_of_ours(client, spool):
    spool.mkdir()
    (spool / f"{HEX}.part").write_bytes(b"left over")
    answer = send(client)
    (path,) = spool.iterdir()
    assert path.read_bytes() == BUNDLE
    assert path.stem in answer.json()["next"] and len(path.stem) == 32
    assert path.stat().st_mode & 0o777 == 0o600


def test_uploads_that_are_refused_before_they_are_read(client, box, spool, monkeypatch):
    def not_read(*_):
        pytest.fail("it was read")

    monkeypatch.setattr("django.core.handlers.wsgi.WSGIRequest.read", not_read)
    too_long = send(client, CONTENT_LENGTH=str(400 << 20))
    assert too_long.status_code == 413 and "314.6 MB at most" in too_long.json()["message"]
    assert send(client, CONTENT_LENGTH="0").status_code == 400
    about = os.statvfs(spool.parent)
    monkeypatch.setattr(room, "HEADROOM", about.f_blocks * about.f_frsize)  # others here remove files meanwhile
    no_room = send(client)
    assert no_room.status_code == 507 and "There is no room for this file" in no_room.json()["message"]
    monkeypatch.setattr(room, "HEADROOM", 0)
    with uploads._one:
        assert send(client).status_code == 409
    box.update.present = False
    assert send(client).status_code == 409
    box.reachable = False
    assert send(client).status_code == 503
    assert not spool.exists() or not list(spool.iterdir())


def test_no_upload_while_an_install_runs(client, box, spool):
    box.instant = False
    client.post("/system/updates/install/", {"source": f"upload:{HEX}"})
    answer = send(client)
    assert answer.status_code == 503 and "is being installed" in answer.json()["message"]
    assert not spool.exists()


def test_without_a_length(client, spool):
    assert send(client, CONTENT_LENGTH="").status_code == 411


def test_an_upload_that_breaks_off_leaves_nothing(client, spool):
    answer = send(client, CONTENT_LENGTH=str(len(BUNDLE) + 10), **{"wsgi.input": io.BytesIO(BUNDLE)})
    assert answer.status_code == 400 and "before the whole file had arrived" in answer.json()["message"]
    assert list(spool.iterdir()) == []


def test_a_disk_that_is_full_after_all(client, spool, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    answer = send(client)
    assert answer.status_code == 507 and "No space left" in answer.json()["message"]
    assert list(spool.iterdir()) == []
    monkeypatch.undo()
    uploads._one.acquire(timeout=1)
    uploads._one.release()


def test_a_file_in_a_form_is_dropped_and_fills_no_disk(client, spool, monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "none"))
    file = SimpleUploadedFile("x.raucb", bytes(4 << 20))
    answer = client.post("/system/updates/install/", {"source": f"upload:{HEX}", "file": file})
    assert answer.status_code == 302


# --- who may ------------------------------------------------------------------------------------------------

PATHS = (
    ("get", "/system/updates/"),
    ("get", "/live/updates/"),
    ("get", "/live/updates/sticks/"),
    ("get", f"/system/updates/review/?source=upload:{HEX}"),
    ("post", "/system/updates/upload/"),
    ("post", "/system/updates/install/"),
    ("post", "/system/updates/seen/"),
    ("get", "/system/updates/restart/A/"),
    ("post", "/system/updates/restart/A/"),
    ("get", "/system/updates/restarting/A/"),
    ("get", "/live/updates/restarting/A/"),
    ("post", "/system/api/tokens/"),
    ("post", "/system/api/tokens/1/revoke/"),
)


@pytest.mark.parametrize(("method", "path"), PATHS)
def test_only_who_is_logged_in(admin, stranger, box, spool, method, path):
    answer = getattr(stranger, method)(path)
    assert answer.status_code == 302 and answer.headers["Location"].startswith("/login/")
    assert box.update.restarts == [] and box.update.job is None and not spool.exists()


@pytest.mark.parametrize("path", [path for method, path in PATHS if method == "post"])
def test_no_other_page_can_make_the_browser_do_it(admin, client, box, path):
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = client.cookies
    assert strict.post(path, BUNDLE, content_type="application/octet-stream").status_code == 403
    assert box.update.restarts == [] and box.update.job is None
    assert not ApiToken.objects.exists()


@pytest.mark.parametrize("path", [path for method, path in PATHS if method == "post" and "restart/" not in path])
def test_a_link_does_nothing(client, path):
    assert client.get(path).status_code == 405
