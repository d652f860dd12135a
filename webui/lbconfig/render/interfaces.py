"""The network: which links are up, which address is where, what asks DHCP, the default gateway."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass

from lbconfig.snapshot import Interface, Network, Snapshot


@dataclass(frozen=True, slots=True)
class NetworkState:
    hostname: str
    links: tuple[str, ...]  # interfaces that are up
    addresses: tuple[tuple[str, str], ...]  # (interface, "10.1.0.2/24"); VIPs as /32, after the interface's own
    dhcp: tuple[str, ...]  # interfaces that ask DHCP for an address (and a gateway, if none is set)
    gateway: str  # "": none, or DHCP's


def wanted(snapshot: Snapshot) -> NetworkState:
    """What the kernel's network shall look like. The snapshot must be valid."""
    network = snapshot.network
    own = {address.partition("/")[0] for interface in network.interfaces for address in interface.addresses}
    vips = sorted({service.address for service in snapshot.services} - own, key=ipaddress.IPv4Address)
    carriers = homes(network, vips)
    addresses = []
    for interface in network.interfaces:
        addresses += [(interface.name, address) for address in interface.addresses]
        addresses += [(interface.name, f"{vip}/32") for vip in vips if carriers[vip] == interface.name]
    return NetworkState(
        hostname=network.hostname,
        links=tuple(interface.name for interface in network.interfaces),
        addresses=tuple(addresses),
        dhcp=tuple(interface.name for interface in network.interfaces if interface.dhcp),
        gateway=network.gateway,
    )


def homes(network: Network, vips: Iterable[str]) -> dict[str, str | None]:
    """The interface that carries each VIP; None where the network has no place for it.

    The one whose static network contains it; else the first that asks DHCP; else the one towards
    the gateway, whose router must then have a route for the VIP.
    """
    connected = [(net, interface.name) for interface in network.interfaces for net in static_networks(interface)]
    by_dhcp = [interface.name for interface in network.interfaces if interface.dhcp]
    to_gateway = _connected(connected, network.gateway) if network.gateway else None
    elsewhere = by_dhcp[0] if by_dhcp else to_gateway
    return {vip: _connected(connected, vip) or elsewhere for vip in vips}


def _connected(networks: list[tuple[ipaddress.IPv4Network, str]], address: str) -> str | None:
    host = ipaddress.IPv4Address(address)
    return next((name for network, name in networks if host in network), None)


def static_networks(interface: Interface) -> list[ipaddress.IPv4Network]:
    return [ipaddress.IPv4Interface(address).network for address in interface.addresses]


def render(snapshot: Snapshot) -> str:
    """One wish a line, to read and to compare; the applier works from `wanted`."""
    state = wanted(snapshot)
    lines = [f"hostname {state.hostname}"]
    lines += [f"link {name} up" for name in state.links]
    lines += [f"dhcp {name}" for name in state.dhcp]
    lines += [f"address {address} on {name}" for name, address in state.addresses]
    if state.gateway:
        lines.append(f"gateway {state.gateway}")
    return "".join(f"{line}\n" for line in lines)
