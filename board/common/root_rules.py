#!/usr/bin/env python3
"""Hold a root file system against the rules of the house; name every file that breaks one and exit with 1.

root_rules.py FOLDER
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

# Programs that make or fetch programs, give a shell to somebody else, or serve beside nginx.
UNWANTED = re.compile(
    r"(gcc|g\+\+|cc|ld|as|make|perlbug|cpan|pip\d*|gdb|strace|login|su|sudo|passwd|telnetd|inetd|ftpd|tftpd|httpd|crond)"
)
PROGRAMS = ("bin", "sbin", "usr/bin", "usr/sbin")


def broken_rules(root: Path) -> Iterator[str]:
    """A sentence for each."""
    owner = root.stat().st_uid
    for folder, folders, names in os.walk(root):
        for name in (*folders, *names):
            path = Path(folder, name)
            mode = path.lstat().st_mode
            if path.lstat().st_uid != owner:
                yield f"/{path.relative_to(root)} belongs to user {path.lstat().st_uid}"
            if stat.S_ISREG(mode) and mode & (stat.S_ISUID | stat.S_ISGID):
                yield f"/{path.relative_to(root)} runs with the rights of its owner (SUID or SGID)"
            if stat.S_ISREG(mode) and mode & stat.S_IWOTH:
                yield f"/{path.relative_to(root)} can be written by everybody"
    for folder in PROGRAMS:
        if (root / folder).is_dir() and not (root / folder).is_symlink():
            for program in sorted((root / folder).iterdir()):
                if UNWANTED.fullmatch(program.name):
                    yield f"/{program.relative_to(root)} has no business on the box"
    yield from passwords((root / "etc/shadow").read_text())


def passwords(shadow: str) -> Iterator[str]:
    for line in shadow.splitlines():
        user, password, *_ = line.split(":")
        if not password.startswith(("!", "*")):
            yield f"/etc/shadow: {user} can log in with a password"


def main(words: list[str]) -> int:
    found = list(broken_rules(Path(words[0])))
    for one in found:
        print(f"root file system: {one}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
