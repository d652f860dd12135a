"""Packets are balanced by NAT: what the client sees is what counts."""

from collections import Counter

import pytest
from tests.lab.director import VIP, service, wish
from tests.lab.world import SERVERS

from lbconfig.snapshot import CheckKind, HealthCheck, Protocol

pytestmark = pytest.mark.timeout(300)

HTTP = HealthCheck(CheckKind.HTTP, path="/health", expect="ok", interval=1, timeout=1, failures=1)
OFF = HealthCheck(CheckKind.OFF)


def test_round_robin_gives_every_server_the_same_share(director, world):
    director.apply(wish(service(1, "site", check=HTTP)))
    director.wait_until_healthy(*SERVERS)

    assert world.count(f"{VIP}:80/", 30) == {"rs1": 10, "rs2": 10, "rs3": 10}


def test_three_services_of_both_protocols_at_one_address(director, world):
    director.apply(
        wish(
            service(1, "site", check=OFF),
            service(2, "lines", port=7000, servers=("rs1", "rs2")),
            service(3, "datagrams", port=7000, servers=("rs3",), protocol=Protocol.UDP, check=OFF),
        )
    )
    director.wait_until_healthy("rs1", "rs2")

    assert world.count(f"{VIP}:80/", 9) == {"rs1": 3, "rs2": 3, "rs3": 3}
    assert Counter(world.ask(f"{VIP}:7000", 4)) == {"rs3": 4}
    held = world.hold(f"{VIP}:7000", 10)
    assert held.end() == {"open": 10, "broken": [], "servers": ["rs1", "rs2"], "rounds": held.report()["rounds"]}


def test_the_host_sees_nothing_but_the_service(director, world):
    """What is not asked for is dropped: no answer at all, also from the real servers' network."""
    director.apply(wish(service(1, "site", check=OFF)))

    assert world.count(f"{VIP}:80/", 3) == {"rs1": 1, "rs2": 1, "rs3": 1}
    for address in (VIP, "10.1.0.1"):
        for port in (81, 7000, 22):
            world.fail(f"ip netns exec client busybox nc -w 2 {address} {port} </dev/null")
    # the web page does not answer on a virtual service's address
    world.fail(f"ip netns exec client busybox nc -w 2 {VIP} 443 </dev/null")
    # the director routes nobody else's packets
    world.fail("ip netns exec client ping -c 1 -W 2 10.2.0.11")
    world.fail("ip netns exec client busybox nc -w 2 10.2.0.11 80 </dev/null")
