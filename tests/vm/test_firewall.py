"""The admin's own firewall rules beside services that run: who is shut out, what is limited, what servers may fetch."""

import dataclasses
import json

import pytest
from board.machines.director import VIP
from board.machines.lab import BALANCED
from board.machines.wait import until
from board.machines.world import SERVERS
from tests.lab.fixtures import thorough

from lbconfig.model.firewall import Action, Firewall, Per, RateLimit, Rule, RuleProtocol, Where

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("balanced")]

ATTACKER = "10.1.0.17"  # one of the client's addresses
# Says from where each of three connections comes.
LISTEN = """
import socket
one = socket.create_server(("10.1.0.10", 9000))
print("listening", flush=True)
for _ in range(3):
    connection, (address, _) = one.accept()
    connection.sendall(address.encode())
    connection.close()
"""


def ruled(*rules: Rule):
    return dataclasses.replace(BALANCED, firewall=Firewall(rules))


def counters(director) -> dict[int, dict]:
    return {one["id"]: one for one in json.loads(director.applier("rule-counters"))}


def refused(answers: list[str]) -> bool:
    return all(answer.startswith("error") for answer in answers)


@pytest.mark.parametrize("action", [Action.DENY, pytest.param(Action.REJECT, marks=thorough)])
def test_a_source_is_shut_out_of_services_and_counted(director, world, action):
    rule = Rule(7, "attacker", action, Where.SERVICES, (f"{ATTACKER}/32",))
    director.apply(ruled(rule))
    assert refused(world.get(f"{VIP}:80/", 2, source=ATTACKER))
    assert world.count(f"{VIP}:80/", 6) == {"rs1": 2, "rs2": 2, "rs3": 2}
    assert counters(director)[7]["packets"] >= 2
    director.apply(BALANCED)
    assert not refused(world.get(f"{VIP}:80/", 2, source=ATTACKER))


@thorough
def test_long_connections_live_through_changes_of_rules(director, world):
    held = world.hold(f"{VIP}:7000", 9)
    held.next_round()
    one = Rule(1, "attacker", Action.DENY, Where.SERVICES, (f"{ATTACKER}/32",))
    few = Rule(2, "few", where=Where.SERVICES, limit=RateLimit(1, Per.MINUTE, 2))
    for rules in ((one,), (one, few), (few,), ()):
        director.apply(ruled(*rules))
        held.next_round()
    assert held.end()["broken"] == []


@thorough
def test_new_connections_above_a_limit_are_dropped(director, world):
    few = Rule(2, "few", where=Where.SERVICES, limit=RateLimit(1, Per.MINUTE, 3, each_source=True))
    director.apply(ruled(few))
    assert [answer.startswith("error") for answer in world.get(f"{VIP}:80/", 5)] == [False] * 3 + [True] * 2
    assert not refused(world.get(f"{VIP}:80/", 3, source=ATTACKER))
    assert counters(director)[2]["over"] >= 2


@pytest.mark.parametrize("masquerade", [True, pytest.param(False, marks=thorough)])
def test_a_server_fetches_something_through_the_box(director, world, masquerade):
    """Without a rule it cannot; with source NAT the other side sees the box."""
    world.write("/run/world/listen.py", LISTEN)
    world.succeed("ip netns exec client python3 /run/world/listen.py >/run/world/listen.log 2>&1 &")
    until("the listener", lambda: "listening" in world.read("/run/world/listen.log"))
    fetch = "ip netns exec rs1 busybox timeout 5 busybox nc -w 3 10.1.0.10 9000 </dev/null"
    world.fail(fetch)
    director.apply(ruled(Rule(3, "out", where=Where.THROUGH, sources=("10.2.0.0/24",), masquerade=masquerade)))
    assert world.succeed(fetch).strip() == ("10.1.0.1" if masquerade else SERVERS["rs1"])
    assert world.count(f"{VIP}:80/", 6) == {"rs1": 2, "rs2": 2, "rs3": 2}
    assert counters(director)[3]["packets"] == 1


@thorough
def test_the_box_is_not_pinged_any_more(director, world):
    ping = "ip netns exec client busybox ping -c 1 -W 3 10.1.0.1"
    world.succeed(ping)
    director.apply(ruled(Rule(4, "no pings", Action.DENY, protocol=RuleProtocol.PING)))
    world.fail(ping)
    assert director.page()[0] == 200
