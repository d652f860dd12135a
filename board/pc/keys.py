"""Make the key that signs update bundles, and the certificate by which a box knows them.

    python3 -m board.pc.keys FOLDER         what `make keys` calls

FOLDER gets key.pem (secret: whoever has it can install software on every box that trusts it) and cert.pem
(goes into the image as /etc/rauc/keyring.pem). A folder that has either is left alone: a lost or replaced key
means that boxes in the field take no more updates.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

DAYS = 30 * 365  # a box in the field must not stop to take updates because a date has passed
NAME = "/O=Fairlead/CN=Fairlead updates"
EXTENSIONS = (
    "basicConstraints=critical,CA:FALSE",
    "keyUsage=critical,digitalSignature",
    "extendedKeyUsage=codeSigning",
)
KEY, CERTIFICATE = "key.pem", "cert.pem"


class KeysError(Exception):
    """The keys cannot be made; the text says why."""


def make(folder: Path, name: str = NAME) -> None:
    """Make both files, or none. Raises KeysError."""
    present = [path.name for path in (folder / KEY, folder / CERTIFICATE) if path.exists()]
    if present:
        raise KeysError(f"{folder} has {' and '.join(present)} already; nothing was changed")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    parts = {place: folder / f".{place}.new" for place in (KEY, CERTIFICATE)}
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc"]
    command += ["-sha256", "-days", str(DAYS), "-subj", name]
    command += ["-keyout", str(parts[KEY]), "-out", str(parts[CERTIFICATE])]
    command += [word for extension in EXTENSIONS for word in ("-addext", extension)]
    mask = os.umask(0o077)
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise KeysError(f"openssl failed: {done.stderr.strip()[-500:]}")
        for place, part in parts.items():
            part.rename(folder / place)
    except FileNotFoundError:
        raise KeysError("openssl is not installed") from None
    finally:
        os.umask(mask)
        for part in parts.values():
            part.unlink(missing_ok=True)
    (folder / CERTIFICATE).chmod(0o644)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 -m board.pc.keys", description="Make the key that signs updates.")
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    try:
        make(folder)
    except KeysError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{folder / KEY}: keep it secret and keep a copy. {folder / CERTIFICATE}: goes into the images.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
