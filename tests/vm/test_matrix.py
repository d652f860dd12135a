"""Every method of forwarding, over TCP and UDP, IPv4 and IPv6: who answers is counted by server."""

import dataclasses
from collections import Counter

import pytest
from board.machines.director import VIP, VIP6, by_six, service, wish6
from board.machines.world import SERVERS, SERVERS6
from tests.lab.fixtures import thorough

from balancing import server_setup
from lbconfig.model.snapshot import THROUGH_THE_BOX, CheckKind, Forwarding, HealthCheck, Protocol, VirtualService

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("balanced")]

OFTEN = (Forwarding.TUNNEL,)
CONNECT, OFF = HealthCheck(CheckKind.CONNECT, interval=2, timeout=3), HealthCheck(CheckKind.OFF)


def three(first: int) -> tuple[VirtualService, ...]:
    return (
        service(first, f"web {first}", check=CONNECT),
        service(first + 1, f"lines {first}", 7000, check=CONNECT),
        service(first + 2, f"datagrams {first}", 7000, protocol=Protocol.UDP, check=OFF),
    )


@pytest.mark.parametrize("method", [one if one in OFTEN else pytest.param(one, marks=thorough) for one in Forwarding])
def test_each_method(director, world, method):
    services = (*three(1), *map(by_six, three(4)))
    snapshot = wish6(*(dataclasses.replace(one, forwarding=method) for one in services))
    director.apply(snapshot)
    if method is not Forwarding.NAT:
        world.give_servers_a_router()
    if method is Forwarding.SNAT:  # needs no way at all but to the box
        world.succeed(
            "for name in rs1 rs2 rs3; do ip -n $name route del default; ip -n $name -6 route del default; done"
        )
    both = (*SERVERS.items(), *SERVERS6.items())
    for name, address in both if method not in THROUGH_THE_BOX else ():
        world.write("/run/world/setup.sh", server_setup.script(server_setup.setup_of(snapshot, address)))
        said = world.succeed(f"ip netns exec {name} sh /run/world/setup.sh")
        assert "missing" not in said, said
    director.wait_until_healthy(*SERVERS)

    equal = {"rs1": 4, "rs2": 4, "rs3": 4}
    for vip in (VIP, f"[{VIP6}]"):
        assert world.count(f"{vip}:80/", 12) == equal
        assert Counter(world.ask(f"{vip}:7000", 12)) == equal
        held = world.hold(f"{vip}:7000", 9).end()
        assert (held["broken"], held["shares"]) == ([], {"rs1": 3, "rs2": 3, "rs3": 3})
