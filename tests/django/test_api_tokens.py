"""Tokens: on their page, and made by the API. None may do more than the one that made it."""

import json
import logging
from datetime import timedelta

import pytest
from api_robot import Robot, error, fields, robot
from django.utils import timezone
from forms_on_page import words

from accounts import tokens
from accounts.models import ApiToken
from accounts.scopes import SCOPES
from api.table import ROUTES

MAKE = "/system/api/tokens/"
GOOD = {"name": "robot", "scopes": ["read"], "days": "30", "networks": ""}


# --- on the page ---


def test_a_token_is_shown_once_and_kept_as_a_digest(client, caplog):
    caplog.set_level(logging.INFO)
    answer = client.post(MAKE, GOOD)
    shown = answer.context["new_token"]
    assert shown in words(answer) and shown.startswith("fairlead_") and len(shown) > 40
    assert shown not in words(client.get("/system/api/"))
    record = ApiToken.objects.get()
    assert shown not in str(vars(record)) and record.digest == tokens.digest(shown)
    assert shown not in caplog.text and "user admin made the API token 'robot' for read" in caplog.text
    assert Robot(shown).get("/status").status_code == 200

    client.post(f"{MAKE}{record.pk}/revoke/")
    assert Robot(shown).get("/status").status_code == 401
    assert "user admin revoked the API token 'robot' of admin" in caplog.text
    client.post(f"{MAKE}{record.pk}/revoke/")


def test_the_page_says_what_each_token_may(client):
    client.post(MAKE, GOOD | {"scopes": ["apply", "change"], "networks": "10.1.0.0/16, 2001:db8::/32"})
    record = ApiToken.objects.get()
    assert record.scopes == ["read", "change", "apply"] and record.networks == ["10.1.0.0/16", "2001:db8::/32"]
    assert timedelta(days=29) < record.expires - timezone.now() < timedelta(days=31)
    page = words(client.get("/system/api/"))
    assert "May: Read, Change the draft, Apply and operate; only from 10.1.0.0/16, 2001:db8::/32." in page
    client.post(MAKE, GOOD | {"scopes": ["update"], "days": ""})
    assert "May: Install updates." in words(client.get("/system/api/"))
    assert "has no end" in words(client.get("/system/api/"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": "x" * 61},
        {"name": "a\x07b"},
        {"scopes": []},
        {"scopes": ["everything"]},
        {"days": "7000"},
        {"days": "x"},
        {"networks": "10.1.0.1/16"},
        {"networks": "everywhere"},
        {"networks": "10.0.0.0/8 " * 21},
        {"networks": "\N{SNOWMAN}"},
    ],
    ids=str,
)
def test_wrong_forms_keep_what_was_entered(client, wrong):
    answer = client.post(MAKE, GOOD | wrong)
    assert answer.status_code == 422 and answer.context["new_token"] is None and not ApiToken.objects.exists()
    assert set(answer.context["form"].errors) == set(wrong)
    if "name" not in wrong:
        assert 'value="robot"' in answer.content.decode()


def test_no_end_of_tokens(client, admin, monkeypatch):
    monkeypatch.setattr(tokens, "MOST", 1)
    tokens.make(admin, "one")
    assert "revoke one that nobody uses" in words(client.post(MAKE, GOOD | {"name": "two"}))
    answer = robot_of(admin).post("/tokens", {"name": "x", "scopes": ["read"]})
    assert answer.status_code == 409 and error(answer)["code"] == "too-many"


def robot_of(admin) -> Robot:
    """With the one token that there is."""
    token = tokens.PREFIX + "known"
    ApiToken.objects.update(digest=tokens.digest(token), scopes=list(SCOPES))
    return Robot(token)


def test_the_page_lists_every_route(client):
    page = words(client.get("/system/api/"))
    for route in ROUTES:
        assert f"{route.method} {route.path}" in page and route.summary in page
    document = json.loads(client.get("/system/api/openapi.json").content)
    assert document["openapi"] == "3.1.0" and len(document["paths"]) == len({route.path for route in ROUTES})


def test_a_stranger_sees_no_token(stranger, admin):
    for path in ("/system/api/", "/system/api/openapi.json"):
        assert stranger.get(path).status_code == 302
    assert stranger.post(MAKE, GOOD).status_code == 302 and not ApiToken.objects.exists()


def test_use_is_noted_once_an_hour(admin):
    one = robot(admin)
    one.get("/status")
    first = ApiToken.objects.get().used
    assert timezone.now() - first < timedelta(minutes=1)
    one.get("/status")
    assert ApiToken.objects.get().used == first


# --- by the API ---


def test_a_token_makes_tokens(admin):
    one = robot(admin, "admin", "apply")
    made = one.post("/tokens", {"name": "monitor", "scopes": ["read"], "days": 7, "networks": ["10.0.0.0/8"]})
    assert made.status_code == 201
    token = made.json()["token"]
    assert Robot(token, REMOTE_ADDR="10.1.1.1").get("/token").json()["scopes"] == ["read"]
    listed = one.get("/tokens").json()
    assert {found["name"] for found in listed} == {"robot", "monitor"} and token not in json.dumps(listed)
    assert one.delete(f"/tokens/{made.json()['id']}").status_code == 204
    assert one.delete(f"/tokens/{made.json()['id']}").status_code == 404
    assert Robot(token).get("/token").status_code == 401


def test_no_token_makes_one_that_may_more_or_longer_or_from_elsewhere(admin):
    end = timezone.now() + timedelta(days=2)
    one = robot(admin, "admin", expires=end)
    answer = one.post("/tokens", {"name": "more", "scopes": ["apply"]})
    assert answer.status_code == 422 and fields(answer) == [("token", "scopes")]
    one.post("/tokens", {"name": "longer", "scopes": ["read"], "days": 300})
    one.post("/tokens", {"name": "for ever", "scopes": ["read"]})
    assert {found.expires for found in ApiToken.objects.all()} == {end}
    inner = Robot(tokens.make(admin, "inner", ["admin"], networks=["127.0.0.0/8"]))
    answer = inner.post("/tokens", {"name": "elsewhere", "scopes": ["read"], "networks": ["10.0.0.0/8"]})
    assert answer.status_code == 422 and fields(answer) == [("token", "networks")]
    inner.post("/tokens", {"name": "inside", "scopes": ["read"]})
    assert ApiToken.objects.get(name="inside").networks == ["127.0.0.0/8"]


def test_tokens_of_others_are_theirs(admin, alice):
    other = admin.__class__.objects.get(username="alice")
    hers = tokens.make_record(other, "hers", ["read"])[1]
    one = robot(admin)
    assert [found["name"] for found in one.get("/tokens").json()] == ["robot"]
    assert one.delete(f"/tokens/{hers.pk}").status_code == 404 and ApiToken.objects.filter(pk=hers.pk).exists()
    answer = one.post("/tokens", {"name": "x", "scopes": ["read"], "user": "alice"})
    assert answer.status_code == 422 and fields(answer) == [("token", "user")]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "x" * 61}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"scopes": []}, "scopes"),
        ({"scopes": ["root"]}, "scopes"),
        ({"scopes": "read"}, "scopes"),
        ({"days": -1}, "days"),
        ({"days": 10**30}, "days"),
        ({"networks": ["10.0.0.1/8"]}, "networks"),
        ({"networks": ["10.0.0.0/8"] * 21}, "networks"),
        ({"digest": "0" * 64}, "digest"),
    ],
    ids=str,
)
def test_wrong_wishes(admin, wrong, field):
    answer = robot(admin).post("/tokens", {"name": "x", "scopes": ["read"]} | wrong)
    assert answer.status_code == 422 and field in [found[1] for found in fields(answer)]
    assert ApiToken.objects.count() == 1


def test_the_console_names_the_user(db, settings, django_user_model):
    settings.CONSOLE_TOKEN_FILE.parent.mkdir(parents=True)
    settings.CONSOLE_TOKEN_FILE.write_text("secret")
    console = Robot("secret", REMOTE_ADDR="")
    wish = {"name": "x", "scopes": ["admin"]}
    assert "set the box up first" in error(console.post("/tokens", wish))["message"]
    django_user_model.objects.create_user("kim")
    assert console.post("/tokens", wish).json()["user"] == "kim"
    django_user_model.objects.create_user("alice")
    answer = console.post("/tokens", wish)
    assert fields(answer) == [("token", "user")] and "alice, kim" in error(answer)["message"]
    assert console.post("/tokens", wish | {"user": "alice"}).json()["user"] == "alice"
    assert len(console.get("/tokens").json()) == 2
