"""Updates by a program: tokens, and what the API answers."""

import logging
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from forms_on_page import words

from accounts import tokens
from accounts.models import ApiToken
from applier.client import ApplierRefused

BUNDLE = b"hsqs" + bytes(5000)
UPDATE, RESTART = "/api/v1/update", "/api/v1/update/restart"


@pytest.fixture(autouse=True)
def spool(settings, tmp_path):
    settings.UPLOADS = tmp_path / "uploads"
    return settings.UPLOADS


@pytest.fixture
def token(admin) -> str:
    return tokens.make(admin, "the shop's robot")


@pytest.fixture
def robot(token) -> Client:
    """It checks CSRF as the box does, and has no cookie."""
    return Client(enforce_csrf_checks=True, headers={"Authorization": f"Bearer {token}"})


def post(robot, data=BUNDLE):
    return robot.post(UPDATE, data, content_type="application/octet-stream")


def test_the_state(robot):
    answer = robot.get(UPDATE).json()
    assert answer["version"] == "0.1.0" and answer["present"] and answer["job"] is None
    assert [slot["name"] for slot in answer["slots"]] == ["A", "B"]


def test_install_and_restart(robot, box, caplog):
    caplog.set_level(logging.INFO)
    answer = post(robot)
    assert answer.status_code == 202
    assert answer.json() == {"job": "job-0.2.0", "version": "0.2.0", "notes": []}
    assert robot.get(UPDATE).json()["job"]["state"] == "done"
    assert box.update.restarts == []
    answer = robot.post(RESTART)
    assert (answer.status_code, answer.json()) == (202, {"slot": "B", "version": "0.2.0"})
    assert box.update.booted == "B"
    assert "admin (token the shop's robot) installs version 0.2.0" in caplog.text
    assert "admin (token the shop's robot) restarts the box" in caplog.text


@pytest.mark.parametrize(
    ("code", "status"), [("bundle-signature", 422), ("wrong-product", 422), ("busy", 409), ("no-slots", 409)]
)
def test_what_is_refused(robot, box, code, status):
    box.update.refuse = ApplierRefused(code, "No.")
    answer = post(robot)
    assert answer.status_code == status and answer.json() == {"error": {"code": code, "message": "No."}}
    assert box.update.job is None


def test_other_refusals(robot, box):
    assert post(robot, b"").status_code in (400, 411)
    assert robot.post(RESTART).status_code == 409  # the other slot is empty
    assert robot.delete(UPDATE).status_code == 405
    assert robot.get(RESTART).status_code == 405
    box.update.present = False
    assert post(robot).json()["error"]["code"] == "no-slots"
    assert robot.post(RESTART).json()["error"]["code"] == "no-slots"
    box.reachable = False
    for answer in (post(robot), robot.get(UPDATE), robot.post(RESTART)):
        assert answer.status_code == 503 and answer.json()["error"]["code"] == "applier-down"


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer ", "Bearer wrong", "Basic YWRtaW46eA==", "Bearer fairlead_\N{SNOWMAN}"]
)
def test_without_a_good_token(admin, box, spool, header):
    robot = Client(headers={"Authorization": header} if header is not None else {})
    for answer in (robot.get(UPDATE), post(robot), robot.post(RESTART)):
        assert answer.status_code == 401 and answer.headers["WWW-Authenticate"] == "Bearer"
        assert answer.json()["error"]["code"] == "unauthorized"
    assert box.update.job is None and box.update.restarts == [] and not spool.exists()


def test_a_session_is_no_token(client, box):
    assert client.get(UPDATE).status_code == 401
    assert post(client).status_code == 401


def test_a_token_of_one_who_left(robot, admin):
    admin.is_active = False
    admin.save()
    assert robot.get(UPDATE).status_code == 401


# --- on the page --------------------------------------------------------------------------------------------


def test_a_token_is_shown_once_and_kept_as_a_digest(client, caplog):
    caplog.set_level(logging.INFO)
    answer = client.post("/system/updates/tokens/", {"name": "robot"})
    shown = answer.context["new_token"]
    assert shown in words(answer) and shown.startswith("fairlead_") and len(shown) > 40
    assert shown not in words(client.get("/system/updates/"))
    record = ApiToken.objects.get()
    assert shown not in str(vars(record)) and record.digest == tokens.digest(shown)
    assert shown not in caplog.text and "user admin made the API token 'robot'" in caplog.text
    assert Client(headers={"Authorization": f"Bearer {shown}"}).get(UPDATE).status_code == 200

    client.post(f"/system/updates/tokens/{record.pk}/revoke/")
    assert Client(headers={"Authorization": f"Bearer {shown}"}).get(UPDATE).status_code == 401
    assert "user admin revoked the API token 'robot' of admin" in caplog.text
    client.post(f"/system/updates/tokens/{record.pk}/revoke/")


@pytest.mark.parametrize("name", ["", "x" * 61, "a\x07b"])
def test_names_that_are_none(client, name):
    answer = client.post("/system/updates/tokens/", {"name": name})
    assert answer.context["new_token"] is None and not ApiToken.objects.exists()


def test_no_end_of_tokens(client, admin, monkeypatch):
    monkeypatch.setattr(tokens, "MOST", 1)
    tokens.make(admin, "one")
    assert "revoke one that nobody uses" in words(client.post("/system/updates/tokens/", {"name": "two"}))


def test_use_is_noted_once_an_hour(robot):
    robot.get(UPDATE)
    first = ApiToken.objects.get().used
    assert timezone.now() - first < timedelta(minutes=1)
    robot.get(UPDATE)
    assert ApiToken.objects.get().used == first
