"""Pack a slot's root file system into a signed update bundle.

    python3 -m board.pc.bundle ROOT.squashfs --keys FOLDER [--version V] [--out FILE]

The bundle is RAUC's "verity" format: the image in an uncompressed squashfs (it is compressed already, and reading
it costs a box less), a tree of hashes, and a signature over the root of that tree. Equal inputs give an equal
image and manifest; RAUC's own salt and the signature differ each time.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from board.pc import keys

COMPATIBLE = "fairlead-pc"
IMAGE = "rootfs.squashfs"
VERSION_FILE = Path(__file__).parents[2] / "overlay/usr/lib/fairlead/VERSION"
FILE_TIME = 1767225600  # 2026-01-01, where SOURCE_DATE_EPOCH names no other time
SQUASHFS = "-noI -noD -noF -noX -no-xattrs -all-root -no-progress"
FORMAT = "verity"


class BundleError(Exception):
    """A tool failed or is missing, or an input is; the text says which."""


def make(
    root: Path, keys_folder: Path, out: Path, version: str, compatible: str = COMPATIBLE, form: str = FORMAT
) -> Path:
    """Write the bundle; in one piece, over an older one of that name. Raises BundleError."""
    for path in (root, keys_folder / keys.KEY, keys_folder / keys.CERTIFICATE):
        if not path.is_file():
            raise BundleError(f"{path} is missing")
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or FILE_TIME)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".bundle-") as folder:
        content, part = Path(folder, "content"), Path(folder, out.name)
        content.mkdir()
        link_or_copy(root, content / IMAGE)
        (content / "manifest.raucm").write_text(manifest(version, compatible, form, epoch))
        times = f"-mkfs-time {epoch} -all-time {epoch}"
        signer = [f"--cert={keys_folder / keys.CERTIFICATE}", f"--key={keys_folder / keys.KEY}"]
        run(["rauc", *signer, "bundle", f"--mksquashfs-args={SQUASHFS} {times}", str(content), str(part)])
        part.replace(out)
    return out


def manifest(version: str, compatible: str, form: str, epoch: int) -> str:
    built = datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return (
        f"[update]\ncompatible={compatible}\nversion={version}\nbuild={built}\n\n"
        f"[bundle]\nformat={form}\n\n[image.rootfs]\nfilename={IMAGE}\n"
    )


def link_or_copy(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copyfile(source, target)


def run(command: list[str]) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
    try:
        # mksquashfs refuses to be told the time twice
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    except FileNotFoundError:
        raise BundleError("rauc is not installed") from None
    if done.returncode:
        raise BundleError(f"rauc failed: {(done.stderr or done.stdout).strip()[-800:]}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 -m board.pc.bundle", description="Make a signed update bundle.")
    parser.add_argument("root", type=Path, metavar="ROOT.squashfs")
    parser.add_argument("--keys", type=Path, default=Path("keys"), help="folder of `make keys` (%(default)s)")
    parser.add_argument("--version", default=VERSION_FILE.read_text().strip(), help="(%(default)s)")
    parser.add_argument("--compatible", default=COMPATIBLE, help="the product it is for (%(default)s)")
    parser.add_argument("--out", type=Path, help="(fairlead-VERSION.raucb beside the root)")
    options = parser.parse_args()
    out = options.out or options.root.with_name(f"fairlead-{options.version}.raucb")
    try:
        make(options.root, options.keys, out, options.version, options.compatible)
    except BundleError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{out}: {out.stat().st_size / 2**20:.1f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
