"""Bundles on USB sticks: looked for when somebody asks, mounted read-only meanwhile, and never by a name from outside.

A stick comes from anywhere. Its file system is mounted so that nothing on it can be run or be a device, only plain
files in its top folder are looked at, and a caller names a bundle by a number that this module gave it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from applier.disk import disks
from applier.disk.disks import Places
from applier.host.host import Host, HostError, unmount
from applier.update import bundle as update_bundle
from applier.wire.errors import ApplierRefused
from applier.wire.shapes import BundleSource

OPTIONS = "ro,nosuid,nodev,noexec"
# noload: an ext4 that was not unmounted would have its journal written, although we ask for read-only.
FILE_SYSTEMS = {"vfat": OPTIONS, "exfat": OPTIONS, "ext4": f"{OPTIONS},noload", "iso9660": OPTIONS}
ENDING = ".raucb"
MOST = 20  # bundles that are listed of one stick


@dataclass(frozen=True, slots=True)
class BundleFile:
    source: str  # what a caller names it by
    name: str
    path: Path
    size: int


class Sticks:
    def __init__(self, host: Host, places: Places) -> None:
        self._host = host
        self._places = places

    def bundles(self) -> list[BundleSource]:
        """Everything that looks like a bundle, with what it holds or why it cannot be installed."""
        with closing(self._each()) as mounted:
            return [self._described(name, one) for name, folder in mounted for one in _files(name, folder)]

    @contextlib.contextmanager
    def opened(self, source: str) -> Iterator[Path]:
        """The bundle of that name, while its stick is mounted. ApplierRefused where it is not there any more."""
        with closing(self._each()) as mounted:
            for name, folder in mounted:
                for one in _files(name, folder):
                    if one.source == source:
                        yield one.path
                        return
        raise ApplierRefused("unknown-bundle", "This bundle is no longer there; is the USB stick still plugged in?")

    def clear(self) -> None:
        """Unmount what a killed applier left mounted."""
        for folder in self._media.glob("*"):
            self._unmount(folder)

    @property
    def _media(self) -> Path:
        return self._places.run / "media"

    def _each(self) -> Generator[tuple[str, Path], None, None]:
        """Each file system of removable disks, mounted while it is its turn; never one of the box's own disk."""
        own, block = disks.running_from(self._places), self._places.sys / "block"
        for disk in sorted(path.name for path in block.iterdir() if not path.name.startswith(disks.NO_HARDWARE)):
            if disk == own or not disks.is_removable(self._host, self._places, disk):
                continue
            any_mounted = False
            # A stick without a table may look as if it had one: its first sector is a file system's own.
            for name in (*disks.partitions(self._places, disk).values(), disk):
                if name == disk and any_mounted:
                    break
                with self._mounted(name) as folder:
                    if folder is not None:
                        any_mounted = True
                        yield name, folder

    @contextlib.contextmanager
    def _mounted(self, name: str) -> Iterator[Path | None]:
        """Where it is mounted; None where nothing on it can be."""
        device, folder = self._places.dev / name, self._media / name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        mounted = any(self._mount(kind, options, device, folder) for kind, options in FILE_SYSTEMS.items())
        try:
            yield folder if mounted else None
        finally:
            self._unmount(folder, mounted)

    def _mount(self, kind: str, options: str, device: Path, folder: Path) -> bool:
        try:
            return self._host.command(["mount", "-t", kind, "-o", options, str(device), str(folder)]).exit == 0
        except HostError:
            return False

    def _unmount(self, folder: Path, mounted: bool = True) -> None:
        with contextlib.suppress(HostError, OSError):
            if mounted:
                unmount(self._host, folder)
            folder.rmdir()

    def _described(self, stick: str, found: BundleFile) -> BundleSource:
        entry: BundleSource = {
            "source": found.source,
            "name": disks.printable(found.name, 80),
            "stick": stick,
            "size": found.size,
            "version": "",
            "build": "",
            "problem": "",
        }
        try:
            bundle = update_bundle.describe(self._host, found.path)
        except ApplierRefused as refusal:
            return entry | {"problem": refusal.message}
        return entry | {"version": bundle.version, "build": bundle.build}


def _files(stick: str, folder: Path) -> list[BundleFile]:
    found = []
    with contextlib.suppress(OSError):
        for name in sorted(os.listdir(folder)):
            about = os.lstat(folder / name)
            if name.lower().endswith(ENDING) and not name.startswith(".") and stat.S_ISREG(about.st_mode):
                label = f"{stick}\0{name}\0{about.st_size}\0{about.st_mtime_ns}"
                number = hashlib.sha256(label.encode(errors="surrogateescape")).hexdigest()[:16]
                found.append(BundleFile(f"usb:{number}", name, folder / name, about.st_size))
    return found[:MOST]
