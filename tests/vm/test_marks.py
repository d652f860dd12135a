"""Services at several addresses: one firewall mark, one persistence, one health check for all of them."""

import dataclasses
from typing import Any

import pytest
from board.machines.director import VIP, VIP6, wish, wish6
from board.machines.world import SERVERS, SERVERS6, until_answer
from tests.lab.fixtures import thorough

from lbconfig.model.snapshot import CheckKind, Fallback, FallbackKind, Forwarding, HealthCheck, RealServer, Scheduler
from lbconfig.model.snapshot import VirtualService as Service

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("balanced")]

SECOND, THIRD = "10.1.0.101", "10.1.0.102"
HTTP = HealthCheck(CheckKind.HTTP, path="/health", expect="ok", interval=2, timeout=3)
CONNECT = HealthCheck(CheckKind.CONNECT, interval=2, timeout=3)


def at_several(number: int = 1, **options) -> Service:
    """HTTP on port 80 of every server, at three addresses."""
    addresses = SERVERS6 if ":" in options.get("address", "") else SERVERS
    servers = tuple(RealServer(number * 100 + place, one, 0) for place, one in enumerate(addresses.values()))
    fields: dict[str, Any] = {"address": VIP, "port": 80, "scheduler": Scheduler.RR, "check": HTTP}
    fields |= {"more_addresses": (SECOND, THIRD)}
    return Service(number, f"s{number}", real_servers=servers, **fields | options)


@pytest.mark.parametrize("forwarding", [pytest.param(Forwarding.NAT, marks=thorough), Forwarding.SNAT])
def test_it_answers_at_each_address_and_at_no_other(director, world, forwarding):
    director.apply(wish(at_several(forwarding=forwarding)))
    director.wait_until_healthy(*SERVERS)
    for vip in (VIP, SECOND, THIRD):
        assert world.count(f"{vip}:80/", 6) == {"rs1": 2, "rs2": 2, "rs3": 2}
    for place in (f"{VIP} 81", f"{SECOND} 7000", "10.1.0.103 80"):
        world.fail(f"ip netns exec client busybox timeout 3 busybox nc -w 2 {place} </dev/null")
    assert director.faults() == ""


@thorough
def test_a_client_keeps_its_server_over_addresses_and_ports(director, world):
    """What FTP with its data ports, or a shop with an address for its pictures, needs."""
    director.apply(wish(at_several(persistence=60, more_ports="7000")))
    director.wait_until_healthy(*SERVERS)
    [web] = set(world.get(f"{VIP}:80/", 6))
    assert set(world.get(f"{SECOND}:80/", 6)) == {web}
    assert world.hold(f"{THIRD}:7000", 6).end()["servers"] == [web]


@thorough
def test_a_dead_server_leaves_all_addresses(director, world):
    director.apply(wish(at_several()))
    director.wait_until_healthy(*SERVERS)
    world.stop_server("rs2")
    director.wait_until_gone("rs2")
    for vip in (VIP, SECOND, THIRD):
        assert set(world.get(f"{vip}:80/", 6)) == {"rs1", "rs3"}


@thorough
def test_the_sorry_page_is_shown_at_each_address(director, world):
    director.apply(wish(at_several(fallback=Fallback(FallbackKind.PAGE))))
    director.wait_until_healthy(*SERVERS)
    for name in SERVERS:
        world.stop_server(name)
    for name in SERVERS:
        director.wait_until_gone(name)
    for vip in (VIP, SECOND, THIRD):
        until_answer(world, f"{vip}/", "HTTP 503")


@thorough
def test_an_address_comes_and_goes_and_others_are_not_disturbed(director, world):
    few = at_several(more_addresses=(SECOND,), port=7000, check=CONNECT)
    director.apply(wish(few))
    director.wait_until_healthy(*SERVERS)
    held = world.hold(f"{VIP}:7000", 9)
    held.next_round()
    for more in ((SECOND, THIRD), (THIRD,)):
        director.apply(wish(dataclasses.replace(few, more_addresses=more)))
        held.next_round()
    assert held.end()["broken"] == []
    assert world.hold(f"{THIRD}:7000", 3).end()["broken"] == []
    world.fail(f"ip netns exec client busybox timeout 3 busybox nc -w 2 {SECOND} 7000 </dev/null")


@thorough
def test_by_ipv6(director, world):
    second = "2001:db8:1::101"
    director.apply(wish6(at_several(address=VIP6, more_addresses=(second,))))
    director.wait_until_healthy(*SERVERS)
    for vip in (VIP6, second):
        assert world.count(f"[{vip}]:80/", 6) == {"rs1": 2, "rs2": 2, "rs3": 2}
