"""Update bundles for stories, good ones and bad ones, made from the version that lies on a disk image.

Making one means to pack a whole root file system; they are kept under a hash of what they are made from.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from board.lab import build as lab
from board.lab import disk as lab_disk
from board.pc import bundle, keys, layout

TREE = "tree"
VERSION = "usr/lib/fairlead/VERSION"
SLOT_CFG = "boot/slot.cfg"
APPLIER = "usr/lib/fairlead/webui/applier"
# Quick to pack: what GRUB reads (gzip), as little of it as possible.
PACKING = "-comp gzip -Xcompression-level 1 -noappend -no-progress -quiet -all-root -root-mode 755 -no-xattrs"
PATIENCE = 60  # seconds that a broken version gets for each of its tries, to find out what is wrong with it
AT_ONCE = 10  # where nothing has to be found out first

Change = Callable[[Path], None]


def given_keys() -> Path:
    """FAIRLEAD_KEYS: the folder of the keys whose certificate that image has."""
    return Path(os.environ.get("FAIRLEAD_KEYS") or lab_disk.KEYS)


class Bundles:
    """Each is made when somebody first asks for it."""

    def __init__(self, image: Path) -> None:
        self.image = image
        mark = f"{self._slot_digest()} {given_keys()}"  # each run has a copy of its own of the image
        with lab.locked():
            self.folder = lab.cached(
                "bundles", [Path(__file__), lab.TOP / "board/pc/bundle.py", mark], self.unpack, lambda _: None
            )

    def good(self, version: str = "9.1.0") -> Path:
        return self.made(f"good-{version}", version, lambda root: None)

    def without_init(self) -> Path:
        """Its kernel panics."""
        return self.made("no-init", "9.2.0", remove_init)

    def without_applier(self) -> Path:
        return self.made("no-applier", "9.3.0", break_applier)

    def without_forwarding(self) -> Path:
        return self.made("no-forwarding", "9.4.0", break_forwarding)

    def wrong_product(self) -> Path:
        return self.made("wrong-product", "9.5.0", lambda root: None, compatible="toaster")

    def wrong_signature(self) -> Path:
        stranger = self.folder / "stranger"
        if not stranger.exists():
            keys.make(stranger)
        return self.made("wrong-signature", "9.6.0", lambda root: None, keys_folder=stranger)

    def truncated(self) -> Path:
        return self.damaged("truncated", lambda data: data[: len(data) // 2])

    def damaged_inside(self) -> Path:
        """Signed, whole, and one byte in the middle is another: only who reads it all can know."""

        def change(data: bytes) -> bytes:
            middle = len(data) // 2
            return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]

        return self.damaged("damaged", change)

    # --- how ---

    def made(self, name: str, version: str, change: Change, keys_folder: Path | None = None, **more: str) -> Path:
        path = self.folder / f"{name}.raucb"
        if not path.exists():
            root, packed = self.folder / f"{name}.tree", self.folder / f"{name}.squashfs"
            shutil.rmtree(root, ignore_errors=True)
            # Hard links: what is changed is replaced, never written to.
            shutil.copytree(self.folder / TREE, root, symlinks=True, copy_function=os.link)
            replace(root / VERSION, f"{version}\n")
            change(root)
            packed.unlink(missing_ok=True)
            modes = [word for file, mode in lab.MODES.items() for word in ("-p", f"{file} m {mode} 0 0")]
            lab.run("mksquashfs", root, packed, PACKING.split(), modes, log=self.folder / f"{name}.log")
            bundle.make(packed, keys_folder or given_keys(), path, version, **more)
            shutil.rmtree(root)
            packed.unlink()
        return path

    def damaged(self, name: str, change: Callable[[bytes], bytes]) -> Path:
        path = self.folder / f"{name}.raucb"
        if not path.exists():
            path.write_bytes(change(self.good().read_bytes()))
        return path

    def _slot(self) -> Iterator[bytes]:
        """The squashfs in the image's slot A, in pieces."""
        with self.image.open("rb") as disk:
            disk.seek(layout.offset("slot-a"))
            head = disk.read(96)
            left = int.from_bytes(head[40:48], "little")  # bytes_used of a squashfs' superblock
            disk.seek(layout.offset("slot-a"))
            while left > 0 and (part := disk.read(min(left, 1 << 20))):
                yield part
                left -= len(part)

    def _slot_digest(self) -> str:
        digest = hashlib.sha256()
        for part in self._slot():
            digest.update(part)
        return digest.hexdigest()

    def unpack(self, to: Path) -> None:
        packed = to / "root.squashfs"
        with packed.open("wb") as out:
            out.writelines(self._slot())
        lab.run("unsquashfs", "-quiet", "-no-progress", "-no-xattrs", "-dest", to / TREE, packed, log=to / "unpack.log")
        packed.unlink()


def replace(path: Path, text: str, mode: int = 0o644) -> None:
    path.unlink(missing_ok=True)
    path.write_text(text)
    path.chmod(mode)


def quickly(root: Path, seconds: int, more: str = "") -> None:
    """Let a version that does not come up be given up sooner than in three minutes."""
    text = (root / SLOT_CFG).read_text()
    assert " quiet" in text
    replace(root / SLOT_CFG, text.replace(" quiet", f" quiet fairlead.patience={seconds}{more}", 1))


def remove_init(root: Path) -> None:
    for name in ("init", "sbin/init", "bin/init", "etc/init", "usr/sbin/init", "usr/bin/init", "linuxrc"):
        (root / name).unlink(missing_ok=True)
    quickly(root, AT_ONCE, " init=/not-there")


def break_applier(root: Path) -> None:
    for compiled in (root / APPLIER).rglob("daemon.*pyc"):
        compiled.unlink()
    replace(root / APPLIER / "daemon.py", 'raise SystemExit("this version is broken")\n')
    quickly(root, AT_ONCE)


def break_forwarding(root: Path) -> None:
    replace(root / "usr/sbin/ipvsadm", "#!/bin/sh\necho this version is broken >&2\nexit 1\n", 0o755)
    quickly(root, PATIENCE)
