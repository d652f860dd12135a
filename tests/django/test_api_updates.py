"""Updates through the API."""

import logging
import re
from pathlib import Path

import pytest
from django.test import Client

from accounts import tokens
from api.table import ROUTES
from applier.wire.client import ApplierRefused

BUNDLE = b"hsqs" + bytes(5000)
UPDATE, RESTART = "/api/v1/update", "/api/v1/update/restart"
NGINX = Path(__file__).parents[2] / "overlay/etc/fairlead/nginx.conf"


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


def test_nginx_hands_on_every_file_however_large():
    [large] = re.findall(r"location ~ (\S+) {[^}]*client_max_body_size 400m", NGINX.read_text())
    files = [route.path for route in ROUTES if route.body and route.body.raw]
    assert "/pair/update" in files
    assert [path for path in files if not re.match(large, f"/api/v1{path}")] == []


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
    assert answer.status_code == status
    assert answer.json() == {"error": {"code": code, "message": "No.", "problems": []}}
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


def test_a_token_for_updates_does_not_go_back(robot, admin, box):
    """An older version has the holes that were closed since."""
    back = Client(headers={"Authorization": f"Bearer {tokens.make(admin, 'back', ['update', 'admin'])}"})
    box.update.other, box.update.record = "0.0.9", None
    answer = robot.post(RESTART)
    assert answer.status_code == 403 and "Version 0.0.9 in slot B was not installed just now" in words_of(answer)
    assert box.update.restarts == []
    box.update.incoming = "0.0.8"
    answer = post(robot)
    assert answer.status_code == 403 and "Version 0.0.8 is older" in words_of(answer) and box.update.job is None
    assert post(back).status_code == 202 and back.post(RESTART).status_code == 202


def words_of(answer) -> str:
    return answer.json()["error"]["message"]


def test_without_a_token(admin, box, spool):
    robot = Client(headers={"Authorization": "Bearer wrong"})
    for answer in (robot.get(UPDATE), post(robot), robot.post(RESTART)):
        assert answer.status_code == 401 and answer.headers["WWW-Authenticate"] == "Bearer"
    assert box.update.job is None and box.update.restarts == [] and not spool.exists()


def test_a_session_is_no_token(client, box):
    assert client.get(UPDATE).status_code == 401
    assert post(client).status_code == 401


def test_a_token_for_updates_opens_nothing_else(robot, admin):
    for path in ("status", "draft", "history", "tokens"):
        assert robot.get(f"/api/v1/{path}").status_code == 403


def test_one_that_may_apply_may_update_too_and_one_that_reads_may_look(admin, box):
    robots = {
        scope: Client(headers={"Authorization": f"Bearer {tokens.make(admin, scope, [scope])}"})
        for scope in ("read", "change", "apply")
    }
    assert all(one.get(UPDATE).status_code == 200 for one in robots.values())
    assert [post(robots[scope]).status_code for scope in ("read", "change", "apply")] == [403, 403, 202]
