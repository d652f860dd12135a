#!/usr/bin/env python3
"""Name what differs between two builds of an image that should be the same.

    python3 -m board.common.compare FIRST SECOND      two disk images, or two squashfs files

Of two disk images that differ, the places are named by partition; of two squashfs files, the files in them.
Exits with 0 when they are equal, with 1 when they differ.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from board.pc import layout

SQUASHFS_MAGIC = b"hsqs"
BLOCK = 1 << 20  # bytes compared at once


def differences(first: Path, second: Path) -> Iterator[str]:
    """A line for each; none when both are equal."""
    if same(first, second):
        return
    with first.open("rb") as file:
        squashfs = file.read(4) == SQUASHFS_MAGIC
    yield from files_that_differ(first, second) if squashfs else places_that_differ(first, second)


def same(first: Path, second: Path) -> bool:
    if first.stat().st_size != second.stat().st_size:
        return False
    with first.open("rb") as one, second.open("rb") as other:
        return all(block == other.read(BLOCK) for block in iter(lambda: one.read(BLOCK), b""))


def files_that_differ(first: Path, second: Path) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        listings = []
        for number, image in enumerate((first, second)):
            to = Path(folder, str(number))
            subprocess.run(["unsquashfs", "-quiet", "-no-progress", "-dest", to, image], check=True)
            listings.append(dict(entries(to)))
        one, other = listings
        for name in sorted(one.keys() | other.keys()):
            if one.get(name) != other.get(name):
                yield f"{name}: {one.get(name, 'is not there')} / {other.get(name, 'is not there')}"
        if one == other:
            yield "the files are equal; their order or the packing differs"


def entries(root: Path) -> Iterator[tuple[str, str]]:
    """Each file below root with its mode, its time and what it holds."""
    for path in sorted(root.rglob("*")):
        about = path.lstat()
        if path.is_symlink():
            content = f"-> {path.readlink()}"
        elif path.is_file():
            content = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        else:
            content = "folder"
        yield f"/{path.relative_to(root)}", f"{about.st_mode:o} {int(about.st_mtime)} {content}"


def places_that_differ(first: Path, second: Path) -> Iterator[str]:
    """The partitions, by the layout of board.pc, that hold the differing mebibytes."""
    starts = {one.name: layout.offset(one.name) for one in layout.PARTITIONS}
    places = {name: (start, start + layout.size(name)) for name, start in starts.items()}
    found: Counter[str] = Counter()
    with first.open("rb") as one, second.open("rb") as other:
        for position in range(0, max(first.stat().st_size, second.stat().st_size), BLOCK):
            if one.read(BLOCK) != other.read(BLOCK):
                found[next((name for name, (start, end) in places.items() if start <= position < end), "table")] += 1
    for name, count in found.items():
        yield f"{name}: {count} MiB with differences"
    if first.stat().st_size != second.stat().st_size:
        yield f"size: {first.stat().st_size} / {second.stat().st_size} bytes"


def main(words: list[str]) -> int:
    if len(words) != 2 or not all(Path(word).is_file() for word in words):
        print("usage: make compare A=first.img B=second.img (two disk images or two squashfs files)", file=sys.stderr)
        return 2
    found = list(differences(*map(Path, words)))
    print("\n".join(found) if found else "the two are equal")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
