"""The network: which links there are, which address is where, what asks DHCP, routes and rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from lbconfig.model.addresses import IPNetwork, bits, contains, order, parse_interface, version
from lbconfig.model.network import BY_HASH, ONE_SPEAKS, Bond, BondMode, PolicyRoute
from lbconfig.model.snapshot import Interface, Network, Snapshot
from lbconfig.wanted.netstate import EVERYWHERE, MAIN, METRIC6, Link, NetworkState, Route, RoutingRule, own_table


def wanted(snapshot: Snapshot) -> NetworkState:
    """What the kernel's network should look like. The snapshot must be valid; of a pair it is a view.

    In a pair the VIPs are not the network's: who leads holds them (lbconfig.pair.floating).
    """
    network = snapshot.network
    used = [interface for interface in network.interfaces if interface.on]
    own = {address.partition("/")[0] for interface in used for address in interface.addresses}
    services = snapshot.enabled_services if snapshot.pair is None else ()
    vips = sorted({vip for service in services for vip in service.vips} - own, key=order)
    carriers = homes(network, vips)
    addresses = []
    for interface in used:
        addresses += [(interface.name, address) for address in interface.addresses]
        addresses += [(interface.name, f"{vip}/{bits(vip)}") for vip in vips if carriers[vip] == interface.name]
    return NetworkState(
        hostname=network.hostname,
        links=tuple(links(network)),
        addresses=tuple(addresses),
        dhcp=tuple(interface.name for interface in used if interface.dhcp),
        routes=tuple(_routes(network)),
        rules=tuple(
            RoutingRule(one.source, table) for one in network.policies for table in (MAIN, own_table(one.source))
        ),
    )


def routers_of_dhcp(network: Network) -> str:
    """A sentence about whose router is the default gateway, where several interfaces ask DHCP; "" where it is plain."""
    asking = [interface.name for interface in network.interfaces if interface.on and interface.dhcp]
    if len(asking) < 2:
        return ""
    first, *others = asking
    if network.gateway:
        return f"The default gateway is {network.gateway}; routers that DHCP names count only while it is not set."
    return (
        f"{first} comes first of the interfaces that ask DHCP, so its router is the default gateway. While DHCP "
        f"names none there, the router of {others[0]} is used{', then that of the next one' * (len(others) > 1)}."
    )


# --- links ---------------------------------------------------------------------------------------


def links(network: Network) -> Iterator[Link]:
    """What the box needs: members and parents that have no entry of their own are links, too."""
    known = {interface.name: interface for interface in network.interfaces}
    masters = {member: group for group in network.interfaces for member in group.members}
    parents = [interface.vlan.parent for interface in network.interfaces if interface.vlan]
    for name in dict.fromkeys([*known, *masters, *parents]):
        interface = known.get(name, Interface(name))
        master = masters.get(name)
        mtu = master.mtu if master else _mtu(interface, known)
        link = _link(interface, mtu, master.name if master else "")
        yield replace(link, like=tuple(dict.fromkeys(_cards(name, known)))) if interface.bridge else link


def _cards(name: str, known: dict[str, Interface], deep: int = 0) -> Iterator[str]:
    """The cards that it is made of, in the order of its members."""
    interface = known.get(name, Interface(name))
    parts = (interface.vlan.parent,) if interface.vlan else interface.members
    if not interface.made:
        yield name
    for part in parts if deep < len(known) else ():  # a loop, which validation refuses
        yield from _cards(part, known, deep + 1)


def _mtu(interface: Interface, known: dict[str, Interface]) -> int:
    """A VLAN without one of its own has its parent's, whichever of them is made first."""
    for _ in known:
        if interface.mtu or not interface.vlan or interface.vlan.parent not in known:
            break
        interface = known[interface.vlan.parent]
    return interface.mtu


def _link(interface: Interface, mtu: int, master: str) -> Link:
    name, on = interface.name, interface.on
    if interface.vlan:
        return Link(name, "vlan", on, mtu, master, interface.vlan.parent, interface.vlan.id)
    if interface.bond:
        return Link(name, "bond", on, mtu, master, options=tuple(_bond_options(interface.bond)))
    if interface.bridge:
        return Link(name, "bridge", on, mtu, master, options=(("stp_state", str(int(interface.bridge.stp))),))
    return Link(name, "", on, mtu, master)


def _bond_options(bond: Bond) -> Iterator[tuple[str, str]]:
    """The mode first: it decides which of the others there are."""
    yield "mode", bond.mode
    yield "miimon", str(bond.miimon)
    if bond.mode is BondMode.LACP:
        yield "lacp_rate", bond.lacp_rate
    if bond.mode in BY_HASH:
        yield "xmit_hash_policy", bond.hash_policy
    if bond.mode in ONE_SPEAKS and bond.primary:
        yield "primary", bond.primary


# --- routes --------------------------------------------------------------------------------------


def _routes(network: Network) -> Iterator[Route]:
    for gateway in (network.gateway, network.gateway6):
        if gateway:
            yield _route(network, EVERYWHERE[version(gateway)], gateway, "", 0, MAIN)
    for route in network.routes:
        yield _route(network, route.destination, route.via, route.interface, route.metric, MAIN)
    for policy in network.policies:
        yield policy_route(network, policy)


def policy_route(network: Network, policy: PolicyRoute) -> Route:
    """In a table of its own, which a rule leads to."""
    everywhere = EVERYWHERE[version(policy.source)]
    return _route(network, everywhere, policy.via, policy.interface, 0, own_table(policy.source))


def _route(network: Network, destination: str, via: str, interface: str, metric: int, table: int) -> Route:
    """With the interface by its name: while an address moves from one to another, both have its network."""
    device = interface or _connected(_connections(network), via) or ""
    default = METRIC6 if version(destination) == 6 else 0
    return Route(destination, via, device, metric or default, table)


def homes(network: Network, vips: Iterable[str]) -> dict[str, str | None]:
    """The interface that carries each VIP; None where the network has no place for it.

    The one whose static network contains it; else the first that asks DHCP; else the one towards
    the gateway, whose router must then have a route for the VIP.
    """
    connected = _connections(network)
    by_dhcp = next((interface.name for interface in network.interfaces if interface.dhcp and interface.on), None)
    elsewhere = {
        4: by_dhcp or (_connected(connected, network.gateway) if network.gateway else None),
        6: _connected(connected, network.gateway6) if network.gateway6 else None,
    }
    return {vip: _connected(connected, vip) or elsewhere[version(vip)] for vip in vips}


def _connections(network: Network) -> list[tuple[IPNetwork, str]]:
    return [
        (net, interface.name) for interface in network.interfaces if interface.on for net in static_networks(interface)
    ]


def _connected(networks: list[tuple[IPNetwork, str]], address: str) -> str | None:
    return next((name for network, name in networks if contains(network, address)), None)


def static_networks(interface: Interface) -> list[IPNetwork]:
    return [parse_interface(address).network for address in interface.addresses]


# --- the text ------------------------------------------------------------------------------------


def render(snapshot: Snapshot) -> str:
    """One setting a line, to read and to compare; the applier works from `wanted`."""
    state = wanted(snapshot)
    lines = [f"hostname {state.hostname}"]
    lines += [_link_words(link) for link in state.links]
    lines += [f"dhcp {name}" for name in state.dhcp]
    lines += [f"address {address} on {name}" for name, address in state.addresses]
    lines += [f"gateway {gateway}" for gateway in state.gateways]
    lines += [
        _route_words(route, f"route {route.destination}")
        for route in state.routes
        if route.table == MAIN and not route.is_default
    ]
    lines += [
        _route_words(policy_route(snapshot.network, policy), f"from {policy.source}")
        for policy in snapshot.network.policies
    ]
    return "".join(f"{line}\n" for line in lines)


def _link_words(link: Link) -> str:
    words = [f"link {link.name}"]
    words += [f"vlan {link.tag} of {link.parent}"] if link.kind == "vlan" else [link.kind] if link.kind else []
    words += [f"{name} {value}" for name, value in link.options]
    words += [f"member of {link.master}"] if link.master else []
    words += [f"mtu {link.mtu}"] if link.mtu else []
    return " ".join([*words, "up" if link.on else "down"])


def _route_words(route: Route, start: str) -> str:
    words = [start, f"via {route.via}"] if route.via else [start]
    words += [f"on {route.device}"]
    words += [f"metric {route.metric}"] if route.metric not in (0, METRIC6) else []
    return " ".join(words)
