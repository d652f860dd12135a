"""What each scheduler and each option of a service does to clients."""

import dataclasses
import hashlib
import json

import pytest
from board.machines.director import VIP, wish
from board.machines.wait import until
from board.machines.world import SERVERS
from tests.lab.fixtures import thorough

from lbconfig.model.snapshot import CheckKind, HealthCheck, Protocol, RealServer, Scheduler, ServerState, VirtualService

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("balanced")]

OFF = HealthCheck(CheckKind.OFF)
CLIENTS = [f"10.1.0.{number}" for number in range(10, 20)]


def scheduled(number: int, scheduler: str, weights=(1, 1, 1), server_port: int = 80, **options) -> VirtualService:
    """Service `number` at VIP port 100 + number over rs1 to rs3; not checked, so that nothing else plays a part."""
    servers = tuple(
        RealServer(number * 100 + place, address, server_port, weight)
        for place, (address, weight) in enumerate(zip(SERVERS.values(), weights, strict=True))
    )
    return VirtualService(
        number, f"s{number}", VIP, 100 + number, scheduler=Scheduler(scheduler), check=OFF, real_servers=servers,
        **options,
    )  # fmt: skip


def with_server(service: VirtualService, place: int, **changes) -> VirtualService:
    servers = list(service.real_servers)
    servers[place] = dataclasses.replace(servers[place], **changes)
    return dataclasses.replace(service, real_servers=tuple(servers))


def at(service: VirtualService) -> str:
    return f"{VIP}:{service.port}/"


def servers_of(world, service: VirtualService) -> dict[str, str]:
    """Client -> who answers it; each asks twice and must get the same server."""
    found = {}
    for client in CLIENTS:
        first, second = world.get(at(service), 2, source=client)
        assert first == second, f"{client} moved from {first} to {second}"
        found[client] = first
    return found


def test_turns_and_weights(director, world):
    turns, weighted, standby = scheduled(1, "rr"), scheduled(2, "wrr", (3, 2, 1)), scheduled(3, "fo", (1, 9, 5))
    drawn = scheduled(4, "twos")
    director.apply(wish(turns, weighted, standby, drawn))
    assert world.count(at(turns), 12) == {"rs1": 4, "rs2": 4, "rs3": 4}
    assert world.count(at(weighted), 12) == {"rs1": 6, "rs2": 4, "rs3": 2}
    assert world.count(at(standby), 6) == {"rs2": 6}
    assert sum(world.count(at(drawn), 6).values()) == 6  # whose, is left to chance

    director.apply(wish(with_server(standby, 1, state=ServerState.DISABLED)))
    assert world.count(at(standby), 6) == {"rs3": 6}


@thorough
def test_schedulers_that_look_at_connections(director, world):
    """Long connections one after the other: where each goes follows from those before it."""
    shares = {
        "lc": ((1, 1, 1), 6, {"rs1": 2, "rs2": 2, "rs3": 2}),
        "wlc": ((4, 1, 1), 6, {"rs1": 4, "rs2": 1, "rs3": 1}),
        "sed": ((4, 1, 1), 3, {"rs1": 3}),  # 1/4, 2/4 and 3/4 of rs1 are less than the 1/1 of the others
        "nq": ((4, 1, 1), 3, {"rs1": 1, "rs2": 1, "rs3": 1}),  # an idle server first
        "ovf": ((1, 3, 2), 6, {"rs2": 4, "rs3": 2}),  # the highest weight until it has more than that, then the next
    }
    services = {
        name: scheduled(number, name, weights, 7000) for number, (name, (weights, *_)) in enumerate(shares.items(), 1)
    }
    director.apply(wish(*services.values()))
    for name, (_, count, expected) in shares.items():
        held = world.hold(f"{VIP}:{services[name].port}", count)
        assert held.end()["shares"] == expected, name


@thorough
@pytest.mark.parametrize("scheduler", ["rr", "lc", "sed"])
def test_the_faster_of_unequal_servers_gets_more_from_schedulers_that_look(director, world, scheduler):
    """rs1 takes half as long for an answer as rs2; who only counts turns gives both the same."""
    unequal = scheduled(1, scheduler, (1, 1, 1))
    director.apply(wish(dataclasses.replace(unequal, real_servers=unequal.real_servers[:2])))
    world.pace("rs1", 0.2)
    world.pace("rs2", 0.4)
    shares = world.load(f"{at(unequal)}work", 12, 10)
    assert set(shares) == {"rs1", "rs2"}
    if scheduler == "rr":
        assert abs(shares["rs1"] - shares["rs2"]) <= 1
    else:
        assert shares["rs1"] > 1.3 * shares["rs2"], shares


@thorough
def test_hashing_keeps_a_client_on_its_server(director, world):
    source, maglev, destination = scheduled(1, "sh"), scheduled(2, "mh"), scheduled(3, "dh")
    director.apply(wish(source, maglev, destination))
    by_source, by_maglev = servers_of(world, source), servers_of(world, maglev)
    assert len(set(by_source.values())) > 1
    assert len(set(by_maglev.values())) > 1
    assert len(set(servers_of(world, destination).values())) == 1  # all ask for one address

    gone = by_maglev[CLIENTS[0]]
    place = list(SERVERS).index(gone)
    director.apply(wish(with_server(maglev, place, state=ServerState.DISABLED)))
    after = servers_of(world, maglev)
    assert gone not in after.values()
    stayed = [client for client, server in by_maglev.items() if server != gone and after[client] == server]
    others = [client for client, server in by_maglev.items() if server != gone]
    assert len(stayed) >= len(others) - 1, (by_maglev, after)  # Maglev moves almost nobody else


@thorough
def test_options_of_hashing(director, world):
    strict = scheduled(1, "sh")
    moving, spread = (
        dataclasses.replace(scheduled(2, "sh"), hash_next=True),
        dataclasses.replace(scheduled(3, "sh"), hash_port=True),
    )
    director.apply(wish(strict, moving, spread))
    home = servers_of(world, strict)[CLIENTS[0]]
    assert len(world.count(at(spread), 20)) == 3, "all connections of one client on one server, in spite of its ports"

    place = list(SERVERS).index(home)
    quiet = [with_server(service, place, state=ServerState.QUIESCED) for service in (strict, moving)]
    director.apply(wish(*quiet))
    [answer] = world.get(at(strict), 1, source=CLIENTS[0])
    assert answer.startswith("error"), answer
    [answer] = world.get(at(moving), 1, source=CLIENTS[0])
    assert answer in SERVERS
    assert answer != home


def test_persistence_and_its_mask(director, world):
    plain = scheduled(1, "rr")
    single = dataclasses.replace(scheduled(2, "rr"), persistence=60)
    network = dataclasses.replace(scheduled(3, "rr"), persistence=60, persistence_prefix=24)
    director.apply(wish(plain, single, network))
    assert len(world.count(at(plain), 6)) == 3
    assert len(set(servers_of(world, single).values())) == 3  # each stays, and they are spread
    assert len(set(servers_of(world, network).values())) == 1  # all clients of one /24 together
    assert "persistent 60 mask 255.255.255.0" in director.succeed(["ipvsadm", "-Ln"])


def test_one_packet_scheduling_spreads_the_packets_of_one_port(director, world):
    flow = dataclasses.replace(scheduled(1, "rr", server_port=7000), protocol=Protocol.UDP)
    packets = dataclasses.replace(scheduled(2, "rr", server_port=7000), protocol=Protocol.UDP, one_packet=True)
    director.apply(wish(flow, packets))
    assert len(set(world.ask(f"{VIP}:{flow.port}", 6, port=5000))) == 1
    before = {name: world.datagrams(name) for name in SERVERS}
    answers = world.ask(f"{VIP}:{packets.port}", 6, port=5001)
    assert all(answer.startswith("error") for answer in answers), "with NAT an answer needs a connection to belong to"
    assert {name: world.datagrams(name) - before[name] for name in SERVERS} == {"rs1": 2, "rs2": 2, "rs3": 2}


@thorough
def test_a_full_server_gets_nothing_new(director, world):
    full = with_server(scheduled(1, "rr", server_port=7000), 0, upper=2, lower=1)
    director.apply(wish(full))
    held = world.hold(f"{VIP}:{full.port}", 8)
    assert held.next_round()["shares"] == {"rs1": 2, "rs2": 3, "rs3": 3}
    assert held.end()["broken"] == []


CALLS = """
import collections, json, socket, sys
host, port = sys.argv[1].split(":")
first, step = int(sys.argv[2]), int(sys.argv[3])
calls = collections.defaultdict(list)
for question in range(36):
    call = question % 9
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as phone:
        phone.settimeout(5)
        phone.bind(("", first + question * step))
        said = f"OPTIONS sip:a@b SIP/2.0\\r\\nCall-ID: call-{call}@here\\r\\n\\r\\n"
        phone.sendto(said.encode(), (host, int(port)))
        calls[call].append(phone.recv(1000).split()[0].decode())
print(json.dumps(list(calls.values())))
"""


def calls_of(world, service, first: int, step: int) -> list[list[str]]:
    """Who answered the four questions of each of nine calls, sent from the ports first, first + step, …"""
    world.write("/run/world/calls.py", CALLS)
    return json.loads(world.in_client(f"python3 /run/world/calls.py {VIP}:{service.port} {first} {step}"))


def test_sip_calls_stay_together_and_their_client_does_not(director, world):
    sip = scheduled(1, "rr", server_port=7000, protocol=Protocol.UDP, persistence=300, call_id=True)
    director.apply(wish(sip))
    for first, step in ((6000, 1), (5060, 0)):  # a port for each question; one port, as telephone systems have it
        servers = calls_of(world, sip, first, step)
        assert all(len(set(one)) == 1 for one in servers), servers
        assert {one[0] for one in servers} == {"rs1", "rs2", "rs3"}
    director.apply(wish(dataclasses.replace(sip, call_id=False)))
    assert len({name for one in calls_of(world, sip, 6100, 1) for name in one}) == 1


def test_a_quiesced_server_keeps_what_is_open_and_gets_nothing_new(director, world):
    check = HealthCheck(CheckKind.CONNECT, interval=1, timeout=3, failures=1)
    service = dataclasses.replace(scheduled(1, "rr", server_port=7000), check=check)
    director.apply(wish(service))
    director.wait_until_healthy(*SERVERS)
    old = world.hold(f"{VIP}:{service.port}", 6)
    assert old.next_round()["shares"] == {"rs1": 2, "rs2": 2, "rs3": 2}

    director.apply(wish(with_server(service, 1, state=ServerState.QUIESCED)))
    new = world.hold(f"{VIP}:{service.port}", 6)
    assert new.end()["shares"] == {"rs1": 3, "rs3": 3}
    assert director.status()["faults"] == []

    director.apply(wish(service))
    director.wait_until_healthy(*SERVERS)
    report = old.end()
    assert (report["open"], report["broken"], report["shares"]) == (6, [], {"rs1": 2, "rs2": 2, "rs3": 2})


@thorough
def test_a_long_download_ends_well_while_its_server_drains(director, world):
    service = scheduled(1, "rr", server_port=80)
    director.apply(wish(service))
    whole = b"".join(bytes([number]) * 50_000 for number in range(80))
    ends = world.download(f"{VIP}:{service.port}/download")

    def busy_ones() -> list[str]:
        """What the page shows while a server drains."""
        [entry] = director.status()["running"]["services"]
        return [server["address"] for server in entry["real_servers"] if server["active"]]

    [busy] = until("the download", busy_ones)
    place = list(SERVERS.values()).index(busy)
    director.apply(wish(with_server(service, place, state=ServerState.QUIESCED)))
    assert busy_ones() == [busy]
    assert busy not in {SERVERS[name] for name in world.count(at(service), 6)}
    report = ends()
    assert (SERVERS[report["server"]], report["bytes"]) == (busy, len(whole))
    assert report["sha256"] == hashlib.sha256(whole).hexdigest()
    assert report["seconds"] >= 19  # it was still under way
    assert busy_ones() == []


@thorough
def test_a_disabled_service_is_gone_with_its_address_and_comes_back(director, world):
    site, other = scheduled(1, "rr"), dataclasses.replace(scheduled(2, "rr"), address="10.1.0.101")
    director.apply(wish(site, other))
    assert world.count(f"10.1.0.101:{other.port}/", 3) == {"rs1": 1, "rs2": 1, "rs3": 1}
    director.apply(wish(site, dataclasses.replace(other, enabled=False)))
    [answer] = world.get(f"10.1.0.101:{other.port}/")
    assert answer.startswith("error")
    assert "10.1.0.101" not in director.succeed(["ip", "-o", "addr"])
    director.apply(wish(site, other))
    assert world.count(f"10.1.0.101:{other.port}/", 3) == {"rs1": 1, "rs2": 1, "rs3": 1}
