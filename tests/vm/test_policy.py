"""How connections are treated, in the kernel: seen by what becomes of them."""

import dataclasses
import time

import pytest
from tests.lab.director import VIP, service, wish
from tests.lab.world import SERVERS

from lbconfig.snapshot import Policy, Scheduler

pytestmark = [pytest.mark.timeout(400), pytest.mark.usefixtures("balanced")]


def box(policy: Policy, *services):
    return dataclasses.replace(wish(*services), policy=policy)


def test_timeouts_are_set_and_put_back(director):
    director.apply(box(Policy(tcp_timeout=1800, fin_timeout=60, udp_timeout=45)))
    assert "1800 60 45" in director.succeed(["ipvsadm", "-L", "--timeout"])
    director.apply(box(Policy()))
    assert "900 120 300" in director.succeed(["ipvsadm", "-L", "--timeout"])


@pytest.mark.parametrize("adopt", [False, True])
def test_connections_that_the_box_has_forgotten(director, world, adopt):
    """The hash of the client finds their server again, if the box takes what did not begin with it."""
    lines = service(2, "lines", 7000, scheduler=Scheduler.SH)
    director.apply(box(Policy(tcp_timeout=2, adopt=adopt), lines))
    director.wait_until_healthy(*SERVERS)
    held = world.hold(f"{VIP}:7000", 4)
    assert held.next_round()["broken"] == []
    world.succeed(f"kill -STOP $(cat {held.file}.pid)")
    time.sleep(8)
    assert "ESTABLISHED" not in director.succeed(["ipvsadm", "-Lnc"])
    world.succeed(f"kill -CONT $(cat {held.file}.pid)")
    assert len(held.end()["broken"]) == (0 if adopt else 4)
