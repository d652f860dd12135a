"""What one IPVS tells another of its connections: the datagrams of the kernel's own sync protocol, version 1.

Source of the format: net/netfilter/ipvs/ip_vs_sync.c (ip_vs_sync_conn writes it, ip_vs_process_message reads it; the
same in Linux 6.12 and 6.18) and linux/ip_vs.h. All integers are in network order.

A datagram has a head of 8 bytes and up to 255 records. A record has 36 bytes over IPv4 and 72 over IPv6, behind them
what a persistence engine keeps, and ends at a multiple of 4. The kernel knows options with sequence numbers as well.
No record of ours has them: only applications that change the length of a TCP stream need them, and the one that there
is (ip_vs_ftp) leaves that to connection tracking.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

GROUP, PORT = "224.0.0.81", 8848  # the kernel's own; a unicast address it refuses
LARGEST = 1392  # bytes of a datagram: what is left of WireGuard's 1,420 by the heads of IP and UDP
SMALL = 152  # four connections over IPv4, two over IPv6
VERSION = 1

# linux/ip_vs.h, IP_VS_CONN_F_…
MASQUERADED, TUNNELED, ROUTED = 0x0, 0x2, 0x3
NO_OUTPUT = 0x80  # the answers pass the box by
INACTIVE = 0x100  # of a server's connections it counts as one of the inactive ones
TEMPLATE = 0x1000  # where a persistent client goes, and no connection

_HEAD = struct.Struct("!BBHBbH")  # 0, sync id, size, records, version, 0
_RECORD = struct.Struct("!BBHIHHHHII")  # family, protocol, size, flags, state, three ports, mark, seconds
_SIX = 1
_ENGINE_DATA, _ENGINE_NAME = 2, 3  # IPVS_OPT_PE_…
_MOST = 255  # records, of which a byte has the number


@dataclass(frozen=True, slots=True)
class Record:
    """A connection or a template; addresses are bytes as packets have them, all of the same family."""

    protocol: int  # 0: a template of a mark
    client: bytes
    client_port: int
    virtual: bytes  # a template of a mark has the mark here
    virtual_port: int
    server: bytes
    server_port: int
    flags: int
    state: int
    mark: int  # of the service; 0: none
    seconds: int  # until it is forgotten; 0: what the kernel takes for its state
    engine: str = ""  # of persistence
    engine_data: bytes = b""


def encode(record: Record) -> bytes:
    """The bytes of one record."""
    options = b""
    if record.engine:
        options = _option(_ENGINE_DATA, record.engine_data) + _option(_ENGINE_NAME, record.engine.encode())
    addresses = record.client + record.virtual + record.server
    size = _RECORD.size + len(addresses) + len(options)
    head = _RECORD.pack(
        _SIX if len(record.client) == 16 else 0,
        record.protocol,
        size,
        record.flags,
        record.state,
        record.client_port,
        record.virtual_port,
        record.server_port,
        record.mark,
        record.seconds,
    )
    return head + addresses + options + bytes(-size % 4)


def datagrams(records: Iterable[Record], sync_id: int, largest: int = LARGEST) -> Iterator[bytes]:
    """As few as will do, in the order of the records."""
    part: list[bytes] = []
    size = _HEAD.size
    for data in map(encode, records):
        if part and (size + len(data) > largest or len(part) == _MOST):
            yield _datagram(part, size, sync_id)
            part, size = [], _HEAD.size
        part.append(data)
        size += len(data)
    if part:
        yield _datagram(part, size, sync_id)


def _datagram(part: list[bytes], size: int, sync_id: int) -> bytes:
    return _HEAD.pack(0, sync_id, size, len(part), VERSION, 0) + b"".join(part)


def _option(kind: int, data: bytes) -> bytes:
    return bytes([kind, len(data)]) + data
