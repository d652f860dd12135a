"""A hundred sick servers beside ten that are well, and the real ldirectord that watches them all (sick.py).

Two of each sort and kind: one whose fault strikes early, one in which it strikes late. Two minutes of it, with a line
of what was seen:

    make test-peers ALL=1 ARGS="-s -k two_minutes"
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from board.lab.build import TOP
from board.machines.wait import found, until
from tests.lab.fixtures import thorough
from tests.peers.test_faults import SOON, Checker, workers

from lbconfig.model.checks import worst_case_detection
from lbconfig.model.snapshot import CheckKind, HealthCheck, RealServer, Snapshot, VirtualService
from lbconfig.render import ldirectord

ROUNDS = TOP / "overlay/usr/lib/fairlead/perl/Fairlead/Rounds.pm"
PATIENCE = 600  # seconds for what takes ten on a quiet machine
NETWORK = "10.2.1.0/24"  # every address of it is the box's own
LATER = ("silence", "stall", "drip", "protocol")  # what is seen when the time of a check is over, or some of it
SORTS = (*LATER, "cut", "endless", "garbage", "reset", "value", "slow")
OF_TLS = ("silence", "stall", "drip", "cut", "endless", "garbage", "reset", "unknown", "misnamed", "expired")
WELL = {"http": 3, "https": 3, "smtp": 2, "text": 2}
TLS = {"host": "www.example.org", "verify": True, "expect": "the shop is open"}
CHECKS = {
    "http": (80, HealthCheck(CheckKind.HTTP, expect="the shop is open")),
    "https": (443, HealthCheck(CheckKind.HTTPS, **TLS)),
    "hello": (443, HealthCheck(CheckKind.HTTPS, **TLS)),
    "smtp": (25, HealthCheck(CheckKind.SMTP)),
    "text": (6379, HealthCheck(CheckKind.SIMPLETCP, ask="PING\\n", expect="+PONG")),
}


class Place(NamedTuple):
    address: str
    port: int
    kind: str
    fault: str
    when: str


def everybody():
    """The hundred and the ten."""
    numbers = iter(range(1, 255))
    kinds = {kind: OF_TLS if kind == "hello" else SORTS for kind in CHECKS}
    sick = [(kind, fault, when) for kind, faults in kinds.items() for fault in faults for when in ("early", "late")]
    well = [(kind, "well", "") for kind, count in WELL.items() for _ in range(count)]
    return [Place(f"10.2.1.{next(numbers)}", CHECKS[one[0]][0], *one) for one in (*sick, *well)]


EVERYBODY = everybody()
UP = {place.address for place in EVERYBODY if place.fault in ("well", "slow")}
HEALTHY = [place.address for place in EVERYBODY if place.fault == "well"]
SICK = {place.address for place in EVERYBODY} - UP
# What the check says of each fault.
TOO_LATE = r"no (answer|verdict) within"
HUNG_UP = r"the server hung up|the answer ends in the middle|TLS: .*unexpected eof|Connection reset"
REASONS = {
    "silence": TOO_LATE,
    "stall": TOO_LATE,
    "drip": TOO_LATE,
    "protocol": rf"{TOO_LATE}|the answer is no HTTP|the server said|TLS:|the server hung up",
    "cut": HUNG_UP,
    "endless": r"the server sends (more than|a line without an end)|TLS:",
    "garbage": rf"the answer is no HTTP|does not contain|the server said|TLS: .*(error|routines):|{HUNG_UP}",
    "reset": "Connection reset by peer",
    "value": r"503 Service|does not contain|the server said: 5|the server hung up",
    "unknown": r"TLS: .*certificate verify failed",
    "misnamed": r"TLS: .*hostname verification failed",
    "expired": r"TLS: .*certificate verify failed",
}


class Servers:
    """What they are told, and how often they were asked."""

    def __init__(self, lab):
        program = [sys.executable, Path(__file__).with_name("sick.py"), json.dumps(EVERYBODY)]
        words = lab.box.beside(*program, lab.certificates / "etc/ssl/lab")
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._answer() is None

    def _answer(self):
        return json.loads(self.process.stdout.readline())

    def tell(self, what):
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def asked(self):
        return self.tell("asked")


@pytest.fixture(scope="module")
def servers(lab):
    lab.box.ip("route", "add", "local", NETWORK, "dev", "lan")
    talking = Servers(lab)
    yield talking
    talking.process.communicate(timeout=SOON)
    lab.box.ip("route", "del", "local", NETWORK, "dev", "lan")


@pytest.fixture
def watch(lab, servers):
    """watch(fields of the checks that time ends, fields of the others) -> a Checker, ended at the end of the test."""
    started = []

    def start(later, other):
        services, table = [], {}
        for number, (kind, waits) in enumerate(((kind, waits) for kind in CHECKS for waits in (True, False)), 1):
            port, check = CHECKS[kind]
            own = [one for one in EVERYBODY if one.kind == kind and (one.fault in LATER) == waits]
            reals = tuple(RealServer(1000 * number + n, one.address, port) for n, one in enumerate(own))
            check = dataclasses.replace(check, **{"failures": 2} | (later if waits else other))
            vip = f"10.2.0.{200 + number}"
            services.append(VirtualService(number, f"s{number}", vip, port, check=check, real_servers=reals))
            table[f"-t {vip}:{port}"] = {f"{one.address}:{port}": ["m", int(one.address in SICK), 0, 0] for one in own}
        started.append(Checker(lab.box, ldirectord.render(Snapshot(tuple(services))), table=table))
        return started[-1]

    yield start
    lab.box.end_processes()
    for one in started:
        one.wait()


def weights(one):
    """{address: the weights that it was given, in turn}"""
    given = {place.address: [] for place in EVERYBODY}
    for line in one.commands():
        if said := re.search(r" -r ([\d.]+):\d+ .*-w (\d+)", line):
            given[said[1]].append(int(said[2]))
    return given


def reasons(one):
    """{address: what its checks said when they began to fail}"""
    told = {place.address: [] for place in EVERYBODY}
    for address, said in re.findall(r"The check of ([\d.]+):\d+ failed: (.*) \(", one.log.read_text()):
        told[address].append(said)
    return told


def wrong(one, killed=()):
    """Verdicts that were wrong at any time, without those of the servers that were killed meanwhile."""
    mistakes = []
    given, said = weights(one), reasons(one)
    for place in EVERYBODY:
        if place.address in killed:
            continue
        up = place.address in UP
        if set(given[place.address]) != {int(up)}:
            mistakes.append((place, "weights", given[place.address]))
        if bool(said[place.address]) is up or not all(
            re.search(REASONS[place.fault], text) for text in said[place.address]
        ):
            mistakes.append((place, "reasons", said[place.address]))
    return mistakes


def wait_for_rounds(one, servers, rounds):
    """Until each of them was asked so often once more."""
    before = servers.asked()

    def all_were_asked():
        return all(now >= before[each] + rounds for each, now in servers.asked().items())

    one.wait_for(f"{rounds} checks of each", all_were_asked, PATIENCE)


def weight(one, address):
    return weights(one)[address][-1]


def unconfined(box):
    """The workers that are root or have a capability. One that has just been started gets time to give them up."""

    def has_rights(worker):
        try:
            status = dict(re.findall(r"^(\w+):\t(.*)$", (worker / "status").read_text(), re.MULTILINE))
            return "989" not in status["Uid"].split() or any(int(status[name], 16) for name in ("CapEff", "CapPrm"))
        except (OSError, ValueError, KeyError):
            return False  # it has ended

    some = [worker for worker in workers(box) if has_rights(worker)]
    with contextlib.suppress(AssertionError):
        until("them to give up their rights", lambda: not any(map(has_rights, some)), PATIENCE)
    return [worker for worker in some if has_rights(worker)]


def memory(box):
    """The highest own memory of a process of ldirectord, and the shares (PSS) of all of them, in KiB."""
    own, all_of_it = [], 0
    for number in box.processes():
        try:
            if "ldirectord" not in Path(f"/proc/{number}/cmdline").read_text():
                continue
            lines = Path(f"/proc/{number}/smaps_rollup").read_text()
        except OSError:
            continue  # it has just ended
        sizes = {name: int(size) for name, size in re.findall(r"^(\w+): +(\d+) kB$", lines, re.MULTILINE)}
        if sizes:
            all_of_it += sizes["Pss"]
            own.append(sizes["Private_Clean"] + sizes["Private_Dirty"])
    return max(own, default=0), all_of_it


def test_each_of_a_hundred_sick_servers_is_judged_right(servers, watch):
    one = watch({"interval": 1, "timeout": 1}, {"interval": 1, "timeout": 20})
    wait_for_rounds(one, servers, 3)
    assert wrong(one) == []
    assert workers(one.box) and unconfined(one.box) == []

    victim = HEALTHY[0]
    servers.tell([victim, "reset"])
    one.wait_for("it to leave", lambda: weight(one, victim) == 0, PATIENCE)
    servers.tell([victim, "well"])
    one.wait_for("it to come back", lambda: weight(one, victim) == 1, PATIENCE)
    assert wrong(one, [victim]) == []


LONG = 120  # seconds
USUAL = {"interval": 4, "timeout": 4, "failures": 3}
PROMISE = worst_case_detection(HealthCheck(**USUAL))
PLANNED = int(found(r"WORKER => (\d+) \* 1024,", ROUNDS.read_text())) << 10  # KiB that a worker may come to own


def complaints(one):
    return one.log.read_text().count("later than they should")


@thorough
def test_two_minutes_of_a_hundred_sick_servers(servers, watch):
    """Those that are well fall silent, one after the other, and each has left when it should have."""
    one = watch(USUAL, USUAL)
    wait_for_rounds(one, servers, USUAL["failures"] + 1)
    began, seen, rights, killed = time.monotonic(), [], set(), {}
    before = complaints(one)  # the first round is one of servers of which nobody knows yet that they are silent

    def left(address):
        seen.append(memory(one.box))
        rights.update(unconfined(one.box))
        return weight(one, address) == 0

    for address in reversed(HEALTHY):
        if time.monotonic() > began + LONG:
            break
        asked = servers.asked()[address]
        one.wait_for("it to be asked", lambda n=asked, each=address: servers.asked()[each] > n, PATIENCE)
        time.sleep(USUAL["interval"] / 2)  # between two checks
        dies = time.monotonic()
        servers.tell([address, "silence"])
        one.wait_for(f"{address} to leave", lambda each=address: left(each), PATIENCE)
        killed[address] = time.monotonic() - dies
        servers.tell([address, "well"])
        one.wait_for(f"{address} to come back", lambda each=address: weight(one, each) == 1, PATIENCE)

    own, shares = (max(sizes) for sizes in zip(*seen, strict=True))
    late = complaints(one) - before
    figures = [
        f"{len(EVERYBODY) - len(HEALTHY)} sick and {len(HEALTHY)} good servers for {time.monotonic() - began:.0f} s",
        f"wrong verdicts: {len(wrong(one, killed))}",
        f"{len(killed)} newly dead ones left after {min(killed.values()):.1f} to {max(killed.values()):.1f} s",
        f"promised: {PROMISE:g} s, complaints of late checks: {late}",
        f"own memory of a process: at most {own / 1024:.1f} MiB; PSS of all: {shares / 1024:.1f} MiB",
        f"workers with rights: {len(rights)}",
    ]
    print("\n" + "; ".join(figures))
    assert wrong(one, killed) == []
    assert rights == set()
    assert own < PLANNED
    assert late or max(killed.values()) < PROMISE
