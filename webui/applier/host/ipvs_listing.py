"""The IPVS table as /proc/net/ip_vs lists it: weights and connections of each real server, read at once.

By netlink each service is a request of its own, which for a thousand of them takes a small box seconds; pages ask
every two. Where every detail counts (what is compared and changed), netlink is asked: this listing has no thresholds,
no tunnels and not all flags. Its format: ip_vs_info_seq_show() in the kernel's net/netfilter/ipvs/ip_vs_ctl.c.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from lbconfig.wanted.table import FIREWALL_MARK, FIREWALL_MARK6, ServerKey, ServiceKey

PATH = Path("/proc/net/ip_vs")
HEADER = "Prot LocalAddress:Port"

_service = re.compile(r"(?P<protocol>TCP|UDP|SCTP)  (?P<place>\S+) |FWM  (?P<mark>[0-9A-F]{8}) ")
_server = re.compile(r"  -> (?P<place>\S+) +\S+ +(?P<weight>-?\d+) +(?P<active>\d+) +(?P<inactive>\d+) *")


@dataclass(frozen=True, slots=True)
class Entry:
    """A real server in the kernel's table."""

    weight: int
    active: int = 0
    inactive: int = 0


Servers = dict[ServerKey, Entry]


class ListingError(Exception):
    """The listing has a line that cannot be read."""


class Listing:
    """Reads one listing after the other; the part of a service that did not change since the last is not read again."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[tuple[ServiceKey, ...], Servers]] = {}  # replaced as a whole: no lock

    def __call__(self, text: str) -> dict[ServiceKey, Servers]:
        """The servers of each service. A service whose part is as before has the same object. Raises ListingError."""
        head, *parts = re.split(r"\n(?=[A-Z])", text.rstrip("\n"))
        if not parts or not parts[0].startswith(HEADER):
            raise ListingError(f"it begins with {head[:60]!r}")
        last = self._last
        self._last = read = {part: last.get(part) or _part(part) for part in parts[1:]}
        return {key: servers for keys, servers in read.values() for key in keys}


def _part(part: str) -> tuple[tuple[ServiceKey, ...], Servers]:
    first, *lines = part.split("\n")
    servers: Servers = {}
    for line in lines:
        found = _server.fullmatch(line)
        if found is None:
            raise ListingError(f"no real server: {line[:100]!r}")
        servers[_place(found["place"])] = Entry(int(found["weight"]), int(found["active"]), int(found["inactive"]))
    return _keys(first), servers


def _keys(line: str) -> tuple[ServiceKey, ...]:
    found = _service.match(line)
    if found is None:
        raise ListingError(f"no virtual service: {line[:100]!r}")
    if found["mark"]:
        # The listing does not say of which family it is. Ours have each mark once.
        return tuple((protocol, "", int(found["mark"], 16)) for protocol in (FIREWALL_MARK, FIREWALL_MARK6))
    return ((found["protocol"].lower(), *_place(found["place"])),)


@lru_cache(4096)  # the same servers stand in many services
def _place(text: str) -> ServerKey:
    """ "0A020014:0050", "[2001:0db8:…:0001]:0050"."""
    address, _, port = text.rpartition(":")
    try:
        packed = bytes.fromhex(address) if address[0] != "[" else ipaddress.IPv6Address(address[1:-1]).packed
        return str(ipaddress.ip_address(packed)), int(port, 16)
    except (ValueError, IndexError):
        raise ListingError(f"no address and port: {text[:60]!r}") from None
