"""Changing one service never disturbs another."""

import dataclasses

import pytest
from tests.lab.director import QUICK, VIP, service, wish
from tests.lab.world import SERVERS

from lbconfig.snapshot import Scheduler

pytestmark = pytest.mark.timeout(400)

CONNECTIONS = 30


def test_long_connections_live_through_changes_of_other_services(director, world, capsys):
    lines = service(1, "lines", port=7000)
    site = service(2, "site")
    director.apply(wish(lines, site))
    director.wait_until_healthy(*SERVERS)
    held = world.hold(f"{VIP}:7000", CONNECTIONS)
    assert held.next_round()["open"] == CONNECTIONS

    changed = dataclasses.replace(site, scheduler=Scheduler.WLC, real_servers=site.real_servers[:2])
    other = service(3, "other", port=81, server_port=80, servers=("rs1", "rs2"))
    for snapshot in (wish(lines, site, other), wish(lines, changed, other), wish(lines, other), wish(lines)):
        director.apply(snapshot)
        report = held.next_round()
        assert (report["open"], report["broken"]) == (CONNECTIONS, [])

    report = held.end()
    with capsys.disabled():
        print(f"\n4 applies beside {CONNECTIONS} open connections: {len(report['broken'])} broken")


def test_a_server_that_is_down_is_not_raised_by_a_change_elsewhere(director, world):
    site = service(1, "site", check=dataclasses.replace(QUICK, interval=1, failures=1))
    director.apply(wish(site))
    director.wait_until_healthy(*SERVERS)
    world.stop_server("rs1")
    director.wait_until_gone("rs1")

    director.apply(wish(site, service(2, "other", port=81, server_port=80, servers=("rs2",))))
    answers = world.count(f"{VIP}:80/", 20)
    assert set(answers) == {"rs2", "rs3"}, answers


def test_a_disabled_server_gets_no_new_connections_and_the_others_keep_theirs(director, world):
    lines = service(1, "lines", port=7000)
    director.apply(wish(lines))
    director.wait_until_healthy(*SERVERS)
    first, *others = lines.real_servers

    director.apply(wish(dataclasses.replace(lines, real_servers=(dataclasses.replace(first, enabled=False), *others))))
    held = world.hold(f"{VIP}:7000", 6)
    assert held.end()["servers"] == ["rs2", "rs3"]


def test_a_configuration_that_locks_the_admin_out_or_makes_no_sense_changes_nothing(director, world):
    good = wish(service(1, "site"))
    director.apply(good)
    director.wait_until_healthy(*SERVERS)
    confirmed = director.status()["confirmed"]

    for bad in (
        wish(service(1, "site", port=0)),
        wish(service(1, "site"), service(2, "site", port=81)),
        dataclasses.replace(good, management=dataclasses.replace(good.management, allow=())),
    ):
        director.refuses(bad)
    assert director.status()["confirmed"] == confirmed
    assert world.count(f"{VIP}:80/", 3) == {"rs1": 1, "rs2": 1, "rs3": 1}
