"""A build in a folder that was built in before gives what an empty folder would give, in less time.

Buildroot itself never takes a file out of the target again and builds no package twice. So the target is put
together anew from the packages as they were built, and what is built from files of this project is built again
when they changed. Settings of other packages are beyond this; when the configuration changed, that is said.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

TOP = Path(__file__).parents[2]
EXTERNAL = TOP / "buildroot-external"
CONFIGURATION = ".config"
# Installed into the target while they are built for the host: the compiler brings its library.
BROUGHT_BY_HOST = ("host-gcc-final-*",)
# Buildroot writes down what a package installs when it installs it for the first time, and an empty list after that.
INSTALLED = ".files-list.txt"
INSTALLED_AT_FIRST = ".files-list.first"


def prepare(out: Path, clean: Callable[[str], None], say: Callable[[str], None] = print) -> None:
    """Make an output folder ready for the next build; `clean` lets Buildroot forget one package.

    A folder that nothing was built in stays as it is. Buildroot's .config must be there.
    """
    memory = out / "inputs.json"
    before = json.loads(memory.read_text()) if memory.exists() else {}
    now = inputs(out)
    if any((out / "build").glob("*/.stamp_*")):  # choosing the configuration makes the folder
        if before.get(CONFIGURATION) != now[CONFIGURATION]:
            say(
                f"The configuration changed since the last build here. To be sure of every package, delete {out} first."
            )
        changed = {name for name in now if name != CONFIGURATION and before.get(name) != now[name]}
        for package in sorted(changed):
            say(f"{package} is built again: its files changed")
        for package in sorted(changed | {"fairlead"}):  # our own software is copied from outside the folder
            clean(package)
        forget_target(out)
    memory.write_text(json.dumps(now, indent=1))


def inputs(out: Path) -> dict[str, str]:
    """Package -> hash of this project's files that it is built from; also of Buildroot's configuration."""
    folders = {path.name: path for path in (EXTERNAL / "package").iterdir() if path.is_dir()}
    folders |= {"linux": TOP / "board/common/linux", "busybox": EXTERNAL / "busybox.fragment"}
    found = {name: content(path) for name, path in folders.items()}
    # One line names the commit of this project, and is no setting.
    settings = re.sub(r"^BR2_EXTERNAL_\w+_VERSION=.*\n", "", (out / CONFIGURATION).read_text(), flags=re.MULTILINE)
    return found | {CONFIGURATION: hashlib.sha256(settings.encode()).hexdigest()}


def content(path: Path) -> str:
    """A hash of a file, or of the names and contents of a folder's files."""
    total = hashlib.sha256()
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file():
            total.update(f"{file.relative_to(path)}\0".encode() + file.read_bytes())
    return total.hexdigest()


def forget_target(out: Path) -> None:
    """Every package is to be installed into the target once more; what it installs is remembered."""
    for listing in (out / "build").glob(f"*/{INSTALLED}"):
        if listing.stat().st_size:
            shutil.copyfile(listing, listing.with_name(INSTALLED_AT_FIRST))
    shutil.rmtree(out / "target", ignore_errors=True)
    stamps = ["*/.stamp_target_installed", *(f"{package}/.stamp_host_installed" for package in BROUGHT_BY_HOST)]
    for pattern in stamps:
        for stamp in (out / "build").glob(pattern):
            stamp.unlink()


def installed(out: Path) -> str:
    """What each package installed, as Buildroot writes it: lines of "package,./path below the root"."""
    listings = []
    for listing in sorted((out / "build").glob(f"*/{INSTALLED}")):
        first = listing.with_name(INSTALLED_AT_FIRST)
        listings.append((listing if listing.stat().st_size or not first.exists() else first).read_text())
    return "".join(listings)
