"""Real servers of every kind that is checked, in network namespaces on this machine.

They are started once for each process that runs tests; what they are called inside a namespace disturbs no other."""

import contextlib
import os

import pytest
from board.lab import build, peers
from board.machines.wait import found
from tests.peers.front import Front
from tests.peers.joining_boxes import Two
from tests.peers.lab import Lab

LINES = 40  # of its log that a server shows when a test failed


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    if os.geteuid() != 0:
        pytest.skip("not root: there can be no servers with addresses of their own")
    with Lab(tmp_path_factory.mktemp("certificates"), build.base_tree(), peers.build()) as lab:
        yield lab


@pytest.fixture(scope="module")
def front():
    """The web page of a new box."""
    if os.geteuid() != 0:
        pytest.skip("not root: there can be no box of its own")
    with contextlib.closing(Front(build.base_tree())) as front:
        front.start()
        yield front


@pytest.fixture(scope="module")
def cookies(front) -> str:
    """The session of the first admin."""
    return front.set_up()


@pytest.fixture(scope="module")
def token(front, cookies) -> str:
    """Of a program that may change the draft and apply it."""
    values = {"name": "robot", "scopes": ["change", "apply"], "days": "365"}
    (status, text, _), _ = front.form("/system/api/", cookies, post="/system/api/tokens/", **values)
    assert status == 200
    return found("(fairlead_[A-Za-z0-9_-]+)", text)


@pytest.fixture
def two():
    """Two boxes that may be joined."""
    both = Two()
    yield both
    both.first.verbs.pair_forget("test")
    both.second.verbs.pair_forget("test")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Show what the servers wrote down when a test fails."""
    report = (yield).get_result()
    if report.failed and "front" in item.funcargs:
        lines = item.funcargs["front"].log.read_text(errors="replace").splitlines()
        report.sections.append(("log of the web page", "\n".join(lines[-LINES:])))
    if report.failed and "lab" in item.funcargs:
        for name, server in item.funcargs["lab"].servers.items():
            lines = server.log.read_text(errors="replace").splitlines()
            report.sections.append((f"log of {name}", "\n".join(lines[-LINES:])))
    if report.failed and "pair" in item.funcargs:
        for box in item.funcargs["pair"].boxes:
            report.sections.append((f"log of {box.name}", "\n".join(box.log.splitlines()[-LINES:])))
