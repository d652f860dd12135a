"""IPv4 and IPv6 addresses as text: the few things that differ between them."""

from __future__ import annotations

import functools
import ipaddress
from collections.abc import Callable, Iterable
from typing import TypeVar

Made = TypeVar("Made")
IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network
IPInterface = ipaddress.IPv4Interface | ipaddress.IPv6Interface

# Who has one address of IPv6 has its whole /64.
SOURCE_BITS = {4: 32, 6: 64}


MOST_KEPT = 4096  # results of each function
LONGEST_KEPT = 64  # characters; an address of IPv6 with its prefix length has 49


def kept_by_text(function: Callable[[str], Made]) -> Callable[[str], Made]:
    """Compute a pure function of an address, as text, once for as long as that address is in use.

    One configuration names the same addresses again and again, and parsing one takes longer than most rules about it.
    What is kept is bounded: so many results, and none of a long text.
    """
    known = functools.lru_cache(MOST_KEPT)(function)

    @functools.wraps(function)
    def once(text: str) -> Made:
        return known(text) if len(text) <= LONGEST_KEPT else function(text)

    return once


@kept_by_text
def parse_address(text: str) -> IPAddress:
    """As ipaddress.ip_address of a text. Raises ValueError."""
    return ipaddress.ip_address(text)


@kept_by_text
def parse_interface(text: str) -> IPInterface:
    """As ipaddress.ip_interface of a text. Raises ValueError."""
    return ipaddress.ip_interface(text)


@kept_by_text
def parse_network(text: str) -> IPNetwork:
    """As ipaddress.ip_network of a text, which must have no host bits. Raises ValueError."""
    return ipaddress.ip_network(text)


@functools.lru_cache(MOST_KEPT)
def order(address: str) -> tuple[int, int]:
    """For sorting: IPv4 first, then by number."""
    parsed = parse_address(address)
    return parsed.version, int(parsed)


def version(address: str) -> int:
    """4 or 6."""
    return 6 if ":" in address else 4


def bits(address: str) -> int:
    """The prefix length that means this address alone."""
    return 128 if version(address) == 6 else 32


def source(address: str) -> str:
    """What counts as one client wherever tries or connections are counted: "192.0.2.1", "2001:db8:0:1::/64".

    Text that is no address stands for itself: the console of the box has none. nginx.conf has the same as $source.
    """
    try:
        parsed = parse_address(address)
    except ValueError:
        return address
    mapped = getattr(parsed, "ipv4_mapped", None)
    if mapped or parsed.version == 4:
        return str(mapped or parsed)
    return str(ipaddress.ip_network((int(parsed), SOURCE_BITS[6]), strict=False))


def in_url(address: str) -> str:
    return f"[{address}]" if version(address) == 6 else address


def endpoint(address: str, port: int) -> str:
    """As ipvsadm, ldirectord and URLs write it: "192.0.2.1:80", "[2001:db8::1]:80"."""
    return f"{in_url(address)}:{port}"


def shown(address: str, port: int) -> str:
    """The same for people; a real server without a port of its own (0) is its address."""
    return endpoint(address, port) if port else address


def web_page(address: str, port: int) -> str:
    """The URL of the web UI at an address of the box."""
    return f"https://{in_url(address) if port == 443 else endpoint(address, port)}"


def collapsed(networks: Iterable[IPNetwork]) -> list[IPNetwork]:
    """As few networks as cover the same addresses, in order, IPv4 first; they do not overlap."""
    known = list(networks)
    four = ipaddress.collapse_addresses(one for one in known if isinstance(one, ipaddress.IPv4Network))
    six = ipaddress.collapse_addresses(one for one in known if isinstance(one, ipaddress.IPv6Network))
    return [*four, *six]


def within(network: IPNetwork, other: IPNetwork) -> bool:
    """Whether all of the one lies in the other; False where they are of two kinds."""
    if isinstance(network, ipaddress.IPv4Network):
        return isinstance(other, ipaddress.IPv4Network) and network.subnet_of(other)
    return isinstance(other, ipaddress.IPv6Network) and network.subnet_of(other)


def contains(network: IPNetwork, address: str) -> bool:
    """False for an address of the other kind."""
    parsed = parse_address(address)
    return parsed.version == network.version and parsed in network
