"""The oldest version that this box takes: a release can raise it, nothing lowers it.

A release that closes a hole says so in a file of its own image, which is signed with it. Once such a release was looked
at and found good, the box keeps the number beside the slots: no older bundle is installed any more, however well it
is signed, and an older version in the other slot does not start.
"""

from __future__ import annotations

from pathlib import Path

from applier.base import durable
from applier.base.paths import Paths
from applier.update.bundle import order
from applier.wire.errors import ApplierRefused

LONGEST = 64  # characters


def of_box(paths: Paths) -> str:
    """Empty: any version may be installed."""
    return _text(paths.least_version)


def raise_to_own(paths: Paths) -> None:
    """What the running version asks for counts from now on. Raises OSError."""
    own = _text(paths.version_file.with_name("LEAST_VERSION"))
    if own and order(own) > order(of_box(paths)):
        paths.shared.mkdir(mode=0o755, parents=True, exist_ok=True)
        durable.replace(paths.least_version, f"{own}\n".encode())


def is_below(paths: Paths, version: str) -> bool:
    least = of_box(paths)
    return bool(least) and order(version) < order(least)


def check(paths: Paths, version: str) -> None:
    """Raises ApplierRefused."""
    if is_below(paths, version):
        text = (
            f"Version {version} is too old for this box: a release that it has run says that nothing before "
            f"{of_box(paths)} is safe."
        )
        raise ApplierRefused("version-too-old", text)


def _text(path: Path) -> str:
    try:
        with path.open(errors="replace") as file:
            text = file.read(LONGEST + 1).strip()
    except OSError:
        return ""
    return text if text.isprintable() and len(text) <= LONGEST else ""
