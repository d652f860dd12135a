"""The loop of the console: every terminal shows the state when it changes, and goes on with its own dialogue."""

from __future__ import annotations

import select
import time
from typing import NoReturn

from console.actions import ACTIONS
from console.dialogue import Terminal
from console.screen import screen
from console.state import State, gather

POLL = 5.0  # seconds between two looks at the state
POLL_AT_START = 1.0
START = 120.0  # seconds for which the box is looked at more often
TITLES = [action.title for action in ACTIONS]


def open_terminals(paths: list[str]) -> list[Terminal]:
    terminals = []
    for path in paths:
        try:
            terminals.append(Terminal(path))
        except OSError:
            continue  # this box has no such terminal
    return terminals


class Console:
    """All terminals, and the state of the box as it was known last.

    To gather the state takes seconds on a slow or busy box. So whoever types comes first, and sees what is known.
    """

    def __init__(self, terminals: list[Terminal]) -> None:
        self.terminals = terminals
        self.known = State()
        self.started = self.next_look = time.monotonic()

    def run(self) -> NoReturn:
        self.look()
        while True:
            self.step()

    def step(self) -> None:
        """Wait until there is something to do, and do it."""
        listening = [terminal.descriptor for terminal in self.terminals if not terminal.working]
        readable, _, _ = select.select(listening, [], [], self.idle())
        self.advance(readable)
        if not readable and time.monotonic() >= self.next_look:
            self.look()

    def look(self) -> None:
        """Gather the state; where it changed, every terminal shows it that is not at work."""
        state = gather()
        if state != self.known:
            for terminal in self.terminals:
                if not terminal.working:
                    terminal.show_screen(screen(state, TITLES))
        self.known = state
        now = time.monotonic()
        self.next_look = now + (POLL_AT_START if now - self.started < START else POLL)

    def take(self, terminal: Terminal, line: str) -> None:
        """A line was typed: an answer, a choice from the menu, or nothing, to see the menu."""
        if terminal.asked:
            terminal.answer(line)
        elif line.isascii() and line.isdigit() and 1 <= int(line) <= len(ACTIONS):
            action = ACTIONS[int(line) - 1]
            terminal.begin(action.dialogue(), action.menu_after)
        else:
            terminal.show(screen(self.known, TITLES))

    def advance(self, readable: list[int]) -> None:
        """Every terminal that has something to do goes one step further."""
        for terminal in self.terminals:
            before = terminal.dialogue
            if terminal.working:
                if terminal.resume <= time.monotonic():
                    terminal.go_on()
            elif terminal.descriptor in readable:
                self.take(terminal, terminal.read())
            if before and not terminal.dialogue and terminal.menu_after:
                self.known = gather()  # it may have changed what is shown
                terminal.show(screen(self.known, TITLES))

    def idle(self) -> float:
        """Seconds for which nothing happens unless somebody types."""
        moments = [self.next_look, *(terminal.resume for terminal in self.terminals if terminal.working)]
        return max(0.0, min(moments) - time.monotonic())


def main(paths: list[str]) -> None:
    Console(open_terminals(paths)).run()
