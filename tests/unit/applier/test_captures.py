"""What real commands of Debian trixie and the kernel of a booted box said, read as the applier reads it."""

import dataclasses
from pathlib import Path

import pytest
from host_recording import Replay

from applier.base.paths import Paths
from applier.host import ipvs_netlink
from applier.host.host import HostError, run
from applier.parts import firewall, table
from applier.parts.network import act as network
from lbconfig.model import icmp
from lbconfig.model.snapshot import FACTORY, Management
from lbconfig.wanted.table import Server, Service

CAPTURES = Path(__file__).parents[2] / "captures"
CAPTURE = CAPTURES / "trixie/commands.json"
FOLDER = Path("/tmp/f/candidate")
PATHS = Paths()


@pytest.fixture
def host():
    return Replay.load(CAPTURE)


def test_links_and_addresses(host):
    before = network.links(host)
    assert [(link.name, link.on, link.addresses) for link in before] == [("eth0", False, ()), ("eth1", False, ())]
    eth0, eth1 = network.links(host)
    assert eth0.addresses == ("10.1.0.2/24", "10.1.0.80/32")
    assert eth0.on and not eth0.up  # switched on, no cable
    assert not eth1.on and len(eth1.mac) == 17


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("address add 10.1.0.2/24 dev eth0", "Address already assigned"),
        ("address add 10.9.0.2/24 dev eth9", 'Cannot find device "eth9"'),
        ("route replace default via 172.31.0.1", "Nexthop has invalid gateway"),
    ],
)
def test_errors_of_ip_are_told_with_their_words(host, line, words):
    with pytest.raises(HostError, match="ip -batch - ended with 1") as caught:
        run(host, ["ip", "-batch", "-"], stdin=f"{line}\n")
    assert words in str(caught.value)


def test_the_closed_rules_load_and_the_table_is_seen(host):
    assert not firewall.is_loaded(host)
    firewall.load(host, FOLDER / "closed.conf")
    assert firewall.is_loaded(host)
    with pytest.raises(HostError, match="unexpected string"):
        firewall.check(host, FOLDER / "bad.conf")


def test_the_closed_rules_open_nothing_but_the_web_ui():
    accepted = [line.strip() for line in firewall.closed(FACTORY).splitlines() if "accept" in line]
    assert accepted[0] == "iif lo accept"
    web = [line for line in accepted[1:] if line.startswith("ip saddr ") and line.endswith(" tcp dport 443 accept")]
    assert len(web) == len(FACTORY.management.allow)
    # And what it needs to be found, and to be sent large packets (decision 49).
    assert accepted[1 + len(web) :] == icmp.rules(4)
    six = dataclasses.replace(FACTORY, management=Management(allow=("2001:db8::/32",)))
    assert all(f"\t\t{rule}\n" in firewall.closed(six) for rule in icmp.rules(6))


def test_an_unknown_question_is_an_error(host):
    with pytest.raises(HostError, match="not in the recording"):
        host.command(["reboot"])
    with pytest.raises(HostError, match="changes nothing"):
        host.set("net/ipv4/ip_forward", "1")


def test_the_table_of_a_booted_box():
    host = Replay.load(CAPTURES / "lab/table.json")
    found = table.read(host)
    assert ipvs_netlink.to_table(found).services == {
        Service("tcp", "10.0.2.100", 80, "rr"): {("10.2.0.11", 80): Server(0), ("10.2.0.12", 80): Server(0)},
        Service("tcp", "10.0.2.100", 81, "wlc"): {("10.2.0.13", 80): Server(0)},
    }
    assert [link.name for link in network.links(host)] == ["eth0", "eth1"]
    assert firewall.is_loaded(host)
