"""Connections that are kept, closed, or refused for a moment."""

import dataclasses

import pytest

from lbconfig.diff.impact import FALLBACK, impact
from lbconfig.diff.services import REFUSED
from lbconfig.model.snapshot import (
    Fallback,
    FallbackKind,
    Policy,
    Protocol,
    RealServer,
    Scheduler,
    ServerState,
    Snapshot,
    VirtualService,
)


def service(number, port, **fields) -> VirtualService:
    servers = tuple(RealServer(10 * number + i, f"10.2.0.{10 * number + i}", port) for i in range(3))
    return VirtualService(number, f"service {number}", "192.168.10.80", port, **({"real_servers": servers} | fields))


WEB, MAIL = service(1, 80), service(2, 25)
OLD = Snapshot(services=(WEB, MAIL))
LIVE = {1: {10: 7, 11: 5, 12: 0}, 2: {20: 100, 21: 1}}


def change(**fields):
    """What becomes of WEB."""
    new = dataclasses.replace(OLD, services=(dataclasses.replace(WEB, **fields), MAIL))
    found = impact(OLD, new, LIVE)
    assert (found.services[1].kept, found.services[1].closed) == (101, 0)
    return found.services[0]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"name": "other", "note": "x"},
        {"persistence": 300},
        {"real_servers": tuple(dataclasses.replace(one, weight=9) for one in WEB.real_servers)},
        {"real_servers": tuple(dataclasses.replace(one, state=ServerState.QUIESCED) for one in WEB.real_servers)},
        {"real_servers": (*WEB.real_servers, RealServer(99, "10.2.0.99", 80))},
        {"real_servers": tuple(dataclasses.replace(one, id=one.id + 500) for one in WEB.real_servers)},
    ],
)
def test_an_edit_keeps_all(fields):
    found = change(**fields)
    assert (found.kept, found.closed, found.refused, found.sentence) == (12, 0, False, "")


@pytest.mark.parametrize(
    ("fields", "kept", "closed", "sentence"),
    [
        ({"real_servers": WEB.real_servers[1:]}, 5, 7, "7 connections to servers that leave are closed, 5 are kept."),
        (
            {"real_servers": (dataclasses.replace(WEB.real_servers[0], state=ServerState.DISABLED),)},
            0, 12, "12 connections to servers that leave are closed, 0 are kept.",
        ),
        (
            {"real_servers": WEB.real_servers[:2]},
            12, 0, "No connection is open to the servers that leave; 12 connections are kept.",
        ),
        ({"port": 81}, 0, 12, "It leaves its old address or port: 12 connections there are closed."),
        ({"address": "192.168.10.81"}, 0, 12, "It leaves its old address or port: 12 connections there are closed."),
        ({"more_ports": "443"}, 0, 12, "It leaves its old address or port: 12 connections there are closed."),
        ({"protocol": Protocol.UDP}, 0, 12, "It leaves its old address or port: 12 connections there are closed."),
        ({"enabled": False}, 0, 12, "12 connections through it are closed."),
    ],
)  # fmt: skip
def test_what_leaves_the_table_closes(fields, kept, closed, sentence):
    found = change(**fields)
    assert (found.kept, found.closed, found.sentence) == (kept, closed, sentence)


MARKED = dataclasses.replace(WEB, more_ports="443,8000-8100", more_addresses=("192.168.10.81",))


@pytest.mark.parametrize(
    ("fields", "kept", "closed"),
    [
        ({"more_ports": "443,8000-8200"}, 12, 0),
        ({"more_addresses": ("192.168.10.82", "192.168.10.81")}, 12, 0),
        ({"address": "192.168.10.81", "more_addresses": ("192.168.10.80",)}, 12, 0),
        ({"protocol": Protocol.TCP_UDP}, 12, 0),
        # Nobody can tell which of them are open at the one that goes.
        ({"more_addresses": ("192.168.10.82",)}, 0, 12),
        ({"more_ports": "443"}, 0, 12),
        ({"more_ports": "443,8001-8100"}, 0, 12),
        ({"more_ports": "", "more_addresses": ()}, 0, 12),
    ],
)
def test_what_is_added_to_a_service_by_mark_closes_nothing(fields, kept, closed):
    old = Snapshot(services=(MARKED,))
    found = impact(old, Snapshot(services=(dataclasses.replace(MARKED, **fields),)), LIVE)
    assert (found.kept, found.closed) == (kept, closed)


def test_another_scheduler_refuses_for_a_moment():
    found = change(scheduler=Scheduler.RR)
    assert found.refused and (found.kept, found.closed) == (12, 0)
    assert found.sentence == f"{REFUSED} 12 connections are kept."
    both = change(scheduler=Scheduler.RR, real_servers=WEB.real_servers[1:])
    assert both.refused and both.closed == 7 and "7 connections" in both.sentence
    assert not change(scheduler=Scheduler.RR, port=81).refused


def test_a_service_that_goes_and_all_together():
    found = impact(OLD, Snapshot(services=(MAIL,)), LIVE)
    assert (found.kept, found.closed) == (101, 12)
    assert found.services[0].sentence == "12 connections through it are closed."
    assert found.sentence == "12 connections of 1 service are closed, 101 are kept."
    none = impact(OLD, OLD, LIVE)
    assert none.sentence == "No connection is closed, 113 are kept."
    flipped = dataclasses.replace(OLD, services=(dataclasses.replace(WEB, scheduler=Scheduler.RR), MAIL))
    assert impact(OLD, flipped, LIVE).sentence.endswith("1 service may refuse new connections for a moment.")


def test_without_a_release_they_get_no_answer():
    new = Snapshot(services=(MAIL,), policy=Policy(release_removed=False))
    found = impact(OLD, new, LIVE)
    unanswered = "12 connections through it are left without an answer until they time out."
    assert found.services[0].sentence == unanswered
    assert "left without an answer" in found.sentence


def test_nobody_is_connected():
    found = impact(OLD, Snapshot(), {})
    assert found.services[0].sentence == "No connection is open through it at the moment."
    assert found.sentence == "No connection is open now."


def test_connections_of_the_fallback_server():
    page = dataclasses.replace(WEB, fallback=Fallback(FallbackKind.PAGE))
    old, live = Snapshot(services=(page,)), {1: {FALLBACK: 4, 10: 1}}
    assert impact(old, Snapshot(services=(WEB,)), live).closed == 4
    assert impact(old, old, live).kept == 5


def test_a_service_that_takes_the_place_of_another_keeps_its_connections():
    """The kernel knows places, not names."""
    heir = dataclasses.replace(WEB, id=7, name="heir")
    found = impact(Snapshot(services=(WEB,)), Snapshot(services=(heir,)), LIVE)
    assert (found.kept, found.closed) == (12, 0)


def test_new_and_disabled_services_have_nothing_to_lose():
    disabled = dataclasses.replace(WEB, enabled=False)
    assert impact(Snapshot(services=(disabled,)), OLD, LIVE).services == ()
