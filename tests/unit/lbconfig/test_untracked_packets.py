"""Which packets the kernel tracks under the rendered rules: real packets between namespaces (firewall_lab.py).

Needs root, network namespaces and nft; else it says why it skips.
"""

import dataclasses

import pytest
from test_judge_packets import NFT, SNAPSHOT, lab  # noqa: F401 (a fixture)

from lbconfig.model.firewall import Action, Firewall, Packet, Rule, RuleProtocol, Where
from lbconfig.model.snapshot import FACTORY, Forwarding, Snapshot
from lbconfig.render import nftables

TCP, UDP = RuleProtocol.TCP, RuleProtocol.UDP
# Behind connection tracking, before anything else.
PROBE = """
table inet tracked {}
delete table inet tracked
table inet tracked {
    chain prerouting {
        type filter hook prerouting priority -190;
        ip ttl 77 ct state untracked counter comment "untracked"
        ip ttl 77 ct state != untracked counter comment "tracked"
        ip6 hoplimit 77 ct state untracked counter comment "untracked"
        ip6 hoplimit 77 ct state != untracked counter comment "tracked"
    }
}
"""
# A box that routes keeps states; one that does not tracks nothing (test_own_questions_packets.py).
ROUTES = Firewall((Rule(8, "one host", Action.ALLOW, Where.THROUGH, destinations=("198.51.100.9/32",)),))
TRACKING = dataclasses.replace(SNAPSHOT, firewall=ROUTES)
CLIENT, VIP = "203.0.113.7", "192.168.50.100"
REQUEST = Packet(CLIENT, VIP, TCP, 80, "up0")
SOURCE_NAT = dataclasses.replace(
    SNAPSHOT,
    services=(dataclasses.replace(SNAPSHOT.services[0], forwarding=Forwarding.SNAT), *SNAPSHOT.services[1:]),
)


def answer(source: str, target: str, protocol: RuleProtocol, port: int) -> Packet:
    """From that port of a real server."""
    return Packet(source, target, protocol, 40000, "down0", source_port=port)


@pytest.fixture
def box(lab):  # noqa: F811
    """From a kernel without any rules; nothing of it is left afterwards."""
    lab.box([NFT, "flush", "ruleset"])
    yield lab
    lab.box([NFT, "flush", "ruleset"])


def load(lab, snapshot: Snapshot, *leaving: Snapshot) -> None:  # noqa: F811
    lab.load(nftables.render(snapshot, *leaving) + PROBE)


def fate(lab, packet: Packet) -> str:  # noqa: F811
    """ "tracked" or "untracked"."""
    before = lab.counts()
    lab.send(packet, same_port=True)
    after = lab.counts()
    found = [name for name in ("tracked", "untracked") if after[name] != before[name]]
    assert len(found) == 1, found
    return found[0]


@pytest.mark.parametrize(
    "packet",
    [
        REQUEST,
        Packet(CLIENT, "192.168.50.101", UDP, 7001, "up0"),
        Packet("2001:db8:9::7", "2001:db8:50::100", TCP, 443, "up0"),
        answer("10.2.0.11", CLIENT, TCP, 8000),
        answer("10.2.0.11", CLIENT, UDP, 53),
        answer("2001:db8:2::11", "2001:db8:9::7", TCP, 443),
    ],
)
def test_what_ipvs_handles_is_not_tracked(box, packet):
    load(box, TRACKING)
    assert fate(box, packet) == "untracked"


@pytest.mark.parametrize(
    "packet",
    [
        Packet(CLIENT, VIP, TCP, 81, "up0"),
        Packet(CLIENT, VIP, UDP, 80, "up0"),
        Packet("192.168.50.2", "192.168.50.1", TCP, 22, "up0"),
        Packet(CLIENT, "10.2.0.11", TCP, 80, "up0"),
        answer("10.2.0.11", CLIENT, TCP, 9),
        # Answers to the box itself: of a health check, or of a connection whose source it wrote.
        answer("10.2.0.11", "10.2.0.1", TCP, 8000),
        answer("10.2.0.11", "192.168.50.1", TCP, 8000),
        answer("2001:db8:2::11", "2001:db8:2::1", TCP, 443),
    ],
)
def test_all_else_is_tracked(box, packet):
    load(box, TRACKING)
    assert fate(box, packet) == "tracked"


def test_the_web_page_is_not_tracked(box):
    """A flood to its port fills no table (decision 28)."""
    load(box, TRACKING)
    assert fate(box, Packet("192.168.50.2", "192.168.50.1", TCP, 443, "up0")) == "untracked"


def test_with_source_nat_the_service_is_tracked_and_others_are_not(box):
    load(box, SOURCE_NAT)
    assert fate(box, REQUEST) == "tracked"
    assert fate(box, Packet("2001:db8:9::7", "2001:db8:50::100", TCP, 443, "up0")) == "untracked"


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        (REQUEST, answer("10.2.0.11", CLIENT, TCP, 8000)),
        (Packet(CLIENT, "192.168.50.101", UDP, 7001, "up0"), answer("10.2.0.11", CLIENT, UDP, 7001)),
        (Packet(CLIENT, "192.168.50.101", TCP, 53, "up0"), answer("10.2.0.11", CLIENT, TCP, 53)),
    ],
)
def test_a_service_beside_one_with_source_nat_is_tracked_both_ways(box, asked, answered):
    """Also one that has nothing in common with it but a real server."""
    load(box, SOURCE_NAT)
    assert (fate(box, asked), fate(box, answered)) == ("tracked", "tracked")


def test_of_a_chain_of_services_each_is_tracked():
    """Each has a server of the one before; the last one has source NAT, and one beside them has other servers."""
    servers = [replaced(number, f"10.2.0.{number}") for number in range(11, 16)]
    services = [
        dataclasses.replace(
            SNAPSHOT.services[0], id=number, name=f"s{number}", address=f"192.168.50.{100 + number}",
            real_servers=tuple(servers[number : number + 2]),
            forwarding=Forwarding.SNAT if number == 2 else Forwarding.NAT,
        )
        for number in range(4)
    ]  # fmt: skip
    services[3] = dataclasses.replace(services[3], real_servers=(servers[4],))
    text = nftables.render(dataclasses.replace(SNAPSHOT, services=tuple(services)))
    tracked = text.partition("set tracked {")[2].partition("}")[0] + text.partition("set tracked {")[2].split("}")[1]
    assert [f"192.168.50.{100 + number}" in tracked for number in range(4)] == [True, True, True, False]


def replaced(number: int, address: str):
    return dataclasses.replace(SNAPSHOT.services[0].real_servers[0], id=900 + number, address=address)


def test_what_once_was_translated_stays_tracked(box):
    """Its connections outlive the configuration; each rule is there once, however often they are loaded."""
    load(box, SOURCE_NAT)
    load(box, SOURCE_NAT)
    load(box, TRACKING, SOURCE_NAT)
    load(box, TRACKING)
    assert fate(box, REQUEST) == "tracked"
    assert box.box([NFT, "list", "table", "inet", "fairlead_translation"]).count("ct zone set 0") == 4


def test_a_server_with_nat_beside_one_with_source_nat_is_tracked_both_ways(box):
    """Of requests alone the kernel makes a second connection, changes its source port, and the server resets both."""
    web, *others = SNAPSHOT.services
    first, *rest = web.real_servers
    servers = (dataclasses.replace(first, forwarding=Forwarding.SNAT), *rest)
    load(box, dataclasses.replace(SNAPSHOT, services=(dataclasses.replace(web, real_servers=servers), *others)))
    assert fate(box, REQUEST) == "tracked"
    assert {fate(box, answer(one.address, CLIENT, TCP, one.port)) for one in servers} == {"tracked"}
    assert fate(box, answer("2001:db8:2::11", "2001:db8:9::7", TCP, 443)) == "untracked"


def test_a_masquerading_box_tracks_services_at_its_own_address_alone(box):
    """Answers to connections that it masquerades come to that address, too."""
    shared = dataclasses.replace(SNAPSHOT.services[0], id=9, name="shared", address="192.168.50.1", port=8080)
    rules = Firewall((Rule(1, "out", Action.ALLOW, Where.THROUGH, masquerade=True),))
    load(box, dataclasses.replace(SNAPSHOT, services=(*SNAPSHOT.services, shared), firewall=rules))
    assert fate(box, Packet(CLIENT, "192.168.50.1", TCP, 8080, "up0")) == "tracked"
    assert fate(box, REQUEST) == "untracked"


def test_a_box_without_services_has_no_rule_for_them(box):
    load(box, FACTORY)
    assert "mark set" not in box.box([NFT, "list", "ruleset"])
