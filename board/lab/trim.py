#!/usr/bin/env python3
"""A hook of mmdebstrap: make a freshly installed Debian tree the base layer. Usage: trim.py ROOT

Runs on the machine that builds, as root or as the root of a user namespace.
"""

from __future__ import annotations

import lzma
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    root = Path(sys.argv[1])
    save_package_list(root)
    trim_modules(root)
    for pattern in names("removed"):
        for path in list(root.glob(pattern)):
            remove(path)
    for applet in names("applets"):
        if not any((root / place / applet).exists() for place in ("usr/bin", "usr/sbin")):
            (root / "usr/sbin" / applet).symlink_to("../bin/busybox")
    kept = names("kept-etc")
    for path in list((root / "etc").iterdir()):
        if path.name not in kept:
            remove(path)
    compile_python(root)
    for path in root.glob("usr/*bin/*"):
        if not path.is_symlink() and path.stat().st_mode & 0o6000:
            path.chmod(0o755)  # nobody in the box needs to become another user that way


def names(file: str) -> list[str]:
    """The lines of a list in this folder, without comments."""
    return [line for line in (HERE / file).read_text().split("\n") if line and not line.startswith("#")]


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def save_package_list(root: Path) -> None:
    """What the layer is made of stays readable in the box: one "name version" a line."""
    query = ["dpkg-query", "--show", "--showformat=${Package} ${Version}\n"]
    result = subprocess.run(["chroot", root, *query], check=True, capture_output=True, text=True)
    target = root / "usr/share/fairlead/packages.txt"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(result.stdout)


def compile_python(root: Path) -> None:
    """Byte code that does not depend on the time of its source: every file of the layer gets the same time."""
    command = "python3 -m compileall -q -f -j 0 --invalidation-mode unchecked-hash /usr/lib/python3 /usr/lib/python3.13"
    subprocess.run(["chroot", root, *command.split()], check=True)


def trim_modules(root: Path) -> None:
    """Keep the listed modules and what they need, uncompressed: unpacking xz is slow in an emulated machine."""
    (folder,) = (root / "usr/lib/modules").iterdir()
    needs = {}
    for line in (folder / "modules.dep").read_text().split("\n"):
        path, _, others = line.partition(":")
        needs[path] = others.split()
    by_name = {Path(path).name.partition(".")[0].replace("-", "_"): path for path in needs if path}
    keep = set()
    for name in names("modules"):
        path = by_name[name.replace("-", "_")]
        keep.update([path, *needs[path]])
    for path in sorted(filter(None, needs)):
        if path in keep:
            (folder / path).with_suffix("").write_bytes(lzma.decompress((folder / path).read_bytes()))
        (folder / path).unlink()
    for directory in sorted((folder / "kernel").rglob("*"), reverse=True):
        if directory.is_dir() and not any(directory.iterdir()):
            directory.rmdir()
    subprocess.run(["chroot", root, "depmod", folder.name], check=True)


if __name__ == "__main__":
    main()
