"""How connections are treated, in the kernel: seen by what becomes of them."""

import dataclasses
import time
from collections import Counter

import pytest
from board.machines.director import VIP, service, wish
from board.machines.world import SERVERS
from tests.lab.fixtures import thorough

from balancing import server_setup
from lbconfig.model.snapshot import CheckKind, Forwarding, HealthCheck, Policy, Scheduler

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("balanced")]


def box(policy: Policy, *services):
    return dataclasses.replace(wish(*services), policy=policy)


def test_timeouts_are_set_and_put_back(director):
    director.apply(box(Policy(tcp_timeout=1800, fin_timeout=60, udp_timeout=45)))
    assert "1800 60 45" in director.succeed(["ipvsadm", "-L", "--timeout"])
    director.apply(box(Policy()))
    assert "900 120 300" in director.succeed(["ipvsadm", "-L", "--timeout"])


@thorough
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


FROM_PORT = """
import socket, sys
for port in range(40001, 40010):
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.settimeout(3)
        one.bind(("", port))
        one.connect((sys.argv[1], 80))
        one.sendall(b"GET /name HTTP/1.0\\r\\n\\r\\n")
        answer = b""
        while part := one.recv(4096):  # to its end: who closes first keeps the port
            answer += part
        print(answer.split()[-1].decode())
"""


@thorough
def test_a_port_that_a_client_uses_again_does_not_lead_to_a_server_that_was_removed(director, world):
    """By direct routing the box sees no answer, so it cannot tell a connection that has ended from one that ends."""
    off = HealthCheck(CheckKind.OFF)
    web = dataclasses.replace(service(1, "web", check=off), forwarding=Forwarding.DIRECT)
    held = Policy(release_removed=False)  # else the kernel forgets all connections of a server that is removed
    director.apply(box(held, web))
    world.give_servers_a_router()
    for name, address in SERVERS.items():
        world.write("/run/world/setup.sh", server_setup.script(server_setup.setup_of(wish(web), address)))
        world.succeed(f"ip netns exec {name} sh /run/world/setup.sh")
    ask = ["ip", "netns", "exec", "client", "python3", "-c", FROM_PORT, VIP]
    assert Counter(world.succeed(ask).split()) == {"rs1": 3, "rs2": 3, "rs3": 3}
    director.apply(box(held, dataclasses.replace(web, real_servers=web.real_servers[1:])))
    assert set(world.succeed(ask).split()) == {"rs2", "rs3"}
