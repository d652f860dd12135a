"""What a real server needs, over all services that it serves."""

from dataclasses import replace

import pytest

from balancing.server_setup import ServerSetup, setup_of
from balancing.server_systems import SYSTEMS
from lbconfig.model.snapshot import (
    Agent,
    AgentKind,
    Forwarding,
    Interface,
    Network,
    Protocol,
    RealServer,
    Scheduler,
    Snapshot,
    VirtualService,
)

NETWORK = Network(
    interfaces=(Interface("eth0", addresses=("192.0.2.2/24",)), Interface("eth1", addresses=("10.2.0.1/24",)))
)


def service(number, vip, forwarding, *servers, **options):
    real = tuple(
        one if isinstance(one, RealServer) else RealServer(number * 10 + place, one, 80)
        for place, one in enumerate(servers)
    )
    return VirtualService(number, f"s{number}", vip, 80, forwarding=forwarding, real_servers=real, **options)


def test_every_service_of_the_server_counts():
    own = RealServer(99, "10.2.0.11", 80, forwarding=Forwarding.DIRECT)
    snapshot = Snapshot(
        (
            service(1, "192.0.2.100", Forwarding.DIRECT, "10.2.0.11", "10.2.0.12"),
            service(2, "192.0.2.20", Forwarding.DIRECT, "10.2.0.11", protocol=Protocol.UDP),
            service(3, "192.0.2.103", Forwarding.TUNNEL, "10.2.0.11"),
            service(4, "192.0.2.104", Forwarding.DIRECT, "10.2.0.12"),
            service(5, "192.0.2.105", Forwarding.DIRECT, "10.2.0.11", enabled=False),
            service(6, "192.0.2.106", Forwarding.SNAT, own),
            service(7, "192.0.2.103", Forwarding.DIRECT, "10.2.0.11", protocol=Protocol.UDP),
        ),
        NETWORK,
    )
    assert setup_of(snapshot, "10.2.0.11") == ServerSetup(
        "10.2.0.11",
        gateways=(),
        direct=("192.0.2.20", "192.0.2.100", "192.0.2.106"),
        tunnel=("192.0.2.103",),
        ports=("tcp/80", "udp/80"),
        directors=("10.2.0.1",),
        tunnels=frozenset({Forwarding.TUNNEL}),
    )


def test_gue_comes_by_the_interface_of_ip_in_ip_and_gre_by_one_of_its_own():
    snapshot = Snapshot(
        (
            service(1, "192.0.2.100", Forwarding.GRE, "10.2.0.11"),
            service(2, "192.0.2.101", Forwarding.GUE, "10.2.0.11"),
            service(3, "192.0.2.102", Forwarding.TUNNEL, "10.2.0.11"),
            service(4, "192.0.2.100", Forwarding.DIRECT, "10.2.0.11", protocol=Protocol.UDP),
        ),
        NETWORK,
    )
    setup = setup_of(snapshot, "10.2.0.11")
    assert (setup.direct, setup.tunnel, setup.gre) == ((), ("192.0.2.101", "192.0.2.102"), ("192.0.2.100",))
    assert setup.tunneled == ("192.0.2.100", "192.0.2.101", "192.0.2.102")
    assert setup.wire == ("IP protocol 4", "IP protocol 47", "UDP port 6080")
    assert [key for key, system in SYSTEMS.items() if setup.possible_on(system)] == ["linux"]


@pytest.mark.parametrize(
    ("server", "gateways"), [("10.2.0.11", ("10.2.0.1",)), ("198.51.100.7", ("192.0.2.2", "10.2.0.1"))]
)
def test_the_gateway_by_nat_is_the_box_in_the_server_s_network(server, gateways):
    setup = setup_of(Snapshot((service(1, "192.0.2.100", Forwarding.NAT, server),), NETWORK), server)
    assert setup == ServerSetup(server, gateways, (), (), ())
    assert not any(setup.scripted_on(system) for system in SYSTEMS.values())


def test_source_nat_needs_nothing():
    setup = setup_of(Snapshot((service(1, "192.0.2.100", Forwarding.SNAT, "10.2.0.11"),), NETWORK), "10.2.0.11")
    assert setup == ServerSetup("10.2.0.11", (), (), (), ())


def test_an_agent_is_asked_from_the_box_s_addresses_beside_it():
    by_agent = {"agent": Agent(AgentKind.TEXT, 3334), "scheduler": Scheduler.WRR}
    services = (
        service(1, "192.0.2.100", Forwarding.NAT, "10.2.0.11", **by_agent),
        service(2, "192.0.2.100", Forwarding.SNAT, "10.2.0.11", **(by_agent | {"agent": Agent(AgentKind.TEXT)})),
        service(3, "192.0.2.101", Forwarding.SNAT, "10.2.0.12", **(by_agent | {"agent": Agent(AgentKind.RESPONSE)})),
    )
    setup = setup_of(Snapshot(services, NETWORK), "10.2.0.11")
    assert (setup.agent_ports, setup.askers) == ((3333, 3334), ("10.2.0.1",))
    assert [key for key, system in SYSTEMS.items() if not setup.scripted_on(system)] == ["freebsd", "windows"]
    assert setup_of(Snapshot(services, NETWORK), "10.2.0.12").agent_ports == ()
    # From elsewhere it is asked from an address that nobody knows before.
    leased = replace(NETWORK, interfaces=(Interface("eth0", dhcp=True), NETWORK.interfaces[0]))
    assert setup_of(Snapshot(services, leased), "10.2.0.11").askers == ()
    assert setup_of(Snapshot(services, replace(NETWORK, interfaces=NETWORK.interfaces[:1])), "10.2.0.11").askers == (
        "192.0.2.2",
    )
