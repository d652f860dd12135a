"""The disk image: made of what the layout says, the same each time, and what the box and GRUB expect."""

import re
import shutil
import struct
import subprocess
import uuid
from pathlib import Path

import pytest
from board.pc import disk, layout
from board.pc.disk import DiskImageError

from applier.disk import bootdisk, bootstate, gpt

GRUB_FILES = sorted((disk.HERE / "grub").glob("*.cfg"))
SECTOR = 512


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    """The squashfs of a slot with next to nothing in it."""
    folder = tmp_path_factory.mktemp("root")
    (folder / "tree/boot").mkdir(parents=True)
    (folder / "tree/boot/slot.cfg").write_text("# nothing\n")
    subprocess.run(["mksquashfs", folder / "tree", folder / "root.squashfs", "-quiet", "-no-progress"], check=True)
    return folder / "root.squashfs"


@pytest.fixture(scope="module")
def image(root, tmp_path_factory) -> Path:
    return disk.make(root, tmp_path_factory.mktemp("image") / disk.IMAGE)


def read(image: Path, offset: int, count: int) -> bytes:
    with image.open("rb") as file:
        file.seek(offset)
        return file.read(count)


def content(image: Path, name: str, count: int) -> bytes:
    return read(image, layout.offset(name), count)


def test_the_table_is_what_the_layout_says(image):
    sectors = image.stat().st_size // SECTOR
    for header, entries in ((1, 2), (sectors - 1, sectors - 33)):
        table = gpt.parse(read(image, header * SECTOR, SECTOR), read(image, entries * SECTOR, 32 * SECTOR))
        assert table.guid == uuid.UUID(layout.DISK_GUID) == bootdisk.FACTORY
        assert [(one.number, one.name, one.first * SECTOR, one.kind, one.guid) for one in table.partitions] == [
            (one.number, one.name, layout.offset(one.name), uuid.UUID(one.kind), uuid.UUID(one.guid))
            for one in layout.PARTITIONS
        ]
        assert all((one.last + 1 - one.first) * SECTOR == layout.size(one.name) for one in table.partitions)


def test_what_lies_where(image, root):
    assert content(image, "slot-a", root.stat().st_size) == root.read_bytes()
    assert content(image, "slot-b", 4096) == bytes(4096)
    state = bootstate.parse(content(image, "boot-state", 4096)[bootstate.PLACE :])
    assert bootstate.choose(state) == "A"
    assert not state.can_boot("B")
    superblock = content(image, "data", 4096)[1024:]
    assert superblock[0x78:0x88].rstrip(b"\0").decode() == layout.DATA_LABEL


def test_each_stage_of_grub_knows_where_the_next_is(image):
    start = layout.offset("bios") // SECTOR
    assert struct.unpack_from("<Q", read(image, 0x5C, 8))[0] == start
    core = content(image, "bios", SECTOR)
    assert struct.unpack_from("<Q", core, SECTOR - 12)[0] == start + 1
    assert read(image, 510, 2) == b"\x55\xaa"


def test_the_efi_partition_has_grub_and_its_configuration(image, tmp_path):
    efi = tmp_path / "efi.img"
    efi.write_bytes(content(image, "efi", layout.size("efi")))
    listed = subprocess.run(["mdir", "-/", "-b", "-i", efi, "::"], capture_output=True, text=True, check=True).stdout
    assert set(listed.split()) == {
        "::/EFI/", "::/EFI/BOOT/", "::/EFI/BOOT/BOOTX64.EFI", "::/grub/", "::/grub/grub.cfg"
    }  # fmt: skip


def test_equal_inputs_give_an_equal_image(image, root, tmp_path, monkeypatch):
    moved = tmp_path / "elsewhere.squashfs"
    shutil.copy(root, moved)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert disk.make(moved, tmp_path / disk.IMAGE).read_bytes() == image.read_bytes()


def test_a_slot_that_is_too_large_is_refused(tmp_path):
    large = tmp_path / "root.squashfs"
    with large.open("wb") as file:
        file.truncate(layout.size("slot-a") + 1)
    with pytest.raises(DiskImageError, match="larger than a slot"):
        disk.make(large, tmp_path / disk.IMAGE)
    assert not (tmp_path / disk.IMAGE).exists()


def test_a_missing_tool_is_named(root, tmp_path, monkeypatch):
    monkeypatch.setattr(disk.shutil, "which", lambda *_, **__: None)
    with pytest.raises(DiskImageError, match="grub-mkimage is not installed"):
        disk.make(root, tmp_path / disk.IMAGE)


@pytest.mark.parametrize("path", GRUB_FILES, ids=lambda path: path.name)
def test_grub_can_read_its_files(path):
    subprocess.run(["grub-script-check", path], check=True)


def test_grub_counts_partitions_and_tries_like_everybody_else():
    text = (disk.HERE / "grub/grub.cfg").read_text()
    numbers = {one.name: one.number for one in layout.PARTITIONS}
    assert f"($disk,gpt{numbers['boot-state']})/grubenv" in text
    assert re.search(rf'= B \]; then set slotdev="\(\$disk,gpt{numbers["slot-b"]}\)"; else', text)
    assert f'else set slotdev="($disk,gpt{numbers["slot-a"]})"' in text
    assert f"(,gpt{numbers['efi']})/grub" == layout.GRUB_PREFIX
    assert f'"$name_try" != {bootstate.TRIES} ]' in text
    assert set(bootdisk.NAMES) == set(numbers) - {"bios"}


def test_virtual_machines_get_the_same_disk(image):
    for kind in disk.FORMATS:
        made = disk.convert(image, kind)
        compare = ["qemu-img", "compare", "-f", "raw", "-F", kind, image, made]
        assert subprocess.run(compare, capture_output=True, check=False).returncode == 0
        assert made.stat().st_size < image.stat().st_blocks * 512
