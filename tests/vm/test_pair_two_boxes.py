"""Two machines become a pair: joined by a code, one apply for both, traffic over a hand-over, a power cut and its end.

FAIRLEAD_PAIR_STARTS: how often both are turned on at once.
FAIRLEAD_PAIR_CUTS: how often the power of the box that leads is cut.
"""

import os
import time

import pytest
from board.machines.director import QUICK, VIP, service
from board.machines.updating import PASSWORD, USER, set_up
from board.machines.wait import until
from playwright.sync_api import Page, expect
from tests import texts
from tests.lab.fixtures import thorough
from tests.lab.hand import Hand, opened
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
    own,
    propose,
    told,
    turned_on,
)

from lbconfig.wanted.pair_link import LINK_PORT

pytestmark = [thorough, pytest.mark.timeout(3000)]

SITE = service(1, "site", check=QUICK)
LINES = service(2, "lines", port=7000, check=QUICK)
SLOW = 1000 * SOON  # milliseconds
STARTS = int(os.environ.get("FAIRLEAD_PAIR_STARTS") or "3")
CUTS = int(os.environ.get("FAIRLEAD_PAIR_CUTS") or "1")


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

    cuts = []
    leader, other = second, first
    for _ in range(CUTS):
        cuts.append(cut_off(world, leader, other))
        leader, other = other, leader
    back = held.next_round()
    assert not any("error" in one for one in world.get("10.1.0.100:80/", 20))

    requests = world.repeat("get", "10.1.0.100:80/")
    ask(leader, "POST", "pair/alone")
    until("each box on its own", lambda: [box.status()["confirmed"] for box in (first, second)] == [3, 3], SOON, 1.0)
    left, at_last = requests.end(), held.end()
    assert not left["failed"], left
    assert at_last["broken"] == back["broken"], at_last
    with capsys.disabled():
        print(f"\ntwo machines: joined in {joined:.1f} s, applied by both {applied:.1f} s, a pair {settled:.1f} s")
        cut = [("power cut", one) for one in cuts]
        for what, seen in (("the first apply", making), ("hand-over", handed), *cut, ("the end", left)):
            failed = len(seen["failed"])
            print(f"{what}: {failed} of {seen['count']} requests failed, the slowest took {seen['slowest']:.2f} s")
        kept = ", ".join(str(seen["open"]) for seen in (before, after, back, at_last))
        print(f"open of 20 connections after each: {kept}")


def cut_off(world, leader, other) -> dict:
    """The power of the box that leads goes, and comes back when the other one leads; how it was for clients."""
    requests = world.repeat("get", "10.1.0.100:80/")
    leader.kill()
    until("the other box to lead", lambda: own(other)["role"] == "leads", SOON, 1.0)
    until("answers", lambda: not any("error" in one for one in world.get("10.1.0.100:80/", 4)), SOON)
    leader.start()
    leader.wait_until_up(600)
    leads(other, leader)
    return requests.end()


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


def test_two_boxes_become_a_pair_by_a_person_with_two_browsers(machines, record_property, capsys):
    """What the screens say is done, and nothing else; the clicks are counted, and the seconds told."""
    world, (first, second) = machines.world, machines.boxes
    first.apply(alone(1, "1", SITE, LINES))
    second.apply(alone(2, "5"))
    first.wait_until_healthy("rs1", "rs2", "rs3", timeout=SOON)
    for box in (first, second):
        set_up(box)
    with opened(first, second) as pages:
        here, there = (Hand(page) for page in pages)
        for page in pages:
            log_in(page)
        requests, held = world.repeat("get", "10.1.0.100:80/"), world.hold("10.1.0.100:7000", 20)
        began = time.monotonic()
        for hand, name in ((here, "Make a pair"), (there, "Join another box")):
            hand.click("link", "System")
            hand.click("link", name)
        here.click("button", "Show a code")
        code = here.page.locator("code.big").inner_text()
        addresses = here.page.locator("#code dd").first.locator("code").all_inner_texts()
        here.shoot("60-pair-code")
        there.type("Address of the other box", next(one for one in addresses if one.startswith("10.2.0.")))
        there.type("Code", code)
        there.shoot("61-pair-join")
        there.click("button", "Join")
        expect(there.page.get_by_role("heading", name="Joined lb1")).to_be_visible(timeout=SLOW)
        there.shoot("62-pair-joined")
        expect(here.page.locator("form#pair")).to_be_visible(timeout=SLOW)  # by itself
        joined = time.monotonic() - began
        here.shoot("63-pair-proposal")
        here.click("button", "Save to the draft")
        expect(here.page.get_by_text("become one director")).to_be_visible()
        here.shoot("64-pair-review")
        here.click("button", "Apply")
        expect(here.page.get_by_text(texts.APPLIED)).to_be_visible(timeout=SLOW)  # kept by the page itself
        here.shoot("65-pair-applied")
        for page in pages:
            page.goto("/system/pair/")
            expect(page.get_by_text("lb1 leads, lb2 stands by and is in step").first).to_be_visible(timeout=SLOW)
        took = time.monotonic() - began
        here.shoot("66-pair")
        there.shoot("67-pair-second")
        # The draft has come along as well.
        until("no change to be left", lambda: not any(waits(page) for page in pages), SOON, 1.0)
    made, kept = requests.end(), held.end()
    clicks, fields = here.clicks + there.clicks, here.fields + there.fields
    told(
        record_property, capsys,
        f"a pair by hand: {clicks} clicks, {fields} fields; joined in {joined:.1f} s, in step after {took:.1f} s; "
        f"{len(made['failed'])} of {made['count']} requests failed, {kept['open']} of 20 connections are open",
    )  # fmt: skip
    assert clicks <= 10, clicks
    assert not made["failed"] and not kept["broken"], (made, kept)


def waits(page: Page) -> bool:
    page.reload()
    return page.get_by_text(texts.NOT_APPLIED).count() > 0


def log_in(page: Page) -> None:
    page.goto("/")
    page.get_by_label("User name").fill(USER)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("link", name="System")).to_be_visible()
