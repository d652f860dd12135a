"""Questions about a valid snapshot that need to know more than the snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from lbconfig.model.addresses import IPAddress, contains, parse_address, parse_network
from lbconfig.model.problem import ACCESS, Problem, quote
from lbconfig.model.snapshot import Snapshot
from lbconfig.pair import ORDINALS, views
from lbconfig.wanted import network as interfaces
from lbconfig.wanted.netstate import MAIN, Route


def admin_problem(snapshot: Snapshot, address: str) -> Problem | None:
    """Would the admin at this address lose the web UI by this snapshot? `snapshot` must be valid.

    "" (not known, e.g. the console) and a loopback address are never locked out.
    """
    return access_problem(snapshot, address) or way_problem(snapshot, address)


def access_problem(snapshot: Snapshot, address: str) -> Problem | None:
    """The web UI is shut for him, wherever the box is: nothing that he does at his own place helps."""
    try:
        admin = _parsed(address)
    except ValueError:
        return ACCESS.problem("allow", f"your own address is not readable: {quote(address)}")
    if admin is None or any(contains(parse_network(one), str(admin)) for one in snapshot.management.allow):
        return None
    words = f"you are at {admin}, which none of these networks contains: you would be locked out"
    return ACCESS.problem("allow", words)


def way_problem(snapshot: Snapshot, address: str) -> Problem | None:
    """The box would have no way to him. He can still reach it from another place, or at another address of his.

    Of a pair each box needs one: either may lead.
    """
    found = (_way_problem(one, address) for one in views(snapshot))
    return next((_of_pair(snapshot, box, one) for box, one in enumerate(found) if one), None)


def _of_pair(snapshot: Snapshot, box: int, problem: Problem) -> Problem:
    """With the box, where it is one of a pair."""
    if len(views(snapshot)) == 1 or not problem.path.startswith("network."):
        return problem
    name = f"{problem.object} of the {ORDINALS[box]} box {quote(views(snapshot)[box].network.hostname)}"
    return replace(problem, object=name, path=f"pair.boxes[{box}].{problem.path}")


def _way_problem(snapshot: Snapshot, address: str) -> Problem | None:
    admin = _parsed(address)
    network = snapshot.network
    used = [interface for interface in network.interfaces if interface.on]
    nets = [net for interface in used for net in interfaces.static_networks(interface)]
    nets += [parse_network(route.destination) for route in network.routes]
    if admin is None or any(contains(net, str(admin)) for net in nets):
        return None
    field = "gateway6" if admin.version == 6 else "gateway"
    by_dhcp = admin.version == 4 and any(interface.dhcp for interface in used)
    if not (getattr(network, field) or by_dhcp):
        return Problem(
            "network",
            field,
            f"there would be no way back to you at {admin}: no network of an interface contains it",
            f"network.{field}",
        )
    return None


def entrance_problem(snapshot: Snapshot, address: str) -> Problem | None:
    """The web UI would not answer on the interface where he comes in, as far as the routes tell.

    Where DHCP brings a network to an interface that it answers on, that is unknown.
    """
    return next((found for one in views(snapshot) if (found := _entrance_problem(one, address))), None)


def _entrance_problem(snapshot: Snapshot, address: str) -> Problem | None:
    admin, management = _parsed(address), snapshot.management
    if admin is None or not management.interfaces:
        return None
    routes = [one for one in interfaces.wanted(snapshot).routes if one.table == MAIN and one.version == admin.version]
    near = nearest(snapshot, [one for one in routes if not one.is_default], str(admin))
    home, connected = near or (next((one.device for one in routes if one.is_default), ""), False)
    asks = any(one.on and one.dhcp and management.answers_on(one.name) for one in snapshot.network.interfaces)
    if not home or management.answers_on(home) or (asks and not connected):
        return None
    only = " and ".join(management.interfaces)
    words = f"the web page would not answer: what comes from {admin} arrives on {home}, and it answers on {only} only"
    return ACCESS.problem("interfaces", words)


def nearest(snapshot: Snapshot, routes: Iterable[Route], address: str) -> tuple[str, bool] | None:
    """The interface that leads to an address, and whether its own network is what contains that.

    As the kernel looks it up: the longest prefix, of the same ones the lowest metric.
    """
    used = [one for one in snapshot.network.interfaces if one.on]
    ways = [(net, 0, one.name, True) for one in used for net in interfaces.static_networks(one)]
    ways += [(parse_network(route.destination), route.metric, route.device, False) for route in routes]
    found = [
        (net.prefixlen, -metric, name, connected) for net, metric, name, connected in ways if contains(net, address)
    ]
    return max(found)[2:] if found else None


def _parsed(address: str) -> IPAddress | None:
    """None: one that is never locked out. ValueError where it cannot be read."""
    if address == "":
        return None
    admin = parse_address(address)
    admin = getattr(admin, "ipv4_mapped", None) or admin
    return None if admin.is_loopback else admin


def lease_problems(snapshot: Snapshot, leases: Mapping[str, str]) -> list[Problem]:
    """Clashes with what DHCP brought, which the snapshot cannot know.

    `leases` maps an interface to its address, "10.0.2.15/24". A VIP may not be such an address: the
    web UI would be shut there, and the address may go at any time.
    """
    held = {address.partition("/")[0]: name for name, address in leases.items()}
    return [
        Problem(
            f"virtual service {quote(service.name)}",
            field,
            f"{vip} is what DHCP gave to {held[vip]}; make that a static address first",
            f"services[id={service.id}].{field}",
        )
        for service in snapshot.enabled_services
        for vip, field in zip(service.vips, ("address", *["more_addresses"] * len(service.more_addresses)), strict=True)
        if vip in held
    ]
