#!/usr/bin/env python3
"""Put together what Buildroot packs and does not fetch itself: our own software and two Python packages.

    python3 -m board.common.stage FOLDER      from the top of the clone

    FOLDER/fairlead/      the package "fairlead": webui, the collected static files, the rendered guide, the database
                          of a new box, the licences
    FOLDER/downloads/     source archives that pip fetches, for the packages of buildroot-external

pip and npm fetch by their own settings (an index of one's own, a proxy); Buildroot checks the hashes.
PYTHON names the interpreter with webui/requirements.txt installed, as in board.lab.build.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from board.lab.build import IGNORED, BuildError, make_for_web, python, run

TOP = Path(__file__).parents[2]
EXTERNAL = TOP / "buildroot-external"
FETCHED_BY_PIP = ("python-django-axes", "python-django-lts")


def stage(folder: Path) -> None:
    """Make the folder anew. Raises BuildError."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        made = Path(temporary, "fairlead")
        own_software(made, Path(temporary))
        replace(folder / "fairlead", made)
    for package in FETCHED_BY_PIP:
        fetch(package, folder / "downloads")


def own_software(to: Path, logs: Path) -> None:
    shutil.copytree(TOP / "webui", to / "webui", ignore=IGNORED)
    make_for_web(to, logs)
    shutil.copy(TOP / "LICENSE", to)
    shutil.copytree(TOP / "build/assets/licences", to / "licenses")


def replace(old: Path, new: Path) -> None:
    shutil.rmtree(old, ignore_errors=True)
    new.rename(old)


def fetch(package: str, to: Path) -> None:
    """The source archive of a Python package, by the name and version that its .mk file has."""
    recipe = (EXTERNAL / f"package/{package}/{package}.mk").read_text()
    named = re.search(r"_SOURCE = (\w+)-\$", recipe), re.search(r"_VERSION = (\S+)", recipe)
    if named[0] is None or named[1] is None:
        raise ValueError(f"the recipe of {package} names no version or no source")
    name, version = named[0][1], named[1][1]
    archive = to / f"{name}-{version}.tar.gz"
    if archive.exists():
        return
    to.mkdir(exist_ok=True)
    run(
        python(), "-m", "pip", "download", "--quiet", "--no-deps", f"--no-binary={name}", f"--dest={to}",
        f"{name}=={version}",
        log=to / f"{name}.log",
    )  # fmt: skip


def main(words: list[str]) -> int:
    try:
        stage(Path(words[0]).resolve())
    except (BuildError, subprocess.SubprocessError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
