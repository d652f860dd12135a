"""Two machines that are a pair: something befalls each change of both, all paths are cut, the leading one is paused.

FAIRLEAD_PAIR_MISHAPS: how many changes meet one (60 are what is promised).
"""

import contextlib
import dataclasses
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from board.machines.director import APPLY, QUICK, VIP, ClientOutside, Director, service
from board.machines.machine import CommandFailed
from board.machines.wait import until
from board.machines.world import World
from tests.lab.fixtures import thorough
from tests.lab.pair_machines import (
    SOON,
    Holders,
    Machines,
    become_a_pair,
    leading,
    leads,
    told,
    turned_on,
)

from applier.wire.errors import ApplierDown, ApplierRefused
from applier.wire.shapes import ENDED
from lbconfig.model.snapshot import CheckKind, HealthCheck, Snapshot, from_data

COUNT = int(os.environ.get("FAIRLEAD_PAIR_MISHAPS") or "6")
pytestmark = [thorough, pytest.mark.timeout(1800 + 300 * COUNT)]

SEED = 24
SITE = service(1, "site", check=QUICK)
LINES = service(2, "lines", port=7000, check=QUICK)
OFF = HealthCheck(CheckKind.OFF)
LONGEST = 15.0  # seconds that a mishap lasts; the desk waits for ten
LATEST = 1.3  # after the begin of a change, in the time that one takes which nothing befalls
HELD = 40
APART = 60.0  # seconds
PAUSED = 15.0  # seconds
LEASE = 10.0  # seconds
ASKED = 0.1  # seconds between two questions for the VIP (tests/lab/holders.py)
# Of each network, the port of the world's guest by which the second box is there, and the switch.
CABLES = {"servers": "eth2", "clients": "eth3", "cable": "eth5"}
NOT_YET = (OSError, CommandFailed, ApplierDown, ApplierRefused)


@pytest.fixture(scope="module")
def machines(image):
    with turned_on(image) as made:
        become_a_pair(made, SITE, LINES)
        yield made


def says_both_lead(box: Director) -> float:
    """When its applier, which every page and the console ask, says so."""
    until("both to lead", lambda: "both lead" in ClientOutside(box, APPLY).pair()["sentence"], SOON, 0.1)
    return time.monotonic()


def role(box: Director) -> str:
    return next(one["role"] for one in ClientOutside(box, APPLY).pair()["boxes"] if one["own"])


# --- what may befall a change ------------------------------------------------------------------------------------


@contextlib.contextmanager
def a_step_fails(machines: Machines, at: int) -> Iterator[None]:
    """No rule gets into the firewall of this box, from the begin of the change on."""
    box = machines.boxes[at]
    box.succeed("printf '#!/bin/sh\\nexit 1\\n' >/run/fails; chmod +x /run/fails; mount --bind /run/fails $(which nft)")
    try:
        yield
    finally:
        box.succeed("umount $(which nft)")


@contextlib.contextmanager
def the_applier_is_killed(machines: Machines, at: int) -> Iterator[None]:
    box = machines.boxes[at]
    box.succeed(f"kill -9 {box.supervised('applier')}")
    yield


@contextlib.contextmanager
def the_power_is_cut(machines: Machines, at: int) -> Iterator[None]:
    box = machines.boxes[at]
    box.kill()
    try:
        yield
    finally:
        box.start()
        box.wait_until_started()


@contextlib.contextmanager
def the_cable_is_cut(machines: Machines, at: int) -> Iterator[None]:
    """Both ends keep their carrier."""
    with cut(machines.world, "cable"):
        yield


@contextlib.contextmanager
def a_box_is_silent(machines: Machines, at: int) -> Iterator[None]:
    """What it says of itself and hears of the other one stays where it is meanwhile."""
    box = machines.boxes[at]
    process = box.supervised("pair")
    box.succeed(f"kill -STOP {process}")
    try:
        yield
    finally:
        box.succeed(f"kill -CONT {process}")


Mishap = Callable[[Machines, int], contextlib.AbstractContextManager[None]]
MISHAPS: tuple[Mishap, ...] = (
    a_step_fails, the_applier_is_killed, the_power_is_cut, the_cable_is_cut, a_box_is_silent,
)  # fmt: skip


def cut_off(world: World, *networks: str) -> None:
    world.succeed("; ".join(f"ip link set {CABLES[network]} nomaster" for network in networks))


def plugged_in(world: World, *networks: str) -> None:
    """In this order."""
    world.succeed("; ".join(f"ip link set {CABLES[network]} master {network}" for network in networks))


@contextlib.contextmanager
def cut(world: World, *networks: str) -> Iterator[None]:
    cut_off(world, *networks)
    try:
        yield
    finally:
        plugged_in(world, *networks)


# --- what must stand then ----------------------------------------------------------------------------------------


def stands(boxes: list[Director]) -> Snapshot | None:
    """What both have confirmed and run, once nothing is under way and one leads."""
    found = [box.status() for box in boxes]
    if any(one["apply"] and one["apply"]["state"] not in ENDED for one in found):
        return None
    if any(one["generation"] != one["confirmed"] for one in found) or found[0]["digest"] != found[1]["digest"]:
        return None
    if not all(ClientOutside(box, APPLY).pair()["good"] for box in boxes):
        return None
    return from_data(found[0]["snapshot"])


def services(box: Director) -> set[str]:
    """In the kernel's table."""
    return {line.split()[1] for line in box.succeed("ipvsadm -Ln").splitlines() if line[:4] == "TCP "}


def rest(boxes: list[Director]) -> Snapshot:
    found = until("both boxes to be one again", lambda: stands(boxes), 2 * SOON, 1.0, NOT_YET)
    assert found
    wanted = {f"{one.address}:{one.port}" for one in found.enabled_services}
    until("the table of both", lambda: all(services(box) == wanted for box in boxes))
    return found


def changed(chance: random.Random, snapshot: Snapshot, number: int) -> Snapshot:
    """Unlike every other: the note of its first service counts on. What is held is not touched."""
    more = [service(10 + at, f"other {at}", 8000 + at, check=OFF, server_port=80) for at in range(chance.randint(1, 4))]
    return dataclasses.replace(snapshot, services=(dataclasses.replace(SITE, note=f"{number}"), LINES, *more))


def begin(box: Director, snapshot: Snapshot) -> None:
    """Apply it, and come back at once."""
    applier = ClientOutside(box, APPLY)

    def begun() -> bool:
        review = applier.check(snapshot)
        assert not review["problems"]
        applier.apply(review["snapshot"], review["digest"], review["base"], "test")
        return True

    until("the change to begin", begun, SOON, 1.0, (ApplierRefused,))


def until_ended(box: Director) -> None:
    """The change that was begun there."""

    def ended() -> bool:
        run = box.status()["apply"]
        return run is not None and run["state"] in ENDED

    until("the end of the change", ended, SOON, 0.5)


def undisturbed(boxes: list[Director], new: Snapshot) -> tuple[float, Snapshot]:
    """Seconds that a change takes which nothing befalls, and what runs then."""
    leader = next(box for box in boxes if role(box) == "leads")
    begin(leader, new)
    began = time.monotonic()
    until_ended(leader)
    seconds = time.monotonic() - began
    found = rest(boxes)
    assert found.services == new.services
    return seconds, found


def test_whatever_befalls_a_change_both_boxes_have_it_or_neither(machines, record_property, capsys):
    world, boxes, chance = machines.world, machines.boxes, random.Random(SEED)
    held, holders = world.hold(f"{VIP}:7000", HELD), Holders(world, VIP)
    usual, old = undisturbed(boxes, changed(chance, rest(boxes), -1))
    outcomes: Counter[str] = Counter()
    for number in range(COUNT):
        mishap, at = MISHAPS[number % len(MISHAPS)], chance.randrange(2)
        leader = next(box for box in boxes if role(box) == "leads")
        words = mishap.__name__.replace("_", " ")
        where = f"{number}: {words} at {boxes[at].name}, where {leader.name} leads"
        new = changed(chance, old, number)
        begin(leader, new)
        if mishap is a_step_fails:
            with mishap(machines, at):
                until_ended(leader)
        else:
            time.sleep(chance.uniform(0, LATEST * usual))
            with mishap(machines, at):
                time.sleep(chance.uniform(0, LONGEST))
        found = rest(boxes)
        notes = [one.services[0].note for one in (old, new)]
        assert found.services[0].note in notes, where
        is_new = found.services[0].note == notes[1]
        assert found.services == (new if is_new else old).services, where
        seen = held.next_round()
        assert not seen["broken"] and seen["open"] == HELD, (where, seen)
        with capsys.disabled():
            print(f"\n{where}: both {'new' if is_new else 'old'}", end="", flush=True)
        outcomes[f"{words}: both {'new' if is_new else 'old'}"] += 1
        old = found
    held.end()
    asked = holders.end()
    assert asked["both"] == 0, asked
    told(
        record_property, capsys,
        f"{COUNT} changes, which take {usual:.0f} s by themselves, each with a mishap: "
        f"{', '.join(f'{words} {count}' for words, count in sorted(outcomes.items()))}; {HELD} of {HELD} connections "
        f"are open; never did both boxes answer any of {asked['asked']} questions for the VIP",
    )  # fmt: skip


@pytest.mark.parametrize("order", [("clients", "servers", "cable"), ("cable", "servers", "clients")], ids="-".join)
def test_two_that_were_cut_apart_say_so_and_are_one_again(machines, record_property, capsys, order):
    """The second box is on its own; clients and servers are with the first one."""
    world, (first, second) = machines.world, machines.boxes
    if role(first) != "leads":
        ClientOutside(second, APPLY).pair_hand_over("test")
    leads(first, second)
    held, requests = world.hold(f"{VIP}:7000", HELD), world.repeat("get", f"{VIP}:80/")
    cut_off(world, *CABLES)
    began = time.monotonic()
    with ThreadPoolExecutor() as asking:
        said = [when - began for when in asking.map(says_both_lead, (first, second))]
    time.sleep(max(0.0, began + APART - time.monotonic()))
    assert [role(box) for box in (first, second)] == ["leads", "leads"]
    holders = Holders(world, VIP)
    plugged_in(world, *order)
    leads(first, second)
    asked, seen, ends = holders.end(), requests.end(), held.end()
    # While it was on its own nobody heard it; from then on, for as long as it took itself for the leading one.
    began, last = asked["holders"].get(second.read("/sys/class/net/eth2/address").strip(), (0.0, 0.0))
    assert not ends["broken"] and ends["open"] == HELD, ends
    told(
        record_property, capsys,
        f"apart for {APART:.0f} s: told by both after {said[0]:.1f} and {said[1]:.1f} s; healed "
        f"({', '.join(order)}): the second one answered for the VIP for {last - began:.1f} s; "
        f"{len(seen['failed'])} of {seen['count']} requests failed, the slowest took {seen['slowest']:.2f} s; "
        f"{ends['open']} of {HELD} connections are open",
    )  # fmt: skip


def test_a_leading_machine_that_is_paused_is_no_second_leader_for_long(machines, record_property, capsys):
    """As a hypervisor does it: no clock of the machine goes on meanwhile, so its leases are as good as before."""
    world, boxes = machines.world, machines.boxes
    leader = leading(*boxes)
    other = next(box for box in boxes if box is not leader)
    held, requests = world.hold(f"{VIP}:7000", HELD), world.repeat("get", f"{VIP}:80/")
    holders = Holders(world, VIP)
    leader.monitor.ask("stop")
    until("the other box to lead", lambda: role(other) == "leads", SOON, 0.1)
    time.sleep(PAUSED)
    leader.monitor.ask("cont")
    last = leading(*boxes)  # their clocks differ now, which is told
    asked, seen, ends = holders.end(), requests.end(), held.end()
    assert asked["both"] * ASKED <= LEASE, asked
    assert not ends["broken"] and ends["open"] == HELD, ends
    told(
        record_property, capsys,
        f"{leader.name}, which led, was paused for {PAUSED:.0f} s; then {last.name} leads; both answered "
        f"{asked['both']} of {asked['asked']} questions for the VIP; {len(seen['failed'])} of {seen['count']} requests "
        f"failed, the slowest took {seen['slowest']:.2f} s; {ends['open']} of {HELD} connections are open",
    )  # fmt: skip
