"""The program that loads ldirectord once and starts it from there (Fairlead::Spawner), with the real ldirectord.

What the applier says to it is said here by hand. The IPVS table is a file (servers/box/usr/sbin/ipvsadm).
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from board.machines.wait import until
from tests.peers.room import CLEAN, UNDEFINED
from tests.peers.test_faults import NOBODY, VIP, render, service

from applier.base import durable

SPAWNER = {
    "PERLIO": "perlio",
    "PERL5OPT": "-Mfairlead -MFairlead::Spawner",
    "PERL5LIB": "/usr/lib/fairlead/perl",
}
FILE = "/run/ldirectord.cf"
SOON = 60  # seconds, on a busy machine


class Spawner:
    def __init__(self, box):
        self.box, self.run = box, box.root / "run"
        for name in ("table.json", "commands", "ldirectord.wanted", "ldirectord.socket"):
            (self.run / name).unlink(missing_ok=True)
        self.put("ldirectord.cf", render(service(1, NOBODY)))
        self.begin()

    def begin(self):
        with (self.run / "log").open("a") as log:
            self.process = subprocess.Popen(
                self.box.inside("ldirectord", FILE, "start"),
                env=CLEAN | SPAWNER, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        until("the spawner", lambda: self.say("state"), SOON)

    def put(self, name, text):
        """In one piece, as the applier does it: the spawner may read it at the moment."""
        durable.replace(self.run / name, text.encode())

    def say(self, line) -> str:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(SOON)
            connection.connect(str(self.run / "ldirectord.socket"))
            connection.sendall(f"{line}\n".encode())
            with connection.makefile() as answer:
                return answer.readline().strip()

    def state(self) -> str:
        return self.say("state").split()[0]

    def wait_for(self, state):
        until(state, lambda: self.state() == state, SOON)

    def table(self) -> dict:
        """{virtual address: {server: weight}} of what ipvsadm was told."""
        try:
            table = json.loads((self.run / "table.json").read_text())
        except FileNotFoundError:
            return {}
        return {name.split()[1]: {server: one[1] for server, one in servers.items()} for name, servers in table.items()}

    def named(self, words) -> list[int]:
        """Processes of the room whose command line begins so."""
        found = []
        for number in self.box.processes():
            try:
                if Path(f"/proc/{number}/cmdline").read_text().startswith(words):
                    found.append(number)
            except OSError:
                continue
        return found


def parent(number) -> int:
    return int(re.search(r"^PPid:\t(\d+)", Path(f"/proc/{number}/status").read_text(), re.MULTILINE)[1])


@pytest.fixture
def spawner(lab):
    started = Spawner(lab.box)
    yield started
    lab.box.end_processes()
    started.process.wait(SOON)
    assert not UNDEFINED.search((started.run / "log").read_text())


@pytest.fixture
def web(lab):
    return lab.servers["nginx"].addresses[0]


def test_a_file_is_read_and_the_table_is_touched_only_when_its_turn_comes(spawner, web):
    spawner.put("new.cf", render(service(1, web)))
    assert spawner.say("read /run/new.cf") == "good"
    assert spawner.say("state").startswith("down 0 ")
    assert spawner.table() == {} and not (spawner.run / "commands").exists()
    (waiting,) = spawner.named("ldirectord: reads /run/new.cf")
    (spawner.run / "new.cf").rename(spawner.run / "ldirectord.cf")
    assert spawner.say("start") == "run"
    spawner.wait_for("checked")
    until("a weight", lambda: spawner.table() == {VIP: {f"{web}:80": 1}}, SOON)
    assert waiting in spawner.named("ldirectord: checks")


def test_checks_that_run_are_not_disturbed_by_a_file_that_is_read_or_bad(spawner, web):
    spawner.put("ldirectord.cf", render(service(1, web)))
    assert spawner.say("start") == "run"
    spawner.wait_for("checked")
    number = spawner.say("state").split()[1]
    spawner.put("new.cf", render(service(1, web)) + "    nonsense=1\n")
    said = spawner.say("read /run/new.cf")
    assert said.startswith("bad ") and "nonsense" in said
    assert spawner.say("read /run/nothing.cf").startswith("bad /run/nothing.cf: No such file")
    assert spawner.say("whatever") == "bad unknown order"
    spawner.put("new.cf", render(service(2, web)))
    assert spawner.say("read /run/new.cf") == "good"
    assert spawner.say("state").split()[:2] == ["checked", number]
    assert VIP in spawner.table()


def test_a_start_goes_by_the_file_and_not_by_what_was_read_before(spawner, web):
    spawner.put("new.cf", render(service(2, web)))
    assert spawner.say("read /run/new.cf") == "good"
    spawner.put("ldirectord.cf", render(service(1, web)))
    assert spawner.say("start") == "run"
    until("a weight", lambda: spawner.table() == {VIP: {f"{web}:80": 1}}, SOON)
    until("the end of what was read before", lambda: not spawner.named("ldirectord: reads"), SOON)


def test_a_start_by_a_bad_file_is_refused_and_tried_again_until_the_file_is_good(spawner, web):
    spawner.put("ldirectord.cf", "nonsense=1\n")
    assert spawner.say("start").startswith("bad ")
    assert spawner.state() == "again"
    spawner.put("ldirectord.cf", render(service(1, web)))
    spawner.wait_for("checked")
    spawner.put("ldirectord.cf", "nonsense=1\n")
    assert spawner.say("stop") == "down"
    assert spawner.say("start").startswith("bad ")
    assert spawner.say("stop") == "down" and spawner.state() == "down"


def test_a_stop_ends_all_of_it_and_keeps_the_table(spawner, web):
    spawner.put("ldirectord.cf", render(service(1, web)))
    spawner.say("start")
    until("a weight", lambda: spawner.table() == {VIP: {f"{web}:80": 1}}, SOON)
    assert len(spawner.named("ldirectord: checks")) >= 2  # it and a worker
    assert spawner.say("stop") == "down"
    assert not spawner.named("ldirectord: checks")
    assert spawner.table() == {VIP: {f"{web}:80": 1}}
    assert spawner.say("stop") == "down"


def test_checks_that_are_killed_come_back(spawner, web):
    spawner.put("ldirectord.cf", render(service(1, web)))
    spawner.say("start")
    spawner.wait_for("checked")
    before = spawner.say("state").split()[1]
    checks = set(spawner.named("ldirectord: checks"))
    (checker,) = {number for number in checks if parent(number) not in checks}
    os.kill(checker, signal.SIGKILL)
    until("another one", lambda: spawner.state() == "checked" and spawner.say("state").split()[1] != before, SOON)
    until("no rest of the first", lambda: checker not in spawner.named("ldirectord: checks"), SOON)


def test_nothing_outlives_the_spawner_and_the_next_one_goes_on(spawner, web):
    spawner.put("ldirectord.cf", render(service(1, web)))
    spawner.say("start")
    spawner.wait_for("checked")
    (parent,) = spawner.named("ldirectord: waits for orders")
    os.kill(parent, signal.SIGKILL)
    spawner.process.wait(SOON)
    until("the end of all", lambda: not spawner.named("ldirectord"), SOON)
    spawner.begin()
    spawner.wait_for("checked")


def test_whoever_asks_and_says_nothing_holds_nobody_up(spawner):
    with socket.socket(socket.AF_UNIX) as silent:
        silent.connect(str(spawner.run / "ldirectord.socket"))
        assert re.fullmatch(r"down 0 \d+", spawner.say("state"))


def test_a_stop_while_the_file_is_being_read_is_a_stop(spawner):
    """Whoever changes the table then relies on it."""
    many = [service(n, *(f"10.2.0.{place}" for place in range(1, 200))) for n in range(1, 50)]
    spawner.put("ldirectord.cf", render(*many))
    with socket.socket(socket.AF_UNIX) as starting:
        starting.connect(str(spawner.run / "ldirectord.socket"))
        starting.sendall(b"start\n")
        until("a reader", lambda: spawner.named("ldirectord: reads"), SOON, 0.01)
        assert spawner.say("stop") == "down"
    until("its end", lambda: not spawner.named("ldirectord: reads"), SOON)
    assert spawner.state() == "down" and not spawner.named("ldirectord: checks")
