"""How packets reach the real servers, and how their answers reach the client."""

import dataclasses
from collections import Counter

import pytest
from board.machines.director import VIP, service, wish
from board.machines.world import SERVERS
from tests.lab.fixtures import thorough

from balancing import server_setup
from lbconfig.model.snapshot import CheckKind, Forwarding, HealthCheck, Protocol, VirtualService

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("balanced")]

CHECK = HealthCheck(CheckKind.CONNECT, interval=2, timeout=3)
OFF = HealthCheck(CheckKind.OFF)
INSIDE_VIP, SECOND_INSIDE_VIP = "10.2.0.100", "10.2.0.101"  # in the network of the servers


def forwarded(number: int, method: Forwarding, port: int = 80, **options) -> VirtualService:
    return dataclasses.replace(service(number, f"s{number}", port, **{"check": CHECK} | options), forwarding=method)


@pytest.fixture
def way_back(world):
    """The servers' own way to the client, past the director."""
    world.give_servers_a_router()


def set_up(world, snapshot, name: str, verb: str = "") -> str:
    """Run the script that the box offers for this real server; what it prints."""
    text = server_setup.script(server_setup.setup_of(snapshot, SERVERS[name]))
    world.write(f"/run/world/{name}.sh", text)
    return world.succeed(f"ip netns exec {name} sh /run/world/{name}.sh {verb}")


def arp_answers(world, address: str) -> list[str]:
    """The MAC addresses that answer ARP for it in the servers' network."""
    said = world.execute(f"ip netns exec client busybox arping -I eth1 -c 2 -w 3 {address}").output
    return sorted({word.strip("[]") for word in said.split() if word.startswith("[")})


def test_direct_routing_works_with_the_script_and_without_it_says_what_is_missing(director, world, way_back):
    web, lines = forwarded(1, Forwarding.DIRECT), forwarded(2, Forwarding.DIRECT, 7000)
    datagrams = forwarded(3, Forwarding.DIRECT, 7000, protocol=Protocol.UDP, check=OFF)
    snapshot = wish(web, lines, datagrams)
    director.apply(snapshot)
    director.wait_until_healthy(*SERVERS)
    assert all(answer.startswith("error") for answer in world.get(f"{VIP}:80/", 3))  # nobody has the VIP yet

    for name in SERVERS:
        said = set_up(world, snapshot, name)
        assert "missing" not in said, said
        assert f"{VIP} is on lo" in said
    assert world.count(f"{VIP}:80/", 12) == {"rs1": 4, "rs2": 4, "rs3": 4}
    assert len(Counter(world.ask(f"{VIP}:7000", 9))) == 3
    world.get(f"{VIP}:80/", 3, source="10.1.0.17")
    assert "10.1.0.17" in director.succeed(["ipvsadm", "-Lnc"])
    held = world.hold(f"{VIP}:7000", 9).end()
    assert (held["broken"], held["servers"]) == ([], list(SERVERS))
    assert "Route" in director.succeed(["ipvsadm", "-Ln"])


def test_nat_beside_source_nat_at_the_same_servers_when_clients_use_ports_again(director, world):
    """The kernel gave such an answer another source port than the service's, and clients waited for it in vain."""
    director.apply(wish(forwarded(1, Forwarding.NAT), forwarded(2, Forwarding.SNAT, 7000, address="10.1.0.101")))
    director.wait_until_healthy(*SERVERS)
    world.in_client("sysctl -qw net.ipv4.ip_local_port_range='40000 40007' net.ipv4.tcp_tw_reuse=1")
    answers = [world.get(f"{VIP}:80/")[0] for _ in range(24)]
    assert Counter(answers) == {"rs1": 8, "rs2": 8, "rs3": 8}


@thorough
def test_the_script_undoes_what_it_did(director, world, way_back):
    snapshot = wish(forwarded(1, Forwarding.DIRECT))
    before = world.succeed("ip netns exec rs1 sh -c 'ip -o addr; sysctl -a 2>/dev/null | grep arp_'")
    set_up(world, snapshot, "rs1")
    assert arp_answers(world, VIP) == []
    set_up(world, snapshot, "rs1")  # twice does no harm
    set_up(world, snapshot, "rs1", "undo")
    assert world.succeed("ip netns exec rs1 sh -c 'ip -o addr; sysctl -a 2>/dev/null | grep arp_'") == before
    failed = world.execute("ip netns exec rs1 sh /run/world/rs1.sh verify")
    assert failed.exit == 1
    assert f"missing  {VIP} is not on lo" in failed.output


def test_tunnel(director, world, way_back):
    snapshot = wish(forwarded(1, Forwarding.TUNNEL))
    director.apply(snapshot)
    director.wait_until_healthy(*SERVERS)
    for name in SERVERS:
        assert f"{VIP} is on fairlead4" in set_up(world, snapshot, name)
    assert world.count(f"{VIP}:80/", 12) == {"rs1": 4, "rs2": 4, "rs3": 4}
    assert "Tunnel" in director.succeed(["ipvsadm", "-Ln"])
    set_up(world, snapshot, "rs2", "undo")
    assert "fairlead4" not in world.succeed("ip -n rs2 link")
    assert any(answer.startswith("error") for answer in world.get(f"{VIP}:80/", 3))


@thorough
def test_one_service_by_three_methods(director, world, way_back):
    """rs1 by direct routing, rs2 by tunnel, rs3 with source NAT; each with nothing but what its method needs."""
    mixed = forwarded(1, Forwarding.DIRECT)
    direct, tunnel, translated = mixed.real_servers
    snapshot = wish(
        dataclasses.replace(
            mixed,
            real_servers=(
                direct,
                dataclasses.replace(tunnel, forwarding=Forwarding.TUNNEL),
                dataclasses.replace(translated, forwarding=Forwarding.SNAT),
            ),
        )
    )
    director.apply(snapshot)
    director.wait_until_healthy(*SERVERS)
    set_up(world, snapshot, "rs1")
    set_up(world, snapshot, "rs2")
    assert world.count(f"{VIP}:80/", 12) == {"rs1": 4, "rs2": 4, "rs3": 4}


@thorough
def test_source_nat_needs_no_way_back_and_serves_clients_in_the_servers_network(director, world, way_back):
    """One-armed: the servers answer the box itself, whoever asks."""
    outside = forwarded(1, Forwarding.SNAT, 8000, server_port=80)
    inside = forwarded(2, Forwarding.SNAT, 8000, address=INSIDE_VIP, server_port=80)
    plain = forwarded(3, Forwarding.NAT, 8001, address=SECOND_INSIDE_VIP, server_port=80)
    lines = forwarded(4, Forwarding.SNAT, 7000)
    datagrams = forwarded(5, Forwarding.SNAT, 7000, protocol=Protocol.UDP, check=OFF)
    director.apply(wish(outside, inside, plain, lines, datagrams))
    director.wait_until_healthy(*SERVERS)
    world.succeed("for name in rs1 rs2 rs3; do ip -n $name route del default; done")

    assert world.count(f"{VIP}:8000/", 6) == {"rs1": 2, "rs2": 2, "rs3": 2}
    assert world.count(f"{INSIDE_VIP}:8000/", 6) == {"rs1": 2, "rs2": 2, "rs3": 2}
    assert len(Counter(world.ask(f"{VIP}:7000", 9))) == 3
    assert all(answer.startswith("error") for answer in world.get(f"{SECOND_INSIDE_VIP}:8001/", 3))
    held = world.hold(f"{VIP}:7000", 9).end()
    assert (held["broken"], held["servers"]) == ([], list(SERVERS))


@thorough
def test_a_change_of_the_method_breaks_no_connection(director, world, way_back):
    """What is open goes on by the method that it began with.

    Not what began by direct routing: the kernel keeps one route for each real server, and a packet of another method
    may have it made without the server as its next hop (ip_vs_xmit.c, IP_VS_RT_MODE_KNOWN_NH).
    """
    for name in SERVERS:  # with NAT they answer through the director, as the VIP past it
        world.succeed(
            f"ip -n {name} route replace default via 10.2.0.1; ip -n {name} rule add from {VIP} lookup 100; "
            f"ip -n {name} route add default via 10.2.0.254 table 100"
        )
    lines = forwarded(1, Forwarding.NAT, 7000)
    began = {}
    for method in (Forwarding.NAT, Forwarding.SNAT, Forwarding.TUNNEL, Forwarding.DIRECT, Forwarding.NAT):
        snapshot = wish(dataclasses.replace(lines, forwarding=method))
        director.apply(snapshot)
        director.wait_until_healthy(*SERVERS)
        for name in SERVERS if method is Forwarding.TUNNEL else ():
            set_up(world, snapshot, name)
        if method not in began and method is not Forwarding.DIRECT:
            began[method] = world.hold(f"{VIP}:7000", 6)
        broken = {first.value: held.next_round(60)["broken"] for first, held in began.items()}
        assert not any(broken.values()), f"{method}: {broken}"
    assert {held.end()["open"] for held in began.values()} == {6}


@thorough
def test_a_dead_server_leaves_by_every_method(director, world):
    services = [
        forwarded(number, method, address=f"10.1.0.{110 + number}") for number, method in enumerate(Forwarding, 1)
    ]
    director.apply(wish(*services))
    director.wait_until_healthy(*SERVERS)
    world.stop_server("rs2")
    director.wait_until_gone("rs2")
    world.start_server("rs2")
    director.wait_until_healthy(*SERVERS)


def test_the_doctor_finds_a_server_that_answers_arp(director, world, way_back):
    snapshot = wish(forwarded(1, Forwarding.DIRECT, address=INSIDE_VIP))
    director.apply(snapshot)
    director.wait_until_healthy(*SERVERS)
    for name in ("rs1", "rs2"):
        set_up(world, snapshot, name)
    assert director.diagnose() == []
    # As somebody does it who does not know of ARP.
    world.succeed(f"ip -n rs3 addr add {INSIDE_VIP}/32 dev lo")
    assert director.diagnose() == [("arp", SERVERS["rs3"])]
    assert len(arp_answers(world, INSIDE_VIP)) == 2  # so that client sees it, too
    set_up(world, snapshot, "rs3")
    assert director.diagnose() == []
    assert len(arp_answers(world, INSIDE_VIP)) == 1


@thorough
def test_the_doctor_finds_a_wrong_gateway_and_a_closed_port(director, world, way_back):
    """With NAT; the servers' way out is the router."""
    director.apply(wish(forwarded(1, Forwarding.NAT)))
    director.wait_until_healthy(*SERVERS)
    assert all(answer.startswith("error") for answer in world.get(f"{VIP}:80/", 12))
    assert director.diagnose() == [("no-answer", address) for address in SERVERS.values()]
    world.succeed("ip -n rs1 route replace default via 10.2.0.1")
    world.stop_server("rs2")
    director.wait_until_gone("rs2")
    assert ("port", SERVERS["rs2"]) in director.diagnose()
    assert "rs1" in world.get(f"{VIP}:80/", 4)


@thorough
def test_the_doctor_knows_how_wide_a_tunnel_is(director, world, way_back):
    snapshot = wish(forwarded(1, Forwarding.TUNNEL, servers=("rs1",)))
    director.apply(snapshot)
    set_up(world, snapshot, "rs1")
    assert director.diagnose() == [("mtu", SERVERS["rs1"])]
