"""Put the running system onto another disk of the box: what the console's "Install on a disk" does.

The order is what makes a power cut harmless. First the target's old partition table and boot code go: from then on
it is a disk that no firmware starts from. Then everything is written, synced and read back, the table as well. Last
of all comes sector 0, in one piece. The disk that the box runs from is only read.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from applier.disk import bootstate, data_copy, disks
from applier.disk import layout as disk_layout
from applier.disk.disks import EDGE, SLOTS, Disk, Places, partitions, running_from
from applier.disk.gpt import SECTOR, Partition, Table, TableError
from applier.host.host import Host, HostError, run, unmount, wait_until

CHUNK = 4 << 20  # bytes between two looks at the console
ROOM = 64 << 20  # bytes: the least that a data partition has, without what is copied onto it
NEW_SLOT = "A"  # where the running system goes, whichever slot it runs in here
SHARED = "shared"  # beside the slots' own folders
MAKING, CHECKING, MOUNTING = 600.0, 600.0, 60.0  # seconds; a file system for a large and slow disk takes long
# As in the image that is flashed. nodiscard: a disk that takes minutes to forget everything gains nothing by it.
MKE2FS = ["mke2fs", "-q", "-F", "-t", "ext4", "-L", "FAIRLEAD-DATA", "-m", "0", "-b", "4096", "-I", "256"]
MKE2FS += ["-i", "16384", "-E", "nodiscard"]
OPTIONS = "nosuid,nodev,noexec,noatime"


class InstallFailed(Exception):
    """The target is not installed. The text is a sentence for an admin."""


@dataclass(frozen=True, slots=True)
class Progress:
    doing: str
    percent: int


@dataclass(frozen=True, slots=True)
class Source:
    """What the box runs from."""

    disk: Path
    removable: bool  # a stick
    slot: str  # A or B
    table: Table
    system: int  # bytes of the running system in its slot
    is_set_up: bool
    data: int  # bytes of the configuration

    @property
    def needed(self) -> int:
        """Bytes of the smallest disk that takes all of it."""
        return disk_layout.smallest(self.table, ROOM + self.data)


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes for the target: from the source's disk, or given. Offsets are from the start of the disks."""

    doing: str
    offset: int
    length: int
    origin: int = 0
    content: bytes | None = None

    def read(self, source: int, position: int) -> bytes:
        """The next chunk from a position in the piece. OSError where the source gives less."""
        length = min(CHUNK, self.length - position)
        if self.content is not None:
            return self.content[position : position + length]
        return _read(source, self.origin + position, length)


def look(host: Host, places: Places) -> Source:
    """What there is to install. Raises InstallFailed where the box was not started from a Fairlead disk."""
    name = running_from(places)
    if not name:
        raise InstallFailed("This box was not started from a Fairlead disk; there is nothing to install from.")
    disk = places.dev / name
    try:
        slot = (host.read(places.run / "slot") or "").strip()
        with _opened(disk, os.O_RDONLY) as handle:
            table = disk_layout.read(handle)
            system = _system_size(handle, table.named(SLOTS[slot]))
        removable, is_set_up = disks.is_removable(host, places, name), (places.data / "applier/set-up").exists()
        return Source(disk, removable, slot, table, system, is_set_up, data_copy.size(places.data))
    except (HostError, TableError) as error:
        raise InstallFailed(f"The disk {name} cannot be copied: {error}.") from None
    except OSError as error:
        raise InstallFailed(f"The running system cannot be read: {error.strerror}.") from None
    except KeyError:
        raise InstallFailed("It is not known which slot the box runs.") from None


def choices(host: Host, places: Places, source: Source) -> list[Disk]:
    """The other disks, also those that cannot be taken, with the reason."""
    return disks.others(host, places, source.needed)


def install(host: Host, places: Places, source: Source, name: str, with_configuration: bool) -> Iterator[Progress]:
    """Write, step by step, everything that was on that disk being lost. Raises InstallFailed.

    To be run to its end. Closed before it, or after a failure, it leaves a disk that nothing starts from.
    """
    target = places.dev / name
    try:
        with _claimed(target) as handle, _opened(source.disk, os.O_RDONLY) as origin:
            disk = disk_layout.sectors(handle)
            table = disk_layout.like(source.table, disk)
            yield Progress("Erasing the old partition table", 0)
            _erase(handle)
            yield from _make_data(host, places, table, target, handle, with_configuration)
            yield from _write_pieces(handle, origin, _pieces(source, table))
            yield Progress("Writing the partition table", 100)
            _write_table(handle, origin, table)
    except (HostError, TableError, data_copy.CopyFailed) as error:
        raise InstallFailed(str(error)) from None
    except OSError as error:
        raise InstallFailed(f"{error.filename or target}: {error.strerror or error}.") from None


# --- the target as a whole ---------------------------------------------------------------------------


@contextlib.contextmanager
def _claimed(target: Path) -> Iterator[int]:
    """The disk, opened for us alone: neither mounted nor being installed from the other terminal."""
    os.close(os.open(target, os.O_RDWR | os.O_EXCL))  # the kernel refuses it for a disk in use
    with _opened(target, os.O_RDWR) as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InstallFailed(f"{target.name} is being installed already.") from None
        yield handle


def _erase(handle: int) -> None:
    """Boot code, both copies of the table, and what else a firmware or a later start may take for a system."""
    for offset in (0, disk_layout.sectors(handle) * SECTOR - EDGE):
        _put(handle, offset, bytes(EDGE))
    disk_layout.read_again(handle)


def _write_table(handle: int, origin: int, table: Table) -> None:
    disk = disk_layout.sectors(handle)
    for offset, data in disk_layout.pieces(table, disk):
        _put(handle, offset, data)
    _forget_what_was_read(handle)
    if disk_layout.read(handle) != table:
        raise InstallFailed("The disk returns another partition table than was written to it.")
    first = disk_layout.first_sector(_read(origin, 0, SECTOR), disk)
    _put(handle, 0, first)
    _forget_what_was_read(handle)
    if _read(handle, 0, SECTOR) != first:
        raise InstallFailed("The disk returns another boot code than was written to it.")
    with contextlib.suppress(OSError):
        disk_layout.read_again(handle)  # for the list of disks; the next start looks for itself


# --- the partitions without a file system of their own -----------------------------------------------


def _pieces(source: Source, table: Table) -> list[Piece]:
    """All but the data partition, in the order in which they are written. The table has the source's partitions."""
    running = source.table.named(SLOTS[source.slot])
    return [
        _whole("Writing the boot code", table.named("bios")),
        _whole("Writing the EFI partition", table.named("efi")),
        Piece(
            "Writing the system",
            disk_layout.offset(table.named(SLOTS[NEW_SLOT])),
            source.system,
            origin=disk_layout.offset(running),
        ),
        # A system of an earlier installation may lie here, and must not be taken for one.
        Piece("Emptying slot B", disk_layout.offset(table.named("slot-b")), EDGE, content=bytes(EDGE)),
        _boot_state(table.named("boot-state")),
    ]


def _whole(doing: str, partition: Partition) -> Piece:
    """At the same place on both disks."""
    place = disk_layout.offset(partition)
    return Piece(doing, place, disk_layout.size(partition), origin=place)


def _boot_state(partition: Partition) -> Piece:
    """Nothing has been tried yet, and slot B is empty."""
    place, size = disk_layout.offset(partition), disk_layout.size(partition)
    state = bootstate.with_bad(bootstate.BootState(), "B")
    return Piece("Writing the boot state", place, size, content=bootstate.archive(state).ljust(size, b"\0"))


def _write_pieces(handle: int, origin: int, pieces: list[Piece]) -> Iterator[Progress]:
    """Write them all, then read them all back. A chunk is on the disk before the next one is taken."""
    total, done = 2 * sum(piece.length for piece in pieces), 0
    written = []
    for piece in pieces:
        digest = hashlib.sha256()
        for position in range(0, piece.length, CHUNK):
            yield Progress(piece.doing, 100 * done // total)
            chunk = piece.read(origin, position)
            digest.update(chunk)
            _put(handle, piece.offset + position, chunk)
            done += len(chunk)
        written.append(digest.digest())
    _forget_what_was_read(handle)
    for piece, expected in zip(pieces, written, strict=True):
        digest = hashlib.sha256()
        for position in range(0, piece.length, CHUNK):
            yield Progress("Reading it back", 100 * done // total)
            chunk = _read(handle, piece.offset + position, min(CHUNK, piece.length - position))
            digest.update(chunk)
            done += len(chunk)
        if digest.digest() != expected:
            raise InstallFailed(f"The disk returns other data than was written to it ({piece.doing.lower()}).")


# --- the data partition ------------------------------------------------------------------------------


def _make_data(
    host: Host, places: Places, table: Table, target: Path, handle: int, with_configuration: bool
) -> Iterator[Progress]:
    yield Progress("Making the data partition", 0)
    part = _data_device(host, places, table.named("data"), target, handle)
    run(host, [*MKE2FS, str(part)], timeout=MAKING)
    of_the_box = data_copy.of_the_box(places.shared, with_configuration)
    if with_configuration or of_the_box:
        yield Progress("Copying the configuration", 0)
        with _mounted(host, places, part, OPTIONS) as folder:
            if with_configuration:
                data_copy.copy(host, places.data, folder / NEW_SLOT)
            # After the database: what is changed meanwhile is in the newer one of both, which counts.
            data_copy.copy_some(host, places.shared, folder / SHARED, of_the_box)
            expected = data_copy.digests(folder)
        yield Progress("Reading the configuration back", 0)
        with _mounted(host, places, part, f"ro,{OPTIONS}") as folder:
            if data_copy.digests(folder) != expected:
                raise InstallFailed("The disk returns another configuration than was written to it.")
    run(host, ["e2fsck", "-f", "-n", str(part)], timeout=CHECKING)


def _data_device(host: Host, places: Places, data: Partition, target: Path, handle: int) -> Path:
    disk_layout.show(handle, data)

    def missing() -> str | None:
        part = partitions(places, target.name).get(data.number)
        return None if part and (places.dev / part).exists() else "the kernel does not show it"

    wait_until(host, "the new data partition", 10, missing)
    return places.dev / partitions(places, target.name)[data.number]


@contextlib.contextmanager
def _mounted(host: Host, places: Places, part: Path, options: str) -> Iterator[Path]:
    folder = places.run / "install"
    folder.mkdir(parents=True, exist_ok=True)
    run(host, ["mount", "-t", "ext4", "-o", options, str(part), str(folder)], timeout=MOUNTING)
    try:
        yield folder
    finally:
        unmount(host, folder, MAKING)


# --- bytes -------------------------------------------------------------------------------------------


def _system_size(handle: int, slot: Partition) -> int:
    """Bytes of the squashfs at the start of a slot, to the end of its last block. OSError, InstallFailed."""
    head = _read(handle, disk_layout.offset(slot), 96)
    used = int.from_bytes(head[40:48], "little")  # squashfs_fs.h in the kernel: bytes_used
    size = -(-used // 4096) * 4096
    if head[:4] != disks.SQUASHFS or not 0 < size <= disk_layout.size(slot):
        raise InstallFailed(f"There is no system in {slot.name}, although the box should run from it.")
    return size


def _read(handle: int, offset: int, length: int) -> bytes:
    data = os.pread(handle, length, offset)
    if len(data) != length:
        raise OSError(0, "the disk ends too early")
    return data


def _put(handle: int, offset: int, data: bytes) -> None:
    """Onto the disk, before this returns."""
    view = memoryview(data)
    while view:
        count = os.pwrite(handle, view, offset)
        view, offset = view[count:], offset + count
    os.fdatasync(handle)


def _forget_what_was_read(handle: int) -> None:
    """The next read comes from the disk itself."""
    os.fsync(handle)
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)


@contextlib.contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    handle = os.open(path, flags)
    try:
        yield handle
    finally:
        os.close(handle)
