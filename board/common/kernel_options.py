#!/usr/bin/env python3
"""Compare what the kernel fragments ask for with what the kernel's configuration has.

    kernel_options.py CONFIG FRAGMENT …

Kconfig drops an option silently when something that it depends on is missing, was renamed or went away; the
build then ends well and the box lacks a driver. This names every such option and its file, and exits with 1.
A later fragment overrides an earlier one, as in the build. A module that became built in is no loss.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_SET = re.compile(r"(CONFIG_\w+)=(.*)")
_UNSET = re.compile(r"# (CONFIG_\w+) is not set")
OFF = "n"


@dataclass(frozen=True)
class Dropped:
    option: str
    wished: str
    got: str
    fragment: str

    def __str__(self) -> str:
        return f"{self.fragment}: {self.option}={self.wished} was asked for, the kernel has {self.got}"


def options(text: str) -> Iterator[tuple[str, str]]:
    """Name and value of every option of a .config or fragment; OFF for one that is not set.

    Raises ValueError for a line that is neither an option nor a comment.
    """
    for line in map(str.strip, text.splitlines()):
        if found := _SET.fullmatch(line):
            yield found[1], found[2]
        elif found := _UNSET.fullmatch(line):
            yield found[1], OFF
        elif line and not line.startswith("#"):
            raise ValueError(f"{line!r} is neither an option nor a comment")


def dropped(config: str, fragments: Iterable[tuple[str, str]]) -> list[Dropped]:
    """What was asked for in fragments (name, text) and is otherwise in the configuration."""
    got = dict(options(config))
    wished = {option: (value, name) for name, text in fragments for option, value in options(text)}
    return [
        Dropped(option, value, got.get(option, OFF), name)
        for option, (value, name) in wished.items()
        if not kept(value, got.get(option, OFF))
    ]


def kept(wished: str, got: str) -> bool:
    return got == wished or (wished, got) == ("m", "y")


def main(words: list[str]) -> int:
    config, *fragments = map(Path, words)
    found = dropped(config.read_text(), [(path.name, path.read_text()) for path in fragments])
    for one in found:
        print(f"kernel option dropped: {one}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
