"""The network: which links are up, which address is where, what asks DHCP, the default gateway."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass

from lbconfig.addresses import Network as IPNetwork
from lbconfig.addresses import bits, contains, order, version
from lbconfig.snapshot import Interface, Network, Snapshot


@dataclass(frozen=True, slots=True)
class NetworkState:
    hostname: str
    links: tuple[str, ...]  # interfaces that are up
    addresses: tuple[tuple[str, str], ...]  # (interface, "10.1.0.2/24"); VIPs as /32 or /128, after the own ones
    dhcp: tuple[str, ...]  # interfaces that ask DHCP for an address (and a gateway, if none is set)
    gateway: str  # "": none, or DHCP's
    gateway6: str = ""

    @property
    def gateways(self) -> tuple[str, ...]:
        return tuple(gateway for gateway in (self.gateway, self.gateway6) if gateway)


def wanted(snapshot: Snapshot) -> NetworkState:
    """What the kernel's network shall look like. The snapshot must be valid."""
    network = snapshot.network
    own = {address.partition("/")[0] for interface in network.interfaces for address in interface.addresses}
    vips = sorted({vip for service in snapshot.enabled_services for vip in service.vips} - own, key=order)
    carriers = homes(network, vips)
    addresses = []
    for interface in network.interfaces:
        addresses += [(interface.name, address) for address in interface.addresses]
        addresses += [(interface.name, f"{vip}/{bits(vip)}") for vip in vips if carriers[vip] == interface.name]
    return NetworkState(
        hostname=network.hostname,
        links=tuple(interface.name for interface in network.interfaces),
        addresses=tuple(addresses),
        dhcp=tuple(interface.name for interface in network.interfaces if interface.dhcp),
        gateway=network.gateway,
        gateway6=network.gateway6,
    )


def homes(network: Network, vips: Iterable[str]) -> dict[str, str | None]:
    """The interface that carries each VIP; None where the network has no place for it.

    The one whose static network contains it; else the first that asks DHCP; else the one towards
    the gateway, whose router must then have a route for the VIP.
    """
    connected = [(net, interface.name) for interface in network.interfaces for net in static_networks(interface)]
    by_dhcp = next((interface.name for interface in network.interfaces if interface.dhcp), None)
    elsewhere = {
        4: by_dhcp or (_connected(connected, network.gateway) if network.gateway else None),
        6: _connected(connected, network.gateway6) if network.gateway6 else None,
    }
    return {vip: _connected(connected, vip) or elsewhere[version(vip)] for vip in vips}


def _connected(networks: list[tuple[IPNetwork, str]], address: str) -> str | None:
    return next((name for network, name in networks if contains(network, address)), None)


def static_networks(interface: Interface) -> list[IPNetwork]:
    return [ipaddress.ip_interface(address).network for address in interface.addresses]


def render(snapshot: Snapshot) -> str:
    """One wish a line, to read and to compare; the applier works from `wanted`."""
    state = wanted(snapshot)
    lines = [f"hostname {state.hostname}"]
    lines += [f"link {name} up" for name in state.links]
    lines += [f"dhcp {name}" for name in state.dhcp]
    lines += [f"address {address} on {name}" for name, address in state.addresses]
    lines += [f"gateway {gateway}" for gateway in state.gateways]
    return "".join(f"{line}\n" for line in lines)
