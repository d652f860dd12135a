"""The small initramfs of the developer image: BusyBox, the modules that reach the layers, and an init script."""

from __future__ import annotations

import gzip
import stat
from pathlib import Path

HERE = Path(__file__).parent
MODULES = ("virtio_blk", "ahci", "sd_mod", "squashfs", "overlay")  # NVMe is built in
APPLETS = ("cat", "dd", "insmod", "mkdir", "mount", "od", "sed", "sh", "switch_root", "tr")
FOLDERS = ("bin", "dev", "layers", "modules", "proc", "root", "sys")


def make(tree: Path, to: Path) -> None:
    """Write the initramfs to the file `to`; module and BusyBox files come from a root file system's tree."""
    (modules,) = (tree / "usr/lib/modules").iterdir()
    order = load_order((modules / "modules.dep").read_text())
    files = {f"modules/{Path(path).name}": (0o644, (modules / path).read_bytes()) for path in order}
    files["modules/order"] = (0o644, "".join(f"{Path(path).name}\n" for path in order).encode())
    files["bin/busybox"] = (0o755, (tree / "usr/bin/busybox").read_bytes())
    files["init"] = (0o755, (HERE / "initramfs-init").read_bytes())
    entries = [entry(name, stat.S_IFDIR | 0o755, b"") for name in FOLDERS]
    entries += [entry(name, stat.S_IFREG | mode, data) for name, (mode, data) in sorted(files.items())]
    entries += [entry(f"bin/{name}", stat.S_IFLNK | 0o777, b"busybox") for name in APPLETS]
    entries.append(entry("TRAILER!!!", 0, b""))
    to.write_bytes(gzip.compress(b"".join(entries), compresslevel=6, mtime=0))


def load_order(dependencies: str) -> list[str]:
    """The paths of MODULES in an order in which insmod takes them, from the text of modules.dep."""
    needs = {}
    for line in dependencies.splitlines():
        path, _, others = line.partition(":")
        needs[path] = others.split()
    order: list[str] = []
    for name in MODULES:
        (path,) = (path for path in needs if Path(path).stem == name)
        # modules.dep lists what a module needs with the most basic one last
        order += [one for one in [*reversed(needs[path]), path] if one not in order]
    return order


def entry(name: str, mode: int, data: bytes) -> bytes:
    """One entry of a cpio archive in the "newc" format (Documentation/driver-api/early-userspace in the kernel)."""
    links, zero = 1, 0
    fields = [zero, mode, zero, zero, links, zero, len(data), zero, zero, zero, zero, len(name) + 1, zero]
    header = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
    return padded(header) + padded(data)


def padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)
