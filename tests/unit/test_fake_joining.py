"""The program of the fake box that talks to another one (tests/fake/joining.py)."""

import os
import threading
import time

from tests.fake.joining import InThread


def test_a_program_that_two_end_at_the_same_moment_is_ended_once(monkeypatch):
    """Its number may be another file's by the time of a second close."""
    program, close, closed = InThread("first"), os.close, []

    def slow(descriptor: int) -> None:
        if descriptor == program._input:
            closed.append(descriptor)
            time.sleep(0.2)
        close(descriptor)

    monkeypatch.setattr(os, "close", slow)
    both = [threading.Thread(target=program.end) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert len(closed) == 1 and not program._thread.is_alive()
