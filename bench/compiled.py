"""The small C programs that make load (bench/programs), compiled here."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from bench.head import TOP

SOURCES = Path(__file__).with_name("programs")
KEPT = TOP / "build/bench/programs"
COMPILER = ("gcc", "-O2", "-static", "-Wall", "-Wextra", "-Werror")
LIBRARY = ("gcc", "-O2", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror")


class CannotCompile(OSError):
    """The text is what the compiler said."""


def program(name: str) -> Path:
    """The compiled program, made now or before. Raises CannotCompile."""
    return made_of(name, COMPILER, "")


def library(name: str) -> Path:
    """The same as a library that a program of this machine loads."""
    return made_of(name, LIBRARY, ".so")


def made_of(name: str, command: tuple[str, ...], ending: str) -> Path:
    source = SOURCES / f"{name}.c"
    made = KEPT / f"{name}-{hashlib.sha256(source.read_bytes()).hexdigest()[:12]}{ending}"
    if not made.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        new = made.with_suffix(".new")
        try:
            done = subprocess.run([*command, "-o", new, source], capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise CannotCompile(f"{command[0]} is not installed") from None
        if done.returncode:
            raise CannotCompile(f"{source.name}: {done.stderr}")
        new.rename(made)
    return made
