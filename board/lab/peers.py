"""The tree with real servers that tests/peers asks: Debian's packages, unpacked and never installed.

Nothing of it gets into an image. Without the scripts of the packages the layer is built in less than a minute; what
these would do (users, folders, databases) is a few lines at the start of each server, in tests/peers/servers/.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from board.lab import trim
from board.lab.build import HERE, SUITE, cached, locked, run

# Nearly a half of what is unpacked, and no server here needs it.
LEFT_OUT = [
    "./dev/*",
    "./usr/lib/python3*",
    "./usr/lib/x86_64-linux-gnu/libLLVM*",
    "./usr/lib/x86_64-linux-gnu/libz3*",
    "./usr/lib/x86_64-linux-gnu/perl/*",
    "./usr/share/doc",
    "./usr/share/i18n",
    "./usr/share/locale",
    "./usr/share/man",
    "./usr/share/perl/*",
    "./var/cache",
    "./var/lib/apt",
]
LINKS = {"bin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib64", "sbin": "usr/sbin", "var/run": "/run"}


def build(say: Callable[[str], None] = print) -> Path:
    """The tree, from the cache or built now. Raises BuildError."""
    with locked():
        return cached("peers", [SUITE, Path(__file__), HERE / "peers-packages"], unpack, say) / "tree"


def unpack(to: Path) -> None:
    tar, tree = to / "root.tar", to / "tree"
    run(
        "mmdebstrap", "--variant=extract", f"--include={','.join(trim.names('peers-packages'))}",
        '--aptopt=Apt::Install-Recommends "false"', SUITE, tar,
        log=to / "mmdebstrap.log",
    )  # fmt: skip
    tree.mkdir()
    left_out = [f"--exclude={pattern}" for pattern in LEFT_OUT]
    run("tar", "-xpf", tar, "--no-same-owner", left_out, "-C", tree, log=to / "tar.log")
    tar.unlink()
    for name, target in LINKS.items():
        if not (tree / name).exists():
            (tree / name).symlink_to(target)
