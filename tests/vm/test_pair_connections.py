"""What one box of a pair knows of the other one's connections: by the kernel alone, and once they are told again.

Two directors are network namespaces of one machine (tests/lab/pair_guest.py), joined as the product joins two boxes.
"""

import pytest
from tests.lab.fixtures import thorough
from tests.lab.pair_room import a_pair

pytestmark = pytest.mark.timeout(900)

EACH = {"TCP4": 4, "UDP4": 4, "TCP6": 4, "routed": 4, "tunnel": 4, "mark": 2, "mark2": 2, "sticky": 4}
CALL = "a84b4c76e66710@pc33.example.com"
TCP_TIMEOUT = 36  # seconds
KERNEL_WAITS = 5  # seconds; it sends what it has to tell after 3 at the latest


@pytest.fixture
def pair(director):
    return a_pair(director)


def told(record_property, text: str) -> None:
    """In the report of a release, and where the test is shown with -rA."""
    record_property("figures", text)
    print(text)


def test_a_box_that_comes_back_knows_every_connection_once_they_are_told_again(pair, record_property):
    """Idle connections of every kind outlive the box that they went through, at the server that they had."""
    pair.ask("open_some", {"TCP4": 1})
    alone = pair.ask("wait_for", "B", 1)
    assert alone == {"TCP4": 1}, "the kernel told of a connection that was spoken over"

    pair.ask("open_some", EACH | {"TCP4": 3})
    pair.ask("ring", CALL, 2)
    pair.ask("pause", KERNEL_WAITS)
    clients = pair.ask("templates", "A")
    pair.ask("forget", "B")
    assert pair.ask("join", "B") == "" and pair.ask("joined", "B")
    total = sum(EACH.values())
    without = pair.ask("wait_for", "B", 1, KERNEL_WAITS)
    assert sum(without.values()) == 0, without
    found = pair.ask("tell", "A")
    known = pair.ask("wait_for", "B", total)
    told(
        record_property, f"known of {total} idle connections: {sum(without.values())}, told again {sum(known.values())}"
    )
    assert known == EACH, found
    assert found["whole"] and found["connections"] == total + 3, found  # and the templates
    # They belong to the servers of their services, by address and by mark; and the templates to theirs.
    bound = pair.ask("bound", "B")
    assert bound["tcp 10.1.0.100"] == [4, 0] and bound["udp 10.1.0.100"] == [4, 0], bound
    assert bound["fwm "] == [4, 1] and bound["tcp 10.1.0.105"] == [4, 1], bound
    assert bound["tcp 2001:db8:1::100"] == bound["tcp 10.1.0.101"] == bound["tcp 10.1.0.102"] == [4, 0], bound
    again = pair.ask("templates", "B")
    assert [(to, server, call) for to, server, _, call in again] == [
        (to, server, call) for to, server, _, call in clients
    ]
    assert sorted(call for *_, call in again) == ["", "", CALL]
    assert all(seconds > 300 for _, _, seconds, _ in again), "with the whole time of their services"

    pair.ask("lead", "B")
    kept = pair.ask("talk")
    told(record_property, f"went on at the other box, at the same server: {sum(kept.values())} of {total}")
    assert kept == EACH
    # A new connection of a persistent client goes where its others are, and so does a call.
    servers = pair.ask("open_some", {"sticky": 3, "mark2": 3})
    assert all(len(names) == 1 for names in servers.values()), servers
    pair.ask("ring", CALL, 3)
    assert [one[:2] for one in pair.ask("templates", "B")] == [one[:2] for one in clients]


@thorough
def test_quiet_connections_are_known_for_as_long_as_they_live(pair, record_property):
    """An exchange each third of the timeout, for three timeouts: with the settings of a pair, and with the kernel's.

    Both at the same time: one box sends with the ones, the other box with the others.
    """
    pair.ask("timeout", TCP_TIMEOUT)
    pair.ask("as_stock", "B")
    pair.ask("hold", "B", "10.1.0.106")
    pair.ask("open_some", {"routed": 20, "other": 20})
    begin = pair.ask("wait_for", "B", 20, 20, ["routed"]), pair.ask("wait_for", "A", 20, 20, ["other"])
    pair.ask("quiet", ["routed", "other"], TCP_TIMEOUT / 3, 9, timeout=600)
    ours, stock = pair.ask("known", "B", ["routed"])["routed"], pair.ask("known", "A", ["other"])["other"]
    told(
        record_property,
        f"known of 20 quiet connections after three timeouts: {ours} with the settings of a pair, {stock} with the "
        f"kernel's own (3 50); after the first words: {begin}",
    )
    assert pair.ask("talk") == {"routed": 20, "other": 20}, "all of them live"
    assert (ours, stock) == (20, 0)


@thorough
def test_nobody_on_the_clients_network_writes_into_the_table(pair, record_property):
    count = 38
    with_rule = pair.ask("forge", count)
    pair.ask("without_rule")
    over_link = pair.ask("forge", count)
    pair.ask("listen_in_front")
    in_front = pair.ask("forge", count)
    told(
        record_property,
        f"forged entries taken of {count}: {with_rule} in a pair, {over_link} without the rule about port 8848, "
        f"{in_front} where the daemon listens on the clients' network",
    )
    assert (with_rule, over_link, in_front) == (0, 0, count)
