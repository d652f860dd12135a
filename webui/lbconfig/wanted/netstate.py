"""What the kernel's network is, or should be: links, addresses, routes and rules. The same shape for both."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass

from lbconfig.model.addresses import parse_address, version

MAIN = 254  # the number of the table `main`
EVERYWHERE = {4: "0.0.0.0/0", 6: "::/0"}
METRIC6 = 1024  # what the kernel takes for an IPv6 route without a metric
# Rules are looked at in the order of their numbers; the table `main` has 32766. Both stand before it for each address
# with a way of its own: first all of `main` but its default routes, then the address's own table.
PREFERENCE_MAIN, PREFERENCE_OWN = 1000, 1001

Address = tuple[str, str]  # interface, "10.1.0.2/24"


@dataclass(frozen=True, slots=True)
class Link:
    name: str
    kind: str = ""  # "vlan", "bond", "bridge"; "" is a card, or what is not ours to make
    on: bool = True
    mtu: int = 0  # 0: whatever it is
    master: str = ""  # the bond or bridge that it is a member of
    parent: str = ""  # of a VLAN
    tag: int = 0  # of a VLAN: its id
    options: tuple[tuple[str, str], ...] = ()  # of bonds and bridges, in the words of ip(8)
    largest: int = 0  # the largest MTU that it can have; 0: not known
    mac: str = ""  # of a card the one that it was built with; "": whatever it is
    like: tuple[str, ...] = ()  # of a bridge: it has the MAC of the first of these that is there


@dataclass(frozen=True, slots=True)
class Route:
    destination: str  # "10.9.0.0/16"; EVERYWHERE is the default route
    via: str  # "": on the link itself
    device: str
    metric: int = 0
    table: int = MAIN

    @property
    def version(self) -> int:
        return version(self.destination)

    @property
    def key(self) -> tuple[int, str, int]:
        """What the kernel takes for the same route: the newer one replaces the older one."""
        return self.table, self.destination, self.metric

    @property
    def is_default(self) -> bool:
        return self.destination == EVERYWHERE[self.version]


@dataclass(frozen=True, slots=True)
class RoutingRule:
    source: str
    table: int

    @property
    def preference(self) -> int:
        return PREFERENCE_MAIN if self.table == MAIN else PREFERENCE_OWN


@dataclass(frozen=True, slots=True)
class NetworkState:
    hostname: str = ""
    links: tuple[Link, ...] = ()
    addresses: tuple[Address, ...] = ()  # VIPs as /32 or /128, after the own ones
    dhcp: tuple[str, ...] = ()  # interfaces that ask DHCP for an address (and a gateway, if none is set)
    routes: tuple[Route, ...] = ()
    rules: tuple[RoutingRule, ...] = ()

    @property
    def gateways(self) -> tuple[str, ...]:
        """Of the default routes that everything takes."""
        return tuple(route.via for route in self.routes if route.is_default and route.table == MAIN and route.via)


NOTHING = NetworkState()


def own_table(source: str) -> int:
    """The number of the routing table of an address: of IPv4 the address itself, of IPv6 a number made of it.

    IPv4 and IPv6 have tables of their own, so these never meet; the first 256 numbers are the kernel's.
    """
    address = parse_address(source)
    if address.version == 4:
        return int(address)
    return zlib.crc32(address.packed) % (2**32 - 1 - 256) + 256


def stacked(links: Iterable[Link]) -> list[Link]:
    """Parents before what stands on them, else in the given order."""
    waiting = {link.name: link for link in links}
    found: list[Link] = []
    while waiting:
        ready = [link for link in waiting.values() if link.parent not in waiting or link.parent == link.name]
        for link in ready or list(waiting.values()):  # a loop, which validation refuses
            found.append(waiting.pop(link.name))
    return found


def depth(link: Link, links: dict[str, Link]) -> int:
    """How many links it stands on, one on the other."""
    steps = 0
    while link.parent in links and steps < len(links):
        link, steps = links[link.parent], steps + 1
    return steps
