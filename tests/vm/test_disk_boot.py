"""The flashed disk starts the box: by either firmware, after any power cut, and on a disk of any size."""

import pytest
from board.machines.lab import FIRMWARE
from board.machines.machine import DISK_GROWTH, flash
from board.machines.wait import until
from board.pc import layout
from tests.lab.fixtures import thorough

from applier.disk import bootdisk

pytestmark = pytest.mark.timeout(1200)

GROWN = layout.size("data") + (DISK_GROWTH << 20)  # bytes; a MiB or two of it is the second table
COUNTED = 1024  # bytes that GRUB writes at each start
UNUSED = 20  # sector of the partition table that says nothing
GRUB = 60.0  # seconds
NOTICED = 120.0  # seconds until a watchdog of one minute has started a box that hangs again, and GRUB shows up


@thorough
def test_a_flashed_disk_starts_by_either_firmware(box, flashed, capsys):
    """The first boot, by UEFI, ends as it changes the partition table; the third is by BIOS, beside a second disk."""
    box.firmware = "uefi"
    box.start()
    box.wait_for_console("Fairlead: slot A, try 1", GRUB)
    until("the first write to the disk", lambda: box.written() > COUNTED, GRUB, 0.01)
    box.kill()

    box.start()
    by_uefi = box.wait_for_agent()
    box.wait_until_started()
    assert "Fairlead: slot A, try 2" in box.console
    assert box.read("/run/fairlead/slot") == "A\n"
    assert box.faults() == ""
    assert GROWN * 0.85 < data_bytes(box) < GROWN
    own = guids(box)
    assert len(own) == 1 + len(layout.PARTITIONS)
    assert not own & {layout.DISK_GUID, *(one.guid for one in layout.PARTITIONS)}
    spoil_table(box)
    box.kill()

    box.firmware = "bios"
    box.devices = tuple(box.disk("other", f"file={flash(flashed, box.folder / 'other.qcow2')},format=qcow2"))
    box.start()
    by_bios = box.wait_for_agent()
    box.wait_until_started()
    assert box.faults() == ""
    assert guids(box) == own
    disk = own_disk(box)
    assert box.read(f"/sys/block/{disk.removeprefix('/dev/')}/serial").strip() == "data"
    assert sector(box, disk, UNUSED) == bytes(512)
    (other,) = {f"/dev/{name}" for name in box.succeed("ls /sys/block").split() if name.startswith("vd")} - {disk}
    assert bootdisk.FACTORY.bytes_le in sector(box, other, 1)  # nobody touched it
    with capsys.disabled():
        print(f"\nfrom power-on to the first command: {by_uefi:.1f} s by UEFI, {by_bios:.1f} s by BIOS")


@thorough
@pytest.mark.parametrize("kilobytes", [1, 4, 16, 64])
def test_the_power_goes_while_the_first_boot_writes(box, kilobytes):
    box.start()
    until(f"{kilobytes} KiB written", lambda: box.written() > COUNTED + kilobytes * 1024, GRUB, 0.01)
    box.kill()
    box.start()
    box.wait_until_started()
    assert box.faults() == ""
    assert data_bytes(box) > GROWN * 0.85
    assert layout.DISK_GUID not in guids(box)


@thorough
def test_the_watchdog_starts_a_box_that_hangs(box):
    box.devices = ("-device", "i6300esb")
    box.start()
    box.wait_until_started()
    box.wait_until_succeeds("sv status /run/service/watchdog | grep -q ^run:")
    box.succeed("kill -STOP $(pidof watchdog)")
    until("GRUB once more", lambda: box.console.count("Fairlead: slot A") == 2, NOTICED)


@thorough
def test_the_console_has_a_menu_that_offers_the_other_slot_and_no_command_line(box):
    box.start()
    if FIRMWARE == "uefi":  # earlier it is the firmware that takes Escape, and shows its own menu
        box.wait_for_console("BdsDxe: starting", GRUB)
    # The second in which GRUB listens is soon over, and what comes right after Escape belongs to it.
    until("the menu", lambda: pressed(box, "\x1b", "the version in slot B"), GRUB, 0.1)
    until("a question for a name", lambda: pressed(box, "e", "Enter username"), GRUB, 2)


def pressed(box, key: str, expected: str) -> bool:
    box.type(key)
    return expected in box.console


def spoil_table(box) -> None:
    """As a power cut might: from now on the kernel has to take the copy at the end of the disk."""
    box.succeed(f"printf x | dd of={own_disk(box)} bs=512 seek={UNUSED} conv=notrunc,fsync")


def own_disk(box) -> str:
    return box.succeed("readlink /run/fairlead/disk/disk").strip()


def sector(box, disk: str, number: int) -> bytes:
    words = box.succeed(f"dd if={disk} bs=512 skip={number} count=1 2>/dev/null | od -An -v -tx1")
    return bytes.fromhex("".join(words.split()))


def data_bytes(box) -> int:
    return int(box.succeed("df -B1 /disk | tail -1").split()[1])


def guids(box) -> set[str]:
    """Of the disk and its partitions, from the table itself."""
    lines = box.succeed(f"sfdisk --dump {own_disk(box)}").lower().splitlines()
    found = {line.partition("uuid=")[2].partition(",")[0] for line in lines if "uuid=" in line}
    return found | {line.split()[1] for line in lines if line.startswith("label-id:")}
