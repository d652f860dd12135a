"""A unified diff as lines that a template can colour."""

from __future__ import annotations

import re
from dataclasses import dataclass

KINDS = (("@@", "place"), ("+", "added"), ("-", "removed"))
HEAD = 2  # lines that name the two files

SECRET = re.compile(r'\b(passwd|secret)="[^"]*"')  # of ldirectord.cf; a screen may be seen by others

# What each rendered file is for, in the words of the admin.
FILES = {
    "sorry.html": "Sorry page",
    "ipvs.rules": "Load balancing in the kernel",
    "ldirectord.cf": "Health checks",
    "nftables.conf": "Firewall",
    "interfaces": "Addresses and routes",
    "resolv.conf": "Name servers",
    "chrony.conf": "Time servers",
    "sysctl.conf": "Kernel settings",
    "tuning.conf": "Hardware",
    "web.conf": "Web page",
}


@dataclass(frozen=True)
class Line:
    kind: str
    text: str


@dataclass(frozen=True)
class FileDiff:
    path: str
    title: str
    lines: tuple[Line, ...]
    added: int
    removed: int


def read(path: str, text: str) -> FileDiff:
    shown = SECRET.sub(r'\1="…"', text).splitlines()
    lines = tuple(Line("file" if n < HEAD else _kind(line), line) for n, line in enumerate(shown))
    kinds = [line.kind for line in lines]
    return FileDiff(path, FILES.get(path, path), lines, kinds.count("added"), kinds.count("removed"))


def _kind(line: str) -> str:
    return next((kind for start, kind in KINDS if line.startswith(start)), "same")
