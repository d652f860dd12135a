"""Does the wish make sense? Every field of every object, and how the objects fit together.

`validate` never changes its input and never asks the host: the same snapshot has the same problems
in the browser, in the applier and in a test.
"""

from __future__ import annotations

import dataclasses
import ipaddress
from collections.abc import Iterator

from lbconfig.fields import MAX_ID, dns_name_or_empty, expected_text, host_address, in_range, service_name, url_path
from lbconfig.names import MANAGEMENT_PORT
from lbconfig.problem import Place, Problem, Unseen, each, number, quote
from lbconfig.reach import admin_problem, lease_problems
from lbconfig.render import interfaces
from lbconfig.render.ldirectord import worst_case_detection
from lbconfig.snapshot import (
    CheckKind,
    Network,
    Protocol,
    RealServer,
    Snapshot,
    SnapshotError,
    VirtualService,
    from_data,
)
from lbconfig.validate_network import management_problems, network_problems, usable

__all__ = ["Problem", "admin_problem", "lease_problems", "validate", "worst_case_detection"]


def validate(snapshot: Snapshot) -> list[Problem]:
    """What is wrong, in the order of the snapshot. Empty: it can be rendered and applied."""
    try:
        # The shape first: no rule below is asked about a port that is no number.
        rebuilt = from_data(dataclasses.asdict(snapshot))
    except SnapshotError as error:
        return [Problem("snapshot", error.path.rpartition(".")[2] or "snapshot", error.message, error.path)]
    if rebuilt != snapshot:
        return [Problem("snapshot", "snapshot", "must consist of the classes of lbconfig.snapshot, with tuples", "")]
    return [
        *_services(snapshot, usable(snapshot.network)),
        *network_problems(snapshot.network),
        *management_problems(snapshot.management),
    ]


def _services(snapshot: Snapshot, network: Network) -> Iterator[Problem]:
    first_id, first_name, first_place = Unseen(), Unseen(), Unseen()
    first_server_id = Unseen()
    neighbours = _Neighbours(snapshot, network)
    for service in snapshot.services:
        place = Place(f"virtual service {quote(service.name)}", f"services[id={number(service.id)}]")
        yield from _service_fields(place, service)
        if not first_id(service.id):
            yield place.problem("id", f"{number(service.id)} is the id of another virtual service as well")
        if not first_name(service.name.casefold()):
            yield place.problem("name", f"{quote(service.name)} is the name of another virtual service as well")
        if not first_place((service.address, service.port, service.protocol)):
            yield place.problem(
                "port",
                f"another virtual service is {service.address} port {number(service.port)} {service.protocol} already",
            )
        yield from neighbours.service(place, service)
        yield from _check(place.inner("check"), service)
        yield from _real_servers(place, service, first_server_id, neighbours)


def _service_fields(place: Place, service: VirtualService) -> Iterator[Problem]:
    yield from each(
        place,
        id=in_range(service.id, 1, MAX_ID),
        name=service_name(service.name),
        address=host_address(service.address),
        port=in_range(service.port, 1, 65535),
    )


def _check(place: Place, service: VirtualService) -> Iterator[Problem]:
    check = service.check
    yield from each(
        place,
        kind=_check_kind(service),
        port=_check_port(service),
        path=url_path(check.path),
        host=dns_name_or_empty(check.host),
        expect=expected_text(check.expect),
        interval=in_range(check.interval, 1, 3600),
        timeout=in_range(check.timeout, 1, 60),
        failures=in_range(check.failures, 1, 100),
    )


def _check_kind(service: VirtualService) -> str | None:
    if service.protocol == Protocol.UDP and service.check.kind == CheckKind.CONNECT:
        return "a UDP service has no connections to check: use ping, HTTP on a TCP port of the servers, or no check"
    return None


def _check_port(service: VirtualService) -> str | None:
    check = service.check
    if service.protocol == Protocol.UDP and check.kind == CheckKind.HTTP and check.port == 0:
        return "an HTTP check of a UDP service needs a port: the TCP port on which the servers answer HTTP"
    if 0 <= check.port <= 65535:
        return None
    return f"must be 1 to 65535, or 0 for the server's own port, not {number(check.port)}"


def _real_servers(
    outer: Place, service: VirtualService, first_id: Unseen, neighbours: _Neighbours
) -> Iterator[Problem]:
    first_place = Unseen()
    for server in service.real_servers:
        place = Place(
            f"real server {_plain(server.address)}:{number(server.port)} of {outer.object}",
            f"{outer.path}.real_servers[id={number(server.id)}]",
        )
        yield from each(
            place,
            id=in_range(server.id, 1, MAX_ID),
            address=host_address(server.address),
            port=in_range(server.port, 1, 65535),
            weight=in_range(server.weight, 1, 65535),
        )
        if not first_id(server.id):
            yield place.problem("id", f"{number(server.id)} is the id of another real server as well")
        if not first_place((server.address, server.port)):
            yield place.problem("address", "this service has a real server with this address and port already")
        yield from neighbours.real_server(place, server)


def _plain(text: str) -> str:
    return text if host_address(text) is None else quote(text)


class _Neighbours:
    """What a VIP or a real server has to get along with: the box's addresses, networks and VIPs."""

    def __init__(self, snapshot: Snapshot, network: Network) -> None:
        self._network = network
        self._own = {
            address.partition("/")[0]: interface.name
            for interface in network.interfaces
            for address in interface.addresses
        }
        self._vips = {service.address: service.name for service in snapshot.services}
        self._connected = [net for interface in network.interfaces for net in interfaces.static_networks(interface)]
        self._homes = interfaces.homes(network, (vip for vip in self._vips if host_address(vip) is None))
        self._routed = bool(network.gateway) or any(interface.dhcp for interface in network.interfaces)

    def service(self, place: Place, service: VirtualService) -> Iterator[Problem]:
        vip = service.address
        if host_address(vip) is not None:
            return
        if vip in self._own:
            if service.port == MANAGEMENT_PORT and service.protocol == Protocol.TCP:
                yield place.problem(
                    "port", f"{vip} port {MANAGEMENT_PORT} is the web UI of this box: take another address or port"
                )
            return
        if vip == self._network.gateway:
            yield place.problem("address", f"{vip} is the default gateway")
        elif reason := self._not_a_host(vip):
            yield place.problem("address", reason)
        elif self._homes[vip] is None:
            yield place.problem(
                "address",
                f"no interface can carry {vip}: none has a network that contains it, asks DHCP, or leads to a gateway",
            )

    def real_server(self, place: Place, server: RealServer) -> Iterator[Problem]:
        rip = server.address
        if host_address(rip) is not None:
            return
        if rip in self._own:
            yield place.problem("address", f"{rip} is this box's own address on {self._own[rip]}")
        elif rip in self._vips:
            yield place.problem("address", f"{rip} is the address of virtual service {quote(self._vips[rip])}")
        elif reason := self._not_a_host(rip):
            yield place.problem("address", reason)
        elif not self._routed and not any(ipaddress.IPv4Address(rip) in net for net in self._connected):
            yield place.problem(
                "address", f"{rip} cannot be reached: it is in no network of an interface, and there is no gateway"
            )

    def _not_a_host(self, text: str) -> str | None:
        address = ipaddress.IPv4Address(text)
        for net in self._connected:
            if net.prefixlen < 31 and address in (net.network_address, net.broadcast_address):
                kind = "network" if address == net.network_address else "broadcast"
                return f"{address} is the {kind} address of {net}"
        return None
