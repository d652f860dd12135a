"""A program that is told lines and answers with lines."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable


class Talking:
    def __init__(self, words: Iterable[object], errors: int = subprocess.STDOUT) -> None:
        """`errors`: where what it complains of goes; by itself to what it answers."""
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [str(word) for word in words], stdin=pipe, stdout=pipe, stderr=errors, text=True, errors="replace"
        )
        assert self.process.stdin and self.process.stdout
        self._in, self._out = self.process.stdin, self.process.stdout

    def say(self, line: str) -> None:
        self._in.write(f"{line}\n")
        self._in.flush()

    def hear(self) -> str:
        """The next line; an empty text when there will be none."""
        return self._out.readline()

    def end(self) -> str:
        """Close its input and wait for its end; the rest of what it answers."""
        return self.process.communicate()[0]
