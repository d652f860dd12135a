"""The rules for routes, names and time."""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Callable, Iterator

from lbconfig.model.addresses import IPNetwork, contains, parse_address, parse_interface, parse_network, version
from lbconfig.model.network import Interface, Network, PolicyRoute, StaticRoute
from lbconfig.model.problem import Place, Problem, Unseen, each, quote
from lbconfig.model.snapshot import Snapshot
from lbconfig.validate.fields import (
    NO_INTERFACE,
    given_twice,
    host_address,
    host_or_name,
    in_range,
    interface_name,
    is_dns_name,
    not_a_host,
    router_address,
)
from lbconfig.wanted.netstate import own_table

Rule = Callable[[str], str | None]  # of one entry: a sentence about what is wrong with it

MAX_ROUTES = 1000
MAX_POLICIES = 256
MAX_METRIC = 2**31 - 1
MAX_DNS = 3  # what the C library asks
MAX_SEARCH = 6  # and how many domains it tries
MAX_SEARCH_TEXT = 256  # characters of all of them
MAX_NTP = 8


def route_problems(network: Network) -> Iterator[Problem]:
    """`network` must be the usable part of it: its addresses are addresses."""
    whole = Place("network", "network")
    if len(network.routes) > MAX_ROUTES:
        yield whole.problem("routes", f"has more than {MAX_ROUTES} routes")
        return
    if len(network.policies) > MAX_POLICIES:
        yield whole.problem("policies", f"has more than {MAX_POLICIES} entries")
        return
    ways = _Ways(network)
    first = Unseen()
    for route in network.routes:
        place = Place(f"route to {quote(route.destination)}", f"network.routes[{route.destination}]")
        yield from _route(place, route, ways)
        if not first((route.destination, route.metric)):
            yield place.problem("destination", "another route leads there with the same metric")
    first_source, first_table = Unseen(), Unseen()
    for policy in network.policies:
        place = Place(f"source-based route of {quote(policy.source)}", f"network.policies[{policy.source}]")
        yield from _policy(place, policy, ways)
        if not first_source(policy.source):
            yield place.problem("source", "another entry is about this address as well")
        elif host_address(policy.source) is None:
            number = (version(policy.source), own_table(policy.source))
            if not first_table(number):
                yield place.problem("source", "this address and another one cannot both have a source-based route")


def name_problems(network: Network) -> Iterator[Problem]:
    place = Place("network", "network")
    yield from _list(place, "dns", network.dns, MAX_DNS, host_address)
    yield from _list(place, "search", network.search, MAX_SEARCH, _domain)
    yield from _list(place, "ntp", network.ntp, MAX_NTP, host_or_name)
    if len(" ".join(network.search)) > MAX_SEARCH_TEXT:
        yield place.problem("search", f"must not be longer than {MAX_SEARCH_TEXT} characters in all")


def _list(place: Place, field: str, entries: tuple[str, ...], longest: int, rule: Rule) -> Iterator[Problem]:
    if len(entries) > longest:
        yield place.problem(field, f"must not be more than {longest}, and are {len(entries)}")
        return
    first = Unseen()
    for entry in entries:
        sentence = rule(entry)
        if sentence is None and not first(entry):
            sentence = given_twice(entry)
        yield from each(place, **{field: sentence})


def _domain(text: str) -> str | None:
    return None if is_dns_name(text, 253) else f"must be a domain such as example.org, not {quote(text)}"


def answers_problem(snapshot: Snapshot) -> str | None:
    """With NAT an answer gets the VIP as its source late; only who looks again finds its own way out."""
    if snapshot.policy.route_answers or not snapshot.network.policies:
        return None
    return "must be on as long as there are source-based routes (on the page Routes)"


def routed_networks(network: Network) -> list[tuple[IPNetwork, str]]:
    """Network and router ("": none) of each static route that can be read."""
    found = []
    for route in network.routes:
        with contextlib.suppress(ValueError):
            found.append((parse_network(route.destination), route.via))
    return found


class _Ways:
    """Where a packet can go from here."""

    def __init__(self, network: Network) -> None:
        self.known = {interface.name: interface for interface in network.interfaces}
        self.used = [interface for interface in network.interfaces if interface.on]
        self.own = {text.partition("/")[0] for interface in self.used for text in interface.addresses}

    def networks(self, interface: Interface) -> list[IPNetwork]:
        return [parse_interface(text).network for text in interface.addresses]

    def interface(self, name: str, family: int) -> str | None:
        """What is wrong with leaving by this interface."""
        if name == "":
            return None
        if sentence := interface_name(name):
            return sentence
        found = self.known.get(name)
        if found is None:
            return f"{quote(name)} {NO_INTERFACE}"
        if not found.on:
            return f"{quote(name)} is switched off"
        if not any(network.version == family for network in self.networks(found)):
            return f"{quote(name)} needs a fixed IPv{family} address: without one the kernel keeps no route there"
        return None

    def via(self, router: str, name: str, family: int) -> str | None:
        """What is wrong with this router."""
        if sentence := router_address(router, name != ""):
            return sentence
        if version(router) != family:
            return f"must be an IPv{family} address, not {router}"
        if router in self.own:
            return f"{router} is this box's own address"
        if parse_address(router).is_link_local:
            return None
        places = [interface for interface in self.used if name in ("", interface.name)]
        nets = [net for interface in places for net in self.networks(interface) if contains(net, router)]
        if not nets:
            return f"{router} is in no network of {quote(name) if name else 'an interface'}"
        address = parse_address(router)
        return next((sentence for net in nets if (sentence := not_a_host(net, address))), None)


def _route(place: Place, route: StaticRoute, ways: _Ways) -> Iterator[Problem]:
    yield from each(place, metric=in_range(route.metric, 0, MAX_METRIC))
    sentence = _destination(route.destination, ways)
    yield from each(place, destination=sentence)
    if sentence is not None:
        return
    family = version(route.destination)
    yield from each(place, interface=ways.interface(route.interface, family))
    if route.via:
        yield from each(place, via=ways.via(route.via, route.interface, family))
    elif not route.interface:
        yield place.problem("via", "must name a router, or the interface that the network is on")


def _destination(text: str, ways: _Ways) -> str | None:
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        return f"must be a network such as 10.9.0.0/16 or 2001:db8:9::/48, not {quote(text)}"
    if str(network) != text:
        return f"must be a network with its prefix length; {quote(text)} is probably meant to be {network}"
    if network.prefixlen == 0:
        return "this is the default route: set the default gateway instead"
    if network.is_loopback or network.is_multicast or network.is_link_local or network.is_unspecified:
        return f"{network} is not a network that a router can lead to"
    if any(network in ways.networks(interface) for interface in ways.used):
        return f"{network} is a network of an interface of this box"
    return None


def _policy(place: Place, policy: PolicyRoute, ways: _Ways) -> Iterator[Problem]:
    sentence = host_address(policy.source)
    yield from each(place, source=sentence)
    if sentence is None:
        family = version(policy.source)
        yield from each(
            place,
            interface=ways.interface(policy.interface, family),
            via=ways.via(policy.via, policy.interface, family),
        )
