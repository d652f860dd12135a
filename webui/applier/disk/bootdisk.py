"""The disk that the box was started from: names for its partitions, and a table that fills it.

    python3 -m applier.disk.bootdisk         at every boot, before the data partition is mounted (/etc/init.d/S08disk)

Which disk that is says the kernel: the root file system lies on one of its partitions. A second disk with the same
partitions, such as the stick that the box was installed from, cannot be taken for it. The layered developer image
has no such disk: there the slot is called A and nothing else happens.

Every boot waits for this, so it does without dataclasses: importing them would take a quarter of its time.

At the first boot the data partition grows to the end of the disk, and the disk and its partitions get GUIDs of their
own. A later boot does whatever of that a power cut left undone, and grows once more when a virtual disk has grown.
"""

from __future__ import annotations

import array
import fcntl
import os
import struct
import sys
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from applier.disk import gpt
from applier.disk.gpt import SECTOR, TableError, Write

FACTORY = uuid.UUID("fa121ead-0000-4000-8000-000000000000")  # board/pc/layout.py gives it to every image
NAMES = ("efi", "boot-state", "slot-a", "slot-b", "data")
SLOTS = {"slot-a": "A", "slot-b": "B"}
# From linux/blkpg.h
BLKPG = 0x1269
BLKPG_RESIZE_PARTITION = 3


class DiskError(Exception):
    """The disk is not as it should be; the text says what."""


class BootDisk(NamedTuple):
    name: str  # of the device: "sda"
    slot: str  # the name of the partition that the root file system lies on
    partitions: dict[str, str]  # name in the table -> name of the device
    data_number: int


def find(sys_folder: Path, root: int) -> BootDisk | None:
    """The disk with the device number `root` on it; None where that is no partition of ours."""
    own = sys_folder / "dev/block" / f"{os.major(root)}:{os.minor(root)}"
    slot = uevent(own).get("PARTNAME", "")
    if slot not in SLOTS:
        return None
    disk = own.resolve().parent
    found, data_number = {}, 0
    for partition in sorted(disk.glob("*/partition")):
        facts = uevent(partition.parent)
        found[facts.get("PARTNAME", "")] = partition.parent.name
        if facts.get("PARTNAME") == "data":
            data_number = int(facts["PARTN"])
    missing = [name for name in NAMES if name not in found]
    if missing:
        raise DiskError(f"The disk has no partition called {', '.join(missing)}.")
    return BootDisk(disk.name, slot, {name: found[name] for name in NAMES}, data_number)


def uevent(device: Path) -> dict[str, str]:
    """What the kernel says about a device."""
    try:
        lines = (device / "uevent").read_text().splitlines()
    except OSError:
        return {}
    return dict(line.split("=", 1) for line in lines if "=" in line)


def link(disk: BootDisk, folder: Path, dev: Path) -> None:
    """A symbolic link for the disk and for each of its partitions."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, device in {"disk": disk.name, **disk.partitions}.items():
        path = folder / name
        path.unlink(missing_ok=True)
        path.symlink_to(dev / device)


def complete(device: Path, slot: str, new: Callable[[], uuid.UUID] = uuid.uuid4) -> list[Write]:
    """Make the table fill the disk, with GUIDs of its own; what was written. Raises DiskError."""
    try:
        handle = os.open(device, os.O_RDWR | os.O_DSYNC | os.O_CLOEXEC)
        try:
            sectors = os.lseek(handle, 0, os.SEEK_END) // SECTOR
            writes = gpt.plan(
                lambda sector, count: os.pread(handle, count * SECTOR, sector * SECTOR), sectors, slot, FACTORY, new
            )
            write(handle, writes)
        finally:
            os.close(handle)
    except TableError as error:
        raise DiskError(f"The partition table cannot be used: {error}.") from None
    except OSError as error:
        raise DiskError(f"The partition table could not be written: {error}.") from None
    return writes


def write(handle: int, writes: Iterable[Write]) -> None:
    """One after the other: each is on the disk before the next begins."""
    for one in writes:
        if os.pwrite(handle, one.data, one.sector * SECTOR) != len(one.data):
            raise DiskError("The partition table could not be written.")


def tell_kernel(device: Path, number: int) -> None:
    """The new length of the data partition, without reading the table again: others of its partitions are in use."""
    handle = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    try:
        sectors = os.lseek(handle, 0, os.SEEK_END) // SECTOR
        table = gpt.current(lambda sector, count: os.pread(handle, count * SECTOR, sector * SECTOR), sectors)
        data = table.named("data")
        start, length = data.first * SECTOR, (data.last - data.first + 1) * SECTOR
        # struct blkpg_partition, and struct blkpg_ioctl_arg that points to it
        partition = array.array("b", struct.pack("@qqi64s64s4x", start, length, number, b"", b""))
        address, size = partition.buffer_info()
        fcntl.ioctl(handle, BLKPG, struct.pack("@iiiP", BLKPG_RESIZE_PARTITION, 0, size, address))
    finally:
        os.close(handle)


def main(run: Path = Path("/run/fairlead"), sys_folder: Path = Path("/sys"), dev: Path = Path("/dev")) -> int:
    try:
        disk = find(sys_folder, os.stat("/").st_dev)
        (run / "slot").write_text(SLOTS[disk.slot] + "\n" if disk else "A\n")
        if disk is None:
            return 0
        link(disk, run / "disk", dev)
        if complete(dev / disk.name, disk.slot):
            tell_kernel(dev / disk.name, disk.data_number)
    except (DiskError, OSError) as error:
        print(f"fairlead: {error}", file=sys.stderr)
        (run / "faults/disk").write_text(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
