"""Services of several ports and of both protocols: one firewall mark each, which nobody has to know of."""

import dataclasses
from collections import Counter
from typing import Any

import pytest
from board.machines.director import VIP, VIP6, wish, wish6
from board.machines.world import SERVERS, SERVERS6
from tests.lab.fixtures import thorough

from lbconfig.model.snapshot import CheckKind, Forwarding, HealthCheck, Protocol, RealServer, Scheduler, VirtualService

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("balanced")]

HTTP = HealthCheck(CheckKind.HTTP, path="/health", expect="ok", interval=2, timeout=3)
CONNECT = HealthCheck(CheckKind.CONNECT, interval=2, timeout=3)


def several(number: int = 1, more_ports: str = "6990-7010", **options) -> VirtualService:
    """HTTP on port 80, lines on port 7000 of every server."""
    addresses = SERVERS6 if ":" in options.get("address", "") else SERVERS
    servers = tuple(RealServer(number * 100 + place, one, 0) for place, one in enumerate(addresses.values()))
    fields: dict[str, Any] = {"address": VIP, "port": 80, "scheduler": Scheduler.RR, "check": HTTP} | options
    return VirtualService(number, f"s{number}", real_servers=servers, more_ports=more_ports, **fields)


def test_every_port_of_the_list_and_no_other(director, world):
    director.apply(wish(several()))
    director.wait_until_healthy(*SERVERS)
    assert world.count(f"{VIP}:80/", 12) == {"rs1": 4, "rs2": 4, "rs3": 4}
    held = world.hold(f"{VIP}:7000", 9).end()
    assert (held["broken"], held["servers"]) == ([], list(SERVERS))
    for port in (81, 6989, 7011, 443):
        world.fail(f"ip netns exec client busybox timeout 3 busybox nc -w 2 {VIP} {port} </dev/null")
    assert all(answer.startswith("error") for answer in world.ask(f"{VIP}:7000", 2))  # TCP only
    assert director.faults() == ""


@thorough
def test_tcp_and_udp_of_one_port_together(director, world):
    director.apply(wish(several(more_ports="", port=7000, protocol=Protocol.TCP_UDP, check=CONNECT)))
    director.wait_until_healthy(*SERVERS)
    assert len(Counter(world.ask(f"{VIP}:7000", 9))) == 3
    assert world.hold(f"{VIP}:7000", 9).end()["broken"] == []


@thorough
def test_a_client_stays_on_its_server_over_all_ports(director, world):
    """What a shop wants of ports 80 and 443."""
    director.apply(wish(several(persistence=60)))
    director.wait_until_healthy(*SERVERS)
    [web] = set(world.get(f"{VIP}:80/", 6))
    assert world.hold(f"{VIP}:7000", 6).end()["servers"] == [web]


@thorough
def test_a_dead_server_leaves_and_connections_live_through_other_changes(director, world):
    director.apply(wish(several()))
    director.wait_until_healthy(*SERVERS)
    world.stop_server("rs2")
    director.wait_until_gone("rs2")
    assert set(world.get(f"{VIP}:80/", 6)) == {"rs1", "rs3"}
    world.start_server("rs2")
    director.wait_until_healthy(*SERVERS)
    held = world.hold(f"{VIP}:7000", 9)
    held.next_round()
    for other in (several(2, address="10.1.0.101"), several(3, "", protocol=Protocol.TCP_UDP, address="10.1.0.102")):
        director.apply(wish(several(), other))
        held.next_round()
    director.apply(wish(several()))
    assert held.end()["broken"] == []


@thorough
def test_source_nat_of_several_ports(director, world):
    director.apply(wish(several(forwarding=Forwarding.SNAT)))
    director.wait_until_healthy(*SERVERS)
    world.succeed("for name in rs1 rs2 rs3; do ip -n $name route del default; done")
    assert world.count(f"{VIP}:80/", 6) == {"rs1": 2, "rs2": 2, "rs3": 2}
    assert world.hold(f"{VIP}:7000", 6).end()["broken"] == []


@pytest.mark.parametrize("forwarding", [Forwarding.NAT, pytest.param(Forwarding.SNAT, marks=thorough)])
def test_sctp(director, world, forwarding):
    health = dataclasses.replace(HTTP, port=80)
    director.apply(wish(several(more_ports="", port=7000, protocol=Protocol.SCTP, check=health, forwarding=forwarding)))
    director.wait_until_healthy(*SERVERS)
    assert Counter(world.talk(f"{VIP}:7000", 9)) == {"rs1": 3, "rs2": 3, "rs3": 3}
    assert "SCTP" in director.succeed(["ipvsadm", "-Lnc"])
    world.fail(f"ip netns exec client busybox timeout 3 busybox nc -w 2 {VIP} 7000 </dev/null")  # no TCP
    world.stop_server("rs2")
    director.wait_until_gone("rs2")
    assert set(world.talk(f"{VIP}:7000", 6)) == {"rs1", "rs3"}


@thorough
def test_by_ipv6(director, world):
    director.apply(wish6(several(address=VIP6), several(2, address="2001:db8:1::101", forwarding=Forwarding.SNAT)))
    director.wait_until_healthy(*SERVERS)
    for address in (VIP6, "2001:db8:1::101"):
        assert world.count(f"[{address}]:80/", 6) == {"rs1": 2, "rs2": 2, "rs3": 2}
        assert world.hold(f"[{address}]:7000", 6).end()["broken"] == []


@thorough
def test_from_one_port_to_several_and_back(director, world):
    one = dataclasses.replace(
        several(more_ports=""), real_servers=tuple(dataclasses.replace(s, port=80) for s in several().real_servers)
    )
    for service in (one, several(), one):
        director.apply(wish(service))
        director.wait_until_healthy(*SERVERS)
        assert world.count(f"{VIP}:80/", 6) == {"rs1": 2, "rs2": 2, "rs3": 2}
