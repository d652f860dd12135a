"""Make the disk image that is flashed: GRUB for BIOS and UEFI, the system in slot A, an empty data partition.

    python3 -m board.pc.disk ROOT.squashfs --out FOLDER [--grub FOLDER FOLDER] [--formats qcow2 vmdk]

ROOT.squashfs is a whole slot: the root file system with /boot/vmlinuz and /boot/slot.cfg (grub/slot.cfg). The tools
come from PATH, so Buildroot's own and Debian's (packages genimage, grub-common, grub-pc-bin, grub-efi-amd64-bin,
dosfstools, mtools, e2fsprogs, qemu-utils) work alike. Equal inputs give an equal fairlead.img, byte for byte.
"""

from __future__ import annotations

import argparse
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from board.pc import layout

HERE = Path(__file__).parent
WEBUI = HERE.parents[1] / "webui"
FILE_TIME = "1767225600"  # 2026-01-01, where SOURCE_DATE_EPOCH names no other time
GRUB = (Path("/usr/lib/grub/i386-pc"), Path("/usr/lib/grub/x86_64-efi"))  # where Debian keeps modules and boot.img
MODULES = [
    *("part_gpt", "fat", "tar", "squash4"),
    *("normal", "configfile", "test", "eval", "regexp", "loadenv", "probe", "echo", "sleep", "ls"),
    *("serial", "terminal", "linux", "boot", "reboot"),
]
IMAGE = "fairlead.img"
SECTOR = 512
BOOT_CODE = 440  # bytes of the first sector that are code
# The data file system is small in the image and may grow a thousand times. mke2fs would choose 1 KiB blocks for so
# small a one, and too few inodes; it reserves room for a table of blocks up to this many (1 TiB).
DATA = f"-b 4096 -I 256 -i 16384 -m 0 -E resize=268435456,hash_seed={layout.DATA_HASH_SEED}".split()
FORMATS = {"qcow2": ["-c", "-O", "qcow2"], "vmdk": ["-O", "vmdk", "-o", "subformat=streamOptimized"]}


class DiskImageError(Exception):
    """A tool failed or is missing, or an input does not fit; the text says which."""


def make(root: Path, out: Path, grub: tuple[Path, Path] = GRUB) -> Path:
    """Write the raw image, in one piece. Raises DiskImageError."""
    if not root.is_file():
        raise DiskImageError(f"{root} is missing")
    if root.stat().st_size > layout.size("slot-a"):
        raise DiskImageError(f"{root} is larger than a slot ({layout.size('slot-a') >> 20} MiB)")
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".disk-") as folder:
        parts = Path(folder)
        (parts / "root.squashfs").symlink_to(root.resolve())
        make_grub(parts, *grub)
        make_efi(parts)
        make_boot_state(parts / "boot-state.img")
        make_data(parts / "data.img")
        (parts / "genimage.cfg").write_text(layout.genimage(out, "boot.img"))
        (parts / "empty").mkdir()
        run("genimage", "--config", parts / "genimage.cfg", "--rootpath", parts / "empty",
            "--tmppath", parts / "tmp", "--inputpath", parts, "--outputpath", parts / "out")  # fmt: skip
        (parts / "out" / out.name).replace(out)
    return out


def make_grub(parts: Path, bios: Path, efi: Path) -> None:
    """BOOTX64.EFI, core.img and boot.img. The last two learn here where the partition "bios" is."""
    common = ["-p", layout.GRUB_PREFIX]
    run("grub-mkimage", "-O", "x86_64-efi", "-d", efi, "-o", parts / "BOOTX64.EFI", *common, *MODULES, "efi_gop")
    run("grub-mkimage", "-O", "i386-pc", "-d", bios, "-o", parts / "core.img", *common, *MODULES, "biosdisk")
    start = layout.offset("bios") // SECTOR
    boot = bytearray((bios / "boot.img").read_bytes()[:BOOT_CODE])
    struct.pack_into("<Q", boot, 0x5C, start)  # GRUB_BOOT_MACHINE_KERNEL_SECTOR
    boot[0x66:0x68] = b"\x90\x90"  # GRUB_BOOT_MACHINE_DRIVE_CHECK: the firmware tells the right drive
    core = bytearray((parts / "core.img").read_bytes())
    struct.pack_into("<Q", core, SECTOR - 12, start + 1)  # the first block list: the rest follows its first sector
    (parts / "boot.img").write_bytes(boot)
    (parts / "core.img").write_bytes(core)


def make_efi(parts: Path) -> None:
    """A FAT file system that does not tell when or where it was made."""
    image = parts / "efi.img"
    with image.open("wb") as file:
        file.truncate(layout.size("efi"))
    run("mkdosfs", "-F", "32", "-i", layout.EFI_VOLUME, "-n", "EFI", "--invariant", image)
    tree = parts / "efi"
    for source, place in ((parts / "BOOTX64.EFI", "EFI/BOOT/BOOTX64.EFI"), (HERE / "grub/grub.cfg", "grub/grub.cfg")):
        (tree / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, tree / place)
    for folder in ("EFI", "EFI/BOOT", "grub"):
        run("mmd", "-i", image, f"::{folder}")
    for path in sorted(path for path in tree.rglob("*") if path.is_file()):
        os.utime(path, (epoch(), epoch()))
        run("mcopy", "-m", "-i", image, path, f"::{path.relative_to(tree)}")


def make_boot_state(path: Path) -> None:
    """The program that writes it on the box writes the first one too."""
    run(sys.executable, "-m", "applier.disk.bootstate", "new", path, PYTHONPATH=str(WEBUI))


def make_data(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(layout.size("data"))
    run("mke2fs", "-q", "-t", "ext4", "-L", layout.DATA_LABEL, "-U", layout.DATA_UUID, *DATA, path)


def convert(image: Path, kind: str) -> Path:
    """The same disk for virtual machines: "qcow2", or "vmdk" as an OVA wants it."""
    out = image.with_suffix(f".{kind}")
    run("qemu-img", "convert", "-f", "raw", *FORMATS[kind], image, out)
    return out


def epoch() -> int:
    return int(os.environ.get("SOURCE_DATE_EPOCH") or FILE_TIME)


def run(*command: Path | str, **environment: str) -> None:
    """Run a tool to its end; what it said only when it failed."""
    # Debian keeps some of them where an ordinary user does not look. The time is for mtools and mke2fs.
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    fixed = {"PATH": path, "TZ": "UTC", "SOURCE_DATE_EPOCH": str(epoch()), "E2FSPROGS_FAKE_TIME": str(epoch())}
    program = shutil.which(str(command[0]), path=path)
    if program is None:
        raise DiskImageError(f"{command[0]} is not installed")
    done = subprocess.run(
        [program, *map(str, command[1:])], env=os.environ | fixed | environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    if done.returncode:
        said = "\n".join((done.stdout + done.stderr).splitlines()[-10:])
        raise DiskImageError(f"{command[0]} ended with {done.returncode}:\n{said}")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m board.pc.disk", description="Make the disk image.")
    parser.add_argument("root", type=Path, help="the squashfs of a slot")
    parser.add_argument("--out", type=Path, required=True, help=f"the folder for {IMAGE} and what is made of it")
    parser.add_argument("--grub", type=Path, nargs=2, default=GRUB, metavar="FOLDER", help="its modules: BIOS, EFI")
    parser.add_argument("--formats", nargs="*", default=list(FORMATS), choices=FORMATS, help="for virtual machines")
    asked = parser.parse_args(arguments)
    try:
        image = make(asked.root, asked.out / IMAGE, tuple(asked.grub))
        made = [image, *(convert(image, kind) for kind in asked.formats)]
    except DiskImageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for path in made:
        stat = path.stat()
        print(f"{path}  {stat.st_size / 2**20:.1f} MiB, {stat.st_blocks * 512 / 2**20:.1f} MiB on this disk")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
