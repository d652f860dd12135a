"""Which disk the box was started from, told from a folder that looks like sysfs."""

import os
import uuid

import pytest

from applier.disk import bootdisk, gpt
from applier.disk.bootdisk import DiskError

ROOT = os.makedev(254, 4)


def box(folder, names=("bios", "efi", "boot-state", "slot-a", "slot-b", "data")):
    """A disk vda with these partitions, and a second one with the same names."""
    (folder / "dev/block").mkdir(parents=True)
    for disk, major in (("vda", 254), ("sdb", 8)):
        for number, name in enumerate(names, 1):
            device = folder / f"devices/{disk}/{disk}{number}"
            device.mkdir(parents=True)
            (device / "partition").write_text(f"{number}\n")
            (device / "uevent").write_text(f"DEVNAME={disk}{number}\nPARTN={number}\nPARTNAME={name}\n")
            (folder / f"dev/block/{major}:{number}").symlink_to(device)
    return folder


def test_the_disk_with_the_root_file_system_is_taken(tmp_path):
    found = bootdisk.find(box(tmp_path), ROOT)
    assert (found.name, found.slot, found.data_number) == ("vda", "slot-a", 6)
    assert found.partitions == {
        "efi": "vda2", "boot-state": "vda3", "slot-a": "vda4", "slot-b": "vda5", "data": "vda6",
    }  # fmt: skip


def test_slot_b(tmp_path):
    assert bootdisk.find(box(tmp_path), os.makedev(8, 5)).slot == "slot-b"


def test_a_root_without_a_partition_is_no_such_disk(tmp_path):
    assert bootdisk.find(box(tmp_path), os.makedev(0, 22)) is None


def test_another_partition_is_no_such_disk(tmp_path):
    assert bootdisk.find(box(tmp_path), os.makedev(254, 6)) is None


def test_a_missing_partition_is_named(tmp_path):
    with pytest.raises(DiskError, match="no partition called boot-state, data"):
        bootdisk.find(box(tmp_path, ("bios", "efi", "x", "slot-a", "slot-b", "y")), ROOT)


def test_links_are_made_anew(tmp_path):
    found = bootdisk.find(box(tmp_path), ROOT)
    for _ in range(2):
        bootdisk.link(found, tmp_path / "run", tmp_path / "dev")
    assert os.readlink(tmp_path / "run/disk") == str(tmp_path / "dev/vda")
    assert os.readlink(tmp_path / "run/data") == str(tmp_path / "dev/vda6")


def test_a_table_is_completed_once(tmp_path):
    kind = uuid.uuid4()
    names = ("slot-a", "data")
    table = gpt.Table(
        bootdisk.FACTORY,
        tuple(gpt.Partition(n, name, kind, uuid.uuid4(), 2048 * n, 2048 * n + 2047) for n, name in enumerate(names, 1)),
    )
    disk = tmp_path / "disk"
    with disk.open("wb") as file:
        file.truncate(8 << 20)
        for sector, data in gpt.render(table, 4 * 2048).items():
            file.seek(sector * 512)
            file.write(data)
    assert bootdisk.complete(disk, "slot-a")
    assert bootdisk.complete(disk, "slot-a") == []


def test_a_disk_without_a_table_is_told(tmp_path):
    disk = tmp_path / "disk"
    disk.write_bytes(b"\0" * (1 << 20))
    with pytest.raises(DiskError, match="cannot be used: there is no GPT"):
        bootdisk.complete(disk, "slot-a")
    assert disk.read_bytes() == b"\0" * (1 << 20)
