"""The firewall while a configuration gives way to another: what IPVS still has passes, and nothing else changes."""

import dataclasses
import itertools
import json
import re
from pathlib import Path

import pytest
from lbconfig_pairs import PAIR, network, with_network
from lbconfig_samples import DNS, SAMPLE, WEB
from lbconfig_strategies import examples, of_snapshots

from lbconfig.model.snapshot import Forwarding, Interface, RealServer, Snapshot, from_data
from lbconfig.pair import view
from lbconfig.render import nftables

GOLDEN = Path(__file__).parents[2] / "golden"
CASES = [view(from_data(json.loads(path.read_text())), 0) for path in sorted(GOLDEN.glob("*/snapshot.json"))]


def elements(text: str, name: str) -> list[str]:
    found = re.search(rf"\n\t(?:set|map) {name} {{.*?\n\t}}\n", text, re.DOTALL)
    return [line.strip(" \t,") for line in found[0].splitlines() if line.startswith("\t\t\t")] if found else []


def of(*services) -> Snapshot:
    return dataclasses.replace(SAMPLE, services=services)


@of_snapshots(examples(100))
def test_where_nothing_leaves_the_file_is_the_same(snapshot):
    assert nftables.render(snapshot, snapshot) == nftables.render(snapshot)


@of_snapshots(examples(100), together=2)
def test_nft_accepts_any_configuration_after_any_other(nft_check, wished, leaving):
    done = nft_check(nftables.render(wished, leaving))
    assert (done.returncode, done.stderr) == (0, "")


def test_nft_accepts_every_example_after_every_other(nft_check):
    for wished, leaving in itertools.permutations(CASES, 2):
        done = nft_check(nftables.render(wished, leaving))
        assert (done.returncode, done.stderr) == (0, "")


def test_the_peer_is_heard_as_before_until_all_has_changed():
    """Where its advertisements are dropped, a box leads beside it; and who leaves still listens for connections."""
    moved = Interface("eth1", addresses=("10.2.0.99/24",), floating=("10.2.0.1/24",))
    others = tuple(one for one in network(1).interfaces if one.name != "eth1")
    new, old = view(with_network(1, interfaces=(*others, moved)), 0), view(PAIR, 0)
    for texts in (nftables.render(new, old), nftables.render(old, new)):
        assert {'"eth1" . 10.2.0.22', '"eth1" . 10.2.0.99'} <= {*elements(texts, "heartbeats")}
        assert {"10.2.0.22", "10.2.0.99"} <= {*elements(texts, "peer")}
    assert '"eth1" . 10.2.0.22' not in elements(nftables.render(new), "heartbeats")
    left = nftables.render(SAMPLE, old)
    assert elements(left, "heartbeats") == elements(nftables.render(old), "heartbeats") != []
    assert 'udp dport 8848 iifname != "pair0" counter drop' in left and "8848" not in nftables.render(SAMPLE)


def test_what_leaves_and_what_comes_both_pass():
    new = dataclasses.replace(WEB, name="new", real_servers=(RealServer(9, "10.2.0.19", 8000),))
    text = nftables.render(of(new), of(WEB, DNS))
    assert elements(text, "services") == ['10.0.2.100 . tcp . 80 comment "new"', '10.0.2.100 . udp . 53 comment "dns"']
    assert [entry.split(" comment")[0] for entry in elements(text, "replies")] == [
        "10.2.0.11 . tcp . 8000",
        "10.2.0.11 . udp . 53",
        "10.2.0.12 . tcp . 8000",
        "10.2.0.12 . udp . 53",
        "10.2.0.19 . tcp . 8000",
    ]


def test_only_the_wished_rules_say_who_may_manage_the_box():
    wide = dataclasses.replace(SAMPLE, management=dataclasses.replace(SAMPLE.management, allow=("0.0.0.0/0",)))
    assert nftables.render(SAMPLE, wide) == nftables.render(SAMPLE)
    assert nftables.render(wide, SAMPLE) == nftables.render(wide)


def test_the_web_ui_does_not_answer_at_a_vip_that_leaves():
    assert elements(nftables.render(of(), of(WEB)), "vips") == ["10.0.2.100"]
    interfaces = (Interface("eth0", addresses=("10.0.2.100/24",)),)
    own = dataclasses.replace(of(), network=dataclasses.replace(SAMPLE.network, interfaces=interfaces))
    # It is the box's own from now on, and perhaps the only one.
    assert elements(nftables.render(own, of(WEB)), "vips") == []


def test_a_mark_stays_for_its_service_to_the_end():
    several = dataclasses.replace(WEB, more_ports="443,8000-8010")
    text = nftables.render(of(WEB), of(several))
    marked = [entry.split(" comment")[0] for entry in elements(text, "marks")]
    assert marked == [f"10.0.2.100 . tcp . {ports}" for ports in ("80", "443", "8000-8010")]
    assert elements(text, "services") == ['10.0.2.100 . tcp . 80 comment "web"']


def test_of_ranges_that_overlap_the_wished_one_counts():
    """An interval may stand in a map only once."""
    leaves = dataclasses.replace(WEB, id=8, name="leaves", port=443, more_ports="8000-8010")
    comes = dataclasses.replace(WEB, id=9, name="comes", more_ports="8005-8020")
    text = nftables.render(of(comes), of(leaves))
    assert elements(text, "marks") == [
        f'10.0.2.100 . tcp . 80 comment "comes" : {comes.mark}',
        f'10.0.2.100 . tcp . 8005-8020 comment "comes" : {comes.mark}',
        f'10.0.2.100 . tcp . 443 comment "leaves" : {leaves.mark}',
    ]


@pytest.mark.parametrize(("more", "name"), [("", "masqueraded"), ("443", "masqueraded_marks")])
def test_source_nat_lasts_as_long_as_its_server(more, name):
    before = dataclasses.replace(WEB, forwarding=Forwarding.SNAT, more_ports=more)
    after = dataclasses.replace(before, real_servers=before.real_servers[:1])
    both, alone = (
        elements(text, name) for text in (nftables.render(of(after), of(before)), nftables.render(of(after)))
    )
    assert (len(both), len(alone)) == (2, 1) and "10.2.0.12" in str(both)
    assert "masquerade" in nftables.render(of(), of(before)) and "masquerade" not in nftables.render(of())
