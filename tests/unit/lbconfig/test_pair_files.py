"""The files of a pair's box: what the firewall lets pass of its peer, what the kernel tells it, who is elected."""

import dataclasses
import os
import re
import shutil
import subprocess

import pytest
from lbconfig_pairs import PAIR, SERVICES, box, drawn_pairs, network, with_both, with_pair

from lbconfig.model.canonical import digest
from lbconfig.model.firewall import Action, Firewall, Rule, Where
from lbconfig.model.snapshot import Forwarding, RealServer, Snapshot, VirtualService
from lbconfig.pair import view, views
from lbconfig.render import OF_A_PAIR, keepalived, nftables, render, tracking
from lbconfig.target import Target
from lbconfig.wanted import network as interfaces
from lbconfig.wanted import settings as sysctl

KEEPALIVED = shutil.which("keepalived", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
WITHOUT_NAT = dataclasses.replace(
    PAIR,
    firewall=Firewall(),
    services=tuple(
        dataclasses.replace(
            one,
            forwarding=Forwarding.NAT,
            real_servers=tuple(dataclasses.replace(server, forwarding=None) for server in one.real_servers),
        )
        for one in SERVICES
    ),
)


def chain(rules: str, name: str) -> list[str]:
    """Its lines; of a name that is in both tables, that in the one that is replaced."""
    found = re.findall(rf"\n\tchain {name} {{\n(.*?)\n\t}}\n", rules, re.DOTALL)
    return [line.strip() for line in found[-1].splitlines()]


def elements(rules: str, name: str) -> list[str]:
    found = re.search(rf"\n\t(?:set|map) {name} {{.*?\n\t}}\n", rules, re.DOTALL)
    return [line.strip(" \t,") for line in found[0].splitlines() if line.startswith("\t\t\t")]


def alone(snapshot: Snapshot) -> Snapshot:
    """The first box, were it in no pair."""
    return dataclasses.replace(view(snapshot, 0), pair=None)


def test_nft_takes_the_rules_of_both_boxes(nft_check):
    for snapshot in drawn_pairs():
        for one in views(snapshot):
            done = nft_check(nftables.render(one))
            assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("snapshot", [PAIR, WITHOUT_NAT], ids=["tracked", "untracked"])
def test_nft_takes_the_rules_while_a_pair_is_made_and_ended(nft_check, snapshot):
    for pair in ((view(snapshot, 0), alone(snapshot)), (alone(snapshot), view(snapshot, 0)), views(snapshot)):
        done = nft_check(nftables.render(*pair))
        assert (done.returncode, done.stderr) == (0, "")


def test_nobody_but_the_peer_tells_of_connections():
    """Whatever the admin's rules are, the drop is the first rule, before that about open sockets."""
    for snapshot in drawn_pairs():
        for one in views(snapshot):
            rules = chain(nftables.render(one), "input")
            assert rules[1] == 'udp dport 8848 iifname != "pair0" counter drop'
            assert rules[2] == 'iifname "pair0" goto from_peer'
            sockets = [rule for rule in rules if "socket transparent" in rule]
            for rule in ("udp dport 51820 counter drop", "meta l4proto 112 counter drop"):
                assert rules.index(rule) < rules.index(sockets[0])


def test_what_comes_by_the_link():
    assert chain(nftables.render(view(PAIR, 0)), "from_peer") == [
        "udp dport 8848 accept",
        "tcp dport 64504 accept",
        "tcp sport 64504 tcp flags & (syn | ack) != syn socket transparent 0 accept",
        "icmp type { echo-request, echo-reply, destination-unreachable } accept",
        "counter drop",
    ]


def test_the_peer_is_known_by_its_own_addresses():
    rules = nftables.render(view(PAIR, 0))
    assert elements(rules, "heartbeats") == ['"eth2" . 192.0.2.2', '"eth0" . 10.0.2.22', '"eth1" . 10.2.0.22']
    assert elements(rules, "heartbeats6") == []
    assert elements(rules, "peer") == ["10.0.2.22", "10.2.0.22", "192.0.2.2"]
    assert elements(rules, "peer6") == ["2001:db8:1::22", "2001:db8:2::22"]
    assert 'iifname "eth2" ip saddr 192.0.2.2 udp dport 51820 accept' in chain(rules, "input")


@pytest.mark.parametrize("snapshot", [PAIR, WITHOUT_NAT], ids=["tracked", "untracked"])
def test_answers_to_the_peers_checks_pass_before_those_of_servers_are_dropped(snapshot):
    rules = chain(nftables.render(view(snapshot, 0)), "forward")
    assert 'iifname "pair0" counter drop' in rules and 'oifname "pair0" counter drop' in rules
    dropped = next(rule for rule in rules if rule.endswith("counter drop") and "pair0" not in rule)
    assert rules.index("ip daddr @peer accept") < rules.index("ip6 daddr @peer6 accept") < rules.index(dropped)


def test_what_the_boxes_say_to_each_other_is_not_tracked():
    rules = nftables.render(view(PAIR, 0))
    local = "fib daddr type local notrack"  # what is routed may be somebody else's, and tracked
    assert {'iifname "pair0" notrack', f"udp dport 51820 {local}", f"meta l4proto 112 {local}"} <= {
        *chain(rules, "prerouting")
    }
    assert {'oifname "pair0" notrack', "udp sport 51820 notrack", "meta l4proto 112 notrack"} <= {
        *chain(rules, "untracked_web_answers")
    }
    assert "notrack" not in nftables.render(view(WITHOUT_NAT, 0))  # nothing is


def test_source_nat_writes_a_floating_address():
    rules = nftables.render(view(PAIR, 0))
    assert elements(rules, "floating_interfaces") == ['"eth0" : 10.0.2.15', '"eth1" : 10.2.0.1']
    assert elements(rules, "floating_networks") == ["10.0.2.0/24 : 10.0.2.15", "10.2.0.0/24 : 10.2.0.1"]
    assert elements(rules, "floating_interfaces6") == ['"eth0" : 2001:db8:1::15']
    assert chain(rules, "floating_source") == [
        "snat ip to ip daddr map @floating_networks",
        "snat ip to oifname map @floating_interfaces",
        "snat ip6 to ip6 daddr map @floating_networks6",
        "snat ip6 to oifname map @floating_interfaces6",
        "masquerade",
    ]
    assert chain(rules, "postrouting")[-1] == "meta mark 0x80000000 goto floating_source"
    assert not [rule for rule in chain(rules, "postrouting") if rule.endswith(" masquerade")]
    # Answers come to an address that is a service's as well: they must stay tracked.
    assert {"10.0.2.15", "10.0.2.100", "10.0.2.101"} == {*elements(rules, "tracked")}


def test_where_no_interface_names_one_a_virtual_address_is_written():
    """Answers come to it, so it stays tracked, and its servers too, though its own service has no source NAT."""
    plain = VirtualService(9, "plain", "10.0.2.50", 80, real_servers=(RealServer(9, "10.2.0.19", 80),))
    snapshot = with_both("eth0", floating=())
    found = dataclasses.replace(snapshot, services=(*SERVICES[:3], plain), firewall=Firewall())
    rules = nftables.render(view(found, 1))
    assert '"eth0" : 10.0.2.50' in elements(rules, "floating_interfaces")
    assert "10.0.2.50" in elements(rules, "tracked")
    assert "10.2.0.19" in elements(rules, "tracked_servers")


def test_the_web_page_answers_at_floating_addresses_that_interfaces_name():
    """A former own address keeps its page, also where a service has moved there; a virtual address has none."""
    rules = nftables.render(view(PAIR, 0))
    assert elements(rules, "vips") == ["10.0.2.100", "10.0.2.101"]


def values(snapshot: Snapshot) -> dict[str, str]:
    return {one.key: one.value for one in sysctl.settings(snapshot)}


def test_what_the_kernel_is_told_in_a_pair_it_is_not_told_without():
    for snapshot in drawn_pairs():
        own = values(alone(snapshot))
        for one in views(snapshot):
            more = {key: value for key, value in values(one).items() if key not in own}
            conntrack = {
                "net/netfilter/nf_conntrack_tcp_loose": "1",
                "net/netfilter/nf_conntrack_tcp_be_liberal": "1",
            }
            assert more == {
                "net/ipv4/vs/sync_version": "1",
                "net/ipv4/vs/sync_threshold": "0 2",
                "net/ipv4/vs/sync_refresh_period": "10",
                "net/ipv4/vs/sync_retries": "1",
                "net/ipv4/vs/sync_sock_size": "4194304",
                "net/ipv4/vs/backup_only": "0",
                **(conntrack if tracking.wanted((one,)) else {}),
            }


def test_the_link_is_no_way_in_whose_senders_are_checked():
    """One interface and the link are one way in, as without a pair."""
    boxes = tuple(
        dataclasses.replace(
            one,
            cable="eth0",
            cable_address=f"10.0.2.{21 + n}/24",
            network=dataclasses.replace(one.network, interfaces=one.network.interfaces[:1]),
        )
        for n, one in enumerate(PAIR.pair.boxes)
    )
    assert not sysctl.checks_senders(view(with_pair(boxes=boxes), 0))
    assert sysctl.checks_senders(view(PAIR, 0))


WORDS = re.compile(
    r"[a-z_]+(?: [a-zA-Z0-9._-]+)? \{|\}|nopreempt|dont_track_primary|state BACKUP|[A-Za-z0-9][A-Za-z0-9._-]{0,14}|"
    r"(?:router_id|interface) [A-Za-z0-9._-]+|vrrp_notify_fifo /run/fairlead/vrrp\.fifo|file /run/fairlead/hold|"
    r"(?:vrrp_version|vrrp_rt_priority|vrrp_rlimit_rttime|weight|virtual_router_id|priority|timer_expired_backup) \d+|"
    r"advert_int \d+(?:\.\d+)?|(?:unicast_src_ip )?[0-9a-f.:]+|[0-9a-f.:]+/(?:32|128) dev lo"
)


def test_keepalived_reads_words_that_are_known():
    for snapshot in drawn_pairs():
        for one in views(snapshot):
            text = keepalived.render(one)
            for line in text.splitlines():
                assert WORDS.fullmatch(line.strip()), line
            assert text.count("{") == text.count("}")
            assert text.count("dont_track_primary") == 1 and text.count("nopreempt") == text.count("vrrp_instance ")


def test_services_that_come_and_go_change_no_byte_of_it():
    """So no apply that adds or removes virtual addresses concerns who leads."""
    before = [keepalived.render(one) for one in views(PAIR)]
    for number in range(1, 101):
        plain = VirtualService(9, "plain", f"10.0.2.{number}", 80, real_servers=(RealServer(9, "10.2.0.19", 80),))
        changed = dataclasses.replace(PAIR, services=(*PAIR.services[: number % 4], plain))
        assert [keepalived.render(one) for one in views(changed)] == before


def test_the_first_box_has_the_higher_priority():
    first, second = (keepalived.render(one) for one in views(with_pair(advert=1250)))
    assert "priority 254\n" in first and "priority 251\n" in second
    assert "advert_int 1.25\n" in first and "advert_int 1.25\n" in second
    assert "    group {\n        eth2\n        eth0\n        eth1\n    }\n" in first


@pytest.mark.skipif(KEEPALIVED is None, reason="keepalived is not installed")
def test_keepalived_itself_takes_the_file(tmp_path):
    """It looks for the interfaces, so it runs where there are some of these names."""
    file, said = tmp_path / "keepalived.conf", tmp_path / "said"
    make = 'for one in eth0 eth1 eth2; do ip link add "$one" type veth peer name "v$one"; done; exec "$@"'
    words = ["unshare", "--user", "--map-root-user", "--net", "sh", "-c", make, "sh", KEEPALIVED, "--vrrp"]
    for snapshot in (PAIR, with_both("eth0", floating=()), by_ipv6()):
        for one in views(snapshot):
            file.write_text(keepalived.render(one).replace(keepalived.FOLDER, str(tmp_path)))
            test = [*words, f"--config-test={said}", "--use-file", file]
            done = subprocess.run(test, capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode == 0, done.stderr
            assert said.read_text() == ""


def by_ipv6() -> Snapshot:
    """The first network has addresses of IPv6 alone."""
    boxes = []
    for number, one in enumerate(PAIR.pair.boxes):
        front, *others = network(number).interfaces
        front = dataclasses.replace(front, addresses=front.addresses[1:])
        own = dataclasses.replace(one.network, interfaces=(front, *others))
        boxes.append(dataclasses.replace(one, network=own))
    return with_pair(boxes=tuple(boxes))


def test_without_a_pair_there_is_no_file_of_one():
    assert not render(alone(PAIR)).keys() & OF_A_PAIR.keys()
    assert [renderer(alone(PAIR)) for renderer in OF_A_PAIR.values()] == ["", "", ""]


def test_the_steps_of_each_box_work_towards_its_own_files():
    for number, one in enumerate(views(PAIR)):
        target = Target(7, PAIR, number)
        assert target.own == one and target.files == render(PAIR, number) and target.digest == digest(PAIR)
        assert target.network == interfaces.wanted(one) and target.settings == sysctl.settings(one)


def test_wireguard_is_told_the_peer_alone():
    assert render(PAIR, 0)["pair.conf"] == (
        "[Interface]\n"
        "ListenPort = 51820\n"
        "\n"
        "[Peer]\n"
        f"PublicKey = {box(1).key}\n"
        "AllowedIPs = 169.254.64.2/32, 224.0.0.81/32, ff02::81/128\n"
        "Endpoint = 192.0.2.2:51820\n"
        "PersistentKeepalive = 1\n"
    )


def test_a_cable_of_ipv6():
    boxes = []
    for number, one in enumerate(PAIR.pair.boxes):
        address = f"fd00:2::{number + 1}/64"
        cable = dataclasses.replace(network(number).interfaces[2], addresses=(address,))
        own = dataclasses.replace(one.network, interfaces=(*one.network.interfaces[:2], cable))
        boxes.append(dataclasses.replace(one, network=own, cable_address=address))
    snapshot = with_pair(boxes=tuple(boxes))
    assert "Endpoint = [fd00:2::2]:51820\n" in render(snapshot, 0)["pair.conf"]
    assert 'iifname "eth2" ip6 saddr fd00:2::2 udp dport 51820 accept' in render(snapshot, 0)["nftables.conf"]
    assert elements(render(snapshot, 0)["nftables.conf"], "heartbeats6") == ['"eth2" . fd00:2::2']


def test_rules_of_the_admin_open_nothing_between_the_boxes():
    firewall = Firewall((Rule(1, "all", Action.ALLOW, Where.BOX),))
    rules = chain(nftables.render(view(dataclasses.replace(PAIR, firewall=firewall), 0)), "input")
    own = rules.index("jump own_box")
    assert own > rules.index("meta l4proto 112 counter drop") and own > rules.index("udp dport 51820 counter drop")
