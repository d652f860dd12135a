"""The console of the box: shows on every terminal what an admin needs first, again whenever it changes.

    python3 /usr/lib/fairlead/console TERMINAL …

There is no shell behind it. A number and the return key choose from the menu.
"""

from __future__ import annotations

import os
import select
import sys
import time

from actions import ACTIONS, Action
from screen import screen
from state import State, gather

POLL = 5.0  # seconds between two looks at the state
POLL_AT_START = 1.0
START = 120.0  # seconds for which the box is looked at more often


class Terminal:
    """One screen or serial line, and what its user is in the middle of."""

    def __init__(self, path: str) -> None:
        self.descriptor = os.open(path, os.O_RDWR | os.O_NOCTTY)
        self.asked: Action | None = None

    def show(self, text: str) -> None:
        os.write(self.descriptor, text.replace("\n", "\r\n").encode(errors="replace"))

    def read(self) -> bool:
        """Take a line that was typed; whether the screen shall be shown again."""
        line = os.read(self.descriptor, 1000).decode(errors="replace").strip().lower()
        if self.asked:
            action, self.asked = self.asked, None
            if line != "yes":
                self.show("Nothing was done.\n")
                return True
            self.show(f"{action.title} …\n")
            self.show(action.run())
            return True
        if not (line.isascii() and line.isdigit() and 1 <= int(line) <= len(ACTIONS)):
            return True
        action = ACTIONS[int(line) - 1]
        if not action.warning:
            self.show(action.run())
            return False
        self.asked = action
        self.show(f"{action.title}: {action.warning}\nType yes to go on: ")
        return False


def open_terminals(paths: list[str]) -> list[Terminal]:
    terminals = []
    for path in paths:
        try:
            terminals.append(Terminal(path))
        except OSError:
            continue  # this box has no such terminal
    return terminals


def main() -> None:
    terminals = open_terminals(sys.argv[1:])
    titles = [action.title for action in ACTIONS]
    shown = State()
    started = time.monotonic()
    while True:
        state = gather()
        if state != shown:
            shown = state
            for terminal in terminals:
                terminal.show(screen(state, titles))
        pause = POLL_AT_START if time.monotonic() - started < START else POLL
        readable, _, _ = select.select([terminal.descriptor for terminal in terminals], [], [], pause)
        for terminal in terminals:
            if terminal.descriptor in readable and terminal.read():
                terminal.show(screen(gather(), titles))


if __name__ == "__main__":
    main()
