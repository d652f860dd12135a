"""Faults of ldirectord, each with the rule or the module of ours that keeps it away and without it.

The real ldirectord runs in the box, with an IPVS table that is a file (servers/box/usr/sbin/ipvsadm). "Without" shows
that the fault is still there: where such a test fails, a new ldirectord has fixed it, and the rule can go.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from board.machines.wait import until
from test_shapes import SHAPES
from tests.peers.room import CLEAN, UNDEFINED
from tests.peers.test_kinds import NEEDS, PLACES

from applier.base import durable
from lbconfig.model.snapshot import CheckKind, HealthCheck, RealServer, Snapshot, VirtualService
from lbconfig.render import ldirectord

PLAIN = {"PERLIO": "perlio", "PERL5OPT": "-MUnbuffered"}
MODULES = {"PERLIO": "perlio", "PERL5OPT": "-Mfairlead", "PERL5LIB": "/usr/lib/fairlead/perl"}
SOON = 60  # seconds, on a busy machine
NOBODY = "10.2.0.99"  # takes no connections
CONNECT = HealthCheck(CheckKind.CONNECT, interval=1, timeout=2, failures=1)
VIP = "10.2.0.201:80"  # of service 1
STARTED = "Child not running"  # what it says after its first round, without our modules
ROUNDS = 3  # of checks, until something that does not happen counts as not happening
with_modules = pytest.mark.parametrize("modules", [True, False], ids=["with", "without"])
both = pytest.mark.parametrize("rule", [True, False], ids=["with", "without"])
numbers = itertools.count(1)


class Checker:
    """An ldirectord that runs."""

    def __init__(self, box, text, env=MODULES, table=None):
        self.box = box
        for name in ("table.json", "commands"):
            (box.root / "run" / name).unlink(missing_ok=True)
        if table is not None:
            (box.root / "run/table.json").write_text(json.dumps(table))
        self.file = box.root / f"run/{next(numbers)}.cf"  # its name is that of the process's number on disk
        self.file.write_text(text)
        self.log = self.file.with_suffix(".log")
        with self.log.open("w") as log:
            self._process = subprocess.Popen(
                box.inside("ldirectord", f"/run/{self.file.name}", "start"),
                env=CLEAN | env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def table(self) -> dict:
        """{service: {server: weight}}"""
        table = json.loads((self.box.root / "run/table.json").read_text())
        return {
            service.split()[1]: {server: numbers[1] for server, numbers in servers.items()}
            for service, servers in table.items()
        }

    def commands(self) -> list[str]:
        return (self.box.root / "run/commands").read_text().splitlines()

    def wait_for(self, what, look, seconds=SOON):
        try:
            return until(what, look, seconds, expected=(OSError, ValueError, KeyError))
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.log.read_text()[-3000:]}") from None

    def terminate(self):
        """As a shutdown asks it to; nsenter alone would end, and leave it."""
        [process] = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        os.kill(int(process), signal.SIGTERM)
        self.wait()

    def runs(self) -> bool:
        return self._process.poll() is None

    def wait(self):
        self._process.wait(SOON)
        assert not UNDEFINED.search(self.log.read_text())


@pytest.fixture
def web(lab):
    return lab.servers["nginx"].addresses[0]


@pytest.fixture
def check(lab):
    """check(text, …) -> a Checker, ended at the end of the test."""
    started = []

    def start(*words, **more):
        started.append(Checker(lab.box, *words, **more))
        return started[-1]

    yield start
    lab.box.end_processes()
    for one in started:
        one.wait()


def service(number, *servers, check=CONNECT, port=80):
    reals = tuple(RealServer(10 * number + n, address, port) for n, address in enumerate(servers))
    return VirtualService(number, f"s{number}", f"10.2.0.{200 + number}", 80, check=check, real_servers=reals)


def render(*services, rule=True, without=("", "")):
    """The rendered file, or the same one without a rule: a text of it and what is there in its place."""
    text = ldirectord.render(Snapshot(services))
    assert without[0] in text
    return text if rule else text.replace(*without)


def known(number, weight, *servers, port=80):
    """A table that has this service."""
    return {f"-t 10.2.0.{200 + number}:80": {f"{one}:{port}": ["m", weight, 0, 0] for one in servers}}


def test_a_file_with_every_kind_is_read(lab):
    """What `status` says of it: 2: there is an error in it; 3: it could be read, and no ldirectord runs by it."""
    services = [
        service(n, "10.2.0.11", check=HealthCheck(kind, port=7, **NEEDS.get(kind, {})))
        for n, kind in enumerate(PLACES, 1)
    ]
    program = HealthCheck(CheckKind.PROGRAM, program="#!/bin/sh\nexit 0\n", login="kim", password="x", ask="x #1")
    services.append(service(50, "10.2.0.11", check=program))
    for text, code in ((render(*services), 3), (render(*services) + "    nonsense=1\n", 2)):
        (lab.box.root / "run/lint.cf").write_text(text)
        assert lab.box.command(["ldirectord", "/run/lint.cf", "status"]).exit == code


def test_configurations_as_people_have_them_are_read(lab):
    """All of them in one file, each at an address of its own."""
    every = [(n, one) for n, services in enumerate(SHAPES.values(), 101) for one in services]
    services = [
        dataclasses.replace(one, id=number, name=f"s{number}", address=f"10.2.0.{n}")
        for number, (n, one) in enumerate(every, 1)
    ]
    (lab.box.root / "run/lint.cf").write_text(render(*services))
    assert lab.box.command(["ldirectord", "/run/lint.cf", "status"]).exit == 3


@both
def test_a_dead_server_gets_no_weight_at_a_start(check, rule):
    text = render(service(1, NOBODY), rule=rule, without=("readdquiescent=yes", "readdquiescent=no"))
    one = check(text, table=known(1, 0, NOBODY))
    one.wait_for("the first check", lambda: "checked once" in one.log.read_text())
    raised = [line for line in one.commands() if f"-r {NOBODY}:80" in line and "-w 1" in line]
    assert bool(raised) is not rule


@both
def test_its_end_leaves_the_table_as_it_is(check, rule):
    text = render(service(1, NOBODY), rule=rule, without=("cleanstop=no", "cleanstop=yes"))
    one = check(text, PLAIN, table=known(1, 0, NOBODY))
    one.wait_for("the end of its start", lambda: STARTED in one.log.read_text())
    one.terminate()
    assert one.table() == ({VIP: {f"{NOBODY}:80": 0}} if rule else {})


@both
def test_a_file_that_is_broken_while_it_runs_stops_no_check(lab, check, rule, web):
    text = render(service(1, web), rule=rule, without=("autoreload=no", "autoreload=yes"))
    text = text.replace("fork=yes", "checkinterval=1")
    one = check(text, PLAIN, table=known(1, 1, web))
    one.wait_for("its start", one.commands)
    changes = itertools.count()

    def seen():
        """It looks at the file after each round; the first time, it only remembers it."""
        durable.replace(one.file, f"{text}    nonsense={next(changes)}\n".encode())
        return "changed on disk" in one.log.read_text()

    one.wait_for("it to see a change", seen)
    with unreachable(lab, web):
        if rule:
            one.wait_for("the server to leave", lambda: one.table()[VIP] == {f"{web}:80": 0})
        time.sleep(ROUNDS * CONNECT.interval)
        assert one.table()[VIP][f"{web}:80"] == (0 if rule else 1)


@both
def test_a_service_that_comes_takes_no_server_of_another_away(check, web, rule):
    """Its server waits with weight 0 for the first check, as the applier adds it."""
    text = render(service(1, web), service(2, web), rule=rule, without=("(?:vs2)", "(?:vs1)"))
    one = check(text, PLAIN, table=known(1, 1, web) | known(2, 0, web))
    one.wait_for("the end of its start", lambda: STARTED in one.log.read_text())
    taken = [line for line in one.commands() if VIP in line and "-w 0" in line]
    assert bool(taken) is not rule


@both
def test_services_that_share_a_server_count_its_failures_by_themselves(check, rule):
    three = dataclasses.replace(CONNECT, failures=3)
    services = [service(n, NOBODY, check=three) for n in (1, 2)]
    text = render(*services, rule=rule, without=("(?:vs2)", "(?:vs1)"))
    one = check(text, PLAIN, table=known(1, 1, NOBODY) | known(2, 1, NOBODY))
    one.wait_for("it to leave", lambda: one.table()[VIP] == {f"{NOBODY}:80": 0})
    assert ("(tcp:10.2.0.201:80) failure 2/3" in one.log.read_text()) is rule


@with_modules
def test_silent_servers_do_not_delay_the_check_of_another(check, web, modules):
    silent = [f"10.2.0.{number}" for number in range(150, 154)]  # nobody has these addresses
    slow = dataclasses.replace(CONNECT, timeout=SOON if modules else 2)
    alone = len(silent) * slow.timeout  # seconds, one after the other
    text = render(service(1, *silent, check=slow), service(2, web))
    table = known(1, 1, *silent) | known(2, 0, web)
    began = time.monotonic()
    one = check(text if modules else text.replace("fork=yes", "fork=no"), MODULES if modules else PLAIN, table=table)
    one.wait_for("the other to be up", lambda: one.table()["10.2.0.202:80"] == {f"{web}:80": 1})
    if not modules:
        assert time.monotonic() - began >= alone - slow.timeout


def test_it_says_that_the_first_round_is_over_before_silent_servers_have_failed(check, web):
    """The web page of a box that starts waits for it (overlay/etc/sv/later), also where many are silent."""
    silent = [f"10.2.0.{number}" for number in range(150, 190)]  # nobody has these addresses; more than it asks at once
    patient = dataclasses.replace(CONNECT, timeout=SOON)
    said = {"FAIRLEAD_AFTER_FIRST_ROUND": "touch /run/over"}
    one = check(render(service(1, web), service(2, *silent, check=patient)), MODULES | said, table=known(1, 1, web))
    one.wait_for("it to say so", (one.box.root / "run/over").exists)
    assert "checked once" not in one.log.read_text()


@with_modules
def test_a_service_that_is_there_is_not_defined_anew(check, web, modules):
    """ldirectord knows nothing of --pe and one-packet scheduling: its -E would end them."""
    one = check(render(service(1, web)), MODULES if modules else PLAIN, table=known(1, 0, web))
    one.wait_for("the server to be up", lambda: one.table()[VIP] == {f"{web}:80": 1})
    assert any(line.startswith("-E") for line in one.commands()) is not modules


@with_modules
def test_a_certificate_of_its_own_is_good_enough_unless_it_must_be_good(check, web, modules):
    any_one = HealthCheck(CheckKind.HTTPS, interval=1, timeout=20, failures=1)
    one = check(render(service(1, web, check=any_one, port=443)), MODULES if modules else PLAIN)
    if modules:
        one.wait_for("the server to be up", lambda: one.table()[VIP] == {f"{web}:443": 1})
    else:
        one.wait_for("the end of its start", lambda: STARTED in one.log.read_text())
        assert one.table()[VIP] == {f"{web}:443": 0}


@with_modules
def test_a_kind_whose_library_is_not_there_does_not_end_it(lab, check, modules):
    """The released image has none of them."""
    (lab.box.root / "usr/share/perl5/Authen/Radius.pm").unlink(missing_ok=True)
    radius = HealthCheck(CheckKind.RADIUS, secret="x", interval=1, timeout=1, failures=1)
    one = check(render(service(1, NOBODY, check=radius)), MODULES if modules else PLAIN)
    if modules:
        one.wait_for("the first check", lambda: "checked once" in one.log.read_text())
        assert one.runs()
    else:
        one.wait_for("its end", lambda: not one.runs())
        assert "Authen/Radius.pm" in one.log.read_text()


@contextlib.contextmanager
def unreachable(lab, address):
    lab.box.ip("route", "add", "unreachable", f"{address}/32")
    try:
        yield
    finally:
        lab.box.ip("route", "del", "unreachable", f"{address}/32")


def workers(box) -> list[Path]:
    """The processes that talk to servers, as /proc has them: children of another process of the box."""
    numbers, found = box.processes(), []
    for number in numbers:
        with contextlib.suppress(OSError):  # it has just ended
            status = Path(f"/proc/{number}/status").read_text()
            if int(re.search(r"^PPid:\t(\d+)", status, re.MULTILINE)[1]) in numbers:
                found.append(Path(f"/proc/{number}"))
    return found


def workers_alone(one) -> list[Path]:
    """Once nothing runs beside them: who has written the table is there a moment longer than what it wrote.

    And once each of them is done with giving up its rights, of which privileges that may come back are the last.
    """

    def look() -> list[Path]:
        found = workers(one.box)
        texts = [(worker / "status").read_text() for worker in found]
        done = [re.search(r"^Uid:\t(\d+)[\s\S]*^NoNewPrivs:\t(\d)", text, re.MULTILINE).groups() for text in texts]
        return found if set(done) == {("989", "1")} else []

    return one.wait_for("workers alone", look)


def test_who_talks_to_servers_may_do_nothing_else(check, web):
    one = check(render(service(1, web, check=dataclasses.replace(CONNECT, interval=1))), table=known(1, 0, web))
    one.wait_for("the server to be up", lambda: one.table()[VIP] == {f"{web}:80": 1})
    for worker in workers_alone(one):
        status = dict(re.findall(r"^(\w+):\t(.*)$", (worker / "status").read_text(), re.MULTILINE))
        assert set(status["Uid"].split()) == set(status["Gid"].split()) == {"989"}
        assert status["Groups"].split() == ["989"]
        assert {int(status[name], 16) for name in ("CapPrm", "CapEff", "CapInh")} == {0}
        assert status["NoNewPrivs"] == "1"
        assert (worker / "oom_score_adj").read_text() == "1000\n"
        limits = (worker / "limits").read_text()
        assert re.search(r"^Max processes +0 ", limits, re.MULTILINE)
        assert re.search(r"^Max data size +\d{8} ", limits, re.MULTILINE)


def test_a_check_that_does_not_come_back_has_failed_in_time(check, web):
    """Its own clock may stand, as where a library catches the alarm: the process that keeps the table has another."""
    one = check(render(service(1, web)), table=known(1, 0, web))
    one.wait_for("the server to be up", lambda: one.table()[VIP] == {f"{web}:80": 1})

    for worker in workers_alone(one):
        os.kill(int(worker.name), signal.SIGSTOP)
    one.wait_for("it to be judged", lambda: f"no verdict within {CONNECT.timeout} s" in one.log.read_text())
    left = f"-r {web}:80 -m -w 0"
    one.wait_for("it to leave", lambda: any(left in line for line in one.commands()))


def test_why_a_server_leaves_is_told(lab, check, web):
    """As the applier takes it (applier/kept/events.py)."""
    (lab.box.root / "run/told").unlink(missing_ok=True)
    folder = os.open(lab.box.root / "run", os.O_RDONLY)  # the whole name may be too long for a socket
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as door:
        door.bind(f"/proc/self/fd/{folder}/told")
        os.close(folder)
        door.settimeout(SOON)
        busy = HealthCheck(CheckKind.HTTP, path="/busy", interval=1, timeout=SOON, failures=2)
        check(render(service(1, web, check=busy)), MODULES | {"FAIRLEAD_EVENTS": "/run/told"}, table=known(1, 1, web))
        told = json.loads(door.recv(4096))
    assert told.pop("seconds") > 0
    assert told == {
        "service": 1,
        "server": web,
        "port": 80,
        "state": "down",
        "failures": 2,
        "reason": "503 Service Temporarily Unavailable",
    }
