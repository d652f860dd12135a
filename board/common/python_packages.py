#!/usr/bin/env python3
"""Hold the Python packages of an image against webui/requirements.txt; name each that differs and exit with 1.

python_packages.py FOLDER       the image's root file system
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

REQUIREMENTS = Path(__file__).parents[2] / "webui/requirements.txt"
PLACES = ("usr/lib/python3*/site-packages", "usr/lib/fairlead/python")  # the released image's, the developer's


def wanted(requirements: str) -> dict[str, str]:
    """Package -> version, from lines of "name==version"."""
    lines = (line.partition("#")[0].strip() for line in requirements.splitlines())
    return {normal(name): version for name, _, version in (line.partition("==") for line in lines if line)}


def installed(folders: Iterable[str]) -> dict[str, str]:
    """Package -> version, from the names of folders such as "django_axes-8.3.1.dist-info"."""
    named = (re.fullmatch(r"(.+)-([^-]+)\.dist-info", folder) for folder in folders)
    return {normal(found[1]): found[2] for found in named if found}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def differences(wish: dict[str, str], found: dict[str, str]) -> Iterator[str]:
    """A sentence for each package whose version differs."""
    for name in sorted(wish.keys() | found.keys()):
        if wish.get(name) != found.get(name):
            yield f"{name}: {wish.get(name, 'none')} is wanted, the image has {found.get(name, 'none')}"


def main(words: list[str]) -> int:
    root = Path(words[0])
    folders = [path.name for place in PLACES for path in root.glob(f"{place}/*.dist-info")]
    wrong = list(differences(wanted(REQUIREMENTS.read_text()), installed(folders)))
    for one in wrong:
        print(f"Python packages (webui/requirements.txt): {one}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
