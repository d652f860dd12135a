"""The connections of IPVS as /proc/net/ip_vs_conn lists them.

Its format: ip_vs_conn_seq_show() in the kernel's net/netfilter/ipvs/ip_vs_conn.c. Not in it are the mark, how packets
are forwarded, and the whole of the timeout of which it has the rest.

A line is bytes: what a persistence engine keeps came out of a packet, and may be anything but blanks.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path

PATH = Path("/proc/net/ip_vs_conn")
HEADER = b"Pro "

PROTOCOLS = {
    b"IP": socket.IPPROTO_IP,
    b"TCP": socket.IPPROTO_TCP,
    b"UDP": socket.IPPROTO_UDP,
    b"SCTP": socket.IPPROTO_SCTP,
}


class ConnectionsError(Exception):
    """A line cannot be read."""


@dataclass(frozen=True, slots=True)
class Connection:
    """A connection, or a template that says where a persistent client goes; addresses as packets have them."""

    protocol: int  # IPPROTO_IP: a template of a service that is known by a mark
    client: bytes
    client_port: int
    virtual: bytes
    virtual_port: int
    server: bytes
    server_port: int
    state: bytes  # the kernel's name for it
    seconds: int  # until it is forgotten, if no packet comes
    engine: str = ""  # of persistence
    engine_data: bytes = b""

    @property
    def template(self) -> bool:
        """Whether it is one. A connection without the client's port, as ip_vs_ftp expects one, has other states."""
        return self.client_port == 0 and self.state in (b"NONE", b"ASSURED")


def parse(line: bytes) -> Connection | None:
    """One line; None: it is the headline, or of a protocol that IPVS does not balance. Raises ConnectionsError."""
    if line.startswith(HEADER):
        return None
    words = line.split()
    try:
        protocol, client, client_port, virtual, virtual_port, server, server_port, state, seconds, *engine = words
        if protocol not in PROTOCOLS:
            return None
        name, data = engine or (b"", b"")
        return Connection(
            PROTOCOLS[protocol],
            _address(client),
            int(client_port, 16),
            _address(virtual),
            int(virtual_port, 16),
            _address(server),
            int(server_port, 16),
            state,
            int(seconds),
            name.decode(),
            data,
        )
    except ValueError:
        raise ConnectionsError(f"no connection: {line[:160]!r}") from None


def _address(word: bytes) -> bytes:
    """ "0A010064", or "2001:0db8:0000:…" with all its digits."""
    packed = bytes.fromhex(word.replace(b":", b"").decode())
    if len(packed) not in (4, 16):
        raise ValueError(f"an address of {len(packed)} bytes")
    return packed
