"""The link between the two boxes of a pair, as WireGuard's file (pair.conf) says it.

The kernel's synchronisation of connections and what the boxes tell each other use nothing else.

The file is of the form that `wg setconf` reads, with one peer and without the private key, which no configuration has.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

LINK = "pair0"  # the interface
MTU = 1420  # of WireGuard over 1,500 bytes of IPv4 or IPv6
ADDRESSES = ("169.254.64.1/30", "169.254.64.2/30")  # on it: of the first box and of the second
LINK_PORT = 51820  # UDP, of WireGuard
KEEPALIVE = 1  # seconds
SYNC_GROUPS = ("224.0.0.81/32", "ff02::81/128")  # where the kernel sends its connections
SYNC_PORT = 8848  # UDP
CHANNEL_PORT = 64504  # TCP
JOIN_PORT = 64505  # TCP; open while a box waits for the one that becomes its second

_INTERFACE, _PEER = "[interface]", "[peer]"


@dataclass(frozen=True, slots=True)
class PairLink:
    """The link as one of the boxes has it."""

    own: int  # 0: this is the first box, 1: the second
    port: int  # UDP, where it listens
    peer: str  # the other box's public key
    endpoint: str  # "192.0.2.2:51820": where the other box is
    allowed: frozenset[str]  # networks whose packets pass
    keepalive: int  # seconds

    @property
    def address(self) -> str:
        return ADDRESSES[self.own]

    @property
    def sync_ids(self) -> tuple[int, int]:
        """With which this box sends its connections, and with which the other one does."""
        return self.own + 1, 2 - self.own


def read(conf: str) -> PairLink:
    """ValueError with a sentence where the file is not of that form."""
    parts: dict[str, dict[str, str]] = {}
    part: dict[str, str] = {}
    for line in filter(None, (line.partition("#")[0].strip() for line in conf.splitlines())):
        if line.lower() in (_INTERFACE, _PEER):
            part = parts.setdefault(line.lower(), {})
            continue
        name, equals, value = line.partition("=")
        if not equals:
            raise ValueError(f"pair.conf has a line that cannot be read: {line[:60]!r}")
        part[name.strip().lower()] = value.strip()
    interface, peer = parts.get(_INTERFACE, {}), parts.get(_PEER, {})
    try:
        allowed = frozenset(str(ipaddress.ip_network(one.strip())) for one in peer["allowedips"].split(","))
        return PairLink(
            _own(allowed),
            int(interface["listenport"]),
            peer["publickey"],
            peer["endpoint"],
            allowed,
            int(peer.get("persistentkeepalive", "0")),
        )
    except KeyError as error:
        raise ValueError(f"pair.conf has no {error.args[0]}") from None
    except ValueError as error:
        raise ValueError(f"pair.conf cannot be read: {error}") from None


def _own(allowed: frozenset[str]) -> int:
    """Each box allows the address of the other one."""
    for own, other in ((0, ADDRESSES[1]), (1, ADDRESSES[0])):
        if f"{ipaddress.ip_interface(other).ip}/32" in allowed:
            return own
    raise ValueError("AllowedIPs has neither box's address")


def with_key(conf: str, private: str) -> str:
    """The file as wg takes it: a section may come twice."""
    return f"{conf.rstrip()}\n\n[Interface]\nPrivateKey = {private}\n"
