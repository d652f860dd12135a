"""A layer with other balancers, which measurements lay below the director's: Debian's packages, only unpacked.

Nothing of it gets into an image. Only programs, modules of nginx and libraries are taken, so nothing in it starts by
itself or changes a setting; and as it is the lowest layer, none of its files hides one of the director's.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from board.lab import trim
from board.lab.build import HERE, SQUASHFS, SUITE, cached, locked, run

LAYER = "balancers"
TAKEN = ["./usr/sbin/haproxy", "./usr/sbin/keepalived", "./usr/lib/nginx", "./usr/lib/x86_64-linux-gnu/*.so*"]


def build(say: Callable[[str], None] = print) -> Path:
    """The layer's file, from the cache or built now. Raises BuildError."""
    with locked():
        return cached(LAYER, [SUITE, Path(__file__), HERE / "balancers-packages"], unpack, say) / "root.sqfs"


def unpack(to: Path) -> None:
    tar, tree = to / "root.tar", to / "tree"
    run(
        "mmdebstrap", "--variant=extract", f"--include={','.join(trim.names('balancers-packages'))}",
        '--aptopt=Apt::Install-Recommends "false"', SUITE, tar,
        log=to / "mmdebstrap.log",
    )  # fmt: skip
    tree.mkdir()
    run("tar", "-xpf", tar, "--no-same-owner", "-C", tree, "--wildcards", TAKEN, log=to / "tar.log")
    tar.unlink()
    run("mksquashfs", tree, to / "root.sqfs", SQUASHFS, "-root-mode", "755", log=to / "mksquashfs.log")
    shutil.rmtree(tree)
