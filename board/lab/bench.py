"""The layer with other balancers, for `make bench`: it lies over those of the director. No image has it.

Debian's packages, unpacked and never installed; of these, and of what they depend on, only what the base layer has not.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path

from board.lab import trim
from board.lab.build import HERE, SUITE, Image, base_inputs, base_tree, cached, finish, locked, run

NAME = "bench"
KEPT = ("usr/bin", "usr/sbin", "usr/lib")
LEFT_OUT = ("usr/lib/systemd", "usr/lib/python3", "usr/lib/x86_64-linux-gnu/perl-base")


def add(image: Image, say: Callable[[str], None] = print) -> Image:
    """The image with the layer, from the cache or built now. Raises BuildError."""
    tree = base_tree(say)
    inputs = [SUITE, Path(__file__), HERE / "bench-packages", *base_inputs()]
    with locked():
        folder = cached(NAME, inputs, lambda to: make(to, tree), say)
    return dataclasses.replace(image, layers={**image.layers, NAME: folder / "root.sqfs"})


def make(to: Path, base: Path) -> None:
    tar, tree, root = to / "root.tar", to / "tree", to / "root"
    run(
        "mmdebstrap", "--variant=extract", f"--include={','.join(trim.names('bench-packages'))}",
        '--aptopt=Apt::Install-Recommends "false"', SUITE, tar,
        log=to / "mmdebstrap.log",
    )  # fmt: skip
    tree.mkdir()
    run("tar", "-xpf", tar, "--no-same-owner", "--exclude=./dev/*", "-C", tree, log=to / "tar.log")
    tar.unlink()
    for folder in KEPT:
        for path in sorted((tree / folder).rglob("*")):
            place = path.relative_to(tree)
            if (path.is_dir() and not path.is_symlink()) or str(place).startswith(LEFT_OUT) or in_base(base / place):
                continue
            (root / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, root / place, follow_symlinks=False)
    shutil.rmtree(tree)
    finish(to, base.parent)


def in_base(path: Path) -> bool:
    return path.exists() or path.is_symlink()
