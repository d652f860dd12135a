"""People at terminals of the console, on real (pseudo) terminals."""

import os
import pty
import select
import time
import tty

import pytest
from tests.fake import appliance

from console import dialogue


class Person:
    """At the other end of a terminal of the console."""

    def __init__(self, dialogue) -> None:
        self.end, other = pty.openpty()
        tty.setraw(self.end)
        self.terminal = dialogue.Terminal(os.ttyname(other))
        os.close(other)
        self.seen = ""

    def type(self, line: str) -> None:
        """Answer the question that was asked; a work that follows goes on to the next question or to its end."""
        assert self.terminal.asked, self.look()
        self.terminal.answer(line)
        self.work()

    def work(self) -> None:
        while self.terminal.working:
            time.sleep(max(0.0, self.terminal.resume - time.monotonic()))
            self.terminal.go_on()
            self.seen += self.take()  # a terminal that nobody reads fills up

    def look(self) -> str:
        """Everything that came since the last look."""
        seen, self.seen = self.seen + self.take(), ""
        return seen.replace("\r\n", "\n")

    def arrived(self) -> str:
        """What was typed and neither read nor forgotten by the console."""
        ready, _, _ = select.select([self.terminal.descriptor], [], [], 20)
        return self.terminal.read() if ready else ""

    def take(self) -> str:
        os.set_blocking(self.end, False)
        text = ""
        try:
            while part := os.read(self.end, 65536):
                text += part.decode()
        except BlockingIOError:
            pass
        return text


@pytest.fixture
def people():
    """Makes so many of them."""
    return lambda number: [Person(dialogue) for _ in range(number)]


@pytest.fixture
def person(people):
    return people(1)[0]


@pytest.fixture
def fake(monkeypatch):
    """The pretended appliance, of which every apply ends at once."""
    monkeypatch.setattr("applier.wire.client.dial", appliance.Fake)
    appliance.reset(instant=True)
    yield appliance
    appliance.reset()


@pytest.fixture
def talk():
    """Makes a dialogue: two questions, and some work between them."""

    def lines():
        name = yield dialogue.Ask("Your name? ")
        yield f"Hello {name}.\n"
        colour = yield dialogue.Ask("Colour? [red] ", "red")
        yield f"{colour}.\n"
        raise dialogue.Cancelled

    return lines
