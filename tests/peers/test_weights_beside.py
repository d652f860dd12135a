"""Agents that the box and HAProxy ask at the same time: both make the same weights of what they say."""

from __future__ import annotations

import contextlib
import csv
import subprocess
import sys

import pytest
from board.machines.wait import WaitedInVain, until
from tests.lab.fixtures import thorough
from tests.peers import test_weights
from tests.peers.lab import Server
from tests.peers.test_weights import ONE, TEXT, THREE, TWO, weights

from lbconfig.model.snapshot import Scheduler

agents, tell, run = test_weights.agents, test_weights.tell, test_weights.run
POINTS = 5
# What the agents say, and the weight that HAProxy's manual gives each (5.2, agent-check). No share below our least one.
STEPS = [
    {ONE: ("57%\n", 57), TWO: ("93%\n", 93), THREE: ("12%\n", 12)},
    {ONE: ("44%\n", 44), TWO: ("ready 75%\n", 75), THREE: ("100% up # well\n", 100)},
    {ONE: ("drain\n", 0), TWO: ("38%,ready\r\n", 38), THREE: ("66%\n", 66)},
    {ONE: ("drain,20%\n", 0), TWO: ("50% maint # an update\n", 0), THREE: ("maxconn:30 81%\n", 81)},
    {ONE: ("ready 51%\n", 51), TWO: ("ready 52%\n", 52), THREE: ("down\n", 0)},
    {ONE: ("ready up 53%\n", 53), TWO: ("stopped\n", 0), THREE: ("up 54%\n", 54)},
    {ONE: ("26%\n", 26), TWO: ("up 87%\n", 87), THREE: ("up 99%\n", 99)},
]
# Its statistics, asked inside the room.
STATISTICS = """
import socket, sys
end = socket.create_connection((sys.argv[1], 9999), 60)
end.sendall(b"show stat site 4 -1\\n")
while piece := end.recv(65536):
    sys.stdout.buffer.write(piece)
"""


@pytest.fixture
def theirs(lab, agents):
    """The weights that HAProxy has now."""
    with contextlib.closing(Server("haproxy", 24, lab.box, lab.certificates, lab.tree)) as server:

        def weights():
            words = server.beside(sys.executable, "-c", STATISTICS, "10.2.0.24")
            done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
            if done.returncode:
                raise OSError(done.stderr)
            lines = list(csv.DictReader(done.stdout.removeprefix("# ").splitlines()))
            serving = [line for line in lines if line["status"].startswith(("UP", "no check"))]
            return {f"{one['svname']}:80": int(one["weight"]) if one in serving else 0 for one in lines}

        until("HAProxy", lambda: set(weights()) == {ONE, TWO, THREE}, 60)
        yield weights


@thorough
@pytest.mark.parametrize("scheduler", [Scheduler.WRR, Scheduler.WLC])
def test_the_same_agents_make_the_same_weights(run, tell, theirs, scheduler):
    one = run(agent=TEXT, scheduler=scheduler)
    for step in STEPS:
        for server, (text, _) in step.items():
            tell(server, "says", text)
        wanted = {server: weight for server, (_, weight) in step.items()}
        with contextlib.suppress(WaitedInVain):  # a comparison says more
            until("HAProxy", lambda wanted=wanted: theirs() == wanted)
        assert theirs() == wanted

        def beside(wanted=wanted):
            ours = weights(one)
            return ours.keys() == wanted.keys() and all(abs(ours[key] - wanted[key]) <= POINTS for key in wanted)

        one.wait_for(f"within {POINTS} points of {wanted}", beside)
