"""What a stranger may do to the web page: anybody whose address is on the access list, without a log-in.

The box is new at first; the tests that need an admin set it up and stand behind the others.
"""

import contextlib
import http.client
import json
import os
import re
import ssl
import time

import pytest
from board.machines.wait import until
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


def test_who_comes_before_the_web_process_is_told_so_and_fills_no_log(front):
    *pages, (status, text, _) = front.early.values()
    assert {status for status, _, _ in pages} == {502}
    assert all("The web page is starting or stopped" in text for _, text, _ in pages)
    assert status == 503 and json.loads(text)["error"]["code"] == "starting"
    assert "connect() to" not in front.log.read_text()


@pytest.mark.parametrize(("path", "length"), [("/api/v1/draft", 7_900_000), ("/login/", 900_000)])
def test_bodies_of_strangers_leave_the_state_of_root_its_room(front, path, length):
    before = used(front, "run")
    with all_of(front.slow(path, length, source=STRANGER) for _ in range(5)) as connections:
        for one in connections:
            send(one, b"x" * (length - 1000))
        assert used(front, "run") - before < LITTLE


THREADS = 8  # of gunicorn
FORM = "multipart/form-data; boundary=x"


@pytest.mark.parametrize(
    "path", ["/set-up/restore/", "/system/updates/upload/", "/api/v1/update", "/api/v1/pair/update", "/api/v1/draft"]
)
def test_slow_bodies_of_strangers_hold_no_thread(front, path):
    cookies = front.form("/set-up/restore/", code="NONE")[1]
    with all_of(front.slow(path, 100_000, source=STRANGER, Content_Type=FORM, Cookie=cookies) for _ in range(THREADS)):
        assert front.get("/set-up/")[0] == 200


@contextlib.contextmanager
def let_in_as_one_source(front, sources):
    """Inside, one from each has begun, and the firewall has let in as many as it does of one source."""
    with front.firewall():
        before = time.monotonic()
        with all_of(front.half_open(sources)) as begun:
            until("the first 40", lambda: open_ones(begun) >= 40)
            assert open_ones(begun) <= 41 + 20 * (time.monotonic() - before)
            yield


def test_half_requests_of_one_source_leave_connections_for_others(front):
    with let_in_as_one_source(front, [STRANGER] * 510):
        assert front.get("/set-up/")[0] == 200


def test_addresses_of_one_network_of_ipv6_are_one_source(front):
    with let_in_as_one_source(front, ["2001:db8:5::2", "2001:db8:5::3"] * 60):
        assert front.get("/set-up/", source="2001:db8:5:1::2")[0] == 200


def test_bodies_are_counted_by_the_source_of_a_client(front):
    """nginx knows it as well: eight bytes of an address of IPv6."""
    with all_of(front.slow("/login/", 100, source="2001:db8:5::2") for _ in range(8)):
        for source, status in (("2001:db8:5::3", 429), ("2001:db8:5:1::2", 302), ("127.0.0.4", 302)):
            assert front.ask("POST", "/login/", b"x", source)[0] == status, source


# --- with an admin ---------------------------------------------------------------------------------


def test_the_body_of_a_program_may_come_in_chunks(front, token):
    """Its client does not know how long it will be."""
    head = f"POST /api/v1/firewall/test HTTP/1.1\r\nHost: box\r\nAuthorization: Bearer {token}\r\n"
    kind = "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    with front.connect() as one:
        one.sendall(f"{head}{kind}2\r\n{{}}\r\n0\r\n\r\n".encode())
        answer = http.client.HTTPResponse(one)
        answer.begin()
        text = answer.read().decode()
    assert "bad-field" in text, text


def test_slow_files_of_an_admin_hold_few_threads(front, cookies):
    """And those that are too many are told so at once, whichever of them a thread takes first."""
    path = "/configuration/import/"
    with all_of(front.slow(path, 100_000, Content_Type=FORM, Cookie=cookies) for _ in range(THREADS)) as slow:
        assert front.get("/login/")[0] == 200
        refused = set()

        def all_but_two() -> bool:
            for one in slow:
                one.settimeout(0)
                with contextlib.suppress(ssl.SSLWantReadError):
                    if one.recv(100).startswith(b"HTTP/1.1 503 "):
                        refused.add(one)
            return len(refused) == THREADS - 2

        until("all but two to be refused", all_but_two)


def test_an_answer_is_whole_while_the_room_of_bodies_is_full(front, cookies):
    """The rest of a long one waits somewhere until its client has taken what came before."""
    full = front.root / "run/fairlead/bodies/full"
    with front.far_away():
        try:
            with pytest.raises(OSError, match="No space left"), full.open("wb") as file:
                while True:
                    file.write(bytes(MB))
            with front.connect() as one:
                head = f"GET /system/api/openapi.json HTTP/1.1\r\nHost: box\r\nCookie: {cookies}\r\n"
                one.sendall(f"{head}Connection: close\r\n\r\n".encode())
                time.sleep(1)  # it takes nothing
                answer = http.client.HTTPResponse(one)
                answer.begin()
                document = json.loads(answer.read())
        finally:
            full.unlink()
    assert "openapi" in document


def test_who_asks_for_nothing_or_too_often_fills_no_log(front, cookies):
    """The box's log is 4 MB in memory: no stranger may push out its older lines."""
    page, file = "/not-there", "/static/nothing"
    paths = [page, *([file] * 60 + [page]) * 10]  # files are refused however slow the machine is, and so is a page then
    asks = [f"GET {path} HTTP/1.1\r\nHost: box\r\n" for path in paths]
    with front.connect("127.0.0.5") as one:
        one.sendall(("\r\n".join(asks) + "Connection: close\r\n\r\n").encode())
        answers = b"".join(iter(lambda: one.recv(65536), b"")).decode()
    statuses = [int(status) for status in re.findall(r"HTTP/1\.1 (\d+) ", answers)]
    for path in (page, file):
        assert {status for asked, status in zip(paths, statuses, strict=True) if asked == path} == {404, 429}
        assert path not in front.log.read_text()
