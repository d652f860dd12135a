"""What the console says about the disks of a box. A disk may come from somebody who means no good."""

import os

import pytest
from disk_box import MIB, TABLE, DiskBox, system
from hypothesis import given, settings
from hypothesis import strategies as st

from applier.disk import disks
from applier.disk.disks import printable

NEEDED = 100 * MIB


@pytest.fixture
def box(tmp_path, monkeypatch):
    box = DiskBox(tmp_path, monkeypatch)
    box.start_from("sda")
    return box


def seen(box, name):
    (disk,) = (one for one in disks.others(box, box.places, NEEDED) if one.name == name)
    return disk


def test_the_disk_that_the_box_runs_from_is_never_offered(box):
    assert disks.running_from(box.places) == "sda"
    assert disks.others(box, box.places, NEEDED) == []


def test_a_box_without_such_a_disk(tmp_path, monkeypatch):
    assert disks.running_from(DiskBox(tmp_path, monkeypatch).places) == ""


def test_an_empty_disk(box):
    box.add("nvme0n1", device__model="Samsung SSD 980 PRO 1TB                 ")
    disk = seen(box, "nvme0n1")
    assert (disk.model, disk.content, disk.reason) == ("Samsung SSD 980 PRO 1TB", "empty", "")
    assert disk.title == "nvme0n1  268 MB  Samsung SSD 980 PRO 1TB"


def test_a_disk_with_partitions(box):
    box.add("sdb", device__vendor="ATA     ", device__model="QEMU HARDDISK")
    for number, name in enumerate(["EFI system partition", "Basic data partition", "", "", "x"], 1):
        box.partition("sdb", number, name)
    box.blkid = {"sdb3": 'LABEL="backup" UUID="1-2" TYPE="ext4"'}
    disk = seen(box, "sdb")
    assert disk.model == "ATA QEMU HARDDISK"
    expected = "EFI system partition, Basic data partition, backup ext4, no name and 1 more"
    assert disk.content == expected


def test_a_file_system_without_a_table_and_bytes_that_nobody_knows(box):
    box.add("sdb")
    box.blkid = {"sdb": 'LABEL="holiday" TYPE="vfat"'}
    assert seen(box, "sdb").content == "holiday vfat"
    box.blkid = {}
    with box.places.dev.joinpath("sdb").open("r+b") as file:
        file.seek(-512, os.SEEK_END)
        file.write(b"x")
    assert seen(box, "sdb").content == "something unknown"


def test_another_fairlead_tells_its_versions(box):
    file = box.add("sdb", table=TABLE)
    assert seen(box, "sdb").content == "a Fairlead without a version"
    for sector in (10240, 26624):
        with file.open("r+b") as disk:
            disk.seek(sector * 512)
            disk.write(system(4096, b"x"))
    box.read_table(file)
    box.versions = {"sdb4": "1.4.0\n", "sdb5": "1.5\033[2J\n"}
    assert seen(box, "sdb").content == "a Fairlead of version 1.4.0 in slot A and 1.5?[2J in slot B"
    assert box.log[-1][0] == "umount"


@pytest.mark.parametrize("where", ["/etc/passwd", "../../../../secret"])
def test_a_link_in_a_strange_system_leads_nowhere(tmp_path, where):
    (tmp_path / "secret").write_text("secret")
    folder = tmp_path / "look"
    file = folder / disks.VERSION_FILE
    file.parent.mkdir(parents=True)
    file.symlink_to(where)
    assert disks._inside(folder, disks.VERSION_FILE) == ""
    file.unlink()
    os.mkfifo(file)  # to read from it would take for ever
    assert disks._inside(folder, disks.VERSION_FILE) == ""


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"size": 64 * MIB}, "too small: 105 MB are needed"),
        ({"ro": "1"}, "it cannot be written to"),
        ({"queue__logical_block_size": "4096"}, "its sectors have 4096 bytes"),
    ],
)
def test_what_cannot_be_used_is_listed_with_the_reason(box, facts, reason):
    box.add("sdb", **facts)
    assert seen(box, "sdb").reason.startswith(reason)


def test_a_disk_in_use(box):
    box.add("sdb")
    box.partition("sdb", 1, "old")
    box.places.mounts.write_text("40 1 259:1 / /mnt rw - ext4 /dev/sdb1 rw\n")
    assert seen(box, "sdb").reason == "the box uses it"
    box.places.mounts.write_text("")
    assert not seen(box, "sdb").reason
    (box.places.sys / "block/sdb/sdb1/holders/dm-0").mkdir(parents=True)
    assert seen(box, "sdb").reason == "the box uses it"


def test_a_disk_that_is_pulled_out_while_one_looks(box, monkeypatch):
    box.add("sdb")
    monkeypatch.setattr(disks, "_names", lambda host, places: ["sdb"])
    (box.places.sys / "block/sdb/size").unlink()
    (box.places.dev / "sdb").unlink()
    disk = seen(box, "sdb")
    assert (disk.size, disk.content, disk.reason) == (0, "unknown", "it cannot be read: No such file or directory")


def test_what_is_no_disk_is_not_listed(box):
    for name in ("loop0", "ram1", "zram0", "dm-0", "md127", "sr0", "fd0", "nbd0", "mmcblk0boot0"):
        box.add(name)
    box.add("sdc", 0)  # an empty card reader
    box.add("nvme0c0n1", hidden="1")
    assert disks.others(box, box.places, NEEDED) == []
    box.add("mmcblk0")
    assert seen(box, "mmcblk0").reason == ""


def test_a_stick_is_told_from_an_internal_disk(box, tmp_path):
    assert disks.is_removable(box, box.places, "sda")  # the kernel says so
    box.add("sdb")
    assert not disks.is_removable(box, box.places, "sdb")
    # An external disk calls itself not removable, but is behind USB.
    behind = tmp_path / "devices/usb2/2-1/block/sdb"
    behind.parent.mkdir(parents=True)
    (box.places.sys / "block/sdb").rename(behind)
    (box.places.sys / "block/sdb").symlink_to(behind)
    assert seen(box, "sdb").model == "DISK (USB or removable)"


def test_a_virtual_disk_has_a_number_for_a_vendor(box):
    box.add("vdb", device__vendor="0x1af4", device__model="")
    assert seen(box, "vdb").model == "virtual disk"


@settings(deadline=None)
@given(st.text(), st.integers(10, 60))
def test_nothing_but_plain_characters_reaches_the_terminal(text, length):
    found = printable(text, length)
    assert len(found) <= length
    assert all(" " <= one <= "~" for one in found)
    assert found == found.strip()


@pytest.mark.parametrize("evil", ["\033[2J\033[1;1Hempty", "a\rb", "\x9b31m", "x\u202eyz", "ü\0", "\x07" * 1000])
def test_evil_names_of_disks_and_partitions(box, evil):
    box.add("sdb", device__model=evil)
    box.add("sdc")
    box.partition("sdc", 1, evil)
    box.add("sdd")
    box.blkid = {"sdd": f'LABEL="{evil}" TYPE="vfat"'}
    for name in ("sdb", "sdc", "sdd"):
        shown = seen(box, name).title + seen(box, name).content
        assert all(" " <= one <= "~" for one in shown), repr(shown)
        assert len(shown) < 200
