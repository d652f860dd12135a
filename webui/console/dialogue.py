"""What an action of the menu is: a generator that tells, asks and pauses, and the terminal that runs it.

    def dialogue():
        yield "Something to show.\\n"
        answer = yield Ask("Which one? ")      # a line that was typed, in small letters and without blanks around it
        yield Pause(1)                         # goes on after that many seconds

An empty line ends the dialogue wherever the question has no default answer; so does raising Cancelled. While
one terminal waits for an answer or works, the other one can do the same.
"""

from __future__ import annotations

import os
import re
import termios
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Ask:
    question: str
    default: str = ""  # what an empty line means; without one it ends the dialogue


@dataclass(frozen=True)
class Pause:
    seconds: float


class Cancelled(Exception):
    """The person at the terminal does not want to go on. Nothing was changed."""


Dialogue = Generator[str | Ask | Pause, str | None, None]
NOTHING_DONE = "Nothing was done.\n"
WIDTH = 70  # of a line that replaces itself
RED, NORMAL = "\033[1;31m", "\033[0m"
OURS = re.compile(f"({re.escape(RED)}|{re.escape(NORMAL)}|[\r\n])")  # what the console itself tells a terminal to do
LONG = 0.5  # seconds after which somebody may grow impatient


def numbered(question: str, usable: Sequence[bool]) -> Generator[str | Ask, str, int]:
    """Ask for one of a numbered list, whose entries begin with 1; which one, from 0."""
    while True:
        line = yield Ask(f"{question}; an empty line cancels: ")
        number = int(line) if line.isascii() and line.isdigit() else 0
        if 1 <= number <= len(usable) and usable[number - 1]:
            return number - 1
        yield "There is no such number in the list.\n"


def one_line(text: str) -> str:
    """In the place of the line before it, if that was one of these too."""
    return f"\r{text:{WIDTH}}"


def harmless(text: str) -> str:
    """The text without what a terminal would obey, whoever wrote it: names, comments and errors come from anybody."""
    pieces = OURS.split(text)
    return "".join(
        piece if place % 2 else "".join(one if one.isprintable() else "?" for one in piece)
        for place, piece in enumerate(pieces)
    )


class Terminal:
    """One screen or serial line, and the dialogue that its user is in the middle of."""

    def __init__(self, path: str) -> None:
        self.descriptor = os.open(path, os.O_RDWR | os.O_NOCTTY)
        self.dialogue: Dialogue | None = None
        self.menu_after = True  # whether the menu is shown when the dialogue has ended
        self.asked: Ask | None = None
        self.resume = 0.0  # when the dialogue goes on, on the monotonic clock
        self.worked = False  # long enough that somebody may have typed since the last thing that was shown

    @property
    def working(self) -> bool:
        """Whether the dialogue goes on by itself."""
        return self.dialogue is not None and self.asked is None

    def show(self, text: str) -> None:
        os.write(self.descriptor, harmless(text).replace("\n", "\r\n").encode(errors="replace"))

    def read(self) -> str:
        return os.read(self.descriptor, 1000).decode(errors="replace").strip().lower()

    def begin(self, dialogue: Dialogue, menu_after: bool) -> None:
        self.dialogue, self.menu_after = dialogue, menu_after
        self._go(None)

    def answer(self, line: str) -> None:
        """A line was typed to the question."""
        asked, self.asked = self.asked, None
        said = line or (asked.default if asked else "")
        if said:
            self._go(said)
            return
        if self.dialogue:
            self.dialogue.close()
        self.dialogue = None
        self.show(NOTHING_DONE)

    def go_on(self) -> None:
        """The next step of a dialogue that works."""
        self._go(None)

    def show_screen(self, text: str) -> None:
        """The state of the box, and then the question again that it pushed away."""
        self.show(text)
        if self.asked:
            self.show(self.asked.question)

    def _go(self, answer: str | None) -> None:
        if self.dialogue is None:
            return
        began = time.monotonic()
        step: str | Ask | Pause
        try:
            step = self.dialogue.send(answer)
        except StopIteration:
            step = ""
            self.dialogue = None
        except Cancelled:
            step = NOTHING_DONE
            self.dialogue = None
        except OSError as error:  # a disk that breaks must not take the console away
            step = f"\nThat failed: {error}\n"
            self.dialogue = None
        self.worked |= isinstance(step, Pause) or time.monotonic() - began > LONG
        self._take(step)

    def _take(self, step: str | Ask | Pause) -> None:
        if isinstance(step, Pause):
            self.resume = time.monotonic() + step.seconds
            return
        self._forget_what_was_typed()
        if isinstance(step, Ask):
            self.asked = step
            step = step.question
        self.show(step)

    def _forget_what_was_typed(self) -> None:
        """Somebody grew impatient while a dialogue worked: that is neither an answer nor a choice.

        Before anything is shown: what is typed after that belongs to what was shown.
        """
        if self.worked:
            termios.tcflush(self.descriptor, termios.TCIFLUSH)
        self.worked = False
