"""Two machines that are a pair, and the gateway of either family: a box that no longer reaches it hands over, once."""

import dataclasses
import json

import pytest
from board.machines.director import QUICK, VIP, Director, service
from board.machines.wait import until
from tests.lab.fixtures import thorough
from tests.lab.pair_machines import SOON, alone, apply_draft, ask, join, leads, own, propose, told, turned_on

from applier.pair.fitness import USUAL
from lbconfig.model.snapshot import Snapshot

pytestmark = [thorough, pytest.mark.timeout(3000)]

SITE = service(1, "site", check=QUICK)
LINES = service(2, "lines", port=7000, check=QUICK)
GATEWAY, GATEWAY6 = "10.1.0.10", "2001:db8:1::10"  # the client's machine
REASON = "the other box reaches more gateways"
# How the client's machine stops answering one box, and begins again: by the gateway that this box asks.
DEAF = {
    GATEWAY: (
        "nft 'table arp deaf {{ chain input {{ type filter hook input priority 0; arp saddr ip {own} drop; }}; }}'",
        "nft delete table arp deaf",
    ),
    GATEWAY6: ("ip -6 route add blackhole {own}", "ip -6 route del blackhole {own}"),
}


@pytest.fixture
def machines(image):
    with turned_on(image) as made:
        yield made


def routed(snapshot: Snapshot) -> Snapshot:
    network = dataclasses.replace(snapshot.network, gateway=GATEWAY, gateway6=GATEWAY6)
    return dataclasses.replace(snapshot, network=network)


def own_addresses(box: Director) -> dict[str, str]:
    """Those of the box itself in the clients' network, by the gateway that is asked from there."""
    [entry] = json.loads(box.succeed(["ip", "-json", "address", "show", "dev", "eth2", "scope", "global"]))
    # The floating ones are of one address each.
    found = [one["local"] for one in entry["addr_info"] if one.get("prefixlen") in (24, 64)]
    return {GATEWAY6 if ":" in text else GATEWAY: text for text in found}


def changes(box: Director) -> list[dict]:
    """Every change of the lead that the box has kept."""
    return ask(box, "GET", "pair")["changes"]


def test_a_box_that_no_longer_reaches_a_gateway_says_so_and_hands_over_once(machines, record_property, capsys):
    world, (first, second) = machines.world, machines.boxes
    first.apply(routed(alone(1, "1", SITE, LINES, six=True)))
    second.apply(routed(alone(2, "5", six=True)))
    first.wait_until_healthy("rs1", "rs2", "rs3", timeout=SOON)
    join(first, second)
    propose(first)
    apply_draft(first)
    leads(first, second)
    for box in (first, second):
        for gateway in DEAF:
            assert gateway in box.succeed(["ip", "route", "show", "default"]) + box.succeed("ip -6 route show default")
        assert own_addresses(box).keys() == DEAF.keys(), own_addresses(box)

    requests, held = world.repeat("get", f"{VIP}:80/"), world.hold(f"{VIP}:7000", 20)
    held.next_round()
    asked_from, before = own_addresses(first), changes(second)
    for gateway, (forget, remember) in DEAF.items():
        told_of(first, [])
        world.in_client(forget.format(own=asked_from[gateway]))
        told_of(first, [f"No answer from the gateway {gateway}."])
        if gateway == GATEWAY:  # for so short a time it moves nothing
            world.in_client(remember.format(own=asked_from[gateway]))

    until("the second box to lead", lambda: own(second)["role"] == "leads", USUAL.apart + SOON, 1.0)
    found = changes(second)
    assert (found[0]["leads"], found[0]["reason"]) == ("lb2", REASON), found
    assert found[1:] == before
    world.in_client(DEAF[GATEWAY6][1].format(own=asked_from[GATEWAY6]))
    told_of(first, [])
    leads(second, first)
    assert changes(second) == found, "who leads goes on when the other one is as fit again"
    seen, kept = requests.end(), held.end()
    told(
        record_property, capsys,
        f"a gateway that one box does not reach: {len(seen['failed'])} of {seen['count']} requests failed, the "
        f"slowest took {seen['slowest']:.2f} s; {kept['open']} of 20 connections are open",
    )  # fmt: skip
    assert not seen["failed"] and not kept["broken"], (seen, kept)


def told_of(box: Director, sentences: list[str]) -> None:
    """Until the box lacks this and nothing else."""

    until(f"{box.name} to lack {sentences}", lambda: own(box)["lacks"] == sentences, SOON, 1.0)
