#!/usr/bin/env python3
"""Build the developer's disk image: what board.lab.build makes, as a disk that boots like the released one.

    python3 -m board.lab.disk           prints where it is; cached under build/lab like the layers

The layers become one squashfs with the kernel in it, a whole slot; board.pc.disk does the rest. So GRUB, the slots,
the data partition and updates can be tried and tested without Buildroot.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from board.lab import build as lab
from board.pc import disk, keys

KEYS = lab.BUILD / "keys"  # for bundles that nobody but this machine's images takes
PC = lab.TOP / "board/pc"
QUICK = ["-Xcompression-level", "1"]  # a fifth of the time for a tenth more bytes
# As in the released image: what GRUB can read.
SQUASHFS = ["gzip" if word == "lz4" else word for word in lab.SQUASHFS if word != "-Xhc"] + QUICK


@dataclass(frozen=True)
class DiskImage:
    disk: Path  # raw
    slot: Path  # the squashfs in its slot A


def build(say: Callable[[str], None] = print) -> DiskImage:
    """Build what is not in the cache yet. Raises lab.BuildError, disk.DiskImageError, keys.KeysError."""
    image = lab.build(say)
    with lab.locked():
        if not (KEYS / keys.CERTIFICATE).exists():
            keys.make(KEYS)
        inputs = [
            Path(__file__), PC / "disk.py", PC / "layout.py", PC / "grub", lab.TOP / "webui/applier/disk/bootstate.py",
            KEYS / keys.CERTIFICATE, image.initramfs.parent.name, *(layer.parent.name for layer in layers(image)),
        ]  # fmt: skip
        folder = lab.cached("disk", inputs, lambda to: make(image, to), say)
    return DiskImage(folder / disk.IMAGE, folder / "root.squashfs")


def layers(image: lab.Image) -> list[Path]:
    """The layers that make the appliance, the lowest first."""
    return [image.layers[name] for name in ("base", "python", "app")]


def make(image: lab.Image, to: Path) -> None:
    slot = make_slot(image, to / "root.squashfs")
    disk.make(slot, to / disk.IMAGE)


def make_slot(image: lab.Image, to: Path, change: Callable[[Path], None] | None = None, packing: str = "") -> Path:
    """Write the squashfs of a slot. `change` may change the tree before it is packed.

    `packing`: more words for mksquashfs, such as "-noD" to be quick.
    """
    root, log = to.with_suffix(".tree"), to.with_suffix(".log")
    shutil.rmtree(root, ignore_errors=True)
    for layer in layers(image):
        lab.run("unsquashfs", "-quiet", "-no-progress", "-no-xattrs", "-force", "-dest", root, layer, log=log)
    for source, place in (
        (image.kernel, "boot/vmlinuz"), (image.initramfs, "boot/initramfs"), (PC / "grub/slot.cfg", "boot/slot.cfg"),
        (KEYS / keys.CERTIFICATE, "etc/rauc/keyring.pem"),
    ):  # fmt: skip
        (root / place).parent.mkdir(exist_ok=True)
        shutil.copyfile(source, root / place)
    if change:
        change(root)
    to.unlink(missing_ok=True)
    modes = [word for name, mode in lab.MODES.items() for word in ("-p", f"{name} m {mode} 0 0")]
    lab.run("mksquashfs", root, to, SQUASHFS, "-root-mode", "755", modes, packing.split(), log=log)
    shutil.rmtree(root)
    return to


def main() -> int:
    try:
        made = build()
    except (lab.BuildError, disk.DiskImageError, keys.KeysError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for path in (made.slot, made.disk):
        print(f"{path.name:13} {path.stat().st_blocks * 512 / 2**20:6.1f} MiB  {path.relative_to(lab.TOP)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
