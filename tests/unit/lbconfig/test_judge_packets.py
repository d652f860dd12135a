"""What the judge says of a packet is what the rendered rules do with it, in a real kernel with real packets.

Rules and packets are drawn; verdict and rule are compared, by the counters that the web page shows as well. Needs
root, network namespaces and nft; else it says why it skips.
"""

import dataclasses
import itertools
import os
import shutil
import socket
import subprocess

import pytest
from board.machines.wait import until
from firewall_lab import ADDRESSES, FirewallLab
from hypothesis import HealthCheck as Slow
from hypothesis import event, given, settings
from hypothesis import strategies as st
from lbconfig_firewall import INTERFACES, aimed, firewalls, packets
from lbconfig_pairs import ID, KEYS
from lbconfig_strategies import examples

from applier.parts import firewall
from lbconfig.judge import Fate, judge
from lbconfig.model import icmp
from lbconfig.model.firewall import Action, Firewall, Packet, Per, RateLimit, Rule, RuleProtocol, Where
from lbconfig.model.network import Bond, Vlan
from lbconfig.model.snapshot import (
    CheckKind,
    HealthCheck,
    Interface,
    Management,
    Network,
    Pair,
    PairBox,
    PolicyRoute,
    Protocol,
    RealServer,
    Snapshot,
    StaticRoute,
    Tuning,
    VirtualService,
)
from lbconfig.pair import view
from lbconfig.render import nftables, pair_rules
from lbconfig.validate.services import validate
from lbconfig.wanted import settings as sysctl

ADDRESSES_OF_THE_BOX = {text.partition("/")[0] for texts in ADDRESSES.values() for text in texts}
SEARCH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
NFT, IP = shutil.which("nft", path=SEARCH), shutil.which("ip", path=SEARCH)
NO_CHECK = HealthCheck(CheckKind.OFF)
SNAPSHOT = Snapshot(
    services=(
        VirtualService(1, "web", "192.168.50.100", 80, real_servers=(RealServer(1, "10.2.0.11", 8000),)),
        VirtualService(
            2,
            "several",
            "192.168.50.101",
            53,
            Protocol.TCP_UDP,
            check=NO_CHECK,
            more_ports="7000-7001",
            real_servers=(RealServer(2, "10.2.0.11", 0),),
        ),
        VirtualService(
            3, "six", "2001:db8:50::100", 80, more_ports="443", real_servers=(RealServer(3, "2001:db8:2::11", 0),)
        ),
        VirtualService(4, "calls", "192.168.50.101", 80, Protocol.SCTP, check=NO_CHECK),
    ),
    network=Network(
        gateway="192.168.50.2",
        gateway6="2001:db8:50::2",
        interfaces=(
            Interface("up0", addresses=("192.168.50.1/24", "2001:db8:50::1/64")),
            Interface("down0", addresses=("10.2.0.1/24", "2001:db8:2::1/64")),
        ),
    ),
    management=Management(allow=("192.168.50.2/32", "2001:db8:50::/64")),
)
LIMITED = RateLimit(1, Per.MINUTE, 3)
SOON = 0.3  # seconds without an answer that count as none
LATER = 5.0  # seconds in which an answer must have come


@pytest.fixture(scope="module")
def lab():
    if NFT is None or IP is None:
        pytest.skip("nft or ip is not installed")
    if os.geteuid() != 0:
        pytest.skip("not root")
    name = f"flfw{os.getpid()}-probe"
    made = subprocess.run([IP, "netns", "add", name], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no network namespaces: {made.stderr.strip()}")
    subprocess.run([IP, "netns", "del", name], check=True)
    with FirewallLab(NFT, IP) as lab:
        yield lab


def with_rules(*rules: Rule) -> Snapshot:
    snapshot = dataclasses.replace(SNAPSHOT, firewall=Firewall(rules))
    assert validate(snapshot) == []
    return snapshot


def load(lab: FirewallLab, *rules: Rule) -> Snapshot:
    snapshot = with_rules(*rules)
    lab.load(nftables.render(snapshot))
    return snapshot


@settings(max_examples=examples(80), deadline=None, suppress_health_check=list(Slow))
@given(firewalls(INTERFACES), st.data())
def test_the_judge_and_the_kernel_agree(lab, firewall, data):
    snapshot = load(lab, *firewall.rules)
    for packet in [*data.draw(st.lists(packets(), max_size=3)), *(data.draw(aimed(rule)) for rule in firewall.rules)]:
        if ":" in packet.source and packet.source in ADDRESSES_OF_THE_BOX and not packet.protocol.has_ports:
            continue  # the same packet the other way round ends at the box: the kernel takes them for one conversation
        verdict = judge(snapshot, packet)
        seen = lab.send(packet)
        event(f"{verdict.where} {verdict.fate} {'own' if verdict.rule else 'box'}")
        assert seen.passed == (verdict.fate is Fate.PASSED), (packet, verdict, seen)
        assert seen.rules == ({verdict.rule.id: 1} if verdict.rule else {}), (packet, verdict, seen)


def test_the_web_page_at_another_port(lab):
    """Its old port is one like any other: the admin's rules decide."""
    management = dataclasses.replace(SNAPSHOT.management, port=8443)
    rule = Rule(1, "those two", Action.ALLOW, Where.BOX, protocol=RuleProtocol.TCP, ports="443,8443")
    snapshot = dataclasses.replace(with_rules(rule), management=management)
    assert validate(snapshot) == []
    lab.load(nftables.render(snapshot))
    for source, port, rules in (
        ("192.168.50.2", 8443, {}),
        ("192.168.50.3", 8443, None),
        ("192.168.50.3", 443, {1: 1}),
        ("192.168.50.2", 444, None),
    ):
        packet = Packet(source, "192.168.50.1", RuleProtocol.TCP, port, "up0")
        seen = lab.send(packet)
        assert (judge(snapshot, packet).fate is Fate.PASSED) == seen.passed == (rules is not None), packet
        assert seen.rules == (rules or {}), packet


def test_what_comes_from_the_port_of_a_real_server_leaves_as_an_answer_only(lab):
    snapshot = with_rules(Rule(1, "all", where=Where.THROUGH))
    lab.load(nftables.render(snapshot), whole=True)
    # 7000-7001 are ports of a service of several.
    for port, allowed in ((8000, False), (7001, False), (8001, True)):
        packet = Packet("10.2.0.11", "198.51.100.9", RuleProtocol.TCP, 80, "down0", port)
        assert (judge(snapshot, packet).fate is Fate.PASSED) == allowed
        assert lab.send(packet, same_port=True).passed == allowed


# By a route, by the better of two, by a route inside a network of the box, by its own network, by the default gateway.
SENDERS = ("198.18.0.9", "198.19.0.9", "192.168.50.200", "10.2.0.11", "192.168.50.77", "203.0.113.7")
TARGETS = (
    *(("192.168.50.1", 22), ("10.2.0.1", 22), ("198.51.100.9", 22)),
    *(("192.168.50.100", 80), ("192.168.50.101", 7000)),
)
ROUTES = (
    StaticRoute("198.18.0.0/16", "10.2.0.11"),
    StaticRoute("198.19.0.0/16", "192.168.50.2", metric=10),
    StaticRoute("198.19.0.0/16", "10.2.0.11", metric=20),
    StaticRoute("192.168.50.128/25", "10.2.0.11"),
)
LOOSE = PolicyRoute("192.168.50.101", "10.2.0.11")  # answers leave by the other interface than requests come in


@pytest.mark.parametrize("policies", [(), (LOOSE,), (PolicyRoute("192.168.50.101", "192.168.50.77"),)])
def test_the_judge_knows_the_ways_back(lab, policies):
    """Routes and ways out decide which senders are forged."""
    rules = (Rule(1, "to the box", where=Where.BOX), Rule(2, "through it", where=Where.THROUGH))
    plain = with_rules(*rules)
    snapshot = dataclasses.replace(plain, network=dataclasses.replace(plain.network, routes=ROUTES, policies=policies))
    assert validate(snapshot) == []
    fates = set()
    with lab.routed(snapshot):
        lab.load(nftables.render(snapshot))
        for source, (target, port), interface in itertools.product(SENDERS, TARGETS, INTERFACES):
            packet = Packet(source, target, RuleProtocol.TCP if port != 7000 else RuleProtocol.UDP, port, interface)
            verdict = judge(snapshot, packet)
            fates.add((interface, target, verdict.fate))
            assert lab.send(packet).passed == (verdict.fate is Fate.PASSED), (packet, verdict)
    for interface in INTERFACES:
        for fate in (Fate.PASSED, Fate.DROPPED):
            # Where senders are checked loosely, none of these is forged.
            expected = fate is Fate.PASSED or not (policies == (LOOSE,) and interface == "up0")
            assert any((interface, target, fate) in fates for target, _ in TARGETS) == expected


def test_with_one_interface_no_sender_comes_by_a_wrong_one(lab):
    """But nobody is the box itself, of whatever sender the kernel asks for the way back."""
    first, _ = SNAPSHOT.network.interfaces
    plain = with_rules(Rule(1, "to the box", where=Where.BOX))
    snapshot = dataclasses.replace(plain, network=Network(interfaces=(first,)))
    try:
        with lab.routed(snapshot):
            lab.load(nftables.render(snapshot))
            for sender, passed in (("10.2.0.11", True), ("192.168.50.1", False), ("192.168.50.100", False)):
                for target, port in (("192.168.50.1", 22), ("192.168.50.100", 80)):
                    packet = Packet(sender, target, RuleProtocol.TCP, port, "up0")
                    assert (judge(snapshot, packet).fate is Fate.PASSED) == lab.send(packet).passed == passed, packet
    finally:
        with lab.routed(SNAPSHOT):
            pass


@pytest.mark.parametrize(
    ("interfaces", "checked"),
    [
        ((Interface("eth0"),), False),
        ((Interface("eth0"), Interface("eth1", on=False)), False),
        ((Interface("eth0"), Interface("eth1")), True),
        ((Interface("eth0"), Interface("eth1"), Interface("bond0", bond=Bond(("eth0", "eth1")))), False),
        ((Interface("eth0"), Interface("eth0.7", vlan=Vlan("eth0", 7))), True),
        ((), True),
    ],
)
def test_senders_are_checked_where_there_is_more_than_one_way_in(interfaces, checked):
    snapshot = Snapshot(network=Network(interfaces=interfaces))
    assert sysctl.checks_senders(snapshot) == checked
    values = {one.value for one in sysctl.settings(snapshot) if one.key.endswith("/rp_filter")}
    assert values == {str(int(checked))}


def test_what_dhcp_brings_is_not_known(lab):
    """A sender may be in the network of the lease, unless he comes in where nothing asks for one."""
    first, second = SNAPSHOT.network.interfaces
    leased = dataclasses.replace(first, addresses=("2001:db8:50::1/64",), dhcp=True)
    snapshot = dataclasses.replace(
        SNAPSHOT, network=Network(interfaces=(leased, second), routes=(StaticRoute("198.18.0.0/16", "10.2.0.11"),))
    )
    assert validate(snapshot) == []
    for source, interface, forged in (
        ("198.18.0.9", "up0", False),
        ("10.2.0.11", "up0", True),
        ("203.0.113.7", "up0", False),
    ):
        verdict = judge(snapshot, Packet(source, "10.2.0.1", RuleProtocol.PING, 0, interface))
        assert ("kernel drops" in verdict.words) == forged, verdict


PEER = Network(
    "lb2",
    "192.168.50.2",
    (
        Interface("up0", addresses=("192.168.50.3/24", "2001:db8:50::3/64")),
        Interface("down0", addresses=("10.2.0.3/24", "2001:db8:2::3/64")),
    ),
    "2001:db8:50::2",
)
PAIR = dataclasses.replace(
    SNAPSHOT,
    network=Network(),
    pair=Pair(
        ID,
        (
            PairBox(dataclasses.replace(SNAPSHOT.network, hostname="lb1"), Tuning(), "down0", "10.2.0.1/24", KEYS[0]),
            PairBox(PEER, Tuning(), "down0", "10.2.0.3/24", KEYS[1]),
        ),
    ),
)
HERE, LINKED = "192.168.50.1", "169.254.64.1"
OF_A_PAIR = [
    *((Packet(source, HERE, RuleProtocol.VRRP, 0, "up0"), passed) for source, passed in (
        ("192.168.50.3", True), ("192.168.50.77", False), ("203.0.113.7", False),
    )),
    (Packet("10.2.0.3", "10.2.0.1", RuleProtocol.VRRP, 0, "down0"), True),
    (Packet("2001:db8:50::3", "2001:db8:50::1", RuleProtocol.VRRP, 0, "up0"), False),  # it speaks IPv4 there
    (Packet("10.2.0.3", "10.2.0.1", RuleProtocol.UDP, 51820, "down0"), True),
    (Packet("10.2.0.11", "10.2.0.1", RuleProtocol.UDP, 51820, "down0"), False),
    (Packet("192.168.50.3", HERE, RuleProtocol.UDP, 51820, "up0"), False),
    (Packet("10.2.0.3", "10.2.0.1", RuleProtocol.UDP, 8848, "down0"), False),
    (Packet("192.168.50.77", HERE, RuleProtocol.UDP, 8848, "up0"), False),
    *((Packet("169.254.64.2", LINKED, protocol, port, "pair0"), passed) for protocol, port, passed in (
        (RuleProtocol.UDP, 8848, True), (RuleProtocol.TCP, 64504, True), (RuleProtocol.PING, 0, True),
        (RuleProtocol.TCP, 443, False), (RuleProtocol.UDP, 53, False), (RuleProtocol.ESP, 0, False),
    )),
    (Packet("169.254.64.2", HERE, RuleProtocol.TCP, 443, "pair0"), False),
    (Packet("169.254.64.2", "198.51.100.9", RuleProtocol.TCP, 80, "pair0"), False),
    (Packet("192.168.50.77", "169.254.64.2", RuleProtocol.TCP, 64504, "up0"), False),
    # A server answers a check of the peer's by its gateway, which is this box: from a port of a service, or another.
    (Packet("10.2.0.11", "192.168.50.3", RuleProtocol.TCP, 40000, "down0", 8000), True),
    (Packet("10.2.0.11", "192.168.50.3", RuleProtocol.TCP, 40000, "down0", 9000), True),
    (Packet("2001:db8:2::11", "2001:db8:50::3", RuleProtocol.TCP, 40000, "down0", 80), True),
]  # fmt: skip


@pytest.mark.parametrize(
    "rules", [(), (Rule(1, "all to the box"), Rule(2, "all through it", where=Where.THROUGH))], ids=["none", "all"]
)
def test_what_the_boxes_of_a_pair_say_to_each_other(lab, rules):
    """Nobody else says it, whatever the admin's rules allow; tracked or not."""
    snapshot = dataclasses.replace(PAIR, firewall=Firewall(rules))
    assert validate(snapshot) == []
    with lab.routed(view(snapshot, 0)):
        lab.load(nftables.render(view(snapshot, 0)), whole=True)
        for packet, passed in OF_A_PAIR:
            verdict, seen = judge(snapshot, packet), lab.send(packet, same_port=packet.source_port != 40000)
            assert (verdict.fate is Fate.PASSED) == seen.passed == passed, (packet, verdict, seen)
            assert verdict.rule is None and not seen.rules, (packet, verdict, seen)


def test_the_peer_alone_is_counted_when_it_says_that_it_leads(lab):
    """In the words that overlay/etc/sv/lead/run asks and reads: where there is none, a box just started may lead."""
    adverts = [packet for packet, _ in OF_A_PAIR if packet.protocol is RuleProtocol.VRRP]
    count = [lab.nft, "list", "counter", "inet", "fairlead", pair_rules.ADVERTS]
    with lab.routed(view(PAIR, 0)):
        lab.load(nftables.render(view(PAIR, 0)), whole=True)
        assert "packets 0 " in lab.box(count)
        for packet in adverts[1:3]:
            lab.send(packet)
        assert "packets 0 " in lab.box(count), "a neighbour has said it"
        for number, packet in ((1, adverts[0]), (2, adverts[3])):
            lab.send(packet)
            assert f"packets {number} " in lab.box(count), packet.interface


def test_what_leaves_a_pair_masqueraded_has_a_floating_address(lab):
    """That of the network that it goes to, or of the interface by which it leaves; else the box's own."""
    rule = Rule(1, "updates", where=Where.THROUGH, masquerade=True)
    out = Packet("10.2.0.11", "198.51.100.9", RuleProtocol.UDP, 53, "down0")
    near = Packet("198.51.100.9", "10.2.0.11", RuleProtocol.UDP, 53, "up0")
    for floating, source in (((), "192.168.50.100"), (("192.168.50.15/24",), "192.168.50.15")):
        boxes = [floats(one, floating) for one in PAIR.pair.boxes]
        snapshot = dataclasses.replace(
            PAIR, pair=dataclasses.replace(PAIR.pair, boxes=tuple(boxes)), firewall=Firewall((rule,))
        )
        assert validate(snapshot) == []
        with lab.routed(view(snapshot, 0)):
            lab.load(nftables.render(view(snapshot, 0)))
            [sent] = lab.send(out, LATER).answers
            assert sent[12:16] == socket.inet_aton(source)
            [sent] = lab.send(near, LATER).answers
            assert sent[12:16] == socket.inet_aton("10.2.0.1")


def floats(box: PairBox, floating: tuple[str, ...]) -> PairBox:
    front, *others = box.network.interfaces
    interfaces = (dataclasses.replace(front, floating=floating), *others)
    return dataclasses.replace(box, network=dataclasses.replace(box.network, interfaces=interfaces))


def test_what_nobody_can_send_by_the_link():
    """WireGuard lets the peer's address there through alone."""
    for source in ("169.254.64.1", "10.0.0.1", "2001:db8::1"):
        target = "2001:db8:50::1" if ":" in source else LINKED
        assert judge(PAIR, Packet(source, target, RuleProtocol.UDP, 8848, "pair0")).fate is Fate.DROPPED


def test_an_interface_that_is_off_has_no_address():
    first, second = SNAPSHOT.network.interfaces
    network = dataclasses.replace(SNAPSHOT.network, interfaces=(first, dataclasses.replace(second, on=False)))
    snapshot = Snapshot(network=network, management=SNAPSHOT.management)
    ping = Packet("192.168.50.2", "10.2.0.1", RuleProtocol.PING, 0, "up0")
    assert judge(dataclasses.replace(snapshot, network=SNAPSHOT.network), ping).fate is Fate.PASSED
    assert judge(snapshot, ping).where is Where.THROUGH
    # Nor is the way back to what was its network known by another one than the default gateway.
    back = Packet("10.2.0.11", "192.168.50.1", RuleProtocol.PING, 0, "up0")
    assert judge(snapshot, back).fate is Fate.PASSED


CLIENT, STRANGER = "192.168.50.2", "203.0.113.7"
SSH = Packet(STRANGER, "192.168.50.1", RuleProtocol.TCP, 22, "up0")


def test_without_rules_of_the_table_all_passes(lab):
    """The lab itself works: what the other tests find shut is shut by the rules."""
    lab.box([NFT, "flush ruleset"])
    lab.load("")
    for source, target, interface in (
        (STRANGER, "192.168.50.1", "up0"),
        ("10.2.0.11", STRANGER, "down0"),
        ("2001:db8:9::1", "2001:db8:50::1", "up0"),
        ("2001:db8:2::11", "2001:db8:9::1", "down0"),
    ):
        for protocol in (RuleProtocol.TCP, RuleProtocol.UDP, RuleProtocol.SCTP, RuleProtocol.PING, RuleProtocol.ESP):
            port = 7 if protocol.has_ports else 0
            assert lab.send(Packet(source, target, protocol, port, interface)).passed, (source, protocol)


@pytest.mark.parametrize(
    ("protocol", "answer"),
    [(RuleProtocol.TCP, (6, None)), (RuleProtocol.UDP, (1, 3)), (RuleProtocol.PING, (1, 3))],
)
@pytest.mark.parametrize("where", [Where.BOX, Where.THROUGH])
def test_who_is_rejected_is_told(lab, protocol, answer, where):
    """TCP by a reset, all others by an ICMP error; who is denied hears nothing."""
    target = {Where.BOX: "192.168.50.1", Where.THROUGH: "10.2.0.11"}[where]
    packet = Packet(CLIENT, target, protocol, 22 if protocol.has_ports else 0, "up0")
    snapshot = load(lab, Rule(1, "no", Action.REJECT, where))
    assert judge(snapshot, packet).fate is Fate.REJECTED
    [back] = lab.send(packet, LATER).answers
    kind, icmp = answer
    assert back[9] == kind
    assert icmp is None or back[20] == icmp
    load(lab, Rule(1, "no", Action.DENY, where))
    assert lab.send(packet, SOON).answers == []


def test_a_client_of_a_service_is_rejected(lab):
    snapshot = load(lab, Rule(1, "no", Action.REJECT, Where.SERVICES, sources=("203.0.113.0/24",)))
    web = Packet(STRANGER, "192.168.50.100", RuleProtocol.TCP, 80, "up0")
    assert judge(snapshot, web).fate is Fate.REJECTED
    [reset] = lab.send(web, LATER).answers
    assert reset[12:16] == bytes([192, 168, 50, 100]) and reset[20 + 13] & 4
    other = web._replace(source=CLIENT)
    assert judge(snapshot, other).service.name == "web"
    assert lab.send(other).passed


@pytest.mark.parametrize("where", Where)
def test_a_limit_counts_all_together(lab, where):
    packet = {
        Where.BOX: SSH,
        Where.SERVICES: SSH._replace(destination="192.168.50.100", port=80),
        Where.THROUGH: SSH._replace(source="10.2.0.11", destination="198.51.100.9", interface="down0"),
    }[where]
    load(lab, Rule(7, "some", where=where, limit=LIMITED))
    assert [lab.send(packet).passed for _ in range(5)] == [True] * 3 + [False] * 2


def test_a_limit_counts_each_source(lab):
    load(lab, Rule(7, "some", limit=dataclasses.replace(LIMITED, each_source=True)))
    for source in (STRANGER, CLIENT):
        assert [lab.send(SSH._replace(source=source)).passed for _ in range(5)] == [True] * 3 + [False] * 2
    # Who has one address of IPv6 has its whole /64.
    six = SSH._replace(source="2001:db8:9::1", destination="2001:db8:50::1")
    found = [lab.send(six._replace(source=f"2001:db8:9::{number}")).passed for number in range(1, 6)]
    assert found == [True] * 3 + [False] * 2


def test_what_leaves_masqueraded_has_the_address_of_the_box(lab):
    out = Packet("10.2.0.11", "198.51.100.9", RuleProtocol.UDP, 53, "down0")
    load(lab, Rule(1, "updates", where=Where.THROUGH, interface="down0", masquerade=True))
    [sent] = lab.send(out, LATER).answers
    assert (sent[12:16], sent[16:20]) == (bytes([192, 168, 50, 1]), bytes([198, 51, 100, 9]))
    load(lab, Rule(1, "updates", where=Where.THROUGH, interface="down0"))
    [sent] = lab.send(out, LATER).answers
    assert sent[12:16] == bytes([10, 2, 0, 11])


# RFC 4890: what must not be dropped (4.4.1, 4.4.2); decision 49 goes through the rest.
NEEDED = {4: {0, 3, 11, 12}, 6: {1, 2, 3, 4, 129, 130, 131, 132, 135, 136, 143}}


@pytest.mark.parametrize("allowed", [False, True])
def test_messages_of_icmp(lab, allowed):
    """To the box and through it, with a rule that allows all ICMP and without."""
    rules = [
        Rule(number, str(where), where=where, protocol=RuleProtocol.ICMP)
        for number, where in enumerate((Where.BOX, Where.THROUGH), 1)
    ]
    snapshot = load(lab, *(rules if allowed else ()))
    for message in icmp.MESSAGES:
        six = message.version == 6
        near = message.care is icmp.Care.NEAR
        source = "fe80::77" if near else "2001:db8:50::2" if six else CLIENT
        own = "ff02::1" if near else "2001:db8:50::1" if six else "192.168.50.1"
        to_box = Packet(source, own, RuleProtocol.ICMP, 0, "up0", 0, message.type)
        verdict, seen = judge(snapshot, to_box), lab.send(to_box)
        assert seen.passed == (verdict.fate is Fate.PASSED), (message, verdict, seen)
        assert seen.rules == ({verdict.rule.id: 1} if verdict.rule else {}), (message, verdict, seen)
        if message.type in NEEDED[message.version]:
            assert seen.passed and not seen.rules, message
        elif not allowed:
            assert not seen.passed, message
        if not near:
            through = to_box._replace(destination="2001:db8:2::11" if six else "10.2.0.11")
            verdict, seen = judge(snapshot, through), lab.send(through)
            assert seen.passed == (verdict.fate is Fate.PASSED), (message, verdict, seen)
            assert seen.passed == message.error or (allowed and verdict.rule == rules[1]), message


def test_who_listens_is_asked_on_the_link_only(lab):
    """A query that comes from beyond a router, or has a source that the link does not give, is none."""
    snapshot = load(lab)
    far = Packet("2001:db8:50::2", "ff02::1", RuleProtocol.ICMP, 0, "up0", 0, 130)
    assert judge(snapshot, far).fate is Fate.DROPPED and not lab.send(far).passed


def test_a_switch_that_asks_who_listens_is_told_of_the_virtual_addresses(lab):
    """Otherwise it forgets after some minutes who wants neighbor solicitations, and nobody finds the VIP any more."""
    load(lab)
    query = Packet("fe80::77", "ff02::1", RuleProtocol.ICMP, 0, "up0", 0, 130)
    group = socket.inet_pton(socket.AF_INET6, "ff02::1:ff00:100")
    until("the report", lambda: any(group in one for one in lab.said_to_groups(query, 1)), 20)


@settings(max_examples=examples(25), deadline=None, suppress_health_check=list(Slow))
@given(firewalls(INTERFACES))
def test_no_rule_takes_the_web_page_from_the_admin(lab, firewall):
    snapshot = load(lab, *firewall.rules)
    for source, target in ((CLIENT, "192.168.50.1"), ("2001:db8:50::2", "2001:db8:50::1")):
        packet = Packet(source, target, RuleProtocol.TCP, 443, "up0")
        assert judge(snapshot, packet).fate is Fate.PASSED
        assert lab.send(packet).passed
        # And none opens it to others.
        other = packet._replace(source=STRANGER if "." in source else "2001:db8:9::1")
        assert judge(snapshot, other).fate is not Fate.PASSED
        assert not lab.send(other).passed


# --- the interfaces of the web page ----------------------------------------------------------------

BY_FOUR, BY_SIX = ("192.168.50.2", "10.2.0.11"), ("2001:db8:50::2", "2001:db8:2::11")


@pytest.mark.parametrize("port", [443, 8443])
@pytest.mark.parametrize("only", ["up0", "down0"])
@pytest.mark.parametrize("rules", [nftables.render, firewall.closed])
def test_the_web_page_answers_where_a_packet_arrives(lab, only, port, rules):
    """Whichever address of the box the packet is for; so do the rules of a boot at which the others fail."""
    management = Management(("192.168.50.0/24", "10.2.0.0/24", "2001:db8::/32"), port, interfaces=(only,))
    snapshot = dataclasses.replace(SNAPSHOT, services=(), management=management)
    assert validate(snapshot) == []
    lab.load(rules(snapshot))
    for sources, targets in ((BY_FOUR, ("192.168.50.1", "10.2.0.1")), (BY_SIX, ("2001:db8:50::1", "2001:db8:2::1"))):
        for interface, source in zip(INTERFACES, sources, strict=True):
            for target in targets:
                packet = Packet(source, target, RuleProtocol.TCP, port, interface)
                verdict = judge(snapshot, packet)
                assert lab.send(packet).passed == (interface == only), packet
                assert (verdict.fate is Fate.PASSED) == (interface == only), verdict
                assert interface == only or f"answers on {only} only" in verdict.words


def test_no_rule_opens_the_web_page_on_another_interface(lab):
    management = dataclasses.replace(SNAPSHOT.management, allow=("0.0.0.0/0",), interfaces=("up0",))
    snapshot = dataclasses.replace(with_rules(Rule(1, "all", where=Where.BOX)), management=management)
    lab.load(nftables.render(snapshot))
    for port, passed in ((443, False), (22, True)):
        packet = Packet("10.2.0.11", "10.2.0.1", RuleProtocol.TCP, port, "down0")
        assert (judge(snapshot, packet).fate is Fate.PASSED) == lab.send(packet).passed == passed
