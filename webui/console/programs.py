"""Programs that the console starts, while it goes on to serve its other terminals."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass

from console.dialogue import Pause

POLL = 0.2  # seconds
TIMEOUT = 180.0  # seconds; Django takes many of them on a slow box that is busy


@dataclass(frozen=True)
class Done:
    exit: int
    output: str
    errors: str


def run(words: Sequence[str], timeout: float = TIMEOUT) -> Generator[Pause, None, Done]:
    """Its end. Raises OSError where it cannot be started, or does not end in time."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        program = subprocess.Popen(list(words), stdin=subprocess.DEVNULL, stdout=output, stderr=errors)
        deadline = time.monotonic() + timeout
        try:
            while program.poll() is None:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{words[0]} did not end within {timeout:g} seconds")
                yield Pause(POLL)
        finally:
            if program.poll() is None:
                program.kill()
                program.wait()
        return Done(program.returncode, text_of(output), text_of(errors))


def text_of(file) -> str:
    file.seek(0)
    return file.read(10_000)
