"""A bundle: whether it is one, who signed it, and what it holds. Nothing is written here.

RAUC says whether the signature is right (it exits with 0 then, and with the manifest on its output); the words
it uses for a refusal are its own and may change, so they are shown, and not relied on.
"""

from __future__ import annotations

import os
import re
import shlex
import struct
from dataclasses import dataclass
from pathlib import Path

from applier.host.host import Host, HostError
from applier.wire.errors import ApplierRefused

CONF = Path("/etc/rauc/system.conf")
PRODUCT = "fairlead-pc"
IMAGE = "rootfs.squashfs"
TIMEOUT = 120.0  # seconds; RAUC reads a few kilobytes of a file that may lie on a slow stick
MAX_SIGNATURE = 64 * 1024  # bytes, as RAUC has it
_MAGIC = b"hsqs"  # a verity bundle begins as a squashfs
_LENGTH = struct.Struct(">Q")  # its last bytes: how long the signature before them is
_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+~_-]{0,63}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Bundle:
    version: str
    build: str  # when it was built, as its maker wrote it; may be empty
    size: int  # bytes of the image
    digest: str  # SHA-256 of the image


def describe(host: Host, path: Path) -> Bundle:
    """What the bundle holds, after its signature was checked. ApplierRefused with the reason otherwise."""
    check_shape(path)
    try:
        output = host.command(["rauc", f"--conf={CONF}", "info", "--output-format=shell", str(path)], timeout=TIMEOUT)
    except HostError as error:
        raise ApplierRefused("bundle-unchecked", f"The bundle cannot be checked: {error}.") from None
    if output.exit:
        raise refusal(output.stderr)
    return from_manifest(parse(output.stdout))


def check_shape(path: Path) -> None:
    """Whether the file looks like a whole bundle. It tells a broken download from a bad signature."""
    try:
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
            length = os.fstat(file.fileno()).st_size
            file.seek(max(0, length - _LENGTH.size))
            end = file.read(_LENGTH.size)
    except OSError as error:
        raise ApplierRefused("bundle-unreadable", f"The bundle cannot be read: {error.strerror or error}.") from None
    if magic != _MAGIC or length <= _LENGTH.size:
        raise ApplierRefused("not-a-bundle", "This file is not an update bundle of Fairlead (a .raucb file).")
    if not 0 < _LENGTH.unpack(end)[0] <= min(MAX_SIGNATURE, length - _LENGTH.size):
        text = "The bundle is incomplete: its end is missing. Download or copy it again."
        raise ApplierRefused("bundle-incomplete", text)


def refusal(said: str) -> ApplierRefused:
    """RAUC's words of a refusal as one of ours."""
    notes = ("rauc-Message:", "Consider setting")
    lines = [line.strip() for line in said.splitlines() if line.strip() and not line.startswith(notes)]
    reason = "".join(one if one.isprintable() else "?" for one in " ".join(lines))[:300] or "it gave no reason"
    if re.search(r"signature|verif|certificate|CMS", reason, re.IGNORECASE):
        text = "The bundle is not signed with a key that this box trusts, or it was changed after it was signed"
        return ApplierRefused("bundle-signature", f"{text} ({reason}).")
    return ApplierRefused("bundle-refused", f"This is not a bundle that this box takes ({reason}).")


def parse(text: str) -> dict[str, str]:
    """The assignments that `rauc info --output-format=shell` prints. ApplierRefused where these are none."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ApplierRefused("bundle-refused", f"The description of the bundle cannot be read: {error}.") from None
    return dict(word.split("=", 1) for word in words if "=" in word)


def from_manifest(fields: dict[str, str]) -> Bundle:
    """Raises ApplierRefused for another product, and for whatever is not as our bundles are."""
    product = fields.get("RAUC_MF_COMPATIBLE", "")
    if product != PRODUCT:
        text = f"This bundle is for another product ({_shown(product)}); this box is {PRODUCT}."
        raise ApplierRefused("wrong-product", text)
    version, digest = fields.get("RAUC_MF_VERSION", ""), fields.get("RAUC_IMAGE_DIGEST_0", "")
    size = fields.get("RAUC_IMAGE_SIZE_0", "")
    wrong = {
        "its format": fields.get("RAUC_MF_FORMAT", "verity") != "verity",
        "its version": not _VERSION.fullmatch(version),
        "the number of its images": fields.get("RAUC_MF_IMAGES") != "1",
        "the name of its image": fields.get("RAUC_IMAGE_NAME_0") != IMAGE,
        "the digest of its image": not _DIGEST.fullmatch(digest),
        "the size of its image": not (size.isascii() and size.isdigit() and int(size[:18]) > 0 and len(size) <= 18),
        "hooks, which this box does not run": any(fields.get(name) for name in ("RAUC_MF_HOOKS", "RAUC_IMAGE_HOOKS_0")),
    }
    if any(wrong.values()):
        names = ", ".join(name for name, is_wrong in wrong.items() if is_wrong)
        raise ApplierRefused("bundle-refused", f"The bundle is signed, but not as this box needs it: {names}.")
    return Bundle(version, _shown(fields.get("RAUC_MF_BUILD", "")), int(size), digest)


def order(version: str) -> tuple[object, ...]:
    """A key by which versions sort: numbers as numbers, and 1.0-rc1 before 1.0."""
    main, dash, extra = version.partition("-")
    return (*_parts(main), (1,)) if not dash else (*_parts(main), (0, *_parts(extra)))


def _parts(text: str) -> list[tuple[int, int, str]]:
    found = re.findall(r"[0-9]+|[A-Za-z]+", text)
    return [(2, int(one), "") if one.isdigit() else (1, 0, one) for one in found]


def _shown(text: str) -> str:
    return "".join(one if one.isprintable() else "?" for one in text)[:64]
