"""Many changes in a row, whose traffic is looked at from the client: what was open, what is new, datagrams.

FAIRLEAD_CHANGES=100 (make undisturbed COUNT=100) for more than the few of every day.
"""

import dataclasses
import os
import random
import time

import pytest
from board.machines.director import VIP, service, wish
from board.machines.lab import TIMEOUT
from board.machines.world import SERVERS

from lbconfig.model.snapshot import CheckKind, HealthCheck, Policy, Protocol, Scheduler, ServerState, Snapshot

# Says when this machine stood still for more than a second, as an emulated one on a busy host may.
STALLS = """
import time
last = time.time()
while True:
    time.sleep(0.2)
    now = time.time()
    if now - last > 1:
        print(f"{last:.1f} {now - last:.1f}", flush=True)
    last = now
"""
AROUND = 8.0  # seconds before a failure of which the log is shown
CHANGES = int(os.environ.get("FAIRLEAD_CHANGES", "3"))
RETURNS = max(1, CHANGES // 5)  # of changes that nobody confirms
CONNECTIONS = 20
HURRIED = 10  # seconds within which nobody confirms

pytestmark = [pytest.mark.timeout(900 + 120 * CHANGES), pytest.mark.usefixtures("balanced")]

CONNECT = HealthCheck(CheckKind.CONNECT, interval=2, timeout=TIMEOUT)
LINES = service(2, "lines", 7000, check=CONNECT)
SITE = service(
    1, "site", 80, check=HealthCheck(CheckKind.HTTP, path="/health", expect="ok", interval=2, timeout=TIMEOUT)
)
DATAGRAMS = service(3, "datagrams", 7000, protocol=Protocol.UDP, check=HealthCheck(CheckKind.OFF))


def changed(chance: random.Random) -> Snapshot:
    """SITE, LINES and DATAGRAMS stay what they are to their clients; the rest is anything."""
    touched = []
    for one in (SITE, LINES, DATAGRAMS):
        servers = list(one.real_servers)
        place = chance.randrange(1, len(servers))  # rs1 stays: new ones get clients only after their first check
        if one is not LINES and chance.random() < 0.5:  # a server of theirs comes and goes
            servers.pop(place)
        elif chance.random() < 0.5:
            servers[place] = dataclasses.replace(
                servers[place],
                weight=chance.randint(1, 9),
                state=chance.choice([ServerState.ENABLED, ServerState.QUIESCED]),
            )
        check = one.check if one is DATAGRAMS else dataclasses.replace(one.check, interval=chance.randint(1, 4))
        touched.append(dataclasses.replace(one, real_servers=tuple(servers), check=check, note=f"{chance.random()}"))
    others = [
        service(
            10 + number,
            f"other {number}",
            8000 + number,
            servers=tuple(chance.sample(sorted(SERVERS), chance.randint(1, 3))),
            scheduler=chance.choice(list(Scheduler)),
            check=chance.choice([CONNECT, HealthCheck(CheckKind.PING), HealthCheck(CheckKind.OFF)]),
            address=f"10.1.0.{chance.randint(101, 120)}",
            server_port=80,
        )
        for number in range(chance.randint(0, 6))
    ]
    chance.shuffle(others)
    policy = Policy(udp_timeout=chance.choice([60, 300]), fin_timeout=chance.choice([30, 120]))
    return dataclasses.replace(wish(*touched, *others), policy=policy)


def watch_for_stalls(*machines) -> None:
    for machine in machines:
        machine.write("/run/stalls.py", STALLS)
        machine.succeed("python3 /run/stalls.py >/run/stalls 2>&1 &")


def explained(failed: list, *machines) -> str:
    """Each failure with what the director did, and which machine stood still, in the seconds before."""
    stalls = [
        (one.name, *map(float, line.split())) for one in machines for line in one.read("/run/stalls").splitlines()
    ]
    log = machines[0].execute("cat /var/log/messages.0 /var/log/messages").output.splitlines()
    told = []
    for moment, what in failed:
        begin = moment - AROUND
        told.append(f"{time.ctime(moment)}: {what}")
        told += [
            f"  {name} stood still for {long} s from {time.ctime(at)}"
            for name, at, long in stalls
            if at + long > begin and at < moment
        ]
        seconds = {time.strftime("%b %e %T", time.gmtime(begin + one)) for one in range(int(AROUND) + 2)}
        told += [f"  {line}" for line in log if line[:15] in seconds]
    return "\n".join(told)


def test_traffic_through_many_changes_and_returns(director, world, capsys, record_property):
    chance = random.Random(CHANGES)
    director.apply(wish(SITE, LINES, DATAGRAMS))
    director.wait_until_healthy(*SERVERS)
    held = world.hold(f"{VIP}:7000", CONNECTIONS)
    assert held.next_round()["open"] == CONNECTIONS
    watch_for_stalls(director, world)
    short, datagrams = world.repeat("get", f"{VIP}:80/"), world.repeat("ask", f"{VIP}:7000")
    ways = ["apply"] * CHANGES + ["return"] * RETURNS
    chance.shuffle(ways)
    for way in ways:
        if way == "apply":
            director.apply(changed(chance))
        else:
            before = director.status()["generation"]
            assert director.apply_unconfirmed(changed(chance), HURRIED)["state"] == "not confirmed"
            assert director.status()["generation"] == before
    connections, requests, packets = held.end(), short.end(), datagrams.end()
    figures = (
        f"{CHANGES} changes, {RETURNS} returns: {CONNECTIONS} connections, {len(connections['broken'])} broken; "
        f"{requests['count']} requests, {len(requests['failed'])} failed, slowest {requests['slowest']:.1f} s; "
        f"{packets['count']} datagrams, {len(packets['failed'])} without an answer"
    )
    record_property("figures", figures)
    with capsys.disabled():
        print(f"\n{figures}")
    assert connections["broken"] == []
    failed = requests["failed"] + packets["failed"]
    assert failed == [], explained(failed, director, world)
