"""Connections through hand-overs, deaths, splits and forgery: two directors of one machine that elect who leads.

What must stay true is asserted; how long clients waited is told. tests/lab/pair_elects.py runs in the machine.
FAIRLEAD_PAIR_DEATHS: how often the leading box dies (100 times are what is promised).
"""

import os

import pytest
from board.machines.lab import GIVEN_IMAGE
from tests.lab.fixtures import thorough
from tests.lab.pair_room import one_that_elects

pytestmark = pytest.mark.timeout(3500)

KINDS = (
    "TCP4", "TCP6", "UDP4", "routed", "routed6", "routedU", "tunnel", "tunnel6", "tunnelU", "snat", "snat6",
    "mark", "mark2", "sticky",
)  # fmt: skip
ONE, EACH = dict.fromkeys(KINDS, 1), dict.fromkeys(KINDS, 10)
COMING = ("TCP4", "TCP6", "routed", "tunnel", "snat")
HAND_OVERS, STOCK_DEATHS = 100, 2
DEATHS = int(os.environ.get("FAIRLEAD_PAIR_DEATHS") or "8")
LOADED = 4  # one of so many deaths comes while new connections do, which are counted
SURE = 3  # seconds after which the other box knows a connection, on a machine that keeps up
LATE = 8  # and on any
RATE, CROWD, CROWDS = 500, 6, 3  # new connections a second, seconds, and how often
LONE, AT_ONCE = 5, 1  # connections, one after the other, and seconds: ten times what it takes
LOAD = 12  # seconds of new connections before a death
SPLIT, ONE_CUT = 60, 20  # seconds: all networks, one of them
FORGED = 10_000


def told(record_property, text: str) -> None:
    """In the report of a release, and where the test is shown with -rA."""
    record_property("figures", text)
    print(text)


@pytest.fixture
def pair(director):
    """As quick as the product is, for stories that may take it as it comes when the machine stands still."""
    return one_that_elects(director, "every_kind")


@pytest.fixture
def patient(director):
    """For stories about who leads."""
    return one_that_elects(director, "every_kind", "patient")


def opened(pair, each: dict[str, int]) -> None:
    """Connections of all kinds, known to both boxes."""
    pair.ask("open_some", each)
    assert pair.ask("talk") == each
    for box in ("A", "B"):
        assert pair.ask("wait_for", box, sum(each.values())) == each


def probing(pair) -> None:
    pair.ask("probe")
    pair.ask("rest", 1)
    pair.ask("probed")


def test_connections_of_every_kind_live_on_at_the_other_box(patient):
    """Handed over by the product's verb; what else may befall them, the long stories tell."""
    opened(patient, ONE)
    first = patient.ask("settle")
    assert patient.ask("hand_over") != first
    assert patient.ask("talk") == ONE
    # The kernel tells of a connection once its client has said something.
    answers = patient.ask("come_at_a_hand_over", *COMING)
    assert [*answers] == [*COMING] and set(answers.values()) <= {"s1", "s2"}, answers
    assert patient.ask("resets") == 0


@thorough
def test_a_hundred_hand_overs_lose_no_connection(pair, record_property):
    opened(pair, EACH)
    probing(pair)
    seen = []
    for number in range(HAND_OVERS):
        pair.ask("hand_over")
        assert pair.ask("talk") == EACH, f"after {number + 1} hand-overs"
        seen.append(pair.ask("probed"))
    assert pair.ask("resets") == 0
    told(
        record_property,
        f"{sum(EACH.values())} of {sum(EACH.values())} connections kept through {HAND_OVERS} hand-overs, no RST; "
        f"{probes(seen)}",
    )


@thorough
@pytest.mark.timeout(1800 + 120 * DEATHS)
def test_the_leading_box_dies_many_times(pair, record_property):
    """And comes back, and is told of all connections. Beside it, telling them as a kernel does by itself."""
    opened(pair, EACH)
    probing(pair)
    seen, ours, stock = [], [], []
    for number in range(DEATHS):
        if number % LOADED:
            pair.ask("die")
        else:
            ours.append(pair.ask("die_under_load", LOAD))
            assert all(age < LATE for age in ours[-1]["lost"]), ours[-1]
        seen.append(pair.ask("probed"))
        assert pair.ask("talk") == EACH, f"after {number + 1} deaths"
        pair.ask("come_back")
        pair.ask("probed")
    assert pair.ask("resets") == 0
    for _ in range(STOCK_DEATHS):
        pair.ask("as_stock")
        pair.ask("probed")
        stock.append(pair.ask("die_under_load", LOAD))
        pair.ask("come_back")
    told(
        record_property,
        f"{sum(EACH.values())} of {sum(EACH.values())} connections kept through {DEATHS} deaths of the leading box, no "
        f"RST; {probes(seen)}; of new ones, lost: {lost(ours)}; with the settings of a kernel by itself: {lost(stock)}",
    )


@thorough
@pytest.mark.timeout(3600)
def test_the_leading_box_dies_while_hundreds_come(pair, record_property):
    """How many of the last second are lost; beside it as if they were told in large messages."""
    opened(pair, EACH)
    seen: dict[str, list] = {"small": [], "large": []}
    for size, deaths in seen.items():
        for _ in range(CROWDS):
            deaths.append(pair.ask("die_in_a_crowd", RATE, CROWD, size == "large"))
            assert all(age < SURE for age in deaths[-1]["lost"]), deaths[-1]
            assert pair.ask("talk") == EACH
            pair.ask("come_back")
    told(
        record_property,
        f"of so many that began in the last second before a death, lost: "
        f"{'; '.join(f'in {size} messages {last_second(deaths)}' for size, deaths in seen.items())}",
    )


def last_second(deaths) -> str:
    return ", ".join(f"{sum(age <= 1 for age in one['lost'])} of {one['last']}" for one in deaths)


# Debian's kernel, in the developer image, tells of it after two to three seconds.
@pytest.mark.skipif(not GIVEN_IMAGE, reason="needs the image's own kernel (decision 127)")
def test_the_other_box_is_told_of_a_lone_new_connection_at_once(patient):
    patient.ask("settle")
    for number in range(1, LONE + 1):
        patient.ask("open_some", {"TCP4": 1})
        for box in ("A", "B"):
            assert patient.ask("wait_for", box, number, AT_ONCE) == {"TCP4": number}, box


def probes(seen: list[dict[str, int]]) -> str:
    silences = sorted(one["silence"] for one in seen)
    datagrams = f"{sum(one['lost'] for one in seen)} of {sum(one['sent'] for one in seen)} datagrams lost"
    return f"silence {silences[len(silences) // 2]} ms in the median, {silences[-1]} ms at worst, {datagrams}"


def lost(found: list[dict[str, list[float]]]) -> str:
    """Of each death."""
    return ", ".join(
        f"{len(one['lost'])} (of them {sum(age >= SURE for age in one['lost'])} older than {SURE} s) of "
        f"{len(one['ages'])} in {max(one['ages']):.0f} s"
        for one in found
    )


@thorough
@pytest.mark.parametrize("order", [("front", "back", "cable"), ("cable", "back", "front")], ids="-".join)
def test_connections_of_both_sides_of_a_split_live_on(patient, record_property, order):
    near, far = {"near": 20, "near routed": 20}, {"far": 20, "far routed": 20}
    patient.ask("cut", "front", "back", "cable")
    patient.ask("lead_apart")
    patient.ask("open_some", near)
    patient.ask("open_some", far, "cl2")
    patient.ask("rest", SPLIT)
    assert patient.ask("talk") == near | far, "apart"
    patient.ask("heal", *order)
    patient.ask("both")
    assert patient.ask("settle") == "A", "the first box leads on"
    overlap = patient.ask("both")
    patient.ask("rest", 2)  # each box has told the other one what it knows
    assert patient.ask("talk") == near | far, "together again"
    assert patient.ask("resets") == 0
    for box in ("A", "B"):
        assert len(patient.ask("templates", box)) == 2, "of the persistent services of both sides"
    told(
        record_property,
        f"80 of 80 connections of both sides of a split kept; once healed ({', '.join(order)}) both led {overlap} s",
    )


@thorough
@pytest.mark.parametrize("network", ["front", "cable"])
def test_one_network_alone_makes_no_second_leader(patient, network):
    before = patient.ask("stands")
    patient.ask("both")
    patient.ask("cut", network)
    patient.ask("rest", ONE_CUT)
    patient.ask("heal", network)
    patient.ask("settle")
    assert patient.ask("both") == 0
    assert patient.ask("stands") == before


@thorough
def test_what_neighbours_forge_changes_nothing(patient, record_property):
    patient.ask("capture")
    opened(patient, EACH)
    patient.ask("hand_over")
    assert patient.ask("talk") == EACH
    seen = patient.ask("captured")
    assert seen["frames"] > 100 and seen["with"] == 0, seen
    found = patient.ask("forge_all", FORGED, timeout=1200)
    assert (found["taken"], found["before"], found["both"]) == (0, found["after"], 0), found
    assert patient.ask("talk") == EACH
    as_peer = patient.ask("forge_as_peer", 3)
    assert patient.ask("talk") == EACH
    told(
        record_property,
        f"{FORGED} forged datagrams of synchronisation, VRRP and the channel from each of three networks: 0 entries, "
        f"0 changes of role; {seen['frames']} frames on the cable, {seen['with']} with an address of a connection; "
        f"in the other box's own name, on a network of both: {as_peer['before']} led, then {as_peer['after']}",
    )


@thorough
def test_a_thousand_services_are_handed_over(director, record_property):
    pair = one_that_elects(director, "a_thousand")
    opened(pair, EACH)
    probing(pair)
    seen = []
    for _ in range(4):
        pair.ask("hand_over")
        assert pair.ask("talk") == EACH
        seen.append(pair.ask("probed"))
    told(record_property, f"1,000 services with a VIP each, 4 hand-overs: {probes(seen)}")
