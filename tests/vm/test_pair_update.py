"""Two machines that are a pair get a new version one after the other, under load and with connections that rest."""

import dataclasses
import time

import pytest
from board.machines.director import QUICK, service
from board.machines.machine import CommandFailed
from board.machines.updating import SELDOM, Api, set_up
from board.machines.wait import until
from tests.lab import pair_mix
from tests.lab.bundles import Bundles
from tests.lab.fixtures import thorough
from tests.lab.pair_machines import SOON, alone, apply_draft, ask, join, leads, propose, told, turned_on

from lbconfig.model.snapshot import Policy

pytestmark = [thorough, pytest.mark.timeout(5400)]

SITE = service(1, "site", check=QUICK)
TARGET = "10.1.0.100:80/"
LOADS = 2  # clients that ask for the site again and again
COURSE = 2400.0  # seconds that the update of both boxes may take
HOURS = 4 * 3600  # seconds until a silent connection is forgotten: longer than any of this takes
# What the applier tells goes to a port where nobody listens. The kernel's own thread has a socket of no user.
MUTE = (
    "table inet mute { counter told {}; chain output { type filter hook output priority 0; "
    "oifname pair0 udp dport 8848 meta skuid 0 counter name told udp dport set 9; }; }"
)


@pytest.fixture
def machines(image, flashed):
    with turned_on(image, flashed) as made:
        yield made


def follow(desk, other, loads) -> tuple[dict, dict[str, float]]:
    """Until the update ends or stops: how it is then, and after how many seconds it said what.

    A request that fails ends the story: the boxes' logs of that moment would be gone after the next restart.
    """
    began = time.monotonic()
    said: dict[str, float] = {}

    def look() -> dict:
        for one in loads:
            seen = one.report()
            assert not seen["failed"], (seen, said)
        for box in (desk, other):
            try:
                found = ask(box, "GET", "pair/update", timeout=60)
            except (OSError, CommandFailed, ValueError):
                continue  # it restarts
            said.setdefault(found["sentence"].partition(":")[0], time.monotonic() - began)
            return {} if found["state"] == "running" else found
        return {}

    return until("the end of the update", look, COURSE, SELDOM), said


def runs(box, version: str) -> None:
    """In the other slot now, marked good, without a fault."""
    box.wait_until_started()
    assert box.read("/usr/lib/fairlead/VERSION") == f"{version}\n"
    booted = next(one for one in ask(box, "GET", "update")["slots"] if one["booted"])
    assert (booted["version"], booted["good"]) == (version, True), booted
    assert box.faults() == ""


def ended(loads) -> dict:
    """Of all clients together."""
    ends = [one.end() for one in loads]
    return {
        "count": sum(one["count"] for one in ends),
        "failed": [why for one in ends for why in one["failed"]],
        "slowest": max(one["slowest"] for one in ends),
        "slow": [one["slow"] for one in ends],
        "stalls": [one["stalls"] for one in ends],
    }


def steps(said: dict[str, float]) -> str:
    return "\n".join(f"  after {seconds:5.0f} s: {words}" for words, seconds in said.items())


def figures(what: str, seconds: float, loads: dict, kept: dict[str, int]) -> str:
    return (
        f"{what}: {seconds:.0f} s, {len(loads['failed'])} of {loads['count']} requests failed, the slowest took "
        f"{loads['slowest']:.2f} s; {sum(kept.values())} of {pair_mix.TOTAL} idle connections kept {kept}"
    )


def test_both_machines_are_updated_and_clients_do_not_notice(machines, flashed, record_property, capsys):
    """Beside it the same without retelling: the update stops and asks, and who goes on anyway sees what that costs."""
    world, (first, second) = machines.world, machines.boxes
    bundles = Bundles(flashed)
    snapshot = alone(1, "1", SITE, *pair_mix.SERVICES, six=True)
    snapshot = dataclasses.replace(snapshot, policy=Policy(tcp_timeout=HOURS, udp_timeout=HOURS))
    first.apply(snapshot)
    second.apply(alone(2, "5", six=True))
    first.wait_until_healthy("rs1", "rs2", "rs3", timeout=SOON)
    set_up(first)
    api = Api(first)
    pair_mix.set_up_servers(world, snapshot)
    joined = join(first, second)
    propose(first)
    apply_draft(first)
    leads(first, second)
    idle = pair_mix.Idle(world)
    everything = dict.fromkeys(pair_mix.KINDS, pair_mix.EACH)
    assert idle.opened == everything, idle.complaints()
    told(record_property, capsys, f"joined in {joined:.1f} s; {pair_mix.TOTAL} connections open")

    status, answer = api.send(bundles.good("9.1.0"), "pair/update")
    assert status == 202, answer
    loads = [world.repeat("get", TARGET) for _ in range(LOADS)]
    began = time.monotonic()
    found, said = follow(first, second, loads)
    took = time.monotonic() - began
    assert found["state"] == "done", (found, said)
    leads(second, first)
    kept, requests = idle.talk(), ended(loads)
    told(record_property, capsys, f"{figures('both updated', took, requests, kept)}\n{steps(said)}")
    for box in (first, second):
        runs(box, "9.1.0")
    assert not requests["failed"], requests
    assert kept == everything, idle.complaints()

    second.succeed(["nft", MUTE])
    status, answer = Api(second, api.token).send(bundles.good("9.2.0"), "pair/update")
    assert status == 202, answer
    loads = [world.repeat("get", TARGET) for _ in range(LOADS)]
    began = time.monotonic()
    found, said = follow(second, first, loads)
    assert found["state"] == "stopped" and "knows only" in found["sentence"], (found, said)
    ask(second, "POST", "pair/update/choice", {"choice": "go-on"})
    until("the first box to lead", lambda: ask(first, "GET", "pair")["boxes"][0]["role"] == "leads", SOON, 1.0)
    kept = idle.talk()
    assert "packets 0 " not in second.succeed(["nft", "list", "counter", "inet", "mute", "told"])
    found, more = follow(second, first, loads)
    took = time.monotonic() - began
    assert found["state"] == "done", (found, more)
    requests = ended(loads)
    told(record_property, capsys, f"{figures('without retelling', took, requests, kept)}\n{steps(said)}\n{steps(more)}")
    for box in (first, second):
        runs(box, "9.2.0")
    assert not requests["failed"], requests
    assert sum(kept.values()) < pair_mix.TOTAL
