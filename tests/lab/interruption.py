"""Applies that are cut short, and what must stand afterwards."""

from __future__ import annotations

import dataclasses
import json
import random

from board.machines.director import NETWORK, Director, service, wish
from board.machines.lab import BALANCED

from lbconfig.model.snapshot import Snapshot, from_data, from_json, to_json

SITE = BALANCED.services[0]
# What the web process has committed, and whether the file is whole.
LOOK = """
import json, sqlite3, sys
database = sqlite3.connect("file:/data/web/fairlead.sqlite3?mode=ro", uri=True)
[[whole]] = database.execute("pragma integrity_check")
rows = database.execute("select number, outcome from changes_revision").fetchall()
print(json.dumps([whole, dict(rows)]))
"""


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


def begin(director: Director, snapshot: Snapshot, way: str, within: int = 600) -> Snapshot:
    """By the web process ("page": draft, review, apply), or by the applier alone with a confirmation that never comes.

    The snapshot as the web process numbers it. `within`: seconds until an unconfirmed one goes back.
    """
    director.write("/run/wish.json", to_json(snapshot))
    if way == "page":
        director.succeed("fairlead set draft /run/wish.json", 90)
        snapshot = from_data(json.loads(director.succeed(["fairlead", "export", "draft"], 90)))
        command = "fairlead apply"
    else:
        command = f"fairlead-applier apply /run/wish.json --user test --confirm-within {within} --wait"
    director.succeed(f"rm -f /run/apply.end; ({command}; touch /run/apply.end) >/run/apply.log 2>&1 &")
    return snapshot


def ended(director: Director) -> bool:
    """Whether the apply is over, for the applier and for who asked for it."""
    if director.execute("[ -e /run/apply.end ]").exit:
        return False
    run = director.status()["apply"]
    return (not run or run["state"] not in ("running", "waiting", "returning")) and (
        director.execute("grep -q '^ldirectord: checks' /proc/[0-9]*/cmdline").exit == 0
    )


def told(director: Director) -> dict[str, str]:
    """The history as the web process has committed it; raises where the database is not whole."""
    whole, rows = json.loads(director.succeed(["python3", "-c", LOOK]))
    assert whole == "ok"
    return rows


def stands(director: Director) -> Snapshot:
    """What runs: it must be what is confirmed, on disk and in the kernel."""
    status = director.status()
    assert status["generation"] == status["confirmed"] and status["faults"] == [], status["faults"]
    kept = from_json(director.read(f"/data/applier/generations/{status['confirmed']:06}/snapshot.json"))
    running = from_data(status["snapshot"])
    assert running == kept
    wanted = {f"{one.address}:{one.port}" for one in running.enabled_services}
    assert {line.split()[1] for line in director.succeed("ipvsadm -Ln").splitlines() if line[:4] == "TCP "} == wanted
    shown = director.succeed("ip -o -4 address show dev eth2").split()
    assert {word for word in shown if word.endswith("/24")} == set(running.network.interfaces[2].addresses)
    return running
