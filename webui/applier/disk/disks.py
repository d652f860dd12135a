"""The disks of the box as a person chooses among them: what they are, what is on them, which may be installed on.

Facts come from sysfs, blkid and the first and last bytes of a disk. A disk comes from anywhere: every word read
from it or about it goes through printable() before a terminal sees it.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from applier.host.host import Host, HostError, unmount

SECTOR = 512  # bytes; sysfs counts in these whatever the disk's own sectors are
PARTITIONS = ("bios", "efi", "boot-state", "slot-a", "slot-b", "data")
SLOTS = {"A": "slot-a", "B": "slot-b"}
VERSION_FILE = "usr/lib/fairlead/VERSION"
SQUASHFS = b"hsqs"
WORDS = 48  # characters of a name that somebody else gave
SHOWN = 4  # partitions whose names are shown
EDGE = 1 << 20  # bytes at both ends of a disk: where tables and signatures lie
NO_HARDWARE = ("loop", "ram", "zram", "dm-", "md", "sr", "fd", "nbd")


@dataclass(frozen=True, slots=True)
class Places:
    """Where the kernel shows its disks. Tests move them."""

    sys: Path = Path("/sys")
    dev: Path = Path("/dev")
    run: Path = Path("/run/fairlead")
    mounts: Path = Path("/proc/self/mountinfo")
    data: Path = Path("/data")  # of the running slot
    shared: Path = Path("/disk/shared")  # of the box, whichever slot runs

    @property
    def own(self) -> Path:
        """A folder with one link for each partition of the disk that the box runs from, and for that disk."""
        return self.run / "disk"


@dataclass(frozen=True, slots=True)
class Disk:
    name: str  # as the kernel calls it: "sda"
    model: str
    size: int  # bytes
    removable: bool  # a stick, or anything else behind USB
    content: str  # a few words
    reason: str  # why it cannot be installed on; empty: it can

    @property
    def title(self) -> str:
        return f"{self.name}  {amount(self.size)}  {self.model}"


def running_from(places: Places) -> str:
    """The name of the disk that the box runs from; empty where it was started in another way."""
    try:
        return Path(os.readlink(places.own / "disk")).name
    except OSError:
        return ""


def is_removable(host: Host, places: Places, name: str) -> bool:
    """Whether it can be pulled out: the kernel says so, or it is behind USB."""
    block = places.sys / "block" / name
    return _word(host, block / "removable") == "1" or re.search(r"/usb\d", os.path.realpath(block)) is not None


def others(host: Host, places: Places, needed: int) -> list[Disk]:
    """Every disk but the one that the box runs from. `needed`: bytes that a disk must have."""
    own, mounted = running_from(places), _mounted(host, places)
    return [_disk(host, places, name, mounted, needed) for name in _names(host, places) if name != own]


def partitions(places: Places, name: str) -> dict[int, str]:
    """Number -> kernel name of the partitions that the kernel sees on a disk."""
    found = {}
    for entry in sorted((places.sys / "block" / name).glob(f"{name}*/partition")):
        with contextlib.suppress(OSError, ValueError):
            found[int(entry.read_text())] = entry.parent.name
    return dict(sorted(found.items()))


def amount(size: int) -> str:
    """A size as it is printed on disks: powers of ten."""
    for unit, bytes_of_it in (("TB", 10**12), ("GB", 10**9)):
        if size >= bytes_of_it:
            return f"{size / bytes_of_it:.1f} {unit}"
    return f"{size / 10**6:.0f} MB"


def printable(text: str, length: int = WORDS) -> str:
    """One line of plain ASCII: nothing in it moves a cursor, sets a colour or hides what stands beside it."""
    plain = "".join(one if " " <= one <= "~" else "?" for one in " ".join(text.split()))
    return plain if len(plain) <= length else f"{plain[: length - 3]}..."


# --- one disk --------------------------------------------------------------------------------------


def _names(host: Host, places: Places) -> list[str]:
    """Real disks with something in them."""
    names = (path.name for path in (places.sys / "block").iterdir() if not path.name.startswith(NO_HARDWARE))
    return sorted(name for name in names if _is_disk(host, places.sys / "block" / name))


def _is_disk(host: Host, block: Path) -> bool:
    # An empty card reader has no size; a path of an NVMe disk with several is hidden behind the disk itself;
    # the boot areas of an eMMC have no "device" of their own kind and begin with the name of the disk.
    hidden = _word(host, block / "hidden") == "1" or re.fullmatch(r"mmcblk\d+(boot\d+|rpmb)", block.name)
    return (block / "device").exists() and not hidden and _word(host, block / "size") not in ("", "0")


def _disk(host: Host, places: Places, name: str, mounted: set[str], needed: int) -> Disk:
    block = places.sys / "block" / name
    size = int(_word(host, block / "size") or "0") * SECTOR  # nothing: it was pulled out at the moment
    removable = is_removable(host, places, name)
    try:
        content, reason = _content(host, places, name), _reason(host, places, name, size, mounted, needed)
    except OSError as error:
        content, reason = "unknown", f"it cannot be read: {error.strerror}"
    return Disk(name, _model(host, block, removable), size, removable, content, reason)


def _model(host: Host, block: Path, removable: bool) -> str:
    words = printable(f"{_word(host, block / 'device/vendor')} {_word(host, block / 'device/model')}".strip())
    if words.startswith("0x") or not words:  # virtio has a number there
        words = "virtual disk" if block.name.startswith("vd") else "disk"
    return f"{words} (USB or removable)" if removable else words


def _reason(host: Host, places: Places, name: str, size: int, mounted: set[str], needed: int) -> str:
    block = places.sys / "block" / name
    parts = [block, *(block / part for part in partitions(places, name).values())]
    if _word(host, block / "ro") == "1":
        return "it cannot be written to"
    if (sector := _word(host, block / "queue/logical_block_size")) != str(SECTOR):
        return f"its sectors have {sector} bytes, and a box starts only from a disk with sectors of {SECTOR}"
    if size < needed:
        return f"too small: {amount(needed)} are needed"
    if any(_word(host, part / "dev") in mounted or any(part.glob("holders/*")) for part in parts):
        return "the box uses it"
    return ""


def _mounted(host: Host, places: Places) -> set[str]:
    """Numbers ("8:1") of the devices with a mounted file system; proc_pid_mountinfo(5)."""
    return {line.split()[2] for line in (host.read(places.mounts) or "").splitlines()}


def _word(host: Host, path: Path) -> str:
    """A file of sysfs; empty where there is none."""
    try:
        return (host.read(path) or "").strip()
    except HostError:
        return ""


# --- what is on it ---------------------------------------------------------------------------------


def _content(host: Host, places: Places, name: str) -> str:
    """Raises OSError where the disk cannot be read."""
    parts = partitions(places, name)
    block = places.sys / "block" / name
    if not parts:
        return _without_partitions(host, places, name)
    names = {part: _partition_name(host, block / part) for part in parts.values()}
    if set(PARTITIONS) <= set(names.values()):
        return _fairlead(host, places, {name: part for part, name in names.items()})
    seen = _signatures(host, [places.dev / part for part in names])
    labels = [names[part] or seen.get(str(places.dev / part), "") or "no name" for part in names]
    more = f" and {len(labels) - SHOWN} more" if len(labels) > SHOWN else ""
    return ", ".join(printable(label, 24) for label in labels[:SHOWN]) + more


def _without_partitions(host: Host, places: Places, name: str) -> str:
    device = places.dev / name
    if found := _signatures(host, [device]).get(str(device)):
        return printable(found)
    with _opened(device) as handle:
        size = os.lseek(handle, 0, os.SEEK_END)
        ends = os.pread(handle, EDGE, 0) + os.pread(handle, EDGE, max(0, size - EDGE))
    return "something unknown" if ends.strip(b"\0") else "empty"


def _partition_name(host: Host, part: Path) -> str:
    for line in _word(host, part / "uevent").splitlines():
        if line.startswith("PARTNAME="):
            return line.partition("=")[2]
    return ""


def _signatures(host: Host, devices: list[Path]) -> dict[str, str]:
    """Device -> label and kind of the file system on it, as blkid finds them."""
    try:
        text = host.command(["blkid", *map(str, devices)]).stdout
    except HostError:
        return {}
    found = {}
    for line in text.splitlines():
        device, _, rest = line.partition(": ")
        fields = dict(re.findall(r'\b([A-Z_]+)="([^"]*)"', rest))
        found[device] = " ".join(filter(None, (fields.get("LABEL"), fields.get("TYPE"))))
    return found


def _fairlead(host: Host, places: Places, parts: Mapping[str, str]) -> str:
    versions = {slot: _version(host, places, parts[name]) for slot, name in SLOTS.items()}
    known = [f"{version} in slot {slot}" for slot, version in versions.items() if version]
    return f"a Fairlead of version {' and '.join(known)}" if known else "a Fairlead without a version"


def _version(host: Host, places: Places, part: str) -> str:
    """Of the system in a slot of another disk; empty where it holds none."""
    device, folder = places.dev / part, places.run / "look"
    with _opened(device) as handle:
        if os.pread(handle, len(SQUASHFS), 0) != SQUASHFS:
            return ""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        mounted = host.command(["mount", "-t", "squashfs", "-o", "ro,nosuid,nodev,noexec", str(device), str(folder)])
        if mounted.exit:
            return ""
        try:
            return printable(_inside(folder, VERSION_FILE), 16)
        finally:
            with contextlib.suppress(HostError):  # what was read is true anyway
                unmount(host, folder)
    except HostError:
        return ""


def _inside(folder: Path, name: str) -> str:
    """The beginning of a plain file of a file system that nobody vouches for; empty where it is anything else."""
    try:
        path = (folder / name).resolve()
        if not path.is_relative_to(folder.resolve()):
            return ""  # a link that leads out of it
        with _opened(path) as handle:
            return os.read(handle, 100).decode(errors="replace") if stat.S_ISREG(os.fstat(handle).st_mode) else ""
    except OSError:
        return ""


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        yield handle
    finally:
        os.close(handle)
