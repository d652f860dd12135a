"""Two boxes, each seen by itself; what both hold, and where they hear each other."""

import dataclasses
import json

import pytest
from lbconfig_pairs import KEYS, PAIR, drawn_pairs, network, with_both, with_box, with_network, with_pair
from lbconfig_samples import SAMPLE
from lbconfig_strategies import drawn, examples

from lbconfig.model import canonical
from lbconfig.model.snapshot import Interface, Network, SnapshotError, Tuning, from_json, to_data, to_json
from lbconfig.pair import (
    Heartbeat,
    floating,
    heartbeats,
    named_floating,
    number,
    sides,
    view,
    views,
)
from lbconfig.render import render
from lbconfig.render.keepalived import render as elected
from lbconfig.wanted import network as interfaces
from lbconfig.wanted.pair_link import ADDRESSES


def bare(addresses) -> set[str]:
    return {text.partition("/")[0] for _, text in addresses}


def test_a_box_that_is_alone_is_its_own_view():
    for snapshot in drawn(examples(20)):
        assert view(snapshot, 0) is view(snapshot, 1) is snapshot and views(snapshot) == (snapshot,)
        assert floating(snapshot, 0) == () and sides(snapshot) is None
        assert "pair" not in to_data(snapshot) and '"floating"' not in to_json(snapshot)


def test_what_is_drawn_is_of_many_kinds():
    assert sum(bool(one.enabled_services) for one in drawn_pairs()) >= 5
    assert {bool(named_floating(view(one, 0).network)) for one in drawn_pairs()} == {False, True}


def test_both_views_differ_in_what_is_each_boxs_own_alone():
    for snapshot in drawn_pairs():
        first, second = views(snapshot)
        assert dataclasses.replace(second, network=first.network, tuning=first.tuning) == first
        assert dataclasses.replace(first, network=Network(), tuning=Tuning()) == snapshot
        assert view(first, 1) == second and views(first) == (first,)
        assert (number(first), number(second), number(snapshot)) == (0, 1, None)
        assert sides(first).own is sides(second).peer is snapshot.pair.boxes[0]


def test_what_one_box_holds_the_other_one_holds_in_its_place():
    for snapshot in drawn_pairs():
        first, second = bare(floating(snapshot, 0)), bare(floating(snapshot, 1))
        assert first == second
        for box in (0, 1):
            one = view(snapshot, box)
            own = bare(interfaces.wanted(one).addresses)
            vips = {vip for service in one.enabled_services for vip in service.vips}
            assert not own & first and vips | named_floating(one.network).keys() == first


def test_both_boxes_speak_of_the_same_networks():
    for snapshot in drawn_pairs():
        first, second = (heartbeats(snapshot.pair, box) for box in (0, 1))
        assert [(one.number, one.address, one.peer) for one in first] == [
            (one.number, one.peer, one.address) for one in second
        ]
        for beats in (first, second):
            assert len({one.number for one in beats}) == len({one.interface for one in beats}) == len(beats) >= 1
            assert all(1 <= one.number <= 254 for one in beats) and [one.cable for one in beats].count(True) == 1


def test_what_is_written_is_read_again():
    for snapshot in drawn_pairs():
        assert from_json(to_json(snapshot)) == from_json(canonical.text(snapshot)) == snapshot
        assert canonical.digest(snapshot) != canonical.digest(dataclasses.replace(snapshot, pair=None))


def test_the_election_knows_nothing_of_services():
    """So no apply that adds a virtual address reloads it."""
    for snapshot in drawn_pairs():
        for box in (0, 1):
            without = dataclasses.replace(snapshot, services=())
            assert elected(view(snapshot, box)) == elected(view(without, box))


def test_a_digest_from_before_there_were_pairs():
    """It is that of the text without the new fields; a golden configuration has all of it."""
    assert canonical.digest(SAMPLE) == "8a057bf3b54d77db08a1ae18949d17b5241854f78e03eb285235ff0af1a2fa59"


def test_the_networks_in_which_they_hear_each_other():
    cable, front, back = heartbeats(PAIR.pair, 1)
    assert cable == Heartbeat(cable.number, "eth2", "192.0.2.2", "192.0.2.1", True)
    assert front == Heartbeat(front.number, "eth0", "10.0.2.22", "10.0.2.21", False)
    assert back == Heartbeat(back.number, "eth1", "10.2.0.22", "10.2.0.21", False)


def test_a_network_that_comes_or_goes_leaves_the_numbers_of_the_others():
    all_of = {one.interface: one.number for one in heartbeats(PAIR.pair, 0)}
    fewer = with_both("eth0", addresses=(), floating=())
    assert {one.interface: one.number for one in heartbeats(fewer.pair, 0)} == {
        name: number for name, number in all_of.items() if name != "eth0"
    }


def test_a_network_of_ipv6_alone_will_do():
    six = [Interface("eth0", addresses=(f"2001:db8:1::{n}/64",)) for n in (1, 2)]
    boxes = tuple(
        dataclasses.replace(
            one, network=dataclasses.replace(one.network, interfaces=(six[n], one.network.interfaces[2]))
        )
        for n, one in enumerate(PAIR.pair.boxes)
    )
    assert heartbeats(with_pair(boxes=boxes).pair, 0)[1].peer == "2001:db8:1::2"
    text = elected(view(with_pair(boxes=boxes), 0))
    assert "unicast_src_ip 2001:db8:1::1\n" in text and "fe80::fa1:" in text


def test_interfaces_may_have_other_names():
    renamed = tuple(dataclasses.replace(one, name=f"p{one.name}") for one in network(1).interfaces)
    snapshot = with_box(1, network=dataclasses.replace(network(1), interfaces=renamed), cable="peth2")
    assert [one.interface for one in heartbeats(snapshot.pair, 1)] == ["peth2", "peth0", "peth1"]
    assert ("peth0", "10.0.2.100/32") in floating(snapshot, 1)


def test_the_snapshot_of_both_boxes_is_nobodys_view():
    with pytest.raises(ValueError, match="none of its views"):
        sides(PAIR)


def test_floating_addresses_stand_for_themselves():
    assert floating(PAIR, 0) == (
        ("eth0", "10.0.2.15/32"),
        ("eth0", "10.0.2.100/32"),
        ("eth0", "10.0.2.101/32"),
        ("eth0", "2001:db8:1::15/128"),
        ("eth0", "2001:db8:1::100/128"),
        ("eth1", "10.2.0.1/32"),
    )


def test_each_box_has_its_own_files_and_both_are_reviewed():
    files = render(PAIR)
    assert {name.partition("/")[0] for name in files} == {"lb1", "lb2"}
    for box in (0, 1):
        own = render(PAIR, box)
        assert (
            own
            == render(view(PAIR, box))
            == {name.partition("/")[2]: text for name, text in files.items() if name.startswith(f"lb{box + 1}/")}
        )
        assert KEYS[1 - box] in own["pair.conf"] and KEYS[box] not in own["pair.conf"]
        assert ADDRESSES[1 - box].partition("/")[0] in own["pair.conf"]
        found = json.loads(own["floating.json"])
        assert tuple(map(tuple, found["addresses"])) == floating(PAIR, box) and found["lease"] == 10
    assert files["lb1/nftables.conf"] != files["lb2/nftables.conf"]


def test_the_network_step_of_a_pair_has_no_virtual_address():
    assert "10.0.2.100" not in render(PAIR, 0)["interfaces"] and "10.0.2.21/24 on eth0" in render(PAIR, 0)["interfaces"]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda pair: pair | {"boxes": pair["boxes"][:1]}, "pair.boxes"),
        (lambda pair: pair | {"boxes": pair["boxes"] * 2}, "pair.boxes"),
        (lambda pair: pair | {"boxes": None}, "pair.boxes"),
        (lambda pair: pair | {"advert": "250"}, "pair.advert"),
        (lambda pair: pair | {"advert": 0.25}, "pair.advert"),
        (lambda pair: pair | {"hand_over_by_itself": 1}, "pair.hand_over_by_itself"),
        (lambda pair: pair | {"id": None}, "pair.id"),
        (lambda pair: pair | {"private_key": "x"}, "pair.private_key"),
        (lambda pair: [], "pair"),
        (lambda pair: {}, "pair.id"),
    ],
)
def test_a_pair_of_the_wrong_shape_is_refused_by_its_path(change, path):
    data = to_data(PAIR)
    data["pair"] = change(data["pair"])
    with pytest.raises(SnapshotError) as error:
        from_json(json.dumps(data))
    assert error.value.path == path


def test_a_floating_address_is_written_only_where_there_is_one():
    text = to_json(with_network(0, interfaces=network(0).interfaces[2:]))
    assert text.count('"floating"') == 2  # of eth0 and eth1 of the other box
