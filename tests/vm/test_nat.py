"""Packets are balanced with NAT: what the client sees is what counts."""

from collections import Counter

import pytest
from board.machines.director import VIP, service, wish

from lbconfig.model.snapshot import CheckKind, HealthCheck, Protocol

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("balanced")]

OFF = HealthCheck(CheckKind.OFF)


def test_round_robin_gives_every_server_the_same_share(world):
    assert world.count(f"{VIP}:80/", 30) == {"rs1": 10, "rs2": 10, "rs3": 10}


def test_the_client_s_own_address_reaches_the_servers(director, world):
    """NAT changes the destination alone: servers see who asks."""
    world.get(f"{VIP}:80/", 3, source="10.1.0.17")
    assert "10.1.0.17" in director.succeed(["ipvsadm", "-Lnc"])


def test_tcp_and_udp_share_an_address_and_a_port(director, world):
    director.apply(
        wish(
            service(2, "lines", port=7000, servers=("rs1", "rs2"), check=OFF),
            service(3, "datagrams", port=7000, servers=("rs3",), protocol=Protocol.UDP, check=OFF),
        )
    )
    assert Counter(world.ask(f"{VIP}:7000", 4)) == {"rs3": 4}
    report = world.hold(f"{VIP}:7000", 10).end()
    assert (report["open"], report["broken"], report["servers"]) == (10, [], ["rs1", "rs2"])


@pytest.mark.parametrize(
    ("address", "port"),
    [(VIP, 22), (VIP, 81), ("10.1.0.1", 80), ("10.1.0.1", 7000), (VIP, 443)],
    ids=["other port", "no service", "own address", "own address, long", "web page at the service's address"],
)
def test_what_is_not_asked_for_is_dropped(world, address, port):
    world.fail(f"ip netns exec client busybox timeout 3 busybox nc -w 2 {address} {port} </dev/null")


def test_the_director_routes_nobody_s_packets_but_its_own_answers(world):
    world.succeed("ip netns exec client ping -c 1 -W 2 10.1.0.1")
    world.fail("ip netns exec client ping -c 1 -W 2 10.2.0.11")
    world.fail("ip netns exec client busybox timeout 3 busybox nc -w 2 10.2.0.11 80 </dev/null")
    world.fail("ip netns exec rs1 ping -c 1 -W 2 10.1.0.10")
