"""The machines in tests/captures/machines, as lbconfig.hardware.reading.machine takes them."""

from __future__ import annotations

import re
from pathlib import Path

from lbconfig.hardware.facts import Machine
from lbconfig.hardware.reading.machine import read

FOLDER = Path(__file__).resolve().parents[2] / "captures/machines"
_HEAD = re.compile(r"^==> (\$ )?(.+) <==\n", re.MULTILINE)


def texts(name: str) -> tuple[dict[str, str], dict[str, str]]:
    """Files by their path, and outputs of commands by their words."""
    parts = _HEAD.split((FOLDER / f"{name}.txt").read_text())
    files: dict[str, str] = {}
    commands: dict[str, str] = {}
    for dollar, title, text in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        (commands if dollar else files)[title] = text
    return files, commands


def recorded(name: str) -> Machine:
    return read(*texts(name))


def names() -> set[str]:
    return {path.stem for path in FOLDER.glob("*.txt")}
