"""Weights that follow the load, and the fewest servers: the real ldirectord with our modules, agents that talk."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from board.machines.wait import WaitedInVain, until
from tests.peers.lab import address
from tests.peers.test_faults import MODULES, SOON, Checker

from applier.kept.events import Events
from lbconfig.model.snapshot import (
    Agent,
    AgentKind,
    CheckKind,
    HealthCheck,
    LeastHealthy,
    RealServer,
    Scheduler,
    Snapshot,
    TooFew,
    VirtualService,
)
from lbconfig.render import ldirectord

PLACES = [address(number)[0] for number in (81, 82, 83)]
ONE, TWO, THREE = (f"{place}:80" for place in PLACES)
VIP = "10.2.0.209:80"
# Who is not up refuses, at once; a busy machine may take long for one that is.
CHECK = HealthCheck(CheckKind.CONNECT, interval=1, timeout=20, failures=1)
TEXT = Agent(AgentKind.TEXT, interval=1)
ALL = {ONE: 100, TWO: 100, THREE: 100}


class Agents:
    def __init__(self, lab):
        words = lab.box.beside(sys.executable, Path(__file__).with_name("agents.py"), json.dumps(PLACES))
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.done()

    def done(self):
        assert self.process.stdout.readline() == "done\n"

    def tell(self, server, what, value):
        self.process.stdin.write(json.dumps([server.split(":")[0], what, value]) + "\n")
        self.process.stdin.flush()
        self.done()


@pytest.fixture(scope="module")
def agents(lab):
    for place in PLACES:
        lab.box.ip("address", "add", f"{place}/32", "dev", "lan")
    (lab.box.root / "run/fairlead").mkdir(exist_ok=True)
    found = Agents(lab)
    yield found
    found.process.communicate(timeout=60)
    for place in PLACES:
        lab.box.ip("address", "del", f"{place}/32", "dev", "lan")


@pytest.fixture
def tell(agents, lab):
    (lab.box.root / "run/fairlead/weights").unlink(missing_ok=True)
    yield agents.tell
    for place in PLACES:
        for what, value in (("says", "100%\n"), ("up", True), ("slow", 0)):
            agents.tell(place, what, value)


@pytest.fixture
def run(lab, tell):
    """run(field of the service=…, table=…) -> a Checker, ended at the end of the test."""
    started = []

    def start(table=None, **fields):
        reals = tuple(RealServer(number, place, 80) for number, place in enumerate(PLACES, 1))
        plain = VirtualService(9, "tried", "10.2.0.209", 80, scheduler=Scheduler.WRR, check=CHECK, real_servers=reals)
        text = ldirectord.render(Snapshot((dataclasses.replace(plain, **fields),)))
        started.append(Checker(lab.box, text, MODULES | {"FAIRLEAD_EVENTS": "/run/told"}, table=table))
        return started[-1]

    yield start
    lab.box.end_processes()
    for one in started:
        one.wait()


@pytest.fixture
def told(lab, tmp_path):
    """told(…) waits until the applier has kept these events and no others: "state server", of any order."""
    (lab.box.root / "run/told").unlink(missing_ok=True)
    folder, events = os.open(lab.box.root / "run", os.O_RDONLY), Events(tmp_path / "events")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as door:
        door.bind(f"/proc/self/fd/{folder}/told")  # the whole name may be too long for a socket
        os.close(folder)
        door.setblocking(False)

        def kept():
            with contextlib.suppress(BlockingIOError):
                while True:
                    events.take([door.recv(4096)])
            return sorted(f"{one['state']} {one['server'] or 'all'}" for one in events.newest())

        def wait(*wanted):
            with contextlib.suppress(WaitedInVain):  # a comparison says more
                until(f"the events {wanted}", lambda: kept() == sorted(wanted), SOON)
            assert kept() == sorted(wanted)
            return events.newest()

        yield wait


def weights(one):
    return one.table().get(VIP, {})


def expect(one, wanted):
    one.wait_for(f"the weights {wanted}", lambda: weights(one) == wanted)


def written(one, server):
    """What was written for it, one after the other."""
    return [
        int(line.split(" -w ")[1].split()[0]) for line in one.commands() if f"-r {server} " in line and " -w " in line
    ]


def known(**by_place):
    return {f"-t {VIP}": {f"10.2.0.{place[1:]}:80": ["m", weight, 0, 0] for place, weight in by_place.items()}}


def lines(one, text):
    return [line for line in one.log.read_text().splitlines() if text in line]


def test_what_an_agent_says_is_the_share_of_the_weight(run, tell):
    tell(TWO, "says", "57%\n")
    tell(THREE, "says", "2%\n")
    one = run(agent=TEXT)
    expect(one, {ONE: 100, TWO: 60, THREE: 10})  # steps of ten, where servers take turns
    tell(TWO, "says", "up ready weight:80%\r\n")
    expect(one, {ONE: 100, TWO: 80, THREE: 10})  # an average with what it said before, which comes to it


def test_an_agent_takes_its_server_out_and_brings_it_back_but_not_the_last_one(run, tell):
    one = run(agent=TEXT)
    expect(one, ALL)
    tell(ONE, "says", "drain\n")
    expect(one, ALL | {ONE: 0})
    tell(TWO, "says", "50% maint # an update\n")
    expect(one, ALL | {ONE: 0, TWO: 0})
    tell(THREE, "says", "down\n")
    expect(one, {ONE: 100, TWO: 50, THREE: 100})
    tell(THREE, "says", "30% up\n")
    expect(one, {ONE: 0, TWO: 0, THREE: 30})


def test_health_goes_before_what_an_agent_says(run, tell):
    one = run(agent=TEXT)
    expect(one, ALL)
    tell(ONE, "up", False)
    expect(one, ALL | {ONE: 0})
    tell(ONE, "says", "70% up ready\n")
    one.wait_for("its agent is heard", lambda: " 70 - " in known_shares(one))
    assert weights(one) == ALL | {ONE: 0}
    tell(ONE, "up", True)
    expect(one, ALL | {ONE: 70})


def test_one_that_dies_while_it_drains_is_told_to_be_down(run, tell):
    """Its weight is 0 already: what the checks write down is all that tells one from the other."""
    one = run(agent=TEXT)
    expect(one, ALL)
    tell(ONE, "says", "drain\n")
    expect(one, ALL | {ONE: 0})
    one.wait_for("it is written down that it drains", lambda: " drain - up" in known_shares(one))
    tell(ONE, "up", False)
    one.wait_for("it is down", lambda: state(one, ONE) == "down")


def known_shares(one):
    return known_file(one).read_text()


def state(one, server):
    """What the checks last wrote of a server; None before they have written anything of it."""
    found = [line.split()[-1] for line in known_shares(one).splitlines() if line.split()[1] == server]
    return found[0] if found else None


GARBAGE = [
    "x" * 1_000_000, "300%\n", "-1\n", "weight:abc\n", "NaN\n", "5\0%\n", "5\0\n\0", "", "\n", None, "reset",
    "drip:50%\n",
]  # fmt: skip


def test_nothing_else_changes_a_weight_and_it_is_said_once(run, tell):
    one = run(agent=TEXT)
    expect(one, ALL)
    for words in zip(GARBAGE[::3], GARBAGE[1::3], GARBAGE[2::3], strict=True):
        for server in ALL:
            tell(server, "says", "60%\n")
        expect(one, dict.fromkeys(ALL, 60))
        before = len(lines(one, "is not heard"))
        for server, text in zip(ALL, words, strict=True):
            tell(server, "says", text)
        one.wait_for(f"complaints of {words!r:.200}", lambda before=before: len(lines(one, "is not heard")) > before)
        assert set(weights(one).values()) <= {60, 100}
        # A server whose agent has gone has its own weight again, and nobody complains twice.
        expect(one, ALL)
        one.wait_for("a complaint of each", lambda before=before: len(lines(one, "is not heard")) >= before + 3)
        assert len(lines(one, "is not heard")) == before + 3


def test_the_page_of_a_load(run, tell):
    page = "HTTP/1.0 200 OK\r\n\r\n"
    for server in (ONE, TWO, THREE):
        tell(server, "says", f"{page}0\n")
    one = run(agent=Agent(AgentKind.HTTP, interval=1))
    expect(one, ALL)
    tell(ONE, "says", f"{page}40\n")
    expect(one, ALL | {ONE: 60})
    tell(ONE, "says", f"{page}101\n")
    expect(one, ALL | {ONE: 0})
    tell(ONE, "says", f"{page}102\n")
    tell(TWO, "says", "HTTP/1.0 404 Not Found\r\n\r\n0\n")
    one.wait_for("a complaint", lambda: lines(one, "404 Not Found"))
    assert weights(one) == ALL | {ONE: 0}


def test_slow_answers_make_a_small_weight(run, tell):
    tell(TWO, "slow", 2)  # of any machine the others take much less
    check = dataclasses.replace(CHECK, kind=CheckKind.HTTP)
    one = run(agent=Agent(AgentKind.RESPONSE), check=check)
    one.wait_for("a small weight", lambda: 25 <= weights(one).get(TWO, 100) < 60)


def test_what_came_back_gets_its_weight_step_by_step(run, tell):
    one = run(slow_start=10)
    expect(one, ALL)  # at once: it has just begun
    tell(ONE, "up", False)
    expect(one, ALL | {ONE: 0})
    tell(ONE, "up", True)
    expect(one, ALL)
    steps = written(one, ONE)
    steps = steps[len(steps) - steps[::-1].index(0) :]
    assert steps == sorted(steps) and len(steps) > 2 and steps[0] == 10 and steps[-1] == 100


def test_the_next_ldirectord_goes_on(run, tell):
    for server, words in ((ONE, "40%\n"), (TWO, "drain\n")):
        tell(server, "says", words)
    one = run(agent=TEXT, slow_start=3600)
    expect(one, {ONE: 40, TWO: 0, THREE: 100})
    tell(THREE, "up", False)
    expect(one, {ONE: 40, TWO: 0, THREE: 0})
    tell(THREE, "up", True)
    expect(one, {ONE: 40, TWO: 0, THREE: 10})
    one.wait_for("it is written down", lambda: f"{THREE} 10 " in known_shares(one))
    one.terminate()
    tell(ONE, "says", "90%\n")
    for server in (TWO, THREE):
        tell(server, "says", None)
    two = run(table=known(_81=40, _82=0, _83=10), agent=TEXT, slow_start=3600)
    two.wait_for("agents that are not heard", lambda: len(lines(two, "is not heard")) == 2)
    assert (weights(two)[TWO], weights(two)[THREE]) == (0, 10)
    assert not [line for line in two.commands() if " -w 100" in line]
    two.wait_for("the first agent's new figure", lambda: weights(two)[ONE] == 90)
    assert any(40 < weight < 90 for weight in written(two, ONE)), "the average goes on"


def test_the_name_of_a_service_is_no_setting(run, tell):
    tell(ONE, "says", "50%\n")
    line = f"-t {VIP} id=9 agent=text port=3333 interval=1 floor=10 slow=0 least=0 then=tell again=0"
    one = run(name=f"balance {line}")
    expect(one, dict.fromkeys(ALL, 1))
    assert not known_file(one).exists()


def known_file(one):
    return one.box.root / "run/fairlead/weights"


def keep(count, then=TooFew.KEEP, again=0):
    return {"least_healthy": LeastHealthy(count, then, again)}


def test_the_last_one_stays_though_it_fails(run, tell, told):
    one = run(**keep(1))
    expect(one, dict.fromkeys(ALL, 1))
    tell(ONE, "up", False)
    tell(TWO, "up", False)
    expect(one, {ONE: 0, TWO: 0, THREE: 1})
    tell(THREE, "up", False)
    one.wait_for("it is said", lambda: lines(one, "fails and stays"))
    assert weights(one) == {ONE: 0, TWO: 0, THREE: 1}
    first, second, third = PLACES
    newest, *_ = told(f"down {first}", f"down {second}", f"kept {third}")
    assert "refused" in newest["reason"]
    tell(ONE, "up", True)
    expect(one, {ONE: 1, TWO: 0, THREE: 0})
    told(*(f"down {place}" for place in PLACES), f"kept {third}", f"up {first}")
    tell(TWO, "up", True)
    tell(THREE, "up", True)
    expect(one, dict.fromkeys(ALL, 1))
    told(*(f"{state} {place}" for place in PLACES for state in ("down", "up")), f"kept {third}")


def test_one_that_was_kept_and_is_well_again_is_told_also_by_the_next_ldirectord(run, tell, told):
    one = run(**keep(3))
    expect(one, dict.fromkeys(ALL, 1))
    for number, state in enumerate((False, True, False), 1):
        tell(ONE, "up", state)
        told(*[f"kept {PLACES[0]}", f"up {PLACES[0]}", f"kept {PLACES[0]}"][:number])
    one.terminate()
    tell(ONE, "up", True)
    run(table=known(_81=1, _82=1, _83=1), **keep(3))
    told(*[f"kept {PLACES[0]}", f"up {PLACES[0]}"] * 2)


def test_too_few_stand_aside_until_enough_are_back(run, tell, told):
    one = run(**keep(2, TooFew.ASIDE, 3))
    expect(one, dict.fromkeys(ALL, 1))
    tell(ONE, "up", False)
    expect(one, {ONE: 0, TWO: 1, THREE: 1})
    tell(TWO, "up", False)
    expect(one, dict.fromkeys(ALL, 0))
    first, second, _ = PLACES
    [aside] = [one for one in told(f"down {first}", f"down {second}", "aside all") if one["state"] == "aside"]
    assert aside["reason"] == "1 of 3 servers are well, at least 2 must be"
    tell(TWO, "up", True)
    one.wait_for("the second is well", lambda: state(one, TWO) == "well")
    tell(ONE, "up", True)
    expect(one, dict.fromkeys(ALL, 1))
    assert lines(one, "Of 3 servers 3 are well")
    told(*(f"{state} {place}" for place in (first, second) for state in ("down", "up")), "aside all", "up all")


def test_what_stands_aside_is_told_by_the_next_ldirectord_and_so_is_who_failed_meanwhile(run, tell, told):
    for place in PLACES[:2]:
        tell(place, "up", False)
    one = run(**keep(2, TooFew.ASIDE))
    first, second, third = PLACES
    told(f"down {first}", f"down {second}", "aside all")
    tell(ONE, "up", True)
    expect(one, {ONE: 1, TWO: 0, THREE: 1})
    told(f"down {first}", f"up {first}", f"down {second}", "aside all", "up all")
    # Two and three are well and not heard, as long as the service stands aside; then three fails.
    tell(ONE, "up", False)
    expect(one, dict.fromkeys(ALL, 0))
    tell(THREE, "up", False)
    one.wait_for("the third fails", lambda: state(one, THREE) == "down")
    tell(TWO, "up", True)
    one.wait_for("the second is well", lambda: state(one, TWO) == "well")
    tell(ONE, "up", True)
    expect(one, {ONE: 1, TWO: 1, THREE: 0})
    told(*[f"{state} {first}" for state in ("down", "up")] * 2, *["aside all", "up all"] * 2,
         f"down {second}", f"up {second}", f"down {third}")  # fmt: skip
