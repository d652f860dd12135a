"""A box with disks that are files: sysfs and /dev in a folder, and a kernel that is played.

Partition tables are made and read by sfdisk, so that not our own code alone says that they are right.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from applier.disk import bootstate
from applier.disk import layout as disk_layout
from applier.disk.disks import EDGE, SECTOR, Places
from applier.host.host import Live, Output, run

MIB = 1 << 20
TABLE = """label: gpt
unit: sectors
first-lba: 34
1 : start=2048, size=2048, type=21686148-6449-6E6F-744E-656564454649, name="bios"
2 : start=4096, size=4096, type=C12A7328-F81F-11D2-BA4B-00A0C93EC93B, name="efi"
3 : start=8192, size=2048, type=0FC63DAF-8483-4772-8E79-3D69D8477DE4, name="boot-state"
4 : start=10240, size=16384, type=0FC63DAF-8483-4772-8E79-3D69D8477DE4, name="slot-a"
5 : start=26624, size=16384, type=0FC63DAF-8483-4772-8E79-3D69D8477DE4, name="slot-b"
6 : start=43008, size=8192, type=0FC63DAF-8483-4772-8E79-3D69D8477DE4, name="data"
"""
OFFSETS = {"bios": 2048, "efi": 4096, "boot-state": 8192, "slot-a": 10240, "slot-b": 26624, "data": 43008}
SYSTEM = 5 * MIB  # bytes of the system in the running slot
OK = Output(0, "", "")


def system(length: int, seed: bytes) -> bytes:
    """What begins like a squashfs of that length, and is nowhere the same."""
    head = b"hsqs".ljust(40, b"\1") + length.to_bytes(8, "little")
    body = b"".join(seed + number.to_bytes(8, "little") for number in range(length // (len(seed) + 8) + 1))
    return (head + body)[:length]


class DiskBox(Live):
    """Runs cp and rm; plays mount, mke2fs, e2fsck and blkid, and what the kernel is asked about partitions."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(disk_layout, "read_again", lambda handle: self.read_table(path_of(handle)))
        monkeypatch.setattr(disk_layout, "show", self._show)
        self.places = Places(
            folder / "sys", folder / "dev", folder / "run", folder / "mounts", folder / "data", folder / "shared"
        )
        for place in (self.places.sys / "block", self.places.dev, self.places.own, self.places.data):
            place.mkdir(parents=True)
        self.places.mounts.write_text("21 1 0:20 / /proc rw - proc proc rw\n")
        self.log: list[tuple[str, ...]] = []
        self.blkid: dict[str, str] = {}  # device name -> what blkid says after the colon
        self.versions: dict[str, str] = {}  # partition -> the version of the system in it
        self.number = 0

    # --- what is plugged in ----------------------------------------------------------------------

    def add(self, name: str, size: int = 256 * MIB, table: str = "", **facts: str) -> Path:
        """A disk. `facts`: files of its sysfs folder, "device__model" being device/model; its file."""
        block = self.places.sys / "block" / name
        usual = {"size": size // SECTOR, "removable": 0, "ro": 0, "queue__logical_block_size": SECTOR}
        self.number += 16
        for key, value in (usual | {"dev": f"8:{self.number}", "device__model": "DISK"} | facts).items():
            path = block / key.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{value}\n")
        file = self.places.dev / name
        head, tail = ends(size, table) if table else (b"", b"")
        with file.open("wb") as disk:
            disk.write(head)
            disk.truncate(size)
            disk.seek(size - len(tail))
            disk.write(tail)
        if table:
            self.read_table(file)
        return file

    def start_from(self, name: str, slot: str = "A") -> Path:
        """The disk that the box runs from."""
        file = self.add(name, 64 * MIB, TABLE, removable="1")
        with file.open("r+b") as disk:
            disk.write(b"boot code".ljust(440, b"\x90"))
            for part, seed, length in (("bios", b"core", MIB), ("efi", b"fat", 2 * MIB), ("boot-state", b"used", MIB)):
                disk.seek(OFFSETS[part] * SECTOR)
                disk.write(system(length, seed))
            disk.seek(OFFSETS[f"slot-{slot.lower()}"] * SECTOR)
            disk.write(system(SYSTEM, b"the system"))
        (self.places.own / "disk").symlink_to(file)
        (self.places.run / "slot").write_text(f"{slot}\n")
        return file

    def partition(self, disk: str, number: int, name: str = "") -> None:
        """One that the kernel shows."""
        part = f"{disk}{'p' if disk[-1].isdigit() else ''}{number}"
        folder = self.places.sys / "block" / disk / part
        folder.mkdir(exist_ok=True)
        (folder / "partition").write_text(f"{number}\n")
        (folder / "dev").write_text(f"259:{number}\n")
        (folder / "uevent").write_text(f"DEVTYPE=partition\nPARTNAME={name}\n" if name else "DEVTYPE=partition\n")
        (self.places.dev / part).write_bytes(bytes(4096))

    # --- what is run -----------------------------------------------------------------------------

    def command(self, argv, stdin="", timeout=20.0) -> Output:
        self.log.append(tuple(argv))
        play = getattr(self, f"_{argv[0]}", None)
        return play(argv, stdin) if play else super().command(argv, stdin, timeout)

    def _show(self, handle, partition) -> None:
        self.partition(path_of(handle).name, partition.number)

    def read_table(self, disk: Path) -> None:
        """The kernel looks at the disk again."""
        for old in (self.places.sys / "block" / disk.name).glob(f"{disk.name}*"):
            shutil.rmtree(old)
            (self.places.dev / old.name).unlink()
        for name, number, start in table(disk):
            self.partition(disk.name, number, name)
            with disk.open("rb") as whole:
                whole.seek(start * SECTOR)
                next(self.places.dev.glob(f"{disk.name}*{number}")).write_bytes(whole.read(4096))

    def _mke2fs(self, argv, stdin) -> Output:
        return OK

    _e2fsck = _umount = _mke2fs

    def _mount(self, argv, stdin) -> Output:
        if "squashfs" in argv:
            file = Path(argv[-1]) / "usr/lib/fairlead/VERSION"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(self.versions[Path(argv[-2]).name])
        return OK

    def _blkid(self, argv, stdin) -> Output:
        known = (f"{path}: {self.blkid[Path(path).name]}\n" for path in argv[1:] if Path(path).name in self.blkid)
        return Output(0, "".join(known), "")


def path_of(handle: int) -> Path:
    return Path(os.readlink(f"/proc/self/fd/{handle}"))


@functools.cache
def ends(size: int, script: str) -> tuple[bytes, bytes]:
    """What sfdisk writes at both ends of a disk of that size."""
    with tempfile.NamedTemporaryFile() as file:
        file.truncate(size)
        run(Live(), ["sfdisk", "--quiet", file.name], stdin=script)
        return piece(Path(file.name), 0, EDGE), piece(Path(file.name), size - EDGE, EDGE)


def table(disk: Path) -> list[tuple[str, int, int]]:
    """(name, number, first sector) of each partition in the file; empty where it has no table."""
    output = Live().command(["sfdisk", "--json", str(disk)])
    if output.exit:
        return []
    parts = json.loads(output.stdout)["partitiontable"].get("partitions", [])
    return [(part.get("name", ""), int(part["node"][-1]), part["start"]) for part in parts]


def piece(disk: Path, offset: int, length: int) -> bytes:
    with disk.open("rb") as file:
        file.seek(offset)
        return file.read(length)


def is_installed(disk: Path, source: Path, slot: str = "A") -> list[str]:
    """What is missing for a disk to start the box as the source does; nothing where all is there."""
    wanted = {name: (OFFSETS[name], OFFSETS[name]) for name in ("bios", "efi")}
    wanted["slot-a"] = (OFFSETS[f"slot-{slot.lower()}"], OFFSETS["slot-a"])
    lengths = {"bios": MIB, "efi": 2 * MIB, "slot-a": SYSTEM}
    missing = [
        name
        for name, (old, new) in wanted.items()
        if piece(source, old * SECTOR, lengths[name]) != piece(disk, new * SECTOR, lengths[name])
    ]
    if piece(disk, OFFSETS["slot-b"] * SECTOR, EDGE).strip(b"\0"):
        missing.append("slot-b is not empty")
    block = piece(disk, OFFSETS["boot-state"] * SECTOR + bootstate.PLACE, bootstate.BLOCK)
    if not block.startswith(bootstate.SIGNATURE):
        missing.append("boot-state")
    return missing
