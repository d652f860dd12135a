"""A dead server leaves in the time and after as many checks as its service says, and comes back with the next one.

The checks are counted at a server beside it that lives: when a second is missed on a slow machine, they tell why.
"""

import time

import pytest
from tests.lab.director import VIP, service, wish

from lbconfig.snapshot import CheckKind, HealthCheck

pytestmark = [pytest.mark.timeout(300), pytest.mark.usefixtures("balanced")]

CHECK = HealthCheck(CheckKind.HTTP, path="/health", expect="ok", interval=2, timeout=1, failures=2)
LEAVES = CHECK.interval * CHECK.failures + CHECK.timeout  # seconds until a dead server has left
RETURNS = CHECK.interval + CHECK.timeout  # seconds until one that answers again is back
SLOW_MACHINE = 4.0  # seconds that an emulated processor may add
SEEN_LATE = 1  # rounds of checks that may begin until it is seen that a server has left or is back


@pytest.mark.parametrize(("death", "cure"), [("stop_server", "start_server"), ("silence", "unsilence")])
def test_a_dead_server_leaves_and_returns(director, world, capsys, death, cure):
    world.count_checks("rs1")
    director.apply(wish(service(1, "site", check=CHECK)))
    director.wait_until_healthy("rs1", "rs2", "rs3")
    alive, died = world.checks("rs1"), time.monotonic()
    getattr(world, death)("rs2")
    dead = world.checks("rs1")
    director.wait_until_gone("rs2", 60)
    left, gone = time.monotonic() - died, world.checks("rs1")
    assert left <= LEAVES + SLOW_MACHINE, f"{left:.1f} s, {gone - alive} checks"
    assert gone - alive >= CHECK.failures - 1  # the first one may have failed in the round that had begun
    assert gone - dead <= CHECK.failures + SEEN_LATE
    assert world.count(f"{VIP}:80/", 10) == {"rs1": 5, "rs3": 5}

    getattr(world, cure)("rs2")
    answers, cured = time.monotonic(), world.checks("rs1")
    director.wait_until_healthy("rs2", timeout=60)
    returned, back = time.monotonic() - answers, world.checks("rs1")
    with capsys.disabled():
        print(
            f"\n{death}: left after {left:.1f} s (promised {LEAVES} s), returned after {returned:.1f} s ({RETURNS} s)"
        )
    assert returned <= RETURNS + SLOW_MACHINE, f"{returned:.1f} s, {back - cured} checks"
    assert back - cured <= 1 + SEEN_LATE
    assert world.count(f"{VIP}:80/", 9) == {"rs1": 3, "rs2": 3, "rs3": 3}


def test_a_server_that_answers_the_wrong_text_gets_no_clients(director, world):
    wrong = HealthCheck(CheckKind.HTTP, path="/name", expect="rs1", interval=1, timeout=1, failures=1)
    director.apply(wish(service(3, "picky", port=81, server_port=80, check=wrong)))
    director.wait_until_healthy("rs1")

    time.sleep(3)  # two rounds of checks more
    assert director.healthy() == {"rs1"}
    assert world.count(f"{VIP}:81/", 6) == {"rs1": 6}


def test_a_killed_checker_is_started_again_and_changes_nothing(director, world):
    director.succeed("kill -KILL $(cat /run/service/ldirectord/supervise/pid)")
    assert world.count(f"{VIP}:80/", 6) == {"rs1": 2, "rs2": 2, "rs3": 2}
    world.stop_server("rs3")
    director.wait_until_gone("rs3")
