"""What a stranger may do to the web page: anybody whose address is on the access list, without a log-in.

The box is new at first; the tests that need an admin set it up and stand behind the others.
"""

import contextlib
import os
import time

import pytest
from tests.lab.wait import found
from tests.peers.front import open_ones

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


THREADS = 8  # of gunicorn
FORM = "multipart/form-data; boundary=x"


@pytest.mark.parametrize("path", ["/set-up/restore/", "/system/updates/upload/", "/api/v1/update", "/api/v1/draft"])
def test_slow_bodies_of_strangers_hold_no_thread(front, path):
    cookies = front.form("/set-up/restore/", code="NONE")[1]
    with all_of(front.slow(path, 100_000, source=STRANGER, Content_Type=FORM, Cookie=cookies) for _ in range(THREADS)):
        assert front.get("/set-up/")[0] == 200


def test_half_requests_of_one_source_leave_connections_for_others(front):
    with front.firewall(), all_of(front.half_open([STRANGER] * 510)) as begun:
        time.sleep(0.5)
        assert 40 <= open_ones(begun) < 120
        assert front.get("/set-up/")[0] == 200


def test_addresses_of_one_network_of_ipv6_are_one_source(front):
    sources = ["2001:db8:5::2", "2001:db8:5::3"] * 60
    with front.firewall(), all_of(front.half_open(sources)) as begun:
        time.sleep(0.5)
        assert 40 <= open_ones(begun) < 100
        assert front.get("/set-up/", source="2001:db8:5:1::2")[0] == 200


def test_bodies_are_counted_by_the_source_of_a_client(front):
    """nginx knows it as well: eight bytes of an address of IPv6."""
    with all_of(front.slow("/login/", 100, source="2001:db8:5::2") for _ in range(8)):
        for source, status in (("2001:db8:5::3", 429), ("2001:db8:5:1::2", 302), ("127.0.0.4", 302)):
            assert front.ask("POST", "/login/", b"x", source)[0] == status, source


# --- with an admin ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cookies(front) -> str:
    """The session of the first admin."""
    return front.set_up()


@pytest.fixture(scope="module")
def token(front, cookies) -> str:
    values = {"name": "robot", "scopes": "change", "days": "365"}
    (status, text, _), _ = front.form("/system/api/", cookies, post="/system/api/tokens/", **values)
    assert status == 200
    return found("(fairlead_[A-Za-z0-9_-]+)", text)


def test_the_body_of_a_program_may_come_in_chunks(front, token):
    """Its client does not know how long it will be."""
    head = f"POST /api/v1/firewall/test HTTP/1.1\r\nHost: box\r\nAuthorization: Bearer {token}\r\n"
    kind = "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    with front.connect() as one:
        one.sendall(f"{head}{kind}2\r\n{{}}\r\n0\r\n\r\n".encode())
        answer = one.recv(10_000).decode()
    assert "bad-field" in answer, answer


def test_slow_files_of_an_admin_hold_few_threads(front, cookies):
    """And the one that is too many is told so at once."""
    path = "/configuration/import/"
    with all_of(front.slow(path, 100_000, Content_Type=FORM, Cookie=cookies) for _ in range(THREADS)) as slow:
        assert front.get("/login/")[0] == 200
        assert slow[-1].recv(100).startswith(b"HTTP/1.1 503 ")
