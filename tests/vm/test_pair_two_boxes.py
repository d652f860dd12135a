"""Two real machines become a pair: joined by a code, one apply for both, traffic over a hand-over and a power cut."""

import dataclasses
import shutil
import tempfile
import time
from pathlib import Path

import pytest
from board.machines.director import NETWORK, QUICK, Director, service, wish
from board.machines.machine import CommandFailed
from board.machines.wait import until
from tests.lab.fixtures import thorough
from tests.lab.pair_machines import Machines, ask

from lbconfig.model.snapshot import Interface, Network

pytestmark = [thorough, pytest.mark.timeout(3000)]

SOON = 240.0  # seconds for what two quiet boxes do within ten
SLOW = (OSError, CommandFailed)
SITE = service(1, "site", check=QUICK)
LINES = service(2, "lines", port=7000, check=QUICK)


@pytest.fixture
def machines(image):
    folder = Path(tempfile.mkdtemp(prefix="fairlead-"))
    made = Machines(folder, image)
    try:
        made.start()
        yield made
    finally:
        made.kill()
        shutil.rmtree(folder)


def network(number: int, own: str) -> Network:
    """As each box was before: the first one has what servers and clients know."""
    dhcp, back, front = NETWORK.interfaces
    ends = [dataclasses.replace(one, addresses=(one.addresses[0].replace(".1/", f".{own}/"),)) for one in (back, front)]
    return Network(f"lb{number}", interfaces=(dhcp, *ends, Interface("eth3", addresses=(f"192.0.2.{number}/30",))))


def alone(number: int, own: str, *services):
    return dataclasses.replace(wish(*services), network=network(number, own))


def sentence(box: Director) -> str:
    return ask(box, "GET", "pair")["sentence"]


def leads(box: Director, other: Director) -> None:
    words = f"{box.name} leads, {other.name} stands by and is in step"  # and how many connections it knows
    until(words, lambda: all(sentence(one).startswith(words) for one in (box, other)), SOON, 1.0)


def linked(box: Director) -> None:
    until("the link", lambda: "latest handshake" in box.execute("wg show pair0").output, SOON, 1.0)


def apply_draft(box: Director) -> None:
    """As soon as the boxes hear each other; the command confirms by itself."""

    def ended():
        done = box.execute("fairlead apply --comment pair", 400)
        said = done.output + done.errors
        assert done.exit == 0 or "is not heard" in said or "try again" in said, said
        return done.exit == 0

    until("the apply of both", ended, SOON, 1.0)


def test_two_machines_are_joined_serve_as_one_and_survive_a_power_cut(machines, capsys):
    world, (first, second) = machines.world, machines.boxes
    first.apply(alone(1, "1", SITE, LINES))
    second.apply(alone(2, "5"))
    first.wait_until_healthy("rs1", "rs2", "rs3", timeout=SOON)

    began = time.monotonic()
    # On a busy host the program that waits, or joins, may not even have been loaded in its time.
    code = until("a code", lambda: ask(first, "POST", "pair/code"), SOON, 1.0, SLOW)["invitation"]["code"]
    wanted = {"address": "10.2.0.1", "code": code}
    until("the boxes to be joined", lambda: ask(second, "POST", "pair/join", wanted), SOON, 1.0, SLOW)
    until("the first box to know it", lambda: ask(first, "GET", "pair/joining")["joined"], SOON, 1.0)
    joined = time.monotonic() - began
    for box in (first, second):
        linked(box)

    ask(first, "POST", "draft/discard")  # the draft is what runs
    proposed = ask(first, "POST", "pair/proposal")
    assert proposed == {"hostname": "lb2", "problems": []}
    requests = world.repeat("get", "10.1.0.100:80/")
    held = world.hold("10.1.0.100:7000", 20)
    began = time.monotonic()
    apply_draft(first)
    applied = time.monotonic() - began
    leads(first, second)
    settled = time.monotonic() - began
    assert [box.status()["confirmed"] for box in (first, second)] == [2, 2]
    making = requests.end()

    requests = world.repeat("get", "10.1.0.100:80/")
    before = held.next_round()
    ask(first, "POST", "pair/hand-over")
    leads(second, first)
    handed = requests.end()
    after = held.next_round()
    assert not handed["failed"], handed
    assert after["broken"] == before["broken"], after
    # The servers' gateway floats: NAT's answers come by it, and it is at the box that leads.
    assert "1 packets received" in world.in_client("busybox ping -c 1 -W 20 10.1.0.1")

    requests = world.repeat("get", "10.1.0.100:80/")
    second.kill()
    until("the first box to lead", lambda: ask(first, "GET", "pair")["boxes"][0]["role"] == "leads", SOON, 1.0)
    until("answers", lambda: not any("error" in one for one in world.get("10.1.0.100:80/", 4)), SOON)
    second.start()
    second.wait_until_up(600)
    leads(first, second)
    cut, at_last = requests.end(), held.end()
    assert not any("error" in one for one in world.get("10.1.0.100:80/", 20))
    with capsys.disabled():
        print(f"\ntwo machines: joined in {joined:.1f} s, applied by both {applied:.1f} s, a pair {settled:.1f} s")
        for what, seen in (("the first apply", making), ("hand-over", handed), ("power cut", cut)):
            failed = len(seen["failed"])
            print(f"{what}: {failed} of {seen['count']} requests failed, the slowest took {seen['slowest']:.2f} s")
        print(f"open of 20 connections: {before['open']}, handed over {after['open']}, power cut {at_last['open']}")
