"""Power cuts and kills at any moment of an apply: what runs then was confirmed, and nothing that was told is lost.

FAIRLEAD_APPLY_CUTS=200 (make apply-cuts COUNT=200) for ten cuts and thirty kills, and a cut after every single step.
"""

import dataclasses
import itertools
import os
import random
import time

import pytest
from board.machines.director import NETWORK, VIP, service, wish
from board.machines.lab import BALANCED
from board.machines.machine import CommandFailed
from board.machines.updating import set_up
from board.machines.wait import until
from board.machines.world import SERVERS
from tests.lab.fixtures import thorough
from tests.lab.interruption import begin, changed, ended, stands, told

from applier.apply.steps import APPLY, Confirm
from lbconfig.model.snapshot import Interface, Policy, Snapshot, SorryPage, Vlan

ASKED = os.environ.get("FAIRLEAD_APPLY_CUTS")
COUNT = min(int(ASKED or "1"), 10)  # of cuts under traffic; test_lost_writes makes the others
STEPS = [step.name for step in APPLY] if ASKED else []  # one of them is in test_power_loss
SEED = int(os.environ.get("FAIRLEAD_SEED", "5"))
LONGEST = 40.0  # seconds after the beginning of an apply within which the power goes

pytestmark = [pytest.mark.timeout(400 + 120 * COUNT), pytest.mark.usefixtures("balanced")]


def of_every_step() -> Snapshot:
    """A change with work for each step: the rest of an apply leaves out what has nothing to do."""
    cards = dataclasses.replace(NETWORK.interfaces[2], addresses=("10.1.0.1/24", "10.1.0.9/24"))
    network = dataclasses.replace(
        NETWORK,
        hostname="changed",
        interfaces=(*NETWORK.interfaces[:2], cards, Interface("eth2.7", vlan=Vlan("eth2", 7))),
        dns=("10.0.2.3",),
    )
    moved = service(1, "moved", address="10.1.0.101", check=BALANCED.services[0].check)  # the old VIP leaves
    return dataclasses.replace(
        wish(moved),
        network=network,
        management=dataclasses.replace(BALANCED.management, port=8443),
        sorry=SorryPage("Changed"),
        policy=Policy(udp_timeout=60),
    )


@thorough
def test_the_power_goes_at_random_moments(director, world, capsys):
    chance = random.Random(SEED)
    set_up(director)
    outcomes = {"new": 0, "old": 0}
    history = told(director)
    before = stands(director)
    for number in range(1, COUNT + 1):
        way = chance.choice(["page", "page", "unconfirmed"])
        wished = begin(director, changed(chance, number), way)
        time.sleep(chance.uniform(0, LONGEST))
        seen = told(director)
        director.kill()
        director.start()
        director.wait_until_up()
        running = stands(director)
        assert running in ((before, wished) if way == "page" else (before,)), (number, way)
        outcomes["new" if running == wished else "old"] += 1
        now = told(director)
        assert history.items() <= now.items(), "a committed revision is gone"
        assert seen.keys() <= now.keys()
        history, before = now, running
        assert world.get(f"{VIP}:80/")[0] in SERVERS
    with capsys.disabled():
        print(f"\n{COUNT} cuts: {outcomes['old']} times what ran before, {outcomes['new']} times the new configuration")


@pytest.mark.parametrize("step", STEPS)
def test_the_power_goes_after_each_step(director, step):
    before = stands(director)
    # What touches everything waits to be confirmed, so its very last step does not come.
    wished = changed(random.Random(SEED), 1) if step == Confirm.name else of_every_step()
    director.start_apply(wished, step)
    director.kill()
    director.start()
    director.wait_until_started()
    assert stands(director) in (before, wished)


@thorough
@pytest.mark.timeout(400 + 300 * COUNT)
def test_killed_processes_come_back_and_what_runs_is_right(director, world, capsys):
    chance = random.Random(SEED)
    set_up(director)
    held = world.hold(f"{VIP}:7000", 5)
    lines = BALANCED.services[1]
    before = stands(director)
    names = itertools.cycle(["applier", "web", "ldirectord"])
    for number, name in zip(range(1, 3 * COUNT + 1), names, strict=False):
        wished = dataclasses.replace(changed(chance, number), network=NETWORK)
        wished = begin(director, dataclasses.replace(wished, services=(*wished.services, lines)), "page")
        time.sleep(chance.uniform(0, LONGEST / 2))
        director.execute(f"kill -9 $(cat /run/service/{name}/supervise/pid)")
        until("the apply has ended", lambda: ended(director), 120, 0.5, (CommandFailed, OSError))
        running = stands(director)
        assert running in (before, wished), (number, name)
        before = running
        until("the page", lambda: director.page()[0] == 200, 90, 1, (OSError,))
        director.wait_until_healthy("rs1")
    assert held.end()["broken"] == []
    world.stop_server("rs1")  # somebody watches
    director.wait_until_gone("rs1")
    with capsys.disabled():
        print(f"\n{3 * COUNT} kills (applier, web, ldirectord): each came back, no connection broke")
