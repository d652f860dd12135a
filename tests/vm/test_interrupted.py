"""Power cuts and kills at any moment of an apply: what runs then was confirmed, and nothing that was told is lost.

FAIRLEAD_APPLY_CUTS=200 (make apply-cuts COUNT=200) for so many cuts and kills, and a cut after every single step.
"""

import dataclasses
import itertools
import json
import os
import random
import time

import pytest
from tests.lab.director import NETWORK, VIP, service, wish
from tests.lab.fixtures import BALANCED
from tests.lab.machine import CommandFailed
from tests.lab.updating import set_up
from tests.lab.wait import until
from tests.lab.world import SERVERS

from applier.steps import APPLY
from lbconfig.snapshot import Snapshot, from_data, from_json, to_json

ASKED = os.environ.get("FAIRLEAD_APPLY_CUTS")
COUNT = int(ASKED or "1")
STEPS = [step.name for step in APPLY] if ASKED else []  # one of them is in test_power_loss
SEED = int(os.environ.get("FAIRLEAD_SEED", "5"))
LONGEST = 40.0  # seconds after the beginning of an apply within which the power goes

pytestmark = [pytest.mark.timeout(400 + 120 * COUNT), pytest.mark.usefixtures("balanced")]

# What the web process has committed, and whether the file is whole.
LOOK = """
import json, sqlite3, sys
database = sqlite3.connect("file:/data/web/fairlead.sqlite3?mode=ro", uri=True)
[[whole]] = database.execute("pragma integrity_check")
rows = database.execute("select number, outcome from changes_revision").fetchall()
print(json.dumps([whole, dict(rows)]))
"""
SITE = BALANCED.services[0]


def changed(chance: random.Random, number: int) -> Snapshot:
    """Unlike every other: its first service's note counts on. Sometimes the network changes, too."""
    first = dataclasses.replace(SITE, note=f"change {number}", real_servers=SITE.real_servers[: chance.randint(1, 3)])
    others = [service(10 + one, f"other {one}", 8000 + one, server_port=80) for one in range(chance.randint(0, 4))]
    network = NETWORK
    if chance.random() < 0.3:
        *rest, clients = NETWORK.interfaces
        more = dataclasses.replace(clients, addresses=(*clients.addresses, f"10.1.0.{chance.randint(2, 9)}/24"))
        network = dataclasses.replace(NETWORK, interfaces=(*rest, more))
    return dataclasses.replace(wish(first, *others), network=network)


def begin(director, snapshot: Snapshot, way: str) -> Snapshot:
    """By the web process (draft, review, apply), or by the applier alone with a confirmation that never comes.

    The snapshot as the web process numbers it.
    """
    director.write("/run/wish.json", to_json(snapshot))
    if way == "page":
        director.succeed("fairlead set draft /run/wish.json", 90)
        snapshot = from_data(json.loads(director.succeed(["fairlead", "export", "draft"], 90)))
        command = "fairlead apply"
    else:
        command = "fairlead-applier apply /run/wish.json --user test --confirm-within 600 --wait"
    director.succeed(f"rm -f /run/apply.end; ({command}; touch /run/apply.end) >/run/apply.log 2>&1 &")
    return snapshot


def told(director) -> dict[str, str]:
    """The history as the web process has committed it; raises where the database is not whole."""
    whole, rows = json.loads(director.succeed(["python3", "-c", LOOK]))
    assert whole == "ok"
    return rows


def stands(director) -> tuple[int, Snapshot]:
    """What runs: it must be what is confirmed, on disk and in the kernel."""
    status = director.status()
    assert status["generation"] == status["confirmed"] and status["faults"] == [], status["faults"]
    number = status["confirmed"]
    kept = from_json(director.read(f"/data/applier/generations/{number:06}/snapshot.json"))
    running = from_data(status["snapshot"])
    assert running == kept
    wanted = {f"{one.address}:{one.port}" for one in running.enabled_services}
    assert {line.split()[1] for line in director.succeed("ipvsadm -Ln").splitlines() if line[:4] == "TCP "} == wanted
    shown = director.succeed("ip -o -4 address show dev eth2").split()
    assert {word for word in shown if word.endswith("/24")} == set(running.network.interfaces[2].addresses)
    return number, running


def test_the_power_goes_at_random_moments(director, world, capsys):
    chance = random.Random(SEED)
    set_up(director)
    outcomes = {"new": 0, "old": 0}
    history = told(director)
    _, before = stands(director)
    for number in range(1, COUNT + 1):
        way = chance.choice(["page", "page", "unconfirmed"])
        wished = begin(director, changed(chance, number), way)
        time.sleep(chance.uniform(0, LONGEST))
        seen = told(director)
        director.kill()
        director.start()
        director.wait_until_up()
        _, running = stands(director)
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
    _, before = stands(director)
    wished = changed(random.Random(SEED), 1)
    director.start_apply(wished, step)
    director.kill()
    director.start()
    director.wait_until_started()
    assert stands(director)[1] in (before, wished)


def test_killed_processes_come_back_and_what_runs_is_right(director, world, capsys):
    chance = random.Random(SEED)
    set_up(director)
    held = world.hold(f"{VIP}:7000", 5)
    lines = BALANCED.services[1]
    _, before = stands(director)
    names = itertools.cycle(["applier", "web", "ldirectord"])
    for number, name in zip(range(1, 3 * COUNT + 1), names, strict=False):
        wished = dataclasses.replace(changed(chance, number), network=NETWORK)
        wished = begin(director, dataclasses.replace(wished, services=(*wished.services, lines)), "page")
        time.sleep(chance.uniform(0, LONGEST / 2))
        director.execute(f"kill -9 $(cat /run/service/{name}/supervise/pid)")
        until("the apply has ended", lambda: ended(director), 120, 0.5, (CommandFailed, OSError))
        _, running = stands(director)
        assert running in (before, wished), (number, name)
        before = running
        until("the page", lambda: director.page()[0] == 200, 90, 1, (OSError,))
        director.wait_until_healthy("rs1", timeout=60)
    assert held.end()["broken"] == []
    world.stop_server("rs1")  # somebody watches
    director.wait_until_gone("rs1")
    with capsys.disabled():
        print(f"\n{3 * COUNT} kills (applier, web, ldirectord): each came back, no connection broke")


def ended(director) -> bool:
    director.succeed("[ -e /run/apply.end ]")  # who asked for the apply has given up or is content
    run = director.status()["apply"]
    return (not run or run["state"] not in ("running", "waiting", "returning")) and (
        director.execute("sv status /run/service/ldirectord").output.startswith("run")
    )
