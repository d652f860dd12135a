"""The rules for single values: each returns a sentence, or None where the value is good."""

from __future__ import annotations

import ipaddress
import re

from lbconfig.problem import number, quote

MAX_NAME = 64
MAX_TEXT = 200  # path, expected text
MAX_ID = 2**53 - 1  # what JavaScript and every JSON reader keep exactly

NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ._-]{0,62}[A-Za-z0-9._-])?")
INTERFACE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,14}")
PATH = re.compile(r"/[A-Za-z0-9._~!$&'()*+,;=:@%/?-]*")
LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_RESERVED_INTERFACES = frozenset({"lo", "all", "default"})  # the last two are folders of /proc/sys/net/ipv4/conf

NO_IPV6 = "IPv6 is not supported yet"


def in_range(value: int, low: int, high: int) -> str | None:
    return None if low <= value <= high else f"must be {low} to {high}, not {number(value)}"


def host_address(text: str) -> str | None:
    """An IPv4 address that one machine can have."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return f"must be an IPv4 address such as 192.0.2.10, not {quote(text)}"
    if address.version == 6:
        return f"{NO_IPV6}: give an IPv4 address"
    for network, words in _NO_HOSTS:
        if address in network:
            return f"must be the address of one host, and {address} is {words}"
    return None


_NO_HOSTS = tuple(
    (ipaddress.IPv4Network(network), words)
    for network, words in (
        ("0.0.0.0/8", "in a network that no host can use"),
        ("127.0.0.0/8", "a loopback address"),
        ("224.0.0.0/4", "a multicast address"),
        ("255.255.255.255/32", "the broadcast address"),
        ("240.0.0.0/4", "in a range that is reserved"),
    )
)


def service_name(text: str) -> str | None:
    if NAME.fullmatch(text):
        return None
    return (
        f"must be 1 to {MAX_NAME} letters (a-z, A-Z), digits, spaces, dots, underscores or hyphens, begin with "
        f"a letter or digit and not end with a space; {quote(text)} is not"
    )


def is_dns_name(text: str, longest: int) -> bool:
    """Labels as in RFC 1123, joined by dots."""
    return len(text) <= longest and all(LABEL.fullmatch(label) for label in text.split("."))


def url_path(text: str) -> str | None:
    if len(text) > MAX_TEXT:
        return f"must not be longer than {MAX_TEXT} characters, and has {len(text)}"
    if PATH.fullmatch(text):
        return None
    return f"must begin with / and consist of characters of a URL (others as %XX, no #), not {quote(text)}"


def expected_text(text: str) -> str | None:
    if len(text) > MAX_TEXT:
        return f"must not be longer than {MAX_TEXT} characters, and has {len(text)}"
    return None if text.isprintable() else "must be text that can be printed, on one line"


def interface_name(name: str) -> str | None:
    if not INTERFACE_NAME.fullmatch(name):
        return f"must be 1 to 15 letters, digits, dots, underscores or hyphens, not {quote(name)}"
    return f"{name!r} cannot be configured" if name in _RESERVED_INTERFACES else None


def interface_address(text: str) -> str | None:
    form = f"must be an IPv4 address with its prefix length, such as 192.0.2.10/24, not {quote(text)}"
    host, slash, _ = text.partition("/")
    try:
        address = ipaddress.ip_interface(text)
    except ValueError:
        return form
    if address.version == 6:
        return f"{NO_IPV6}: give an IPv4 address"
    if not slash or str(address) != text:
        return form
    if sentence := host_address(host):
        return sentence
    network = address.network
    if not 8 <= network.prefixlen <= 32:
        return f"must have a prefix length of 8 to 32, not {network.prefixlen}"
    if network.prefixlen < 31 and address.ip in (network.network_address, network.broadcast_address):
        kind = "network" if address.ip == network.network_address else "broadcast"
        return f"must be the address of one host, and {address.ip} is the {kind} address of {network}"
    return None


def allowed_network(text: str) -> str | None:
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        return f"must be networks such as 192.0.2.0/24, not {quote(text)}"
    if network.version == 6:
        return f"{NO_IPV6}: give an IPv4 network"
    if str(network) != text:
        return f"must be a network with its prefix length; {quote(text)} is probably meant to be {network}"
    return None


def dns_name_or_empty(text: str) -> str | None:
    return None if text == "" or is_dns_name(text, 253) else f"must be a DNS name or empty, not {quote(text)}"
