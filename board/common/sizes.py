#!/usr/bin/env python3
"""Say how large an image is, and which packages make it so.

    python3 -m board.common.sizes OUT       OUT: Buildroot's output folder after a build

A package's size is that of the files it installed and that are still there, compressed one by one as the slot
compresses them (zlib, level 9); what files share is not seen, so the sum is a little more than the slot.
"""

from __future__ import annotations

import sys
import zlib
from collections import Counter
from pathlib import Path

from board.common import again

OWN = "overlay and board"  # what no package installed
COPIED = {"boot/vmlinuz": "linux"}  # by post-build.sh
SHOWN = 25
MIB = 2**20


def owners(listing: str) -> dict[str, str]:
    """Path below the root -> package, from lines of "package,./path"."""
    pairs = (line.split(",", 1) for line in listing.splitlines() if "," in line)
    return {path.removeprefix("./"): package for package, path in pairs}


def by_package(root: Path, owner: dict[str, str]) -> dict[str, tuple[int, int]]:
    """Package -> bytes as they are, bytes compressed."""
    plain: Counter[str] = Counter()
    packed: Counter[str] = Counter()
    for path in root.rglob("*"):
        if path.is_file() and not path.is_symlink():
            data = path.read_bytes()
            name = str(path.relative_to(root))
            # Compiled Python files lie beside their source's place.
            package = owner.get(name) or owner.get(name.removesuffix("c")) or COPIED.get(name, OWN)
            plain[package] += len(data)
            packed[package] += len(zlib.compress(data, 9))
    return {package: (plain[package], packed[package]) for package in plain}


def main(words: list[str]) -> int:
    out = Path(words[0])
    images = out / "images"
    for path in sorted(images.glob("*")):
        if path.is_file():
            print(f"{path.stat().st_size / MIB:8.1f} MiB  {path.relative_to(out)}")
    sizes = sorted(by_package(out / "target", owners(again.installed(out))).items(), key=lambda one: -one[1][1])
    print("by package:   plain  compressed")
    for package, (plain, packed) in sizes[:SHOWN]:
        print(f"         {plain / MIB:8.2f}    {packed / MIB:8.2f} MiB  {package}")
    rest = sizes[SHOWN:]
    plain, packed = (sum(both[which] for _, both in rest) for which in (0, 1))
    print(f"         {plain / MIB:8.2f}    {packed / MIB:8.2f} MiB  {len(rest)} others")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
