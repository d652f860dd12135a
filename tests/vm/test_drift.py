"""Somebody with a shell changes what the box runs: that is found, explained and repaired, and breaks nothing."""

import dataclasses
import json
import time
from typing import NamedTuple

import pytest
from board.machines.director import QUICK, VIP, service, wish
from board.machines.wait import until
from board.machines.world import SERVERS
from tests.lab.fixtures import thorough

from lbconfig.model.snapshot import CheckKind, HealthCheck, Protocol, StaticRoute

pytestmark = [pytest.mark.timeout(1200), pytest.mark.usefixtures("balanced")]

NOTICED = 60 + 10 + 60  # seconds: the timer, the second look, and a slow machine
PING = HealthCheck(CheckKind.PING, interval=2, timeout=2, failures=1)
PLAIN = service(3, "plain", 7001, server_port=7000, check=HealthCheck(CheckKind.OFF))
SITE = service(1, "site", check=QUICK)
LINES = service(2, "lines", 7000, check=HealthCheck(CheckKind.CONNECT, interval=2, timeout=3))
NAMES = service(4, "names", 53, protocol=Protocol.UDP, check=PING)


def box(*services):
    """With a route of its own towards nowhere in particular, to be taken away."""
    whole = wish(*services)
    routes = (StaticRoute("172.31.0.0/16", SERVERS["rs1"]),)
    return dataclasses.replace(whole, network=dataclasses.replace(whole.network, routes=routes))


def drift(director) -> dict:
    return director.status()["drift"]


def told(director, count: int) -> list[dict]:
    """The differences, once there are so many; LookupError names those that are there before."""
    found = drift(director)
    if len(found["differences"]) < count:
        raise LookupError(f"{[one['object'] for one in found['differences']]}, {found['trouble']}")
    return found["differences"]


def objects(director) -> list[str]:
    return [one["object"] for one in drift(director)["differences"]]


def looked_twice(director) -> list[str]:
    """What is told after two looks that were asked for, the timer's second one between them."""
    director.applier("look")
    time.sleep(15)
    director.applier("look")
    return objects(director)


class Planted(NamedTuple):
    command: str
    object: str
    seen: str  # a command that succeeds once it is repaired


PLANTED = {
    "a service deleted": Planted(
        f"ipvsadm -D -t {VIP}:7001", "virtual service 'plain'", f"ipvsadm -Ln | grep -q {VIP}:7001"
    ),
    "the weight of an unchecked server": Planted(
        f"ipvsadm -e -t {VIP}:7001 -r {SERVERS['rs1']}:7000 -m -w 9",
        f"real server {SERVERS['rs1']}:7000 of virtual service 'plain'",
        f"! ipvsadm -Ln | grep -E '{SERVERS['rs1']}:7000 +Masq +9'",
    ),
    "an address removed": Planted(
        f"ip address del {VIP}/32 dev $(ip -o address show to {VIP} | cut -d' ' -f2)",
        f"virtual address {VIP}",
        f"ip -o address show to {VIP} | grep -q .",
    ),
    "an address added": Planted(
        "ip address add 10.99.0.1/24 dev $(ip -o address show to 10.1.0.1 | cut -d' ' -f2)",
        "address 10.99.0.1/24",
        "! ip -o address show to 10.99.0.1 | grep -q .",
    ),
    "a route removed": Planted(
        "ip route del 172.31.0.0/16", "route to 172.31.0.0/16", "ip route show 172.31.0.0/16 | grep -q via"
    ),
    "a route added": Planted(
        f"ip route add 172.29.0.0/16 via {SERVERS['rs2']}",
        f"route to 172.29.0.0/16 via {SERVERS['rs2']}",
        "! ip route show 172.29.0.0/16 | grep -q via",
    ),
    "a kernel setting": Planted(
        "echo 0 >/proc/sys/net/ipv4/conf/all/arp_ignore",
        "kernel setting net.ipv4.conf.all.arp_ignore",
        "grep -qx 1 /proc/sys/net/ipv4/conf/all/arp_ignore",
    ),
    "the firewall flushed": Planted(
        "nft flush table inet fairlead", "rule set of the firewall", "nft list chain inet fairlead input | grep -q vips"
    ),
    "a rule added": Planted(
        "nft insert rule inet fairlead input tcp dport 2323 accept",
        "rule set of the firewall",
        "! nft list chain inet fairlead input | grep -q 2323",
    ),
    "ldirectord stopped": Planted(
        "sv down /run/service/ldirectord",
        "health checks (ldirectord)",
        "sv status /run/service/ldirectord | grep -q ^run",
    ),
}


# But what another one of them takes along: the rule that is added, and the server of the service that is deleted.
TOGETHER = [name for name in PLANTED if name not in ("the firewall flushed", "the weight of an unchecked server")]


@pytest.mark.parametrize("names", [TOGETHER, *(pytest.param([name], marks=thorough, id=name) for name in PLANTED)])
def test_found_explained_and_repaired(director, world, names):
    director.apply(box(SITE, LINES, PLAIN))
    director.wait_until_healthy(*SERVERS)
    held = world.hold(f"{VIP}:7000", 4)
    assert held.next_round()["broken"] == []
    planted = [PLANTED[name] for name in names]
    # Nobody speaks while it is broken: whether a connection outlives that, not how long its client would wait.
    world.succeed(f"kill -STOP $(cat {held.file}.pid)")
    director.succeed("; ".join(one.command for one in planted))
    if names is TOGETHER:
        director.applier("look")  # an admin asks at once; the others wait for the timer's look
    found = until(f"{names} on the page", lambda: told(director, len(planted)), NOTICED, expected=(LookupError,))
    assert len(found) == len(planted), found
    for one in planted:
        assert sum(seen["object"].startswith(one.object) for seen in found) == 1, (one.object, found)
    assert all(seen["why"] and seen["wanted"] != seen["present"] for seen in found)
    run = json.loads(director.applier("repair"))
    assert run["kind"] == "repair" and run["state"] == "done", run
    for one in planted:
        director.succeed(one.seen)
    assert looked_twice(director) == []
    director.wait_until_healthy(*SERVERS)
    world.succeed(f"kill -CONT $(cat {held.file}.pid)")
    assert world.count(f"{VIP}:80/", 6).total() == 6
    assert held.end()["broken"] == []


@thorough
def test_ldirectord_that_is_killed_comes_back_before_anybody_is_told(director):
    director.apply(box(SITE))
    director.wait_until_healthy(*SERVERS)
    director.succeed("sv kill /run/service/ldirectord")
    assert looked_twice(director) == []


@thorough
def test_what_health_decides_is_not_drift(director, world):
    director.apply(box(SITE, NAMES))
    director.wait_until_healthy(*SERVERS)
    world.stop_server("rs2")
    world.silence("rs3")
    director.wait_until_gone("rs3")
    site = f"{VIP}:80", f"{SERVERS['rs2']}:80"  # it still answers pings, which is what the other service asks
    until("rs2 gone", lambda: director.weights()[site] == 0)
    assert looked_twice(director) == []
    for name in SERVERS:
        world.silence(name)
    until("nobody healthy", lambda: director.healthy() == set())
    assert looked_twice(director) == []
    world.start_server("rs2")
    for name in SERVERS:
        world.unsilence(name)
    director.wait_until_healthy(*SERVERS)
    assert looked_twice(director) == []


@thorough
def test_what_dhcp_brings_is_not_drift(director):
    """The card of the lab's own network asks QEMU's DHCP server; its lease is renewed meanwhile."""
    director.apply(box(SITE))
    until("a lease", lambda: director.succeed("cat /run/fairlead/dhcp/eth0 || true").strip())
    assert looked_twice(director) == []
    director.succeed("sv 1 /run/service/dhcp-eth0")  # SIGUSR1: udhcpc renews
    assert looked_twice(director) == []


@thorough
def test_a_restart_of_the_applier_copes(director):
    director.apply(box(SITE))
    director.succeed("sv restart /run/service/applier")
    until("the applier", lambda: director.execute("fairlead-applier status").exit == 0)
    assert looked_twice(director) == []
    director.succeed("nft insert rule inet fairlead input tcp dport 2323 accept")
    assert looked_twice(director) == ["rule set of the firewall"]
