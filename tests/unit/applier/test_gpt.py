"""The table of the box's own disk: grown and renamed at first boot, whatever moment the power goes at."""

import itertools
import uuid

import pytest

from applier.disk import gpt
from applier.disk.gpt import Partition, Table, TableError

FACTORY = uuid.UUID(int=1)
LINUX = uuid.UUID("0fc63daf-8483-4772-8e79-3d69d8477de4")
NAMES = ("bios", "efi", "boot-state", "slot-a", "slot-b", "data")
SMALL, LARGE = 1 << 18, 1 << 22  # sectors: 128 MiB, 2 GiB
MIB = 2048  # sectors


class Disk:
    """Its sectors that were ever written."""

    def __init__(self, size, written):
        self.size = size
        self.written = dict(written)

    def read(self, sector, count):
        return b"".join(self.written.get(number, b"\0" * 512) for number in range(sector, sector + count))

    def after(self, writes):
        return Disk(self.size, self.written | {one.sector: one.data for one in writes})

    def plan(self, slot="slot-a"):
        new = itertools.count(1000)
        return gpt.plan(self.read, self.size, slot, FACTORY, lambda: uuid.UUID(int=next(new)))

    def grub(self, name):
        """The GUID that GRUB finds for a partition: no look at a checksum."""
        number = NAMES.index(name)
        entry = self.read(2, gpt.ARRAY)[number * gpt.ENTRY :]
        return uuid.UUID(bytes_le=entry[16:32])

    def kernel(self):
        return gpt.current(self.read, self.size)


@pytest.fixture
def factory():
    partitions = [
        Partition(number, name, LINUX, uuid.UUID(int=100 + number), number * MIB * 10, (number + 1) * MIB * 10 - 1)
        for number, name in enumerate(NAMES, 1)
    ]
    return Table(FACTORY, tuple(partitions))


@pytest.fixture
def flashed(factory):
    """An image of 128 MiB, written to a disk of 2 GiB."""
    boot_code = b"code".ljust(446, b"x") + bytes([0, 0, 2, 0, 0xEE, 255, 255, 255]) + (1).to_bytes(4, "little")
    return Disk(LARGE, gpt.render(factory, SMALL) | {0: boot_code.ljust(510, b"\0") + b"\x55\xaa"})


def test_what_is_rendered_is_read_again(factory):
    disk = Disk(SMALL, gpt.render(factory, SMALL))
    assert gpt.parse(disk.read(1, 1), disk.read(2, 32)) == factory
    assert gpt.parse(disk.read(SMALL - 1, 1), disk.read(SMALL - 33, 32)) == factory


def test_the_first_boot_fills_the_disk_and_gives_it_guids_of_its_own(flashed, factory):
    table = flashed.after(flashed.plan()).kernel()
    assert table.named("data").last == LARGE - MIB - 1  # the rest of the last MiB is for the copy of the table
    guids = [table.guid, *(one.guid for one in table.partitions)]
    assert len(set(guids)) == len(guids)
    assert not set(guids) & {factory.guid, *(one.guid for one in factory.partitions)}
    assert [(one.name, one.first, one.kind) for one in table.partitions] == [
        (one.name, one.first, one.kind) for one in factory.partitions
    ]


def test_the_boot_code_stays_and_the_protective_entry_grows(flashed):
    sector = flashed.after(flashed.plan()).read(0, 1)
    assert sector[:446] == flashed.read(0, 1)[:446]
    assert int.from_bytes(sector[458:462], "little") == LARGE - 1


def test_a_second_boot_writes_nothing(flashed):
    assert flashed.after(flashed.plan()).plan() == []


def test_a_disk_that_grew_keeps_its_guids(flashed):
    first = flashed.after(flashed.plan())
    grown = Disk(LARGE * 2, first.written)
    table = grown.after(grown.plan()).kernel()
    assert table.guid == first.kernel().guid
    assert table.named("data").last == LARGE * 2 - MIB - 1


@pytest.mark.parametrize("slot", ["slot-a", "slot-b"])
def test_power_can_go_after_any_sector(flashed, slot):
    writes = flashed.plan(slot)
    assert len(writes) > 5
    for done in range(len(writes) + 1):
        cut = flashed.after(writes[:done])
        assert cut.kernel().named(slot).guid == cut.grub(slot), f"after {done} sectors"
        healed = cut.after(cut.plan(slot))
        assert healed.plan(slot) == []
        assert healed.kernel().guid != FACTORY
        assert healed.kernel().named("data").last == LARGE - MIB - 1


def test_a_sector_that_is_lost_in_the_cut_does_no_harm(flashed):
    """A disk that had to give up the sector it was writing."""
    writes = flashed.plan()
    for done, lost in enumerate(writes):
        if lost.sector in (0, 2):
            continue  # without boot code, or its own entry, no table helps
        cut = flashed.after([*writes[:done], gpt.Write(lost.sector, b"\xff" * 512)])
        assert cut.kernel().named("slot-a").guid == cut.grub("slot-a"), f"sector {lost.sector}"


def test_the_copy_at_the_end_is_made_again(flashed):
    whole = flashed.after(flashed.plan())
    damaged = whole.after([gpt.Write(LARGE - 1, b"\0" * 512)])
    assert [one.sector for one in damaged.plan()] == [LARGE - 1]


def test_no_table_is_an_error():
    with pytest.raises(TableError, match="no GPT"):
        Disk(SMALL, {}).plan()


def test_data_must_be_the_last_partition(factory):
    moved = Table(FACTORY, (*factory.partitions, Partition(7, "more", LINUX, uuid.UUID(int=5), 90 * MIB, 91 * MIB)))
    with pytest.raises(TableError, match="not the last"):
        gpt.grown(moved, LARGE)
