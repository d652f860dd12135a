"""What keeps a box from serving as well as it could: links, gateways, services without a live server."""

from dataclasses import replace
from pathlib import Path

import pytest
from pair_world import SNAPSHOT

from applier.base.paths import Paths
from applier.host.host import HostError, Output
from applier.pair import looking
from applier.pair.fitness import Observed
from applier.pair.roles import Role, role_text
from lbconfig.model.network import Bond, BondMode, Interface
from lbconfig.pair import view

OWN = view(SNAPSHOT, 0)
PATHS = Paths(run=Path("/run/x"))


class Host:
    def __init__(self):
        self.forward, self.role, self.down, self.off, self.silent, self.asked = "1", "leads", set(), set(), set(), []

    def setting(self, key):
        return self.forward

    def read(self, path):
        if path == PATHS.role:
            return role_text(Role(self.role, 1.0, "")) if self.role else None
        if path.parent.name in self.off:
            raise HostError(f"read {path}", None, "Invalid argument")
        return "0\n" if path.parent.name in self.down else "1\n"

    def command(self, argv, stdin="", timeout=20.0):
        self.asked.append(argv)
        return Output(int(argv[-1] in self.silent), "", "")


def observed(host, own=OWN, downs=(), faults=()) -> Observed:
    return looking.observe(host, PATHS, own, dict(downs), dict(faults))


def event(state):
    return {"state": state}


def network(**fields):
    return replace(OWN, network=replace(OWN.network, **fields))


def test_a_box_on_which_all_is_well_lacks_nothing():
    assert observed(Host()) == Observed()


@pytest.mark.parametrize(
    ("arrange", "why"),
    [
        ({"forward": "0"}, "the kernel forwards nothing (net.ipv4.ip_forward)"),
        ({"forward": None}, "the kernel forwards nothing (net.ipv4.ip_forward)"),
        ({"role": ""}, "the floater does not run"),
    ],
)
def test_what_makes_a_box_unable(arrange, why):
    host = Host()
    vars(host).update(arrange)
    assert observed(host).unable == why
    assert observed(Host(), faults={"start": "Not all could be brought up."}).unable == "Not all could be brought up"
    assert observed(Host(), faults={"drift": "Something differs."}).unable == ""


def test_links_that_are_used_and_have_no_carrier():
    host = Host()
    host.down, host.off = {"eth1", "eth7", "eth8"}, {"eth2"}
    bond = (
        Interface("bond0", addresses=("10.9.0.1/24",), bond=Bond(("eth7", "eth8"), BondMode.LACP)),
        Interface("eth7"),
        Interface("eth8"),
        Interface("eth9", addresses=("10.8.0.1/24",), on=False),
    )
    assert observed(host, network(interfaces=(*OWN.network.interfaces, *bond))).links == ("eth1", "eth2")


def test_gateways_of_both_ip_versions_are_asked_from_the_own_address():
    host = Host()
    host.silent = {"2001:db8:1::fe"}
    own = network(gateway="10.0.2.2", gateway6="2001:db8:1::fe")
    assert observed(host, own).gateways == ("2001:db8:1::fe",)
    assert host.asked[0][:5] == ["arping", "-I", "eth0", "-s", "10.0.2.21"] and host.asked[0][-1] == "10.0.2.2"
    assert host.asked[1][0] == "ping"
    host.asked.clear()
    assert observed(host, network(gateway="172.16.0.1", gateway6="")).gateways == () and not host.asked


def test_a_service_is_dead_when_none_of_its_servers_is_alive():
    service = next(one for one in OWN.enabled_services if len(one.real_servers) > 1)
    places = [(one.address, one.port) for one in service.real_servers]
    down = {place: event("down") for place in places}
    assert observed(Host(), downs={service.id: down}).services == (service.name,)
    assert observed(Host(), downs={service.id: down | {places[0]: event("kept")}}).services == ()
    assert observed(Host(), downs={service.id: {places[0]: event("down")}}).services == ()
    assert observed(Host(), downs={service.id: {("", 0): event("aside")}}).services == (service.name,)
