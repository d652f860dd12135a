"""Why servers left and came back (applier.kept.events), as the health checks say it and as it is kept."""

import dataclasses
import json
import os
import socket
import threading

import pytest
from board.machines.wait import until
from box import WEB

from applier.host.ipvs_listing import Entry
from applier.kept.events import MOST, Events, listen
from applier.service import health, shares
from lbconfig.model.snapshot import Fallback, FallbackCheck, FallbackKind, Snapshot
from lbconfig.wanted import table as ipvs

SERVER = {"service": WEB.id, "server": WEB.real_servers[0].address, "port": WEB.real_servers[0].port}


def said(state="down", reason="503 Service Unavailable", **more):
    return json.dumps({**SERVER, "state": state, "failures": 2, "seconds": 0.25, "reason": reason, **more}).encode()


@pytest.fixture
def events(tmp_path):
    return Events(tmp_path / "events", lambda number: f"s{number}")


def told(events):
    return [(one["state"], one["reason"]) for one in events.newest()]


def test_what_is_told_is_there_after_a_restart(events, tmp_path):
    events.take([said(), said("up", "200 OK"), said(reason="no answer within 2 s")])
    again = Events(tmp_path / "events")
    again.load()
    assert again.newest() == events.newest() and again.downs == events.downs
    assert told(again) == [("down", "no answer within 2 s"), ("up", "200 OK"), ("down", "503 Service Unavailable")]
    assert again.newest()[0]["name"] == f"s{WEB.id}"


def test_checks_that_begin_anew_tell_no_news(events):
    """An apply starts them; what is down stays down since when it was, with the reason that it has now."""
    events.take([said("up", "200 OK"), said()])
    [first] = events.newest()
    events.take([said(reason="no answer within 2 s")])
    assert events.newest() == [first]
    [down] = events.downs[WEB.id].values()
    assert (down["when"], down["reason"]) == (first["when"], "no answer within 2 s")


def test_what_is_kept_is_bounded(events, tmp_path):
    for _ in range(2):
        events.take(said(state, "x" * 4000) for _ in range(MOST) for state in ("down", "up"))
    assert len(events.newest()) == MOST
    assert (tmp_path / "events").read_bytes().count(b"\n") <= 2 * MOST
    assert len(events.newest()[0]["reason"]) == 200


def test_one_that_is_kept_leaves_or_is_well_again(events, tmp_path):
    """In each of these lines the second word is no news."""
    events.take([said("kept"), said("kept", "no answer within 2 s"), said("up", "200 OK"), said("up", "200 OK")])
    events.take([said("kept"), said("down"), said("down")])
    assert [state for state, _ in told(events)] == ["down", "kept", "up", "kept"]
    again = Events(tmp_path / "events")
    again.load()
    assert again.newest() == events.newest() and again.downs == events.downs


def test_a_service_that_stands_aside_and_serves_again(events):
    whole = {"server": "", "port": 0}
    events.take([said("up", "2 of 3 servers are well", **whole)])
    assert not events.newest()
    few, enough = "1 of 3 servers are well, at least 2 must be", "2 of 3 servers are well"
    events.take([said("aside", few, **whole), said("aside", few, **whole), said("up", enough, **whole)])
    assert told(events) == [("up", enough), ("aside", few)]
    assert all((one["server"], one["port"]) == ("", 0) for one in events.newest())


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"[]",
        b"\xff",
        b"{}",
        said("asleep"),
        said("aside"),
        said("down", server="", port=0),
        said(port="http"),
        said(service=None),
        said(seconds=[]),
        said(port=float("inf")),
        b"[" * 4000,
    ],
)
def test_what_is_no_event_is_left_out(events, tmp_path, bad, caplog):
    events.take([bad, said()])
    assert len(events.newest()) == 1 and "not an event" in caplog.text
    with (tmp_path / "events").open("ab") as file:
        file.write(bad + b"\n" + said()[:20])  # the power went
    again = Events(tmp_path / "events")
    again.load()
    assert again.newest() == events.newest()


def test_a_disk_that_is_full_does_not_make_it_forget(events, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    events.take([said()])
    assert told(events) == [("down", "503 Service Unavailable")]


def test_status_says_since_when_a_server_is_down_and_why(events):
    tell, snapshot = health.Told(), Snapshot((WEB,))
    table = {ipvs.key(WEB): {(one.address, one.port): Entry(0) for one in WEB.real_servers}}

    def first():
        return tell(snapshot, table, 3600.0, downs=events.downs)["services"][0]["real_servers"][0]

    assert (first()["health"], first()["since"], first()["reason"]) == ("down", "", "")
    events.take([said()])
    [event] = events.newest()
    assert (first()["since"], first()["reason"]) == (event["when"], "503 Service Unavailable")
    kept = {WEB.id: {shares.key(*place): shares.Said(100, "", "kept") for place in table[ipvs.key(WEB)]}}
    table = {ipvs.key(WEB): {(one.address, one.port): Entry(1) for one in WEB.real_servers}}
    of_kept = tell(snapshot, table, 3600.0, kept, events.downs)["services"][0]["real_servers"][0]
    assert (of_kept["health"], of_kept["since"]) == ("kept", event["when"])
    assert (first()["health"], first()["since"], first()["reason"]) == ("up", "", "")


def test_status_tells_of_a_fallback_server_that_is_checked(events):
    """While it is not needed the table says nothing of it."""
    wanted = Fallback(FallbackKind.SERVER, "10.2.0.99", 80, FallbackCheck.SAME)
    tell, web = health.Told(), dataclasses.replace(WEB, fallback=wanted)
    table = {}

    def told_of(service=web, checked_for=3600.0):
        found = tell(Snapshot((service,)), {ipvs.key(WEB): table}, checked_for, downs=events.downs)
        fallback = found["services"][0]["fallback"]
        return fallback["serves"], fallback["health"], fallback["reason"]

    assert told_of() == (False, "up", "")
    assert told_of(checked_for=0.0) == (False, "checking", "")
    events.take([said(reason="Connection refused", server="10.2.0.99", port=80)])
    assert told_of() == (False, "down", "Connection refused")
    assert told_of(dataclasses.replace(web, fallback=dataclasses.replace(wanted, check=FallbackCheck.OFF))) == (
        False, "unchecked", "",
    )  # fmt: skip
    table = {("10.2.0.99", 80): Entry(1)}
    assert told_of() == (True, "up", "")


def test_it_listens(events, tmp_path):
    path = tmp_path / "socket"
    threading.Thread(target=listen, args=(path, events), daemon=True).start()
    until("the socket", path.is_socket, 20)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as checks:
        until("it to be bound", lambda: checks.connect(str(path)) is None, 20, expected=(OSError,))
        for one in (said(), said("up"), said()):
            checks.send(one)
    until("all of them", lambda: len(events.newest()) == 3, 20)
    assert path.stat().st_mode & 0o777 == 0o600
