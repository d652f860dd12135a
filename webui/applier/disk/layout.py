"""The partition table of the disk that the box runs from, given to another disk.

A firmware, GRUB and the kernel all begin with sector 0: it holds the boot code and the mark without which a GPT
counts for nothing. So it is written last, in one piece, and until then the disk is one that nothing starts from.
"""

from __future__ import annotations

import array
import fcntl
import os
import struct
import uuid

from applier.disk import gpt
from applier.disk.disks import PARTITIONS
from applier.disk.gpt import ALIGNMENT, ARRAY, SECTOR, Partition, Table

BLKRRPART = 0x125F  # linux/fs.h
BLKPG, BLKPG_ADD_PARTITION = 0x1269, 1  # linux/blkpg.h


def read(handle: int) -> Table:
    """The table of a Fairlead disk. Raises TableError where it is another's, OSError."""
    table = gpt.current(lambda sector, count: os.pread(handle, count * SECTOR, sector * SECTOR), sectors(handle))
    for name in PARTITIONS:
        table.named(name)
    return table


def sectors(handle: int) -> int:
    return os.lseek(handle, 0, os.SEEK_END) // SECTOR


def like(table: Table, disk: int) -> Table:
    """The same table for a disk of so many sectors: with new GUIDs, and the data partition to the disk's end."""
    data = table.named("data")
    small = tuple(one._replace(last=one.first) if one is data else one for one in table.partitions)
    return gpt.renamed(gpt.grown(table._replace(partitions=small), disk), uuid.uuid4)


def smallest(table: Table, room: int) -> int:
    """Bytes of the smallest disk on which the data partition has so many bytes."""
    return offset(table.named("data")) + room + 2 * ALIGNMENT * SECTOR


def offset(partition: Partition) -> int:
    """Bytes from the start of the disk."""
    return partition.first * SECTOR


def size(partition: Partition) -> int:
    """Bytes."""
    return (partition.last - partition.first + 1) * SECTOR


def pieces(table: Table, disk: int) -> list[tuple[int, bytes]]:
    """(offset in bytes, data) of all that the table is made of, but for sector 0. `disk`: its sectors."""
    written = gpt.render(table, disk)
    ends = (range(disk - 1 - ARRAY, disk), range(1, 2 + ARRAY))
    return [(end[0] * SECTOR, b"".join(written[sector] for sector in end)) for end in ends]


def first_sector(example: bytes, disk: int) -> bytes:
    """Sector 0 for a disk of so many sectors, with the boot code of another one."""
    return gpt.protective(example, disk)


def read_again(handle: int) -> None:
    """The kernel forgets the partitions that it knew and looks for a table. OSError where one of them is in use."""
    fcntl.ioctl(handle, BLKRRPART)


def show(handle: int, partition: Partition) -> None:
    """The kernel makes a device for a partition, although no table on the disk names it."""
    # struct blkpg_partition, and struct blkpg_ioctl_arg that points to it
    place = struct.pack("@qqi64s64s4x", offset(partition), size(partition), partition.number, b"", b"")
    buffer = array.array("b", place)
    address, length = buffer.buffer_info()
    fcntl.ioctl(handle, BLKPG, struct.pack("@iiiP", BLKPG_ADD_PARTITION, 0, length, address))
