"""The loop of the console: every terminal shows the state when it changes, and goes on with its own dialogue."""

from __future__ import annotations

import select
import time

from actions import ACTIONS
from dialogue import Terminal
from screen import screen
from state import State, gather

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


def take(terminal: Terminal, line: str) -> None:
    """A line was typed: an answer, a choice from the menu, or a wish to see the menu."""
    if terminal.asked:
        terminal.answer(line)
    elif line.isascii() and line.isdigit() and 1 <= int(line) <= len(ACTIONS):
        action = ACTIONS[int(line) - 1]
        terminal.begin(action.dialogue(), action.menu_after)
    else:
        terminal.show(screen(gather(), TITLES))


def advance(terminals: list[Terminal], readable: list[int]) -> None:
    """Every terminal that has something to do goes one step further."""
    for terminal in terminals:
        before = terminal.dialogue
        if terminal.working:
            if terminal.resume <= time.monotonic():
                terminal.go_on()
        elif terminal.descriptor in readable:
            take(terminal, terminal.read())
        if before and not terminal.dialogue and terminal.menu_after:
            terminal.show(screen(gather(), TITLES))


def idle(terminals: list[Terminal], until: float) -> float:
    """Seconds for which nothing happens unless somebody types."""
    moments = [until, *(terminal.resume for terminal in terminals if terminal.working)]
    return max(0.0, min(moments) - time.monotonic())


def main(paths: list[str]) -> None:
    terminals = open_terminals(paths)
    shown = State()
    started = time.monotonic()
    next_look = started
    while True:
        if time.monotonic() >= next_look:
            state = gather()
            if state != shown:
                shown = state
                for terminal in terminals:
                    if not terminal.working:
                        terminal.show_screen(screen(state, TITLES))
            next_look = time.monotonic() + (POLL_AT_START if time.monotonic() - started < START else POLL)
        listening = [terminal.descriptor for terminal in terminals if not terminal.working]
        readable, _, _ = select.select(listening, [], [], idle(terminals, next_look))
        advance(terminals, readable)
