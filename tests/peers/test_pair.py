"""Who of a pair leads and has the addresses, by the real keepalived, the floater and two kernels.

What the client saw is printed and not asserted: only that there is one leader in the end, whom clients find.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from board.lab import build
from board.machines.wait import until
from tests.lab.fixtures import thorough
from tests.peers.pair import ADVERT, FLOATING, GATEWAY, VIP, VIP6, Box, Pair, watched
from tests.peers.pair_appliers import appliers
from tests.peers.room import CLEAN

from applier.host.host import HostError
from applier.pair import client, floater
from applier.parts.network import act
from applier.parts.network.plan import adopted
from applier.wire.errors import ApplierRefused
from lbconfig.wanted.netstate import NetworkState

MARKS = ("198.51.100.1/32", "198.51.100.2/32")  # addresses that tell where to listen begins and ends
MANY = [("eth0", f"10.1.{4 + at // 250}.{at % 250 + 1}/32") for at in range(1000)]
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="not root: there can be no boxes of their own")


@pytest.fixture(scope="module")
def pair():
    with contextlib.closing(Pair(build.base_tree())) as pair:
        pair.start()
        yield pair


@pytest.fixture
def leading(pair):
    """The box that leads, before a story."""
    for box in pair.boxes:
        until(f"the floater of {box.name}", lambda box=box: box.ask(client.release) or True, expected=(HostError,))
    return pair.settle()


def test_one_box_leads_hands_over_and_is_held(leading, pair):
    other = pair.other(leading)
    with watched(pair, "hand-over"):
        leading.ask(client.hand_over)
        pair.leads(other)
    until("nothing to hold it back", lambda: leading.do("cat /run/fairlead/hold") == "0\n")
    with watched(pair, "hold"):
        other.ask(client.hold, reason="for a test")
        pair.leads(leading, other="held")
    assert other.role.reason == "for a test"
    other.ask(client.release)
    pair.leads(leading)  # it goes on: who comes back takes nothing


def test_the_verbs_of_the_applier_hand_over_hold_and_release(leading, pair, tmp_path):
    other = pair.other(leading)
    with appliers(pair, tmp_path) as both:
        here, there = both[leading.number], both[other.number]
        until("the other box to be heard", lambda: here.client.pair()["good"])
        with watched(pair, "hand-over by the applier"):
            found = here.client.pair_hand_over("ann")
            pair.leads(other)
        assert found["sentence"].startswith(f"{there.name} leads, {here.name} ")
        assert here.told == 2 and there.told == 0
        for one in both:
            until("the change to be noted", lambda one=one: one.client.pair()["changes"])
            assert [change["leads"] for change in one.client.pair()["changes"]] == [there.name]
        assert here.client.pair()["changes"][0]["reason"] == "ann asked for it"
        until("all to be well", lambda: there.client.pair()["good"])
        assert there.client.pair_hold(0, "ann")["hold"]["user"] == "ann"
        pair.leads(leading, other="held")
        # What one box knows of the other is half a second old: it was handing over then.
        until("the hold to be known here", lambda: here.client.pair()["boxes"][other.number]["reason"] == "by ann")
        with pytest.raises(ApplierRefused, match=rf"{there.name} is held \(by ann\), so nobody would lead"):
            here.client.pair_hand_over("ann")
        there.client.pair_release("ann")
        pair.leads(leading)


def test_a_drill_and_back_again_is_measured_and_known_to_both(leading, pair, tmp_path):
    with appliers(pair, tmp_path) as both:
        here, there = both[leading.number], both[1 - leading.number]
        until("the other box to be heard", lambda: here.client.pair()["good"])
        until("an answer on each path", lambda: here.pairs.hearing.look() or all(one["ever"] for one in here.paths))
        assert [one["interface"] for one in here.paths] == ["eth2", "eth0", "eth1"]
        with watched(pair, "drill, and back") as watch:
            here.client.pair_drill(True, "ann")
            until("both drills", lambda: len(here.client.pair_drills()["drills"]) == 2)
            pair.leads(leading)
        back, first = here.client.pair_drills()["drills"]
        print(f"{first['sentence']}\n{back['sentence']}\nthe client: {watch.silence:.0f} ms")
        for drill, gave, took in ((first, here, there), (back, there, here)):
            assert (drill["gave"], drill["took"], drill["failed"]) == (gave.name, took.name, "")
            assert drill["silence"] is not None and drill["unanswered"] == []
            assert drill["sentence"].endswith(" ms; 3 connections before, 3 after.")
        until("them there", lambda: there.client.pair_drills()["drills"] == [back, first])


def test_the_boxs_own_addresses_do_not_depend_on_a_lease(leading):
    """The kernel drops all addresses of a network with the first one of it."""
    leading.float([*FLOATING, ("eth1", "10.7.0.100/24")])
    leading.ask(client.reload)
    until("the floating address", lambda: "10.7.0.100" in leading.addresses())
    leading.ip("address", "add", "10.7.0.1/24", "dev", "eth1")
    leading.float(FLOATING)
    leading.ask(client.reload, remove=True)
    until("the floating address to go", lambda: "10.7.0.100" not in leading.addresses())
    assert "10.7.0.1" in leading.addresses()
    assert "10.7.0.0/24 dev eth1" in leading.do("ip route show")
    leading.ip("address", "del", "10.7.0.1/24", "dev", "eth1")


def test_what_is_killed(leading, pair):
    other = pair.other(leading)
    before = leading.pid("floater")
    with watched(pair, "floater killed"):
        leading.do("kill -9 $(cat /run/service/floater/supervise/pid)")
        until("the floater to be started again", lambda: leading.pid("floater") not in ("", before))
        until("the floater to go on", lambda: leading.ask(client.announce) or True, expected=(HostError,))
    pair.leads(leading)
    with watched(pair, "keepalived killed"):
        leading.do("kill -9 $(cat /run/fairlead/vrrp.pid) $(cat /run/fairlead/keepalived.pid)")
        pair.leads(other)
    other.do("cd /run/service/floater && ./finish -1 9 && ./finish -1 9")
    pair.leads(leading, other="held")
    assert other.role.reason == "the floater died twice within 10 seconds"


def test_a_box_whose_processes_stand_still_loses_its_addresses(leading, pair):
    other = pair.other(leading)
    with watched(pair, "all processes stopped"):
        leading.freeze(stopped=True)
        until("the other box to lead", lambda: other.role.role == "leads")
        until("the leases to end", lambda: not leading.holds())
        pair.reached(other)
    since = other.role.since
    with watched(pair, "and thawed"):
        leading.freeze(stopped=False)
        pair.leads(other)
    assert other.role.since == since
    until(
        "keepalived to stand by, its group as well",
        lambda: "Syncing instances to BACKUP" in leading.log.split("expired")[-1],
    )
    other.ask(client.hand_over)
    pair.leads(leading)  # which keepalived says only of a group that stood by


def test_a_box_holds_its_addresses_while_it_becomes_one_of_a_pair_and_leaves_it():
    """The kernel is asked what it dropped; only IPv6 has an address once on a card, so there one makes way."""
    with contextlib.closing(Pair(build.base_tree())) as pair:
        box = pair.boxes[0]
        own = (("eth0", f"{VIP}/32"), ("eth0", f"{VIP6}/128"), ("eth1", f"{GATEWAY}/24"))
        for card, address in own:
            box.ip("address", "add", address, "dev", card, *(("nodad",) if ":" in address else ()))
        box.configure()
        with dropped(box) as gone, watched(pair, "a pair is made"):
            box.supervise()
            until("the box to lead", lambda: box.role and box.role.role == "leads")
            until("leases", lambda: all(lease(box, *one) for one in FLOATING))
            box.ip("address", "del", f"{GATEWAY}/24", "dev", "eth1")
        assert gone == [f"{GATEWAY}/24"] and lease(box, "eth1", GATEWAY)

        held = (*own[:2], ("eth1", f"{GATEWAY}/32"))
        wanted = act.own(NetworkState(addresses=(own[0], ("eth0", f"{VIP6}/64"), own[2])), held)
        with dropped(box) as gone, watched(pair, "it is left"):
            box.ask(client.keep)
            box.do("sv -w 20 stop /run/service/vrrp /run/service/floater")
            assert all(lease(box, *one) for one in FLOATING)
            for line in adopted(wanted):
                box.ip(*line.split())
        assert gone == [f"{VIP6}/128", f"{GATEWAY}/32"]
        assert {VIP, VIP6, GATEWAY} <= box.addresses() and not any(lease(box, *one) for one in FLOATING)


@contextlib.contextmanager
def dropped(box: Box) -> Iterator[list[str]]:
    """At the end: the addresses that the box's cards lost meanwhile; keepalived's are on the loopback."""
    found: list[str] = []
    begins, ends = MARKS
    words = box.beside("ip", "-oneline", "monitor", "address")
    with tempfile.NamedTemporaryFile("w") as out, subprocess.Popen(words, stdout=out, env=CLEAN) as monitor:
        said = Path(out.name)
        try:
            until("the kernel to be listened to", lambda: _told(said, box, begins))
            yield found
            until("all to be told", lambda: _told(said, box, ends))
        finally:
            monitor.terminate()
        lines = [line.split() for line in said.read_text().splitlines()]
    gone = [words[4] for words in lines if words[0] == "Deleted" and words[2] != "lo"]
    found += [address for address in gone if address not in MARKS]


def _told(said: Path, box: Box, mark: str) -> bool:
    """Whether the one who listens has heard of this address, which comes and goes."""
    for verb in ("add", "del"):
        box.ip("address", verb, mark, "dev", "eth2")
    return f" {mark} " in said.read_text()


def lease(box: Box, card: str, address: str) -> bool:
    """Whether the floater holds it there."""
    found = box.do(f"ip -oneline address show dev {card} to {address.partition('/')[0]}")
    return " dynamic " in found


def stays_down(box: Box, service: str) -> bool:
    said = box.do(f"sv status /run/service/{service} || :")
    return said.startswith("down: ") and "want up" not in said


def test_a_box_that_is_in_no_pair_runs_neither():
    with contextlib.closing(Box(0, build.base_tree())) as box:
        for path in (box.paths.keepalived, box.paths.floating):
            path.write_text("")  # as their renderers have it
        box.supervise()
        for service in ("vrrp", "floater"):
            until(f"{service} to be down", lambda service=service: stays_down(box, service))
        assert box.role is None and not box.paths.vrrp_events.exists()


def named(box: Box, words: str) -> int | None:
    """The process of the box that was started with these words, by its number outside of it."""
    lines = {one: Path(f"/proc/{one}/cmdline").read_text(errors="replace") for one in box.processes()}
    return next((one for one, line in lines.items() if line.startswith("python3") and words in line), None)


BEATS = """
import pathlib, signal, threading, time, types
from applier.base.paths import Paths
from applier.host.host import Live
from applier.kept.loop import Loop
from applier.pair.pulse import Pulse, Work

core = types.SimpleNamespace(
    host=Live(),
    paths=Paths(run=pathlib.Path("/run/fairlead")),
    running=types.SimpleNamespace(in_pair=True),
    turn=types.SimpleNamespace(taken=False),
)
lock = threading.Lock()

def agree():
    with lock:
        pass

agreement = Loop("the agreement", agree, lambda: time.sleep(0.5))
threading.Thread(target=agreement.run, daemon=True).start()
signal.signal(signal.SIGUSR1, lambda *_: lock.acquire())  # nobody gives it back
Pulse(core, types.SimpleNamespace(relieved=True), (Work(agreement, 5.0),)).loop.run()
"""


@thorough
@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGKILL, signal.SIGUSR1])
def test_an_applier_that_stands_still_or_died_or_hangs_has_the_other_box_lead(leading, pair, how):
    other = pair.other(leading)
    words = leading.inside("sh", "-c", f". /etc/fairlead/environment; exec python3 -c '{BEATS}'")
    applier = subprocess.Popen(words, env=CLEAN)
    process = until("the applier", lambda: named(leading, "Pulse(core"))
    try:
        time.sleep(floater.APPLIER + 2)  # as long as it speaks nothing moves
        assert leading.role.role == "leads"
        with watched(pair, f"applier {how.name}"):
            os.kill(process, how)
            pair.leads(other)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
        applier.kill()  # nsenter stops along with what it has started
        applier.wait(20)
    assert floater.DEAD in leading.log


@thorough
def test_a_keepalived_that_hangs_is_taken_for_one_that_died(leading, pair):
    other = pair.other(leading)
    with watched(pair, "keepalived stopped"):
        leading.do("kill -STOP $(cat /run/fairlead/vrrp.pid)")
        pair.leads(other, other="fault")
    assert leading.role.reason == "keepalived stands still"
    leading.do("kill -CONT $(cat /run/fairlead/vrrp.pid)")
    pair.leads(other)
    other.ask(client.hand_over)
    pair.leads(leading)


@thorough
def test_a_floater_that_is_ended_has_the_other_box_lead(leading, pair):
    other = pair.other(leading)
    with watched(pair, "floater ended"):
        leading.do("sv down /run/service/floater")
        pair.leads(other, other="held")
    assert leading.role.reason == "the floater was ended"
    leading.do("sv up /run/service/floater")
    pair.leads(other)


@thorough
def test_a_network_loses_its_carrier(leading, pair):
    other = pair.other(leading)
    with watched(pair, "carrier of the back network lost"):
        pair.unplug(leading, "back")
        pair.leads(other, other="fault")
    assert leading.role.reason == "back: its network has no link or no address"
    pair.plug(leading, "back")
    pair.leads(other)


@thorough
def test_a_silent_network_makes_no_second_leader(leading, pair):
    with watched(pair, "front network silent") as watch:
        pair.silence(pair.other(leading), "front")
        time.sleep(10 * ADVERT / 1000)
        assert watch.both == 0
    assert sorted(pair.roles()) == ["leads", "stands by"]
    pair.plug(pair.other(leading), "front")
    pair.leads(leading)


@thorough
def test_the_cable_alone_changes_nothing(leading, pair):
    since = leading.role.since
    pair.cable("down")
    time.sleep(10 * ADVERT / 1000)
    pair.cable("up")
    pair.leads(leading)
    assert leading.role.since == since


@thorough
def test_of_two_that_led_apart_the_first_leads_on(leading, pair):
    first, second = pair.boxes
    for network in ("front", "back"):
        pair.silence(first, network)
    pair.cable("down")
    until("both to lead", lambda: pair.roles() == ["leads", "leads"])
    pair.reached(second)
    with watched(pair, "healed"):
        for network in ("front", "back"):
            pair.plug(first, network)
        pair.cable("up")
        pair.leads(first)


@thorough
def test_a_thousand_addresses(leading, pair):
    other = pair.other(leading)
    everything = {address.partition("/")[0] for _, address in MANY} | {VIP}
    for box in pair.boxes:
        box.float([*FLOATING, *MANY])
        box.ask(client.reload)
    until("all addresses", lambda: everything <= leading.addresses())
    with watched(pair, "hand-over of 1,000 addresses"):
        leading.ask(client.hand_over)
        until("all addresses there", lambda: everything <= other.addresses())
        until("none here", lambda: not everything & leading.addresses())
        pair.leads(other)
    print("\n".join(line.partition(": ")[2] for line in other.log.splitlines() if "addresses within" in line))
    for box in pair.boxes:
        box.float(FLOATING)
        box.ask(client.reload, remove=True)
    until("the rest gone", lambda: not other.addresses() & (everything - {VIP}))
    pair.leads(other)
