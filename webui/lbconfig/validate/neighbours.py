"""What a virtual service or a real server has to get along with: other services, and the box's own network."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

from lbconfig.model import ports
from lbconfig.model.addresses import contains, parse_address, version
from lbconfig.model.kept import kept
from lbconfig.model.problem import Place, Problem, Unseen, number, quote
from lbconfig.model.snapshot import (
    SORRY_PORT,
    THROUGH_THE_BOX,
    Forwarding,
    Network,
    RealServer,
    Snapshot,
    VirtualService,
)
from lbconfig.validate.fields import host_address, not_a_host
from lbconfig.validate.routes import routed_networks
from lbconfig.wanted import network as interfaces

Source = tuple[str, str, str, int]  # VIP and protocol, address and port of a real server


def more_ports(service: VirtualService) -> str | None:
    if sentence := ports.problem(service.more_ports):
        return sentence
    own = any(first <= service.port <= last for first, last in ports.parse(service.more_ports))
    return f"must not contain {number(service.port)}, which is the service's first port" if own else None


MAX_VIPS = 256  # of one service


def more_addresses(service: VirtualService) -> str | None:
    if len(service.more_addresses) >= MAX_VIPS:
        return f"must not be more than {MAX_VIPS - 1}, and are {len(service.more_addresses)}"
    first = Unseen()
    for vip in service.vips:
        if vip != service.address and (sentence := host_address(vip)):
            return sentence
        if version(vip) != version(service.address):
            return f"must be IPv{version(service.address)} addresses, as the first one is; {vip} is not"
        if not first(vip):
            return f"must not name {plain(vip)} twice"
    return None


def covers(service: VirtualService, port: int) -> bool:
    """Whether it is this TCP port, too."""
    good = not more_ports(service) and 1 <= service.port <= 65535 and "tcp" in service.protocol.parts
    return good and any(first <= port <= last for first, last in service.port_ranges)


class Fronts:
    """Which ports of which address are a virtual service's already."""

    def __init__(self) -> None:
        self._single: dict[tuple[str, str], set[int]] = {}
        self._ranges: dict[tuple[str, str], list[ports.Range]] = {}

    def taken(self, service: VirtualService) -> str:
        """The first that is, in words; "" where none is. What is free is taken from now on."""
        clash = ""
        for place, (first, last) in _fronts(service):
            single, ranges = self._single.setdefault(place, set()), self._ranges.setdefault(place, [])
            if not clash and (port := _first_of_both(first, last, single, ranges)):
                vip, protocol = place
                clash = f"{plain(vip)} port {port} {protocol}"
        for place, (first, last) in _fronts(service):
            if first == last:
                self._single[place].add(first)
            else:
                self._ranges[place].append((first, last))
        return clash


@kept
def _fronts(service: VirtualService) -> tuple[tuple[tuple[str, str], ports.Range], ...]:
    """Its addresses and protocols, each with each range of ports; none where the ports make no sense."""
    if more_ports(service) or not 1 <= service.port <= 65535:
        return ()
    places = itertools.product(dict.fromkeys(service.vips), service.protocol.parts)
    return tuple(itertools.product(places, service.port_ranges))


def _first_of_both(first: int, last: int, single: set[int], ranges: list[ports.Range]) -> int:
    """The lowest port of this range that is one of the others; 0 where none is."""
    if first == last:
        found = [first] if first in single else []
    else:
        found = [port for port in single if first <= port <= last]
    found += [max(first, one[0]) for one in ranges if first <= one[1] and one[0] <= last]
    return min(found, default=0)


class Sources:
    """How the NAT to a real server and port is done for a VIP: with the box's address as the source, or without.

    The firewall tells by VIP and real server which packets get the box's address (render/nftables.py).
    """

    def __init__(self) -> None:
        self._known: dict[Source, Forwarding] = {}

    def fit(self, service: VirtualService) -> bool:
        """Whether all servers of a service agree with what came before; from now on they are known if they do."""
        new = _sources(service)
        if any(self._known.get(key, method) is not method for key, method in new):
            return False
        self._known.update(new)
        return True

    def one(self, service: VirtualService, server: RealServer) -> bool:
        """The same for one server."""
        method = service.forwarding_of(server)
        return method not in THROUGH_THE_BOX or self._known.setdefault(_source(service, server), method) is method


@kept
def _sources(service: VirtualService) -> tuple[tuple[Source, Forwarding], ...]:
    servers = (*service.real_servers, *([service.fallback_server] if service.fallback_server else ()))
    methods = ((server, service.forwarding_of(server)) for server in servers)
    return tuple((_source(service, server), method) for server, method in methods if method in THROUGH_THE_BOX)


def _source(service: VirtualService, server: RealServer) -> Source:
    return (service.address, service.protocol, server.address, server.port)


def own_addresses(network: Network) -> Mapping[str, str]:
    """Of the box, without their lengths, each with the interface that it is on."""
    return {text.partition("/")[0]: interface.name for interface in network.interfaces for text in interface.addresses}


def plain(text: str) -> str:
    return text if host_address(text) is None else quote(text)


Names = tuple[tuple[str, str], ...]  # addresses, each with the name of the service that it is of


def vips(snapshot: Snapshot) -> Names:
    """Of all enabled services."""
    return tuple((vip, one.name) for one in snapshot.enabled_services for vip in one.vips)


def vips_at_sorry_port(snapshot: Snapshot) -> Names:
    """Of those that have the sorry page's port."""
    return tuple((vip, one.name) for one in snapshot.enabled_services if _at_sorry_port(one) for vip in one.vips)


@kept
def _at_sorry_port(service: VirtualService) -> bool:
    return covers(service, SORRY_PORT)


class Neighbours:
    """What a VIP or a real server has to get along with: the box's addresses, networks and VIPs."""

    def __init__(self, network: Network, web_port: int, vips: Names, at_sorry_port: Names) -> None:
        """`vips`: of all enabled services; `at_sorry_port`: of those that have the sorry page's port."""
        self._network = network
        self._own = own_addresses(network)
        self._web_port = web_port
        self._vips, self._at_sorry_port = dict(vips), dict(at_sorry_port)
        self._connected = [net for interface in network.interfaces for net in interfaces.static_networks(interface)]
        self._connected += [net for net, router in routed_networks(network) if not router]
        self._led = [net for net, _ in routed_networks(network)]
        self._homes = interfaces.homes(network, (vip for vip in self._vips if host_address(vip) is None))
        by_dhcp = any(interface.dhcp for interface in network.interfaces)
        self._by_dhcp = {4: by_dhcp, 6: False}
        self._routed = {4: bool(network.gateway) or by_dhcp, 6: bool(network.gateway6)}

    def at_sorry_port(self, vip: str) -> str:
        """The name of the service that is there; "" where none is."""
        return self._at_sorry_port.get(vip, "")

    def service(self, place: Place, service: VirtualService) -> Iterator[Problem]:
        if host_address(service.address) is None:
            yield from self._vip(place, service, service.address, "address")
        for vip in service.more_addresses if more_addresses(service) is None else ():
            yield from self._vip(place, service, vip, "more_addresses")

    def _vip(self, place: Place, service: VirtualService, vip: str, field: str) -> Iterator[Problem]:
        if vip in self._own:
            if covers(service, self._web_port):
                yield place.problem(
                    "port", f"{vip} port {self._web_port} is the web UI of this box: use another address or port"
                )
            return
        if vip in (self._network.gateway, self._network.gateway6):
            yield place.problem(field, f"{vip} is the default gateway")
        elif reason := self._not_a_host(vip):
            yield place.problem(field, reason)
        elif self._homes[vip] is None:
            yield place.problem(
                field,
                f"no interface can carry {vip}: none has a network that contains it, asks DHCP, or leads to a gateway",
            )

    def real_server(self, place: Place, service: VirtualService, server: RealServer) -> Iterator[Problem]:
        rip = server.address
        if host_address(rip) is not None:
            return
        if rip in self._own:
            yield place.problem("address", f"{rip} is this box's own address on {self._own[rip]}")
        elif rip in self._vips:
            yield place.problem("address", f"{rip} is the address of virtual service {quote(self._vips[rip])}")
        elif reason := self._not_a_host(rip):
            yield place.problem("address", reason)
        elif not self._beside(rip):
            if not self._routed[version(rip)] and not any(contains(net, rip) for net in self._led):
                yield place.problem(
                    "address", f"{rip} cannot be reached: it is in no network of an interface, and there is no gateway"
                )
            elif service.forwarding_of(server) is Forwarding.DIRECT and not self._by_dhcp[version(rip)]:
                yield place.problem(
                    "address",
                    f"{rip} is in no network of an interface: direct routing does not pass routers (a tunnel does)",
                )

    def _beside(self, address: str) -> bool:
        return any(contains(net, address) for net in self._connected)

    def _not_a_host(self, text: str) -> str | None:
        address = parse_address(text)
        return next((sentence for net in self._connected if (sentence := not_a_host(net, address))), None)
