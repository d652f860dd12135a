"""What a real server itself needs so that its services work, and a script that gives it that."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from balancing.server_systems import PLAIN, SYSTEMS, System
from lbconfig.model.addresses import contains, order, version
from lbconfig.model.snapshot import GUE_PORT, THROUGH_THE_BOX, TUNNELS, AgentKind, Forwarding, Snapshot


@dataclass(frozen=True, slots=True)
class ServerSetup:
    """Of one real server, over all enabled services that it serves."""

    address: str
    gateways: tuple[str, ...]  # with NAT: the box's addresses that may be its default gateway; () where none is needed
    direct: tuple[str, ...]  # the virtual addresses that it gets by direct routing
    tunnel: tuple[str, ...]  # those that it gets as IP in IP, if need be inside GUE
    ports: tuple[str, ...]  # what must listen on it for these and `gre`: "tcp/80"
    directors: tuple[str, ...] = ()  # by tunnel: the box's addresses that packets may come from
    gre: tuple[str, ...] = ()  # the virtual addresses that it gets by GRE
    tunnels: frozenset[Forwarding] = frozenset()  # the kinds
    agent_ports: tuple[int, ...] = ()  # TCP ports on which services ask an agent for a line of text
    askers: tuple[str, ...] = ()  # the box's addresses that ask it; () where they come from DHCP, so anybody may

    @property
    def agent_name(self) -> str:
        """Of its units and its folder, as linux-agent.sh has it."""
        return f"fairlead-agent-{self.address.replace(':', '-')}"

    @property
    def addressed(self) -> bool:
        """Whether it needs virtual addresses of its own."""
        return bool(self.direct or self.tunnels)

    @property
    def tunneled(self) -> tuple[str, ...]:
        """The virtual addresses that it gets by tunnel."""
        return _in_order({*self.tunnel, *self.gre})

    @property
    def wire(self) -> tuple[str, ...]:
        """What its firewall must let in so that tunnels arrive."""
        words = {
            Forwarding.TUNNEL: f"IP protocol {4 if version(self.address) == 4 else 41}",
            Forwarding.GRE: "IP protocol 47",
            Forwarding.GUE: f"UDP port {GUE_PORT}",
        }
        return tuple(text for kind, text in words.items() if kind in self.tunnels)

    def possible_on(self, system: System) -> bool:
        return self.tunnels <= system.tunnels

    def scripted_on(self, system: System) -> bool:
        """Whether there is anything that a script for this system can set up."""
        return self.possible_on(system) and bool(self.addressed or (self.agent_ports and system.agent))


def setup_of(snapshot: Snapshot, address: str) -> ServerSetup:
    """`snapshot` must be valid."""
    vips: dict[Forwarding, set[str]] = {method: set() for method in Forwarding}
    ports, agent_ports = set(), set()
    for service in snapshot.enabled_services:
        for server in service.real_servers:
            method = service.forwarding_of(server)
            if server.address == address:
                vips[method].update(service.vips)
                if service.agent.kind is AgentKind.TEXT:
                    agent_ports.add(service.agent.port)
            if server.address == address and method not in THROUGH_THE_BOX:
                own = ((server.port, server.port),) if server.port else service.port_ranges
                ports |= {
                    (protocol, first) for protocol in service.protocol.parts for first, last in own if first == last
                }
    tunnel, gre = vips[Forwarding.TUNNEL] | vips[Forwarding.GUE], vips[Forwarding.GRE]
    return ServerSetup(
        address=address,
        gateways=_own_addresses(snapshot, address) if vips[Forwarding.NAT] else (),
        # One place is enough for an address: a server takes what comes out of the tunnel, too, if lo has it, but
        # only an interface for the tunnel brings it out.
        direct=_in_order(vips[Forwarding.DIRECT] - tunnel - gre),
        tunnel=_in_order(tunnel),
        gre=_in_order(gre),
        ports=tuple(f"{protocol}/{port}" for protocol, port in sorted(ports)),
        tunnels=frozenset(method for method in TUNNELS if vips[method]),
        directors=_own_addresses(snapshot, address) if tunnel or gre else (),
        agent_ports=tuple(sorted(agent_ports)),
        askers=_askers(snapshot, address) if agent_ports else (),
    )


def _own_addresses(snapshot: Snapshot, address: str) -> tuple[str, ...]:
    """The box's own addresses in the server's network; all that it has where the server is in none of them."""
    texts = [text for one in snapshot.network.interfaces for text in one.addresses if version(text) == version(address)]
    return _beside(snapshot, address) or tuple(str(ipaddress.ip_interface(text).ip) for text in texts)


def _beside(snapshot: Snapshot, address: str) -> tuple[str, ...]:
    """The box's own addresses in the server's network."""
    own = [ipaddress.ip_interface(text) for one in snapshot.network.interfaces for text in one.addresses]
    return tuple(str(one.ip) for one in own if contains(one.network, address))


def _askers(snapshot: Snapshot, address: str) -> tuple[str, ...]:
    """The box's addresses from which it asks this server; () where they are not known before."""
    leased = version(address) == 4 and any(one.dhcp for one in snapshot.network.interfaces)
    return _beside(snapshot, address) if leased else _own_addresses(snapshot, address)


def _in_order(addresses: set[str]) -> tuple[str, ...]:
    return tuple(sorted(addresses, key=order))


def script(setup: ServerSetup, system: System = SYSTEMS[PLAIN]) -> str:
    """What is run on the real server; see its head. The system must be able to do what `setup` asks for."""
    return system.filled(
        {
            "server": setup.address,
            "direct": " ".join(setup.direct),
            "tunnel": " ".join(setup.tunnel),
            "gre": " ".join(setup.gre),
            "gue": str(GUE_PORT) if Forwarding.GUE in setup.tunnels else "",
            "directors": " ".join(setup.directors),
            "ports": " ".join(setup.ports),
            "agent_ports": " ".join(map(str, setup.agent_ports)),
            "askers": " ".join(setup.askers),
        }
    )
