"""The rules for the network and for who may manage the box."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from lbconfig.model.addresses import IPNetwork, contains, parse_address, parse_interface, version
from lbconfig.model.problem import ACCESS, Place, Problem, Unseen, each, quote
from lbconfig.model.snapshot import HTTPS_PORT, Interface, Network, Snapshot
from lbconfig.validate.certificate import certificate_problems
from lbconfig.validate.fields import (
    NO_INTERFACE,
    allowed_network,
    given_twice,
    host_address,
    interface_address,
    interface_name,
    is_dns_name,
    not_a_host,
    web_port,
)
from lbconfig.validate.links import link_problems
from lbconfig.validate.neighbours import covers, own_addresses
from lbconfig.validate.routes import name_problems, route_problems


def network_problems(network: Network) -> Iterator[Problem]:
    place = Place("network", "network")
    if not is_dns_name(network.hostname, 64) or network.hostname.replace(".", "").isdigit():
        yield place.problem(
            "hostname",
            f"must be letters, digits, hyphens and dots, at most 64, as in RFC 1123, not {quote(network.hostname)}",
        )
    yield from each(place, gateway=_gateway(network, 4), gateway6=_gateway(network, 6))
    if not any((interface.dhcp or interface.addresses) and interface.on for interface in network.interfaces):
        yield place.problem("interfaces", "at least one interface needs an address, or DHCP")
    yield from link_problems(network)
    yield from route_problems(usable(network))
    yield from name_problems(network)
    first_name, first_address = Unseen(), Unseen()
    taken: list[tuple[str, IPNetwork]] = []
    for interface in network.interfaces:
        inner = Place(f"interface {quote(interface.name)}", f"network.interfaces[{interface.name}]")
        yield from each(inner, name=interface_name(interface.name))
        if not first_name(interface.name):
            yield inner.problem("name", "another interface has this name as well")
        yield from _addresses(inner, interface, first_address, taken)


MAX_ADDRESSES = 256  # each is compared with each


def _addresses(
    place: Place, interface: Interface, first: Unseen, taken: list[tuple[str, IPNetwork]]
) -> Iterator[Problem]:
    for text in interface.addresses:
        sentence = interface_address(text)
        if sentence is not None:
            yield place.problem("addresses", sentence)
            continue
        if not interface.on:
            continue
        if len(taken) == MAX_ADDRESSES:
            yield place.problem("addresses", f"the box has more than {MAX_ADDRESSES} addresses")
            return
        address = parse_interface(text)
        if not first(address.ip):
            yield place.problem("addresses", given_twice(address.ip))
            continue
        for name, other in taken:
            if address.network.overlaps(other) and not (name == interface.name and address.network == other):
                yield place.problem("addresses", f"{text} overlaps the network {other} of {name}")
        taken.append((interface.name, address.network))


def _gateway(network: Network, kind: int) -> str | None:
    """`kind`: 4 or 6."""
    gateway = network.gateway6 if kind == 6 else network.gateway
    if gateway == "":
        return None
    if sentence := host_address(gateway):
        return sentence
    if version(gateway) != kind:
        return f"must be an IPv{kind} address, not {gateway}"
    own = [parse_interface(text) for interface in usable(network).interfaces for text in interface.addresses]
    address = parse_address(gateway)
    if any(address == mine.ip for mine in own):
        return f"{gateway} is this box's own address"
    nets = [mine.network for mine in own if contains(mine.network, gateway)]
    if not nets:
        return f"{gateway} is in no network of an interface"
    return next((sentence for net in nets if (sentence := not_a_host(net, address))), None)


def usable(network: Network) -> Network:
    """The part of a faulty network that the other rules can work with; what is switched off has no address."""
    usable = tuple(
        dataclasses.replace(
            interface,
            dhcp=interface.dhcp and interface.on,
            addresses=tuple(text for text in interface.addresses if interface.on and interface_address(text) is None),
        )
        for interface in network.interfaces
    )
    gateway, gateway6 = (
        text if host_address(text) is None and version(text) == kind else ""
        for text, kind in ((network.gateway, 4), (network.gateway6, 6))
    )
    return dataclasses.replace(network, interfaces=usable, gateway=gateway, gateway6=gateway6)


def management_problems(snapshot: Snapshot) -> Iterator[Problem]:
    place, management = ACCESS, snapshot.management
    if not management.allow:
        yield place.problem("allow", "must name at least one network, or nobody could reach the web UI")
    first = Unseen()
    for text in management.allow:
        sentence = allowed_network(text)
        if sentence is None and not first(text):
            sentence = given_twice(text)
        yield from each(place, allow=sentence)
    yield from each(place, port=web_port(management.port) or _taken(snapshot))
    yield from each(place, interfaces=_interfaces(snapshot.network, management.interfaces))
    yield from certificate_problems(management)


def _interfaces(network: Network, chosen: tuple[str, ...]) -> str | None:
    """Those that the web UI answers on. One that is off does no harm beside another one."""
    known = {interface.name: interface for interface in network.interfaces}
    masters = {member: interface.name for interface in network.interfaces for member in interface.members}
    first = Unseen()
    for name in chosen:
        if name not in known and name not in masters:
            return f"the web UI would answer on {quote(name)}, which {NO_INTERFACE}"
        if name in masters:
            return f"{quote(name)} is a member of {quote(masters[name])}, where its packets arrive: choose that one"
        if not first(name):
            return given_twice(quote(name))
    if chosen and not any(known[name].on and (known[name].dhcp or known[name].addresses) for name in chosen):
        names = ", ".join(map(quote, chosen))
        return f"the web UI would answer on {names} only, and the box has no address there: nobody could reach it"
    return None


def _taken(snapshot: Snapshot) -> str | None:
    """Who already uses the port. A clash on the default port is reported on the service only."""
    port, own = snapshot.management.port, own_addresses(usable(snapshot.network))
    for service in snapshot.enabled_services if port != HTTPS_PORT else ():
        if covers(service, port) and (shared := [vip for vip in service.vips if vip in own]):
            return f"{shared[0]} port {port} is virtual service {quote(service.name)}: take another port"
    return None
