"""What a stranger may do to the web page: anybody whose address is on the access list, without a log-in.

The box is new at first; the tests that need an admin set it up and stand behind the others.
"""

import contextlib
import os

import pytest

STRANGER = "127.0.0.2"
MB = 1_000_000
LITTLE = 256 * 1024  # bytes: more than the box itself writes down meanwhile


def used(front, folder: str) -> int:
    """Bytes of the file system."""
    about = os.statvfs(front.root / folder)
    return (about.f_blocks - about.f_bfree) * about.f_frsize


@contextlib.contextmanager
def all_of(connections):
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(one) for one in connections]


def send(connection, data: bytes) -> None:
    """As much as anybody takes."""
    with contextlib.suppress(OSError):
        connection.settimeout(5)
        connection.sendall(data)


@pytest.mark.parametrize(("path", "length"), [("/api/v1/draft", 7_900_000), ("/login/", 900_000)])
def test_bodies_of_strangers_leave_the_state_of_root_its_room(front, path, length):
    before = used(front, "run")
    with all_of(front.slow(path, length, source=STRANGER) for _ in range(5)) as connections:
        for one in connections:
            send(one, b"x" * (length - 1000))
        assert used(front, "run") - before < LITTLE
