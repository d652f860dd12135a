"""The same over IPv6: health checks, the web page, and IPv4 beside it."""

import dataclasses
from collections import Counter

import pytest
from board.machines.director import VIP, VIP6, by_six, service, wish, wish6
from board.machines.world import SERVERS, SERVERS6
from tests.lab.fixtures import thorough

from lbconfig.model.snapshot import CheckKind, HealthCheck, Protocol, VirtualService

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("balanced")]

CLIENT = "2001:db8:1::10"
OFF = HealthCheck(CheckKind.OFF)
CONNECT = HealthCheck(CheckKind.CONNECT, interval=2, timeout=3)
HTTP = HealthCheck(CheckKind.HTTP, path="/health", expect="ok", interval=2, timeout=3)
PING = HealthCheck(CheckKind.PING, interval=2, timeout=3)


def six(number: int, port: int = 80, **options) -> VirtualService:
    return by_six(service(number, f"six{number}", port, **{"check": CONNECT} | options))


def test_nat_with_every_check_and_ipv4_beside_it(director, world):
    director.apply(
        wish6(
            six(1, check=HTTP),
            six(2, 7000),
            six(3, 7000, protocol=Protocol.UDP, check=PING),
            service(4, "four", check=HTTP),
        )
    )
    director.wait_until_healthy(*SERVERS)
    assert world.count(f"[{VIP6}]:80/", 12) == {"rs1": 4, "rs2": 4, "rs3": 4}
    assert world.count(f"{VIP}:80/", 12) == {"rs1": 4, "rs2": 4, "rs3": 4}
    assert len(Counter(world.ask(f"[{VIP6}]:7000", 9))) == 3
    held = world.hold(f"[{VIP6}]:7000", 3)
    assert CLIENT in director.succeed(["ipvsadm", "-Lnc"])

    director.apply(
        wish6(
            six(1, check=HTTP),
            dataclasses.replace(six(2, 7000), address="2001:db8:1::101"),
            service(4, "four", check=HTTP),
        )
    )
    world.get(f"[{VIP6}]:80/")
    assert world.count(f"{VIP}:80/", 3) == {"rs1": 1, "rs2": 1, "rs3": 1}
    assert len(held.end()["broken"]) == 3  # their service moved away


@thorough
def test_connections_live_through_changes_of_other_services(director, world):
    lines = six(2, 7000)
    director.apply(wish6(lines))
    director.wait_until_healthy(*SERVERS)
    held = world.hold(f"[{VIP6}]:7000", 9)
    for services in ([lines, six(1)], [lines, six(1, check=HTTP)], [lines]):
        director.apply(wish6(*services))
        held.next_round()
    report = held.end()
    assert (report["open"], report["broken"]) == (9, [])


@thorough
def test_a_dead_server_leaves_and_returns(director, world):
    director.apply(wish6(six(1, check=HTTP)))
    director.wait_until_healthy(*SERVERS)
    world.stop_server("rs2")
    director.wait_until_gone("rs2")
    assert set(world.get(f"[{VIP6}]:80/", 6)) == {"rs1", "rs3"}
    world.start_server("rs2")
    director.wait_until_healthy(*SERVERS)


@thorough
def test_what_is_not_asked_for_is_dropped(director, world):
    director.apply(wish6(six(1)))
    for address, port in ((VIP6, 22), (VIP6, 81), ("2001:db8:1::1", 80), (VIP6, 443)):
        world.fail(f"ip netns exec client busybox timeout 3 busybox nc -w 2 {address} {port} </dev/null")
    world.succeed("ip netns exec client ping -6 -c 1 -W 2 2001:db8:1::1")
    world.fail(f"ip netns exec client ping -6 -c 1 -W 2 {SERVERS6['rs1']}")


def test_the_web_page_answers_by_ipv6_where_it_is_allowed(director, world):
    director.apply(wish6(six(1)))
    page = "python3 -c 'import socket; socket.create_connection((\"2001:db8:1::1\", 443), 3)'"
    world.in_client(page)
    world.fail(f"ip netns exec rs1 {page}")


@thorough
def test_back_to_ipv4_alone(director, world):
    director.apply(wish6(six(1)))
    director.apply(wish(service(4, "four")))
    assert "2001:db8" not in director.succeed(["ip", "-6", "-o", "addr"])
    assert director.faults() == ""
    world.get(f"{VIP}:80/", 3)


@thorough
def test_it_is_there_again_after_a_power_cut(director, world):
    director.apply(wish6(six(1, check=HTTP)))
    director.wait_until_healthy(*SERVERS)
    director.kill()
    director.start()
    director.wait_until_up()
    director.wait_until_healthy(*SERVERS)
    assert world.count(f"[{VIP6}]:80/", 6) == {"rs1": 2, "rs2": 2, "rs3": 2}
    assert director.faults() == ""
