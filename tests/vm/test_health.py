"""A dead server leaves in the time that its check promises, and comes back."""

import time

import pytest
from tests.lab.director import VIP, service, wish
from tests.lab.world import SERVERS

from lbconfig.snapshot import CheckKind, HealthCheck

pytestmark = pytest.mark.timeout(300)

CHECKS = {
    "connect": HealthCheck(CheckKind.CONNECT, interval=2, timeout=1, failures=2),
    "http": HealthCheck(CheckKind.HTTP, path="/health", expect="ok", interval=2, timeout=1, failures=2),
}
SLOW_MACHINE = 4.0  # seconds that an emulated processor may add


def promised(check: HealthCheck) -> float:
    """Seconds until a dead server has left at the latest: one check that just went well, then the failures."""
    return (check.failures + 1) * check.interval + check.failures * check.timeout


@pytest.mark.parametrize("kind", CHECKS)
@pytest.mark.parametrize("death", ["stop_server", "silence"])
def test_a_dead_server_leaves_and_returns(director, world, kind, death):
    check = CHECKS[kind]
    director.apply(wish(service(1, "site", check=check)))
    director.wait_until_healthy(*SERVERS)

    getattr(world, death)("rs2")
    died = time.monotonic()
    director.wait_until_gone("rs2", 60)
    took = time.monotonic() - died
    assert took <= promised(check) + SLOW_MACHINE, f"{took:.1f} s"
    assert world.count(f"{VIP}:80/", 10) == {"rs1": 5, "rs3": 5}

    getattr(world, {"stop_server": "start_server", "silence": "unsilence"}[death])("rs2")
    alive = time.monotonic()
    director.wait_until_healthy("rs2", timeout=60)
    took = time.monotonic() - alive
    assert took <= check.interval + check.timeout + SLOW_MACHINE, f"{took:.1f} s"
    assert world.count(f"{VIP}:80/", 9) == {"rs1": 3, "rs2": 3, "rs3": 3}


def test_a_server_that_answers_the_wrong_text_gets_no_clients(director, world):
    wrong = HealthCheck(CheckKind.HTTP, path="/name", expect="rs1", interval=1, timeout=1, failures=1)
    director.apply(wish(service(1, "site", check=wrong)))
    director.wait_until_healthy("rs1")

    time.sleep(3)  # two rounds of checks more
    assert director.healthy() == {SERVERS["rs1"]}
    assert world.count(f"{VIP}:80/", 6) == {"rs1": 6}


def test_a_killed_checker_is_started_again_and_changes_nothing(director, world):
    director.apply(wish(service(1, "site")))
    director.wait_until_healthy(*SERVERS)

    director.succeed("kill -KILL $(cat /run/service/ldirectord/supervise/pid)")
    assert world.count(f"{VIP}:80/", 6) == {"rs1": 2, "rs2": 2, "rs3": 2}
    world.stop_server("rs3")
    director.wait_until_gone("rs3")
