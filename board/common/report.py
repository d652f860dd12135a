#!/usr/bin/env python3
"""Write the report of a release: what it is made of, how large it is, and what the stories said of this very image.

    python3 -m board.common.report OUT          what `make release-report` calls; writes OUT/images/report.md

The stories that ran with IMAGE=OUT/images/fairlead.img have left their results beside the image; those of an image
that was built before are not counted.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections import defaultdict
from pathlib import Path

from board.common import python_packages
from board.common.buildroot import OWN_VERSION

IMAGE, BILL, RESULTS, REPORT = "fairlead.img", "fairlead.cdx.json", "stories.jsonl", "report.md"
RELEASED = ("fairlead.img.xz", "fairlead.qcow2", "fairlead.vmdk", "*.raucb", BILL, "legal-info.tar.xz")
# Of the bill of materials what somebody asks for first; the bill has all.
NAMED = ["linux", "busybox", "libopenssl", "nginx", "nftables", "ipvsadm", "ldirectord", "chrony", "rauc", "perl"]
NAMED += ["python3", "iproute2", "ethtool"]
MIB = 2**20


class ReportError(Exception):
    """Something that belongs into the report is missing; the text says what to do."""


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def note(image: Path, sha256: str, test: str, outcome: str, **more: object) -> None:
    """Keep the result of a story beside the image that it ran on."""
    record = {"image": sha256, "test": test, "outcome": outcome, "at": round(time.time()), **more}
    with image.with_name(RESULTS).open("a") as file:
        file.write(json.dumps(record) + "\n")


def results(folder: Path, sha256: str) -> dict[str, dict[str, dict]]:
    """Firmware -> test -> its last result on that image."""
    found: dict[str, dict[str, dict]] = defaultdict(dict)
    path = folder / RESULTS
    for line in path.read_text().splitlines() if path.exists() else []:
        record = json.loads(line)
        if record["image"] == sha256:
            found[record["firmware"]][record["test"]] = record
    return found


def write(folder: Path) -> Path:
    """Write the report into the folder of the image. Raises ReportError."""
    for name, command in ((IMAGE, "make image"), (BILL, "make sbom")):
        if not (folder / name).exists():
            raise ReportError(f"{folder / name} is missing: {command}")
    sha256 = digest(folder / IMAGE)
    version = OWN_VERSION.read_text().strip()
    lines = [
        f"# Fairlead {version}: report of the release",
        "",
        f"Written on {time.strftime('%Y-%m-%d', time.gmtime())} for the image with the SHA-256 sum `{sha256}`.",
        *files(folder),
        *contents(folder),
        *stories(results(folder, sha256)),
    ]
    report = folder / REPORT
    report.write_text("\n".join(lines) + "\n")
    return report


def files(folder: Path) -> list[str]:
    found = [path for pattern in RELEASED for path in sorted(folder.glob(pattern))]
    rows = [f"| {path.name} | {path.stat().st_size / MIB:.1f} | `{digest(path)}` |" for path in found]
    return ["", "## Files", "", "| file | MiB | SHA-256 |", "|---|---|---|", *rows]


def contents(folder: Path) -> list[str]:
    components = json.loads((folder / BILL).read_text())["components"]
    versions = {one["name"]: one.get("version", "") for one in components}
    rows = [f"| {name} | {versions[name]} |" for name in NAMED if name in versions]
    packages = python_packages.wanted(python_packages.REQUIREMENTS.read_text())
    rows += [f"| {name} (Python) | {version} |" for name, version in packages.items()]
    text = f"{len(components)} packages in all, with their licences, are in `{BILL}`."
    return ["", "## What it is made of", "", text, "", "| package | version |", "|---|---|", *rows]


def stories(found: dict[str, dict[str, dict]]) -> list[str]:
    lines = ["", "## Tests on this image", ""]
    if not found:
        return [*lines, "None was run."]
    lines += ["| firmware | passed | failed | skipped | until |", "|---|---|---|---|---|"]
    for firmware, tests in sorted(found.items()):
        counts = [
            sum(one["outcome"] == outcome for one in tests.values()) for outcome in ("passed", "failed", "skipped")
        ]
        last = time.strftime("%Y-%m-%d %H:%M", time.gmtime(max(one["at"] for one in tests.values())))
        lines.append(f"| {firmware} | {' | '.join(map(str, counts))} | {last} UTC |")
    for title, outcome in (("Failed", "failed"), ("Skipped", "skipped")):
        named = [
            f"- {name} ({firmware}){': ' + one['why'] if one.get('why') else ''}"
            for firmware, tests in sorted(found.items())
            for name, one in sorted(tests.items())
            if one["outcome"] == outcome
        ]
        lines += ["", f"{title}:", "", *named] if named else []
    figures = [
        f"- {figure} ({firmware})"
        for firmware, tests in sorted(found.items())
        for one in tests.values()
        for figure in one.get("figures", [])
    ]
    return lines + (["", "## Figures", "", *figures] if figures else [])


def main(words: list[str]) -> int:
    try:
        print(write(Path(words[0], "images")))
    except ReportError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
