"""The small C programs that make load (bench/programs), compiled here and brought into guests.

They are linked statically: a guest's C library may be older than this machine's.
"""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from bench.head import TOP
from tests.lab.machine import Machine

SOURCES = Path(__file__).with_name("programs")
KEPT = TOP / "build/bench/programs"
COMPILER = ("gcc", "-O2", "-static", "-Wall", "-Wextra", "-Werror")
LIBRARY = ("gcc", "-O2", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror")
PLACE = "/run/bench"  # in a guest


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


def bring(machine: Machine, *names: str) -> None:
    """Put programs into a guest, below PLACE."""
    machine.succeed(["mkdir", "-p", PLACE])
    for name in names:
        path = f"{PLACE}/{name}"
        machine.succeed(f"cat >{path} && chmod 755 {path}", stdin=program(name).read_bytes())
