"""While every real server of a service is down somebody else answers, and nobody longer than that."""

import dataclasses
import json
from collections import Counter

import pytest
from board.machines.director import VIP, VIP6, by_six, service, wish6
from board.machines.wait import until
from board.machines.world import CLIENT, SERVERS, until_answer
from tests.lab.fixtures import thorough

from lbconfig.model.snapshot import (
    SORRY_PORT,
    CheckKind,
    Fallback,
    FallbackKind,
    Forwarding,
    HealthCheck,
    Snapshot,
    SorryPage,
    VirtualService,
)

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("balanced")]

CHECK = HealthCheck(CheckKind.HTTP, path="/health", expect="ok", interval=2, timeout=3, failures=1)
TEXT = SorryPage("Back at 8 <am>", ("We are moving.",))
PAGE = Fallback(FallbackKind.PAGE)
FETCH = """
import http.client, json, sys
connection = http.client.HTTPConnection(sys.argv[1], timeout=5)
connection.request(sys.argv[2], "/any/page?x=1")
answer = connection.getresponse()
print(json.dumps([answer.status, dict(answer.getheaders()), answer.read().decode()]))
"""


def fetch(world, host: str, method: str = "GET") -> tuple[int, dict[str, str], str]:
    world.write("/run/world/fetch.py", FETCH)
    return tuple(json.loads(world.in_client(f"python3 /run/world/fetch.py '{host}' {method}")))


def site(number: int = 1, fallback: Fallback = PAGE, **options) -> VirtualService:
    return dataclasses.replace(service(number, f"site{number}", **{"check": CHECK} | options), fallback=fallback)


def box(*services: VirtualService) -> Snapshot:
    """With a text of its own on the sorry page."""
    return dataclasses.replace(wish6(*services), sorry=TEXT)


def end_all(director, world, *names: str) -> None:
    for name in names:
        world.stop_server(name)
    for name in names:
        director.wait_until_gone(name)


def test_the_sorry_page_by_ipv4_and_ipv6(director, world):
    director.apply(box(site(), by_six(site(2))))
    director.wait_until_healthy(*SERVERS)
    assert world.count(f"{VIP}:80/", 6) == world.count(f"[{VIP6}]:80/", 6) == dict.fromkeys(SERVERS, 2)

    end_all(director, world, *SERVERS)
    for host in (f"{VIP}:80", f"[{VIP6}]:80"):
        until_answer(world, f"{host}/", "HTTP 503")
        for method in ("GET", "POST"):
            status, headers, text = fetch(world, host, method)
            assert (status, headers["Retry-After"], headers["Cache-Control"]) == (503, "60", "no-store")
            assert "<h1>Back at 8 &lt;am&gt;</h1>" in text and "<p>We are moving.</p>" in text
    assert director.page()[0] == 200  # the web UI has a server of its own

    world.start_server("rs2")
    director.wait_until_healthy("rs2")
    for host in (f"{VIP}:80", f"[{VIP6}]:80"):
        until_answer(world, f"{host}/", "rs2")
        assert world.get(f"{host}/", 6) == ["rs2"] * 6
    assert f":{SORRY_PORT}" not in director.succeed(["ipvsadm", "-Ln"])


@thorough
def test_nobody_comes_to_it_past_the_service(director, world):
    director.apply(box(site()))
    assert f":{SORRY_PORT}" in director.succeed(["ss", "-lnt"])
    for address in (VIP, "10.1.0.1", "2001:db8:1::1"):
        world.fail(f"ip netns exec client busybox timeout 3 busybox nc -w 2 {address} {SORRY_PORT} </dev/null")


@thorough
def test_a_change_while_it_is_shown_takes_it_from_nobody(director, world):
    director.apply(box(site()))
    director.wait_until_healthy(*SERVERS)
    end_all(director, world, *SERVERS)
    until("the sorry page", lambda: world.get(f"{VIP}:80/") == ["HTTP 503"])
    world.succeed(
        f"ip netns exec client python3 {CLIENT} get {VIP}:80/ 400 >/run/world/got & echo $! >/run/world/got.pid"
    )
    director.apply(box(site(), service(7, "lines", 7000)))
    director.apply(box(site(), service(7, "lines", 7001, server_port=7000)))
    world.succeed("while kill -0 $(cat /run/world/got.pid) 2>/dev/null; do sleep 0.2; done", timeout=120)
    assert Counter(json.loads(world.read("/run/world/got"))) == {"HTTP 503": 400}


@thorough
@pytest.mark.parametrize("forwarding", [Forwarding.NAT, pytest.param(Forwarding.SNAT, marks=thorough)])
def test_a_fallback_server(director, world, forwarding):
    other = Fallback(FallbackKind.SERVER, SERVERS["rs3"])
    one = dataclasses.replace(site(fallback=other, servers=("rs1", "rs2")), forwarding=forwarding)
    director.apply(box(one))
    director.wait_until_healthy("rs1", "rs2")
    until("both", lambda: world.count(f"{VIP}:80/", 6) == {"rs1": 3, "rs2": 3})
    end_all(director, world, "rs1", "rs2")
    until("the fallback server", lambda: world.get(f"{VIP}:80/") == ["rs3"])
    assert world.get(f"{VIP}:80/", 6) == ["rs3"] * 6
    world.start_server("rs1")
    director.wait_until_healthy("rs1")
    until("the real server", lambda: world.get(f"{VIP}:80/", 4) == ["rs1"] * 4)


@thorough
def test_it_is_there_after_a_power_cut(director, world):
    director.apply(box(site()))
    director.wait_until_healthy(*SERVERS)
    end_all(director, world, *SERVERS)
    director.kill()
    director.start()
    until("the sorry page", lambda: world.get(f"{VIP}:80/") == ["HTTP 503"], 120)
    assert "<p>We are moving.</p>" in fetch(world, f"{VIP}:80")[2]
