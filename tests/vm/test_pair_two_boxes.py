"""Two machines become a pair: joined by a code, one apply for both, traffic over a hand-over, a power cut and its end.

FAIRLEAD_PAIR_STARTS: how often both are turned on at once.
"""

import os
import time

import pytest
from board.machines.director import QUICK, VIP, service
from board.machines.wait import until
from tests.lab.fixtures import thorough
from tests.lab.pair_machines import (
    SOON,
    Holders,
    alone,
    apply_draft,
    ask,
    become_a_pair,
    join,
    leading,
    leads,
    propose,
    told,
    turned_on,
)

from lbconfig.wanted.pair_link import LINK_PORT

pytestmark = [thorough, pytest.mark.timeout(3000)]

SITE = service(1, "site", check=QUICK)
LINES = service(2, "lines", port=7000, check=QUICK)
STARTS = int(os.environ.get("FAIRLEAD_PAIR_STARTS") or "3")


@pytest.fixture
def machines(image):
    with turned_on(image) as made:
        yield made


def test_two_machines_are_joined_serve_as_one_survive_a_power_cut_and_part(machines, capsys):
    world, (first, second) = machines.world, machines.boxes
    first.apply(alone(1, "1", SITE, LINES))
    second.apply(alone(2, "5"))
    first.wait_until_healthy("rs1", "rs2", "rs3", timeout=SOON)

    joined = join(first, second)
    propose(first)
    requests = world.repeat("get", "10.1.0.100:80/")
    held = world.hold("10.1.0.100:7000", 20)
    began = time.monotonic()
    apply_draft(first)
    applied = time.monotonic() - began
    leads(first, second)
    settled = time.monotonic() - began
    assert [box.status()["confirmed"] for box in (first, second)] == [2, 2]
    making = requests.end()
    assert not making["failed"], making

    requests = world.repeat("get", "10.1.0.100:80/")
    before = held.next_round()
    assert not before["broken"], before
    ask(first, "POST", "pair/hand-over")
    leads(second, first)
    handed = requests.end()
    after = held.next_round()
    assert not handed["failed"], handed
    assert after["broken"] == before["broken"], after
    # The servers' gateway floats: NAT's answers come by it, and it is at the box that leads.
    assert "1 packets received" in world.in_client("busybox ping -c 1 -W 20 10.1.0.1")

    # As once after the first apply: each sends to where the other one takes nothing any more.
    before_that = led_back(first, second)
    for box, there in ((first, "10.2.0.5"), (second, "10.2.0.2")):
        # For some seconds: a packet from the one that was not moved yet would lead the other one back at once.
        moved = f"wg set pair0 peer $(wg show pair0 peers) endpoint {there}:{LINK_PORT}"
        box.succeed(f"(for _ in $(seq 40); do {moved}; sleep 0.1; done) >/dev/null 2>&1 &")
    until("the link to be led back", lambda: led_back(first, second) > before_that, SOON, 1.0)
    leads(second, first)

    requests = world.repeat("get", "10.1.0.100:80/")
    second.kill()
    until("the first box to lead", lambda: ask(first, "GET", "pair")["boxes"][0]["role"] == "leads", SOON, 1.0)
    until("answers", lambda: not any("error" in one for one in world.get("10.1.0.100:80/", 4)), SOON)
    second.start()
    second.wait_until_up(600)
    leads(first, second)
    cut, back = requests.end(), held.next_round()
    assert not any("error" in one for one in world.get("10.1.0.100:80/", 20))

    requests = world.repeat("get", "10.1.0.100:80/")
    ask(first, "POST", "pair/alone")
    until("each box on its own", lambda: [box.status()["confirmed"] for box in (first, second)] == [3, 3], SOON, 1.0)
    left, at_last = requests.end(), held.end()
    assert not left["failed"], left
    assert at_last["broken"] == back["broken"], at_last
    with capsys.disabled():
        print(f"\ntwo machines: joined in {joined:.1f} s, applied by both {applied:.1f} s, a pair {settled:.1f} s")
        for what, seen in (("the first apply", making), ("hand-over", handed), ("power cut", cut), ("the end", left)):
            failed = len(seen["failed"])
            print(f"{what}: {failed} of {seen['count']} requests failed, the slowest took {seen['slowest']:.2f} s")
        kept = ", ".join(str(seen["open"]) for seen in (before, after, back, at_last))
        print(f"open of 20 connections after each: {kept}")


def led_back(*boxes) -> int:
    """How often either box had to lead the link back to the other one."""
    return sum(int(box.succeed("grep -c 'it is led back' /var/log/messages; true")) for box in boxes)


@pytest.mark.timeout(1800 + 600 * STARTS)
def test_both_machines_are_turned_on_at_once(machines, record_property, capsys):
    """As after a power failure: one of them leads, and at no time both. The clients' network is asked who."""
    world, (first, second) = machines.world, machines.boxes
    become_a_pair(machines, SITE, LINES)
    for number in range(1, STARTS + 1):
        for box in (first, second):
            box.kill()
        holders, began = Holders(world, VIP), float(world.succeed(["date", "+%s.%N"]))
        for box in (first, second):
            box.start()
        for box in (first, second):
            box.wait_until_up(600)
        leader = leading(first, second)
        found = holders.end()
        assert len(found["holders"]) == 1 and found["both"] == 0, found
        [(mac, (answered, _))] = found["holders"].items()
        said = leader.succeed("grep -o 'the box may lead .*' /var/log/messages | tail -1").strip()
        assert said, "neither the script nor the applier has released it"
        text = (
            f"both turned on, {number}: {leader.name} held {VIP} {answered - began:.1f} s after that ({said}); "
            f"nobody else answered any of {found['asked']} questions"
        )
        told(record_property, capsys, text)
        assert leader.read("/sys/class/net/eth2/address").strip() == mac
        assert not any("error" in one for one in world.get(f"{VIP}:80/", 20))
