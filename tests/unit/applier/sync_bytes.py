"""The kernel's side of the sync protocol: datagrams read as net/netfilter/ipvs/ip_vs_sync.c reads them.

Written from ip_vs_process_message, ip_vs_proc_sync_conn and struct ip_vs_sync_v4 and _v6 without the product's encoder,
with each check that drops a datagram or a record there.
"""

import struct
from typing import NamedTuple

BACKUP_MASK = 0x7 | 0x80 | 0x100 | 0x600 | 0x800 | 0x1000  # IP_VS_CONN_F_BACKUP_MASK
STATES = {6: 11, 17: 1, 132: 14}  # protocol -> num_states


class Entry(NamedTuple):
    six: bool
    protocol: int
    flags: int
    state: int
    client: tuple[bytes, int]
    virtual: tuple[bytes, int]
    server: tuple[bytes, int]
    mark: int
    timeout: int
    engine: bytes
    engine_data: bytes


def decode(datagram: bytes, sync_id: int, largest: int) -> list[Entry]:
    """What a backup daemon with this sync id makes of it. AssertionError where the kernel drops anything of it."""
    assert len(datagram) <= largest, "cut off by the receiver's buffer"
    reserved, sender, size, count, version, spare = struct.unpack_from(">BBHBbH", datagram, 0)
    assert len(datagram) == size, "bogus message size"
    assert sender == sync_id and (reserved, version, spare) == (0, 1, 0)
    entries, at = [], 8
    for _ in range(count):
        assert at + 36 <= len(datagram), "Dropping buffer, too small"
        (length,) = struct.unpack_from(">H", datagram, at + 2)
        assert length >> 12 == 0, "Unknown version"
        assert at + length <= len(datagram), "Dropping buffer, msg > buffer"
        entries.append(_entry(datagram[at : at + length]))
        at += length + 3 & ~3
    return entries


def _entry(data: bytes) -> Entry:
    kind, protocol = data[0], data[1]
    assert kind in (0, 1), -10
    width, head = (16, 72) if kind else (4, 36)
    assert head <= len(data), -20
    options: dict[int, bytes] = {}
    at = head
    while at < len(data):
        assert at + 2 <= len(data), -30
        option, length = data[at], data[at + 1]
        at += 2
        assert length and at + length <= len(data), -40
        assert option in (2, 3) and option not in options, "an unknown option, or one that is there twice"
        assert length <= {2: 255, 3: 16}[option], (-60, -70)
        options[option] = data[at : at + length]
        at += length
    assert (2 in options) == (3 in options), "Invalid PE parameters"
    (flags,) = struct.unpack_from(">I", data, 4)
    state, client_port, virtual_port, server_port = struct.unpack_from(">HHHH", data, 8)
    mark, timeout = struct.unpack_from(">II", data, 16)
    assert flags & ~BACKUP_MASK == 0, "what the kernel takes no notice of is not sent"
    if not flags & 0x1000:
        assert state < STATES[protocol], "Invalid state"
    else:
        assert state < 2, "Invalid tpl state"
    client, virtual, server = (data[24 + part * width : 24 + (part + 1) * width] for part in range(3))
    ends = (client, client_port), (virtual, virtual_port), (server, server_port)
    return Entry(bool(kind), protocol, flags, state, *ends, mark, timeout, options.get(3, b""), options.get(2, b""))
