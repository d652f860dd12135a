"""The disk of a machine as real servers are, with systemd and what keeps its network; for tests/systems.

Nothing of it gets into an image. Kernel and modules are the developer image's. The packages are installed, not only
unpacked as those of board/lab/peers.py: what their scripts leave behind is part of what is tried.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from board.lab.build import HERE, SUITE, base_inputs, build_base, cached, install, locked

DISK = "root.ext4"
MEGABYTES = 1024  # more than twice of what is on it
# A test says which of them keeps the network. The timers would work while it runs.
OFF = "NetworkManager NetworkManager-wait-online systemd-networkd"
MASKED = "apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer fstrim.timer"


@dataclass(frozen=True)
class Installed:
    """What the machine is started from; it needs no initramfs."""

    kernel: Path
    disk: Path  # ext4, without partitions


def build(say: Callable[[str], None] = print) -> Installed:
    """From the cache or built now. Raises BuildError."""
    with locked():
        base = cached("base", base_inputs(), build_base, say)
        inputs = [SUITE, Path(__file__), HERE / "systems-packages", base.name]
        folder = cached("systems", inputs, lambda to: make(to, base), say)
        return Installed(base / "vmlinuz", folder / DISK)


def make(to: Path, base: Path) -> None:
    disk = to / DISK
    disk.touch()
    disk.chmod(0o666)  # in the user namespace of mmdebstrap it is somebody else who writes it
    os.truncate(disk, MEGABYTES << 20)
    install(
        Path("/dev/null"),
        "systems-packages",
        f'--customize-hook=chroot "$1" systemctl --quiet disable {OFF}',
        f'--customize-hook=chroot "$1" systemctl --quiet mask {MASKED}',
        '--customize-hook=echo real-server >"$1/etc/hostname"',
        '--customize-hook=rm -rf "$1"/var/cache/apt/* "$1"/var/lib/apt/lists/*',
        f'--customize-hook=cp -R "{base}/tree/usr/lib/modules" "$1/usr/lib/"',
        # Here, where files have their owners whoever builds; without what mmdebstrap has mounted into the tree.
        '--customize-hook=unshare --mount sh -c \'umount --recursive "$1/proc" "$1/sys"; '
        f'exec mke2fs -q -t ext4 -O ^has_journal -m 0 -d "$1" "{disk}"\' sh "$1"',
        log=to / "mmdebstrap.log",
    )
