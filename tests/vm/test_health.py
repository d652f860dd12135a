"""A dead server leaves after as many checks as its service says, and comes back with the next one.

The checks are counted at a server beside it that lives. How many seconds it took is printed: `make bench-health`
measures it.
"""

import dataclasses
import time

import pytest
from board.machines.director import VIP, service, wish
from board.machines.wait import until
from board.machines.world import SERVERS
from tests.lab.fixtures import thorough

from lbconfig.model.snapshot import CheckKind, HealthCheck, Protocol, RealServer, ServerState, VirtualService

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("balanced")]

# As far apart as this, a round more has not begun before it is seen on a busy machine that a server has left.
CHECK = HealthCheck(CheckKind.HTTP, path="/health", expect="ok", interval=5, timeout=1, failures=2)
LEAVES = CHECK.interval * CHECK.failures + CHECK.timeout  # seconds until a dead server has left
RETURNS = CHECK.interval + CHECK.timeout  # seconds until one that answers again is back
SEEN_LATE = 1  # rounds of checks that may begin until it is seen that a server has left or is back


@pytest.mark.parametrize(
    ("death", "cure"), [("silence", "unsilence"), pytest.param("stop_server", "start_server", marks=thorough)]
)
def test_a_dead_server_leaves_and_returns(director, world, capsys, death, cure):
    world.count_checks("rs1")
    director.apply(wish(service(1, "site", check=CHECK)))
    director.wait_until_healthy("rs1", "rs2", "rs3")
    alive, died = world.checks("rs1"), time.monotonic()
    getattr(world, death)("rs2")
    dead = world.checks("rs1")
    director.wait_until_gone("rs2")
    left, gone = time.monotonic() - died, world.checks("rs1")
    assert gone - alive >= CHECK.failures - 1  # the first one may have failed in the round that had begun
    assert gone - dead <= CHECK.failures + SEEN_LATE
    assert world.count(f"{VIP}:80/", 10) == {"rs1": 5, "rs3": 5}

    getattr(world, cure)("rs2")
    answers, cured = time.monotonic(), world.checks("rs1")
    director.wait_until_healthy("rs2")
    returned, back = time.monotonic() - answers, world.checks("rs1")
    with capsys.disabled():
        print(
            f"\n{death}: left after {left:.1f} s (promised {LEAVES} s), returned after {returned:.1f} s ({RETURNS} s)"
        )
    assert back - cured <= 1 + SEEN_LATE
    assert world.count(f"{VIP}:80/", 9) == {"rs1": 3, "rs2": 3, "rs3": 3}


@thorough
def test_a_server_that_answers_the_wrong_text_gets_no_clients(director, world):
    wrong = HealthCheck(CheckKind.HTTP, path="/name", expect="rs1", interval=1, timeout=1, failures=1)
    director.apply(wish(service(3, "picky", port=81, server_port=80, check=wrong)))
    director.wait_until_healthy("rs1")

    time.sleep(3)  # two rounds of checks more
    assert director.healthy() == {"rs1"}
    assert world.count(f"{VIP}:81/", 6) == {"rs1": 6}


@thorough
def test_plain_connects_between_whole_checks(director, world):
    """They ask nothing of a server that is up, and bring none back that answers the wrong text."""
    sparing = HealthCheck(CheckKind.HTTP, path="/name", expect="rs1", interval=1, timeout=3, failures=1, connects=3)
    director.apply(wish(service(3, "picky", port=81, server_port=80, check=sparing)))
    director.wait_until_healthy("rs1")
    for name in ("rs1", "rs2"):
        world.count_checks(name)
    until("twelve checks", lambda: world.checks("rs1") >= 12)
    begun, asked = world.checks("rs1"), world.checks("rs1", "asked")
    assert begun / 4 - 1 <= asked <= begun / 4 + 1
    assert director.healthy() == {"rs1"}
    assert world.checks("rs2", "asked") >= 9  # one that is down is asked each time


@pytest.mark.parametrize("what", ["the checks", pytest.param("the program that starts them", marks=thorough)])
def test_killed_checks_are_started_again_and_change_nothing(director, world, what):
    checker = director.checker()
    director.succeed(
        f"kill -KILL {checker if what == 'the checks' else '$(cat /run/service/ldirectord/supervise/pid)'}"
    )
    until("its end", lambda: director.execute(f"[ -e /proc/{checker} ]").exit)
    assert world.count(f"{VIP}:80/", 6) == {"rs1": 2, "rs2": 2, "rs3": 2}
    world.stop_server("rs3")
    director.wait_until_gone("rs3")


@thorough
def test_dead_servers_do_not_delay_the_detection_of_another(director, world):
    """One after the other, the silent ones alone would take two minutes until the second check of another."""
    silent = [f"10.2.0.{number}" for number in range(150, 170)]  # nobody has these addresses
    slow = HealthCheck(CheckKind.HTTP, path="/health", expect="ok", interval=1, timeout=3, failures=1)
    one_by_one = len(silent) * slow.timeout * CHECK.failures
    crowd = VirtualService(
        9, "crowd", VIP, 81, check=slow,
        real_servers=tuple(RealServer(900 + number, address, 80) for number, address in enumerate(silent)),
    )  # fmt: skip
    director.apply(wish(crowd, service(1, "site", check=CHECK)))
    director.wait_until_healthy("rs1", "rs2", "rs3")
    world.count_checks("rs2")
    for name in ("rs3", "rs1"):
        died = time.monotonic()
        world.silence(name)
        dead = world.checks("rs2")
        director.wait_until_gone(name)
        left, checks = time.monotonic() - died, world.checks("rs2") - dead
        assert left < one_by_one, f"{left:.1f} s, {checks} checks"
        assert checks <= CHECK.failures + SEEN_LATE
    assert world.count(f"{VIP}:80/", 4) == {"rs2": 4}


@thorough
def test_many_checks_at_once_make_no_server_look_dead(director):
    """Workers that get into each other's way would let checks run into their timeouts."""
    failures = "grep 'The check of .* failed' /var/log/messages || true"
    before = director.succeed(failures)
    quick = HealthCheck(CheckKind.HTTP, path="/health", expect="ok", interval=1, timeout=3, failures=1)
    director.apply(
        wish(*(service(number, f"s{number}", 100 + number, server_port=80, check=quick) for number in range(1, 13)))
    )
    director.wait_until_healthy(*SERVERS)
    time.sleep(15)
    assert director.healthy() == set(SERVERS)
    assert director.succeed(failures) == before


@thorough
def test_workers_of_the_checker_that_are_killed_are_replaced(director, world):
    checker = director.checker()
    for _ in range(3):
        workers = director.children(checker)
        assert workers
        director.succeed(f"kill -KILL {' '.join(map(str, workers))}")
        time.sleep(3)  # the next checks bring new ones
    assert director.healthy() == {"rs1", "rs2", "rs3"}, "a killed check is one failure, and two are needed"
    world.stop_server("rs3")
    director.wait_until_gone("rs3")
    world.start_server("rs3")
    director.wait_until_healthy("rs3")


def test_udp_clients_of_a_dead_server_move_on(director, world):
    """A client that goes on sending from one port would keep its server, dead or not, for as long as it sends."""
    lines = service(2, "lines", 7000, protocol=Protocol.UDP, check=dataclasses.replace(CHECK, port=80))
    director.apply(wish(lines))
    director.wait_until_healthy(*SERVERS)
    [first] = set(world.ask(f"{VIP}:7000", 5, port=5555))
    world.stop_server(first)
    director.wait_until_gone(first)
    [second] = set(world.ask(f"{VIP}:7000", 5, port=5555))
    assert second in SERVERS and second != first
    world.start_server(first)
    director.wait_until_healthy(*SERVERS)
    assert set(world.ask(f"{VIP}:7000", 5, port=5555)) == {second}


@thorough
def test_udp_clients_of_a_draining_server_stay_through_changes(director, world):
    lines = service(2, "lines", 7000, protocol=Protocol.UDP, check=dataclasses.replace(CHECK, port=80))
    director.apply(wish(lines))
    director.wait_until_healthy(*SERVERS)
    [first] = set(world.ask(f"{VIP}:7000", 5, port=5555))
    servers = tuple(
        dataclasses.replace(one, state=ServerState.QUIESCED) if one.address == SERVERS[first] else one
        for one in lines.real_servers
    )
    for services in ([], [service(1, "site", check=CHECK)]):
        director.apply(wish(dataclasses.replace(lines, real_servers=servers), *services))
        assert set(world.ask(f"{VIP}:7000", 5, port=5555)) == {first}
    assert first not in world.ask(f"{VIP}:7000", 9)


def test_a_check_is_tried_without_being_applied(director, world):
    """Beside the checks that run, of a service that the box does not know."""
    before = director.status()["generation"]
    world.stop_server("rs2")
    tried = director.try_check(wish(service(7, "new", address="10.1.0.150", check=CHECK)), 7)
    assert {address: one["state"] for address, one in tried.items()} == {
        SERVERS["rs1"]: "up",
        SERVERS["rs2"]: "down",
        SERVERS["rs3"]: "up",
    }
    good, dead = tried[SERVERS["rs1"]], tried[SERVERS["rs2"]]
    assert good["sent"].startswith("GET /health HTTP/1.1")
    assert good["received"].endswith("ok")
    assert "200 OK" in good["message"]
    assert "Connection refused" in dead["message"]
    ping = HealthCheck(CheckKind.PING, timeout=1)
    tried = director.try_check(wish(service(7, "new", address="10.1.0.150", check=ping)), 7)
    assert {one["state"] for one in tried.values()} == {"up"}

    world.silence("rs3")
    quick = HealthCheck(CheckKind.CONNECT, timeout=1)
    slow = director.try_check(wish(service(7, "new", address="10.1.0.150", check=quick)), 7)[SERVERS["rs3"]]
    assert slow["state"] == "down" and 1 <= slow["seconds"] < 5  # and not as long as the kernel would try
    assert "10.1.0.150" not in director.succeed(["ipvsadm", "-Ln"])
    assert director.status()["generation"] == before


def test_checks_have_memory_of_their_own(director):
    """What a server answers takes nothing from the web page and the applier, and is asked by nobody with rights."""
    groups = director.succeed("cd /sys/fs/cgroup/services; cat checks/cgroup.procs; echo box; cat box/cgroup.procs")
    checks, box = ([int(one) for one in part.split()] for part in groups.split("box"))
    users = {
        number: director.succeed(f"awk '/^Uid/ {{ print $2 }}' /proc/{number}/status").strip() for number in checks
    }
    assert {"0", "989"} == set(users.values())
    assert len(box) > 5 and not {int(one) for one in director.succeed("pidof python3 nginx").split()} & {*checks}
    limit, memory = director.succeed(
        "cat /sys/fs/cgroup/services/checks/memory.max; awk '/^MemTotal/ { print $2 * 1024 }' /proc/meminfo"
    ).split()
    assert int(limit) < float(memory) * 0.26


FILL = """
group=/sys/fs/cgroup/services; echo $$ >$group/box/cgroup.procs
need=$(($(cat $group/memory.high) * 80 / 100 - $(awk '/^anon / { print $2 }' $group/memory.stat)))
exec python3 -c "import time; full = bytearray(b'x') * $need; time.sleep(600)"
"""


@thorough
def test_a_box_whose_programs_fill_their_memory_says_so(director, world):
    assert not director.faults()
    director.write("/run/fill", FILL)
    number = director.succeed("sh /run/fill >/dev/null 2>&1 & echo $!").strip()
    until("the fault", lambda: "MiB of memory that they may have" in director.faults(), 60, 1.0)
    assert set(world.count(f"{VIP}:80/", 9)) == set(SERVERS)
    director.succeed(f"kill {number}")
    until("the end of it", lambda: not director.faults(), 60, 1.0)


PROGRAM = """#!/bin/sh
# Whatever the image has to run, and the box's own folders.
/usr/bin/perl -e 'use IO::Socket::IP; print "perl\\n"' || exit 1
/usr/bin/env python3 -c 'import json, socket, ssl, urllib.request; print("python")' || exit 1
cat /etc/resolv.conf >/dev/null || exit 1
for folder in / /tmp /run /run/fairlead /data /disk /dev/shm; do
\tif touch "$folder/written" 2>/dev/null; then echo "writes to $folder"; exit 1; fi
done
if [ "$(ls /data /disk)" != "$(printf '/data:\\n\\n/disk:\\n')" ]; then echo 'sees the data of the box'; exit 1; fi
wget -q -O - "http://$3:$4/health" || exit 1
"""


@thorough
def test_a_program_of_the_admins_own_runs_on_the_box(director, world):
    """Its interpreters, the kernel's namespaces and filters are those of the image."""
    check = HealthCheck(CheckKind.PROGRAM, program=PROGRAM, interval=2, timeout=30, failures=1)
    snapshot = wish(service(8, "scripted", port=82, server_port=80, check=check))
    tried = director.try_check(snapshot, 8)
    assert {(one["state"], one["message"]) for one in tried.values()} == {("up", "ok")}, tried
    director.apply(snapshot)
    director.wait_until_healthy("rs1", "rs2", "rs3")
    world.stop_server("rs2")
    director.wait_until_gone("rs2")
