"""A dead server leaves in the time that its check promises, and comes back."""

import time

import pytest
from tests.lab.director import VIP, service, wish
from tests.lab.fixtures import BALANCED

from lbconfig.snapshot import CheckKind, HealthCheck

pytestmark = [pytest.mark.timeout(300), pytest.mark.usefixtures("balanced")]

CHECK = BALANCED.services[0].check
# Until a dead server has left, at the latest; in seconds. A refused connection fails at once. Silence costs a timeout
# at every check, and both services ask the silent server, one after the other.
AT_ONCE = CHECK.interval * CHECK.failures + CHECK.timeout
IN_SILENCE = CHECK.failures * (CHECK.interval + len(BALANCED.services) * CHECK.timeout)
BACK = CHECK.interval + CHECK.timeout
SLOW_MACHINE = 10.0  # what emulated processors on a busy host may add; measured is what is printed


@pytest.mark.parametrize(
    ("death", "cure", "promised"),
    [("stop_server", "start_server", AT_ONCE), ("silence", "unsilence", IN_SILENCE)],
    ids=["refuses", "is silent"],
)
def test_a_dead_server_leaves_and_returns(director, world, capsys, death, cure, promised):
    getattr(world, death)("rs2")
    died = time.monotonic()
    director.wait_until_gone("rs2", 60)
    left = time.monotonic() - died
    assert left <= promised + SLOW_MACHINE, f"{left:.1f} s"
    until_all_services_know(director, "10.2.0.12", 0)
    assert world.count(f"{VIP}:80/", 10) == {"rs1": 5, "rs3": 5}

    getattr(world, cure)("rs2")
    alive = time.monotonic()
    director.wait_until_healthy("rs2", timeout=60)
    returned = time.monotonic() - alive
    with capsys.disabled():
        print(f"\n{death}: left after {left:.1f} s (promised {promised} s), returned after {returned:.1f} s")
    assert returned <= BACK + SLOW_MACHINE, f"{returned:.1f} s"
    assert world.count(f"{VIP}:80/", 9) == {"rs1": 3, "rs2": 3, "rs3": 3}


def until_all_services_know(director, address, weight):
    """One service notices before the other: each has its own checks."""
    deadline = time.monotonic() + 20
    while any(found != weight for (_, server), found in director.weights().items() if server.startswith(address)):
        assert time.monotonic() < deadline, director.weights()
        time.sleep(0.2)


def test_a_server_that_answers_the_wrong_text_gets_no_clients(director, world):
    wrong = HealthCheck(CheckKind.HTTP, path="/name", expect="rs1", interval=1, timeout=3, failures=1)
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
