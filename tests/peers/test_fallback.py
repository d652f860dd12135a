"""A fallback server that is checked itself, and one beside a real server: the real ldirectord with our modules."""

from __future__ import annotations

import dataclasses

import pytest
from tests.peers.lab import NETWORK
from tests.peers.test_weights import (  # noqa: F401 (fixtures)
    CHECK,
    ONE,
    PLACES,
    THREE,
    TWO,
    agents,
    expect,
    known,
    lines,
    run,
    tell,
    told,
)

from applier.service import trial
from lbconfig.model.snapshot import (
    Agent,
    CheckKind,
    Fallback,
    FallbackCheck,
    FallbackKind,
    HealthCheck,
    Protocol,
    RealServer,
    Scheduler,
    Snapshot,
    VirtualService,
)

CHECKED = Fallback(FallbackKind.SERVER, PLACES[2], check=FallbackCheck.CONNECT)
SAME = dataclasses.replace(CHECKED, check=FallbackCheck.SAME)
PAIR = tuple(RealServer(number, place, 80) for number, place in enumerate(PLACES[:2], 1))
PAGE = HealthCheck(CheckKind.HTTP, expect="ok", interval=1, timeout=20, failures=1)
TRIES = """#!/usr/bin/python3
import socket, sys
try:
    socket.create_connection((sys.argv[3], int(sys.argv[4])))
except OSError as error:
    sys.exit(error.strerror)
"""
PROGRAM = HealthCheck(CheckKind.PROGRAM, program=TRIES, interval=1, timeout=20, failures=1)


def begin(run, tell, *down, fallback=CHECKED, **fields):  # noqa: F811
    """Two real servers and a fallback server, of which these are down."""
    for server in down:
        tell(server, "up", False)
    return run(fallback=fallback, agent=Agent(), **{"real_servers": PAIR, **fields})


@pytest.mark.parametrize(
    ("fallback", "check"),
    [(CHECKED, PAGE), (SAME, CHECK), (SAME, PAGE), (SAME, PROGRAM)],
    ids=["connect", "same-connect", "same-page", "same-program"],
)
def test_it_stands_in_while_it_is_up(run, tell, told, fallback, check):  # noqa: F811
    one = begin(run, tell, fallback=fallback, check=check)
    expect(one, {ONE: 1, TWO: 1})
    for server in (ONE, TWO):
        tell(server, "up", False)
    expect(one, {ONE: 0, TWO: 0, THREE: 1})
    tell(THREE, "up", False)
    expect(one, {ONE: 0, TWO: 0})
    tell(THREE, "up", True)
    expect(one, {ONE: 0, TWO: 0, THREE: 1})
    tell(ONE, "up", True)
    expect(one, {ONE: 1, TWO: 0})
    downs = [f"down {place}" for place in PLACES]
    events = told(*downs, f"up {PLACES[0]}", f"up {PLACES[2]}")
    assert all(event["reason"].startswith("Connection refused") for event in events if event["state"] == "down")


@pytest.mark.parametrize(
    ("fallback", "check"),
    [(CHECKED, PAGE), (SAME, CHECK), (SAME, PAGE), (SAME, PROGRAM)],
    ids=["connect", "same-connect", "same-page", "same-program"],
)
def test_it_is_tried_beside_the_servers(lab, tell, fallback, check):  # noqa: F811
    service = VirtualService(9, "tried", "10.2.0.209", 80, fallback=fallback, check=check, real_servers=PAIR)

    def tried():
        found = trial.ask(lab.box, Snapshot((service,), NETWORK), 9)
        return [(one["server"], one["fallback"], one["state"]) for one in found]

    tell(TWO, "up", False)
    first, second, third = PLACES
    assert tried() == [(first, False, "up"), (second, False, "down"), (third, True, "up")]
    tell(THREE, "up", False)
    assert tried() == [(first, False, "up"), (second, False, "down"), (third, True, "down")]


def test_that_it_is_down_is_told_before_it_is_needed_and_then_it_stays_out(run, tell, told):  # noqa: F811
    one = begin(run, tell, THREE)
    expect(one, {ONE: 1, TWO: 1})
    told(f"down {PLACES[2]}")
    for server in (ONE, TWO):
        tell(server, "up", False)
    expect(one, {ONE: 0, TWO: 0})
    told(*(f"down {place}" for place in PLACES))
    assert not [line for line in one.commands() if PLACES[2] in line]


def test_checks_that_begin_while_it_stands_in_take_it_from_nobody(run, tell):  # noqa: F811
    one = begin(run, tell, ONE, TWO, table=known(_81=0, _82=0, _83=1))
    one.wait_for("the first round", lambda: lines(one, "All 3 servers were checked once"))
    expect(one, {ONE: 0, TWO: 0, THREE: 1})
    assert not [line for line in one.commands() if PLACES[2] in line]


def test_one_that_died_while_nobody_checked_leaves(run, tell):  # noqa: F811
    one = begin(run, tell, ONE, TWO, THREE, table=known(_81=0, _82=0, _83=1))
    expect(one, {ONE: 0, TWO: 0})


def test_a_fallback_server_beside_a_real_one_does_not_take_it_away(run, tell):  # noqa: F811
    """At another port of the same machine. ldirectord takes the real server for it, where it is not in the table."""
    fallback = Fallback(FallbackKind.SERVER, PLACES[0], 3333, FallbackCheck.OFF)
    one = begin(run, tell, fallback=fallback, real_servers=PAIR[:1], table=known(_81=1))
    one.wait_for("the first round", lambda: lines(one, "All 1 servers were checked once"))
    expect(one, {ONE: 1})
    tell(ONE, "up", False)
    expect(one, {ONE: 0, f"{PLACES[0]}:3333": 1})
    tell(ONE, "up", True)
    expect(one, {ONE: 1})
    assert not [line for line in one.commands() if line.startswith("-d") and line.endswith(ONE)]


def test_a_dead_server_that_leaves_takes_no_other_one_of_its_machine_along(run, tell):  # noqa: F811
    """Of UDP services, which have no weight 0."""
    twin = dataclasses.replace(PAIR[1], address=PLACES[0], port=81)
    check = dataclasses.replace(CHECK, port=80)
    tell(ONE, "up", True)
    vip = "10.2.0.209:80"
    fields = {"protocol": Protocol.UDP, "scheduler": Scheduler.WRR, "check": check, "real_servers": (PAIR[0], twin)}
    one = begin(run, tell, fallback=Fallback(), table={f"-u {vip}": {ONE: ["m", 1, 0, 0]}}, **fields)
    expect(one, {ONE: 1, f"{PLACES[0]}:81": 1})
    assert not [line for line in one.commands() if line.startswith("-d")]
