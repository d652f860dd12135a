"""Record what a kernel shows of machines that QEMU can play, faulty ones and healthy ones: `make record-machines`.

Each is started with a small initramfs (BusyBox, ethtool, the drivers of Debian's usual kernel), arranges its fault,
lets some packets pass, and writes what record-machine.sh prints to its second serial line. Ten seconds a machine.
"""

from __future__ import annotations

import contextlib
import gzip
import lzma
import os
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path

from board.lab.build import BUILD, install
from board.lab.initramfs import entry
from tests.lab.recorded import KINDS, Kind

HERE = Path(__file__).parent
TO = HERE.parent / "captures/machines"
PACKAGES = "record-packages"  # in board/lab
MODULES = (
    "virtio_net", "e1000", "e1000e", "8139cp", "8139too", "vmxnet3", "pcnet32", "ahci", "uhci-hcd", "xhci-pci", "nvme",
    "virtio_pci",
)  # fmt: skip
LOADER = "lib64/ld-linux-x86-64.so.2"
LIBRARIES = (LOADER, *(f"lib/x86_64-linux-gnu/{name}" for name in ("libc.so.6", "libm.so.6", "libmnl.so.0")))
FOLDERS = ("bin", "dev", "lib", "lib64", "lib/x86_64-linux-gnu", "modules", "proc", "sys", "tmp", "usr", "usr/sbin")
DEADLINE = 90  # seconds that a machine may take
INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin:/usr/sbin
mount -t proc proc /proc && mount -t sysfs sys /sys && mount -t devtmpfs dev /dev
while read -r module; do
	case " $(cat /without) " in *" ${module%.ko} "*) continue ;; esac
	insmod "/modules/$module" 2>/dev/null
done < /modules/order
sleep 1
number=2
for here in /sys/class/net/eth*; do
	ip addr add "10.0.$number.15/24" dev "${here##*/}"
	ip link set "${here##*/}" up
	number=$((number + 1))
done
sleep 2
. /arrange
for cpu in 0 1 2 3; do
	taskset $((1 << cpu)) ping -q -c 120 -i 0.01 10.0.2.2 >/dev/null 2>&1 &
	pings="$pings $!"
done
wait $pings
sh /record-machine.sh > /tmp/record
stty -F /dev/ttyS1 raw
cat /tmp/record > /dev/ttyS1
echo "==> end <==" > /dev/ttyS1
sync
reboot -f
"""


class Recorder:
    def __init__(self, folder: Path) -> None:
        """`folder` takes what is built once: Debian's kernel and drivers."""
        self.tree = folder / "tree"
        if not (self.tree / "boot").exists():
            self._take(folder)
        (self.kernel,) = (self.tree / "boot").glob("vmlinuz-*")

    def _take(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        tar = folder / "tree.tar"
        install(tar, PACKAGES, log=folder / "mmdebstrap.log")
        with tarfile.open(tar) as archive:
            wanted = [one for one in archive if not one.isdev() and one.name.startswith(("./boot", "./usr/"))]
            archive.extractall(self.tree, wanted, filter="tar")
        tar.unlink()

    def initramfs(self, kind: Kind, to: Path) -> None:
        entries = [entry(name, stat.S_IFDIR | 0o755, b"") for name in FOLDERS]
        files = dict(self._modules())
        files["bin/busybox"] = (self.tree / "usr/bin/busybox").read_bytes()
        files["usr/sbin/ethtool"] = (self.tree / "usr/sbin/ethtool").read_bytes()
        for name in LIBRARIES:
            files[name] = (self.tree / "usr" / name).resolve().read_bytes()
        files |= {
            "init": INIT.encode(),
            "arrange": kind.arrange.encode(),
            "without": " ".join(kind.without).encode(),
            "record-machine.sh": (HERE / "record-machine.sh").read_bytes(),
        }
        entries += [entry(name, stat.S_IFREG | 0o755, data) for name, data in files.items()]
        entries.append(entry("TRAILER!!!", 0, b""))
        to.write_bytes(gzip.compress(b"".join(entries), compresslevel=1, mtime=0))

    def _modules(self) -> Iterable[tuple[str, bytes]]:
        (home,) = (self.tree / "usr/lib/modules").iterdir()
        needs = {}
        for line in (home / "modules.dep").read_text().splitlines():
            path, _, others = line.partition(":")
            needs[path] = others.split()
        order: list[str] = []
        for name in MODULES:
            for path in (path for path in needs if Path(path).name.partition(".")[0] == name):
                order += [one for one in [*reversed(needs[path]), path] if one not in order]
        names = [Path(path).name.partition(".")[0] + ".ko" for path in order]
        for path, name in zip(order, names, strict=True):
            data = (home / path).read_bytes()
            yield f"modules/{name}", lzma.decompress(data) if path.endswith(".xz") else data
        yield "modules/order", "".join(f"{name}\n" for name in names).encode()

    def record(self, name: str, kind: Kind) -> None:
        """Writes the file of this machine. Raises RuntimeError where it did not come to its end."""
        with tempfile.TemporaryDirectory(prefix="fairlead-") as folder:
            here = Path(folder)
            self.initramfs(kind, here / "initramfs")
            words = [
                "qemu-system-x86_64", "-accel", os.environ.get("FAIRLEAD_ACCEL", "tcg"), "-cpu", kind.processor,
                "-m", str(kind.memory), "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
                "-kernel", self.kernel, "-initrd", here / "initramfs",
                "-append", f"console=ttyS0 mitigations=off rdinit=/init {kind.append}".strip(),
                "-serial", f"file:{here / 'console'}", "-serial", f"file:{here / 'record'}", *kind.words,
            ]  # fmt: skip
            with contextlib.suppress(subprocess.TimeoutExpired):  # the record says that it is not whole
                self._run([str(word) for word in words], kind.taps)
            text = (here / "record").read_text()
            whole, end, _ = text.partition("==> end <==\n")
            if not end:
                raise RuntimeError(f"{name} did not come to its end:\n{(here / 'console').read_text()[-3000:]}")
        (TO / f"{name}.txt").write_text(whole)

    @staticmethod
    def _run(words: list[str], taps: int) -> None:
        """A card with several queues needs a tap, which an ordinary user has in a network namespace of his own."""
        if taps:
            lines = [
                f"ip tuntap add dev t{number} mode tap multi_queue; ip addr add 10.0.{number + 2}.2/24 dev t{number}; "
                f"ip link set t{number} up"
                for number in range(taps)
            ]
            script = "; ".join([*lines, 'exec "$@"'])
            words = ["unshare", "-Urnm", "-pf", "--mount-proc", "--kill-child", "sh", "-ec", script, "sh", *words]
        subprocess.run(words, check=True, timeout=DEADLINE, stdin=subprocess.DEVNULL)


def main(names: Iterable[str]) -> None:
    if shutil.which("qemu-system-x86_64") is None:
        sys.exit("This needs qemu-system-x86_64: make setup-test")
    recorder = Recorder(BUILD / "record")
    wanted = list(names) or list(KINDS)
    for name in wanted:
        print(name, flush=True)
        recorder.record(name, KINDS[name])


if __name__ == "__main__":
    main(sys.argv[1:])
