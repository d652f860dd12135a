"""The partition table of the box's own disk: read it, and plan how to change it so that a power cut cannot hurt.

Pure. Facts from the UEFI specification, chapter "GUID Partition Table": a header in sector 1 with the entries
behind it, the same once more at the end of the disk, each with checksums. Of the two readers that matter at boot,
GRUB takes the entries at the start without looking at a checksum; the kernel, with "gpt" on its command line, takes
the copy at the end where the one at the start does not add up.

So a change is written in this order, each sector on the disk before the next: the copy at the end; the sector with
the entry of the slot that starts; the other entries; the header. Whatever was written when the power went, GRUB
and the kernel mean the same partition by the GUID of that slot.
"""

from __future__ import annotations

import struct
import uuid
import zlib
from collections.abc import Callable
from typing import NamedTuple

SECTOR = 512  # bytes
ENTRIES = 128
ENTRY = 128  # bytes
ARRAY = ENTRIES * ENTRY // SECTOR  # sectors
ALIGNMENT = 2048  # sectors: 1 MiB
HEADER = struct.Struct("<8sIIIIQQQQ16sQIII")
MAGIC = b"EFI PART"
REVISION = 0x00010000
PROTECTIVE = 446  # where the first entry of the protective MBR lies


class TableError(Exception):
    """There is no valid table, or it is not one of ours; the text says which."""


class Partition(NamedTuple):
    number: int  # from 1
    name: str
    kind: uuid.UUID
    guid: uuid.UUID
    first: int  # sector
    last: int  # sector, the last one that belongs to it
    attributes: int = 0


class Table(NamedTuple):
    guid: uuid.UUID
    partitions: tuple[Partition, ...]

    def named(self, name: str) -> Partition:
        for partition in self.partitions:
            if partition.name == name:
                return partition
        raise TableError(f"the table names no partition {name!r}")


class Write(NamedTuple):
    sector: int
    data: bytes


def parse(header: bytes, array: bytes) -> Table:
    """From one header sector and the 32 sectors of its entries. Raises TableError."""
    fields = HEADER.unpack_from(header)
    magic, _, length, checksum, _, _, _, _, _, guid, _, count, size, array_checksum = fields
    if magic != MAGIC or length != HEADER.size or (count, size) != (ENTRIES, ENTRY):
        raise TableError("there is no GPT, or not one of 128 entries")
    blank = header[:16] + b"\0" * 4 + header[20 : HEADER.size]
    if zlib.crc32(blank) != checksum or zlib.crc32(array) != array_checksum:
        raise TableError("a checksum of the GPT is wrong")
    found = []
    for number in range(1, ENTRIES + 1):
        entry = array[(number - 1) * ENTRY : number * ENTRY]
        if any(entry[:16]):
            first, last, attributes = struct.unpack_from("<QQQ", entry, 32)
            name = entry[56:].decode("utf-16-le", errors="replace").partition("\0")[0]
            kind, own = uuid.UUID(bytes_le=entry[:16]), uuid.UUID(bytes_le=entry[16:32])
            found.append(Partition(number, name, kind, own, first, last, attributes))
    return Table(uuid.UUID(bytes_le=guid), tuple(found))


def render(table: Table, sectors: int) -> dict[int, bytes]:
    """Every sector of the table on a disk of so many: the copies at its start and its end."""
    array = bytearray(ENTRIES * ENTRY)
    for one in table.partitions:
        place = (one.number - 1) * ENTRY
        numbers = struct.pack("<QQQ", one.first, one.last, one.attributes)
        entry = one.kind.bytes_le + one.guid.bytes_le + numbers + one.name.encode("utf-16-le")
        array[place : place + len(entry)] = entry
    last = sectors - 1
    written = {
        1: _header(table, array, 1, last, 2, sectors),
        last: _header(table, array, last, 1, last - ARRAY, sectors),
    }
    for number in range(ARRAY):
        piece = bytes(array[number * SECTOR : (number + 1) * SECTOR])
        written[2 + number] = written[last - ARRAY + number] = piece
    return written


def _header(table: Table, array: bytes | bytearray, own: int, other: int, entries: int, sectors: int) -> bytes:
    def packed(checksum: int) -> bytes:
        return HEADER.pack(
            MAGIC, REVISION, HEADER.size, checksum, 0, own, other, 2 + ARRAY, sectors - ARRAY - 2,
            table.guid.bytes_le, entries, ENTRIES, ENTRY, zlib.crc32(array),
        )  # fmt: skip

    return packed(zlib.crc32(packed(0))).ljust(SECTOR, b"\0")


def grown(table: Table, sectors: int) -> Table:
    """With the data partition, the last one on the disk, up to the end of the disk."""
    data = table.named("data")
    if any(one.first > data.first for one in table.partitions):
        raise TableError("the data partition is not the last one on the disk")
    last = (sectors - ALIGNMENT) // ALIGNMENT * ALIGNMENT - 1
    if last <= data.last:
        return table
    return table._replace(partitions=tuple(one._replace(last=last) if one is data else one for one in table.partitions))


def renamed(table: Table, new: Callable[[], uuid.UUID]) -> Table:
    """With a new GUID for the disk and for every partition."""
    return Table(new(), tuple(one._replace(guid=new()) for one in table.partitions))


def protective(mbr: bytes, sectors: int) -> bytes:
    """Sector 0, its boot code untouched, with the protective entry over the whole disk."""
    length = struct.pack("<I", min(sectors - 1, 0xFFFFFFFF))
    return mbr[: PROTECTIVE + 12] + length + mbr[PROTECTIVE + 16 :]


def plan(
    read: Callable[[int, int], bytes], sectors: int, slot: str, factory: uuid.UUID, new: Callable[[], uuid.UUID]
) -> list[Write]:
    """What to write, in order, so that the table is whole, fills the disk and has GUIDs of its own.

    `read(sector, count)` reads the disk; `slot` is the name of the partition that the box runs from; a disk with the
    GUID `factory` has never been started. Nothing to do is an empty list. Raises TableError.
    """
    table = current(read, sectors)
    if table.guid == factory:
        table = renamed(table, new)
    table = grown(table, sectors)
    wished = render(table, sectors) | {0: protective(read(0, 1), sectors)}
    return [
        Write(sector, wished[sector]) for sector in _order(table, sectors, slot) if read(sector, 1) != wished[sector]
    ]


def current(read: Callable[[int, int], bytes], sectors: int) -> Table:
    """The table as the kernel sees it: the one at the start, else its copy at the end."""
    try:
        return parse(read(1, 1), read(2, ARRAY))
    except TableError:
        return parse(read(sectors - 1, 1), read(sectors - 1 - ARRAY, ARRAY))


def _order(table: Table, sectors: int, slot: str) -> list[int]:
    starts = 2 + (table.named(slot).number - 1) * ENTRY // SECTOR
    entries = [starts, *(sector for sector in range(2, 2 + ARRAY) if sector != starts)]
    return [*range(sectors - 1 - ARRAY, sectors), *entries, 1, 0]
