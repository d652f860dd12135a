"""How long a log-in lasts, whatever the clock does."""

import dataclasses
from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.utils import timezone
from forms_on_page import words
from tests.django.conftest import PASSWORD

from accounts import sessions
from accounts.sessions import Moment

MINUTE, HOUR = 60, 3600


class Clock:
    """What the kernel says, and what the box believes."""

    def __init__(self) -> None:
        self.now = Moment("first", 1000, 1_800_000_000)

    def goes(self, seconds: int) -> None:
        self.now = dataclasses.replace(self.now, running=self.now.running + seconds, wall=self.now.wall + seconds)

    def is_set(self, seconds: int) -> None:
        """By hand, or by a time server."""
        self.now = dataclasses.replace(self.now, wall=self.now.wall + seconds)

    def starts_again(self, seconds: int) -> None:
        self.now = Moment("second", 10, self.now.wall + seconds)


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr(sessions, "now", lambda: found.now)
    return found


def logged_in(client) -> bool:
    return client.get("/").status_code == 200


def test_an_idle_session_ends_and_the_page_says_why(client, clock):
    clock.goes(30 * MINUTE)
    assert logged_in(client)
    clock.goes(31 * MINUTE)
    assert client.get("/", follow=True).redirect_chain[-1][0] == "/login/?next=/"
    assert "half an hour without a click" in words(client.get("/login/"))
    client.post("/login/", {"username": "admin", "password": PASSWORD})
    assert logged_in(client)


def test_a_page_that_refreshes_itself_does_not_keep_the_session(client, clock):
    clock.goes(20 * MINUTE)
    assert client.get("/live/overview/").status_code == 200
    clock.goes(11 * MINUTE)
    assert not logged_in(client)


def test_it_ends_however_much_somebody_clicks(client, clock):
    """It was written anew with every click, and each time it lasted twelve hours more."""
    for _ in range(35):
        clock.goes(20 * MINUTE)
        assert logged_in(client)
    clock.goes(21 * MINUTE)
    assert not logged_in(client)


def test_a_clock_that_is_set_back_lengthens_nothing(client, clock):
    assert logged_in(client)
    clock.is_set(-48 * HOUR)
    clock.goes(29 * MINUTE)
    assert logged_in(client)
    clock.is_set(-HOUR)
    clock.goes(31 * MINUTE)
    assert not logged_in(client)


@pytest.mark.parametrize("years", [20, -20])
def test_a_clock_that_is_set_right_ends_nothing(client, clock, stranger, monkeypatch, years):
    """Nor does the row of the session in the database, which has its end by the clock of the wall."""
    clock.is_set(years * 365 * 24 * HOUR)
    later = timezone.now() + timedelta(days=years * 365)
    monkeypatch.setattr("django.utils.timezone.now", lambda: later)
    assert logged_in(client)
    stranger.post("/login/", {"username": "admin", "password": PASSWORD})
    call_command("prepare")
    assert logged_in(client) and logged_in(stranger)
    clock.goes(31 * MINUTE)
    assert not logged_in(client)


@pytest.mark.parametrize(("passed", "lasts"), [(2 * MINUTE, True), (31 * MINUTE, False), (-1, False)])
def test_over_a_restart_the_clock_of_the_wall_is_left(client, clock, passed, lasts):
    assert logged_in(client)
    clock.starts_again(passed)
    assert logged_in(client) is lasts
    clock.goes(13 * HOUR)
    assert not logged_in(client)


@pytest.mark.parametrize("begun", [None, 1_800_000_000, {"boot": "first"}])
def test_a_session_that_does_not_say_when_it_began_is_over(client, begun):
    session = client.session
    session[sessions.BEGAN] = begun
    session.save()
    assert not logged_in(client)


def test_who_logs_in_again_begins_again(client, clock):
    clock.goes(11 * HOUR)
    client.post("/login/", {"username": "admin", "password": PASSWORD})
    clock.goes(25 * MINUTE)
    assert logged_in(client)


@pytest.mark.parametrize("moment", ["start", "log-in"])
def test_those_that_are_over_are_forgotten(client, stranger, moment):
    for name, hours in (("old", -1), ("good", 11), ("of a clock that was set back", 48)):
        Session.objects.create(session_key=name, session_data="x", expire_date=timezone.now() + timedelta(hours=hours))
    if moment == "start":
        call_command("prepare")
    else:
        stranger.post("/login/", {"username": "admin", "password": PASSWORD})
    found = set(Session.objects.values_list("session_key", flat=True))
    assert "good" in found and not found & {"old", "of a clock that was set back"}
