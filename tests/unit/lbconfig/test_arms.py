"""Whether clients and servers are on one interface: what the form of a new service begins with follows from it."""

import dataclasses

import pytest
from lbconfig_pairs import PAIR, with_pair

from lbconfig.model.network import Interface, Network, Vlan
from lbconfig.model.snapshot import FACTORY, Snapshot
from lbconfig.pair import one_armed


def box(*interfaces: Interface) -> Snapshot:
    return Snapshot(network=Network(interfaces=interfaces))


ETH0 = Interface("eth0", addresses=("192.168.10.2/24", "2001:db8::2/64"))
ETH1 = Interface("eth1", addresses=("10.2.0.1/24",))


@pytest.mark.parametrize(
    ("snapshot", "expected"),
    [
        (FACTORY, True),
        (box(), True),
        (box(ETH0), True),
        (box(ETH0, Interface("eth1")), True),
        (box(ETH0, dataclasses.replace(ETH1, on=False)), True),
        (box(Interface("eth0"), Interface("eth0.10", dhcp=True, vlan=Vlan("eth0", 10))), True),
        (box(ETH0, ETH1), False),
        (box(ETH0, Interface("eth1", dhcp=True)), False),
        (box(ETH0, Interface("eth0.10", addresses=("10.9.0.1/24",), vlan=Vlan("eth0", 10))), False),
    ],
)
def test_arms_of_a_box(snapshot, expected):
    assert one_armed(snapshot) is expected


def test_the_pair_cable_is_no_arm():
    """The sample pair has its cable on eth2, and an address on two networks."""
    assert not one_armed(PAIR)
    first, second = PAIR.pair.boxes
    eth0, _, cable = first.network.interfaces
    fewer = dataclasses.replace(first, network=dataclasses.replace(first.network, interfaces=(eth0, cable)))
    assert one_armed(with_pair(boxes=(fewer, second)))
