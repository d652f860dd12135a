"""Changing one service never disturbs another."""

import dataclasses

import pytest
from board.machines.director import VIP, service, wish
from board.machines.lab import BALANCED
from tests.lab.fixtures import thorough

from lbconfig.model.snapshot import Scheduler, ServerState

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("balanced")]

SITE, LINES = BALANCED.services
CONNECTIONS = 30


def test_long_connections_live_through_changes_of_other_services(director, world, capsys):
    held = world.hold(f"{VIP}:7000", CONNECTIONS)
    assert held.next_round()["open"] == CONNECTIONS

    other = service(3, "other", port=81, server_port=80, servers=("rs1", "rs2"))
    changed = dataclasses.replace(SITE, scheduler=Scheduler.WLC, real_servers=SITE.real_servers[:2])
    for snapshot in (wish(SITE, LINES, other), wish(changed, LINES, other), wish(LINES)):
        director.apply(snapshot)
        report = held.next_round()
        assert (report["open"], report["broken"]) == (CONNECTIONS, [])

    report = held.end()
    with capsys.disabled():
        print(f"\n3 applies beside {CONNECTIONS} open connections: {len(report['broken'])} broken")


@thorough
def test_a_server_that_is_down_is_not_raised_by_a_change_elsewhere(director, world):
    world.stop_server("rs1")
    director.wait_until_gone("rs1")

    director.apply(wish(*BALANCED.services, service(3, "other", port=81, server_port=80, servers=("rs2",))))
    answers = world.count(f"{VIP}:80/", 20)
    assert set(answers) == {"rs2", "rs3"}, answers


@thorough
def test_a_disabled_server_gets_no_connections(director, world):
    first, *others = LINES.real_servers
    lines = dataclasses.replace(LINES, real_servers=(dataclasses.replace(first, state=ServerState.DISABLED), *others))
    director.apply(wish(SITE, lines))
    director.wait_until_healthy("rs2", "rs3")
    assert world.hold(f"{VIP}:7000", 6).end()["servers"] == ["rs2", "rs3"]


def test_a_wish_that_makes_no_sense_is_refused_with_object_and_field_and_changes_nothing(director, world):
    confirmed = director.status()["confirmed"]
    nobody = dataclasses.replace(BALANCED.management, allow=())
    for bad, words in (
        (wish(dataclasses.replace(SITE, port=0)), "virtual service 'site', port:"),
        (wish(SITE, dataclasses.replace(LINES, name="site")), "virtual service 'site', name:"),
        (dataclasses.replace(BALANCED, management=nobody), "allow:"),
    ):
        assert words in director.refuses(bad)
    assert director.status()["confirmed"] == confirmed
    assert world.count(f"{VIP}:80/", 3) == {"rs1": 1, "rs2": 1, "rs3": 1}
