"""The partitions of the disk, in one place, for whatever makes a disk image.

Every image has the same GUIDs; a box gives its disk new ones when it starts for the first time. The names are what
the running system goes by (webui/applier/disk/bootdisk.py), the numbers are what GRUB goes by (grub/grub.cfg).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

DISK_GUID = "fa121ead-0000-4000-8000-000000000000"  # webui/applier/disk/bootdisk.py knows an unused disk by it
DATA_UUID = "fa121ead-0000-4000-8000-00000000da7a"  # of the file system
DATA_HASH_SEED = "fa121ead-0000-4000-8000-000000005eed"
DATA_LABEL = "FAIRLEAD-DATA"
EFI_VOLUME = "fa121ead"  # of the FAT file system
START = 1  # MiB before the first partition
GRUB_PREFIX = "(,gpt2)/grub"  # on whatever disk GRUB is read from

BIOS_BOOT = "21686148-6449-6E6F-744E-656564454649"
EFI_SYSTEM = "C12A7328-F81F-11D2-BA4B-00A0C93EC93B"
LINUX = "0FC63DAF-8483-4772-8E79-3D69D8477DE4"


@dataclass(frozen=True)
class Partition:
    name: str
    kind: str  # GUID of its type
    size: int  # MiB
    image: str = ""  # the file whose content it gets; without one it is empty

    @property
    def number(self) -> int:
        return PARTITIONS.index(self) + 1

    @property
    def guid(self) -> str:
        return f"{DISK_GUID[:-1]}{self.number}"


PARTITIONS = (
    Partition("bios", BIOS_BOOT, 1, "core.img"),
    Partition("efi", EFI_SYSTEM, 64, "efi.img"),
    Partition("boot-state", LINUX, 1, "boot-state.img"),
    Partition("slot-a", LINUX, 300, "root.squashfs"),
    Partition("slot-b", LINUX, 300),
    Partition("data", LINUX, 64, "data.img"),
)


def offset(name: str) -> int:
    """Bytes from the start of the disk."""
    before = START
    for partition in PARTITIONS:
        if partition.name == name:
            return before << 20
        before += partition.size
    raise KeyError(name)


def size(name: str) -> int:
    """Bytes of that partition in the image."""
    return next(one.size for one in PARTITIONS if one.name == name) << 20


def genimage(out: Path, boot_code: str) -> str:
    """The configuration of genimage that puts the disk together."""
    lines = [f"image {out.name} {{", f'  hdimage {{ partition-table-type = "gpt" disk-uuid = "{DISK_GUID}" }}']
    lines.append(f'  partition boot-code {{ in-partition-table = false image = "{boot_code}" offset = 0 size = 440 }}')
    for one in PARTITIONS:
        image = f' image = "{one.image}"' if one.image else ""
        lines.append(
            f'  partition {one.name} {{ partition-type-uuid = "{one.kind}" partition-uuid = "{one.guid}"'
            f" offset = {offset(one.name)} size = {one.size}M{image} }}"
        )
    return "\n".join([*lines, "}", ""])
