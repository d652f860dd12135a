"""When the program begins that judges a slot (/etc/sv/bootcheck), by the image's own runit.

In Python's place is a program that writes down what it is called with: what it looks at then is tested elsewhere.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from board.lab import build
from board.machines.wait import until
from tests.lab.fixtures import thorough
from tests.peers.room import CLEAN, Room

OVERLAY = build.TOP / "overlay"
SERVICE = "/run/service/bootcheck"
PYTHON = '#!/bin/sh\necho "$*" >>/run/judged\nexit $(cat /run/ends)\n'
JUDGED = "-m applier.update.bootcheck\n"
PATIENCE = 60.0  # seconds that the page is given; overlay/etc/sv/bootcheck/run
LOOKED = 3.0  # seconds in which it looks for the page at least once
ENDS = 60.0  # seconds


class Box(Room):
    def __init__(self, tree: Path) -> None:
        super().__init__("bootcheck", OVERLAY, tree)
        python = self.root / "usr/bin/python3"
        python.unlink()
        python.write_text(PYTHON)
        python.chmod(0o755)
        for folder in ("fairlead/disk", "fairlead/web", "service"):
            (self.root / "run" / folder).mkdir(parents=True)
        self.end_with(0)
        self.run("cp", "-Rp", "/etc/sv/bootcheck", "/run/service/")
        self.supervisor: subprocess.Popen | None = None

    def run(self, *words: str) -> str:
        return subprocess.run(self.inside(*words), check=True, env=CLEAN, capture_output=True, text=True).stdout

    def end_with(self, code: int) -> None:
        (self.root / "run/ends").write_text(f"{code}\n")

    def have_slots(self) -> None:
        (self.root / "run/fairlead/disk/boot-state").touch()

    def listen(self) -> None:
        """As the web process does once it is loaded."""
        with socket.socket(socket.AF_UNIX) as page:
            page.bind(str(self.root / "run/fairlead/web/web.sock"))

    def start(self) -> None:
        self.supervisor = subprocess.Popen(self.inside("runsv", SERVICE), env=CLEAN, stdin=subprocess.DEVNULL)
        until("runit to watch over it", (self.root / SERVICE[1:] / "supervise/ok").exists, ENDS)
        self.run("sv", "up", SERVICE)

    def judged(self) -> str:
        with contextlib.suppress(FileNotFoundError):
            return (self.root / "run/judged").read_text()
        return ""

    def is_down(self) -> bool:
        """Whether it is over, and nobody wants it to begin again."""
        said = self.run("sv", "status", SERVICE)
        return said.startswith("down:") and "want up" not in said

    def close(self) -> str:
        self.end_processes()
        if self.supervisor:
            self.supervisor.wait(ENDS)
        return super().close()


@pytest.fixture
def box() -> Iterator[Box]:
    if os.geteuid() != 0:
        pytest.skip("not root: there can be no box of its own")
    with contextlib.closing(Box(build.base_tree())) as box:
        yield box


def test_it_begins_once_the_page_listens_and_is_over_when_it_has_judged(box):
    box.have_slots()
    box.start()
    time.sleep(LOOKED)
    assert box.judged() == ""
    assert not box.is_down()
    box.listen()
    until("the slot to be judged", box.judged, ENDS)
    until("it to be over", box.is_down, ENDS)
    assert box.judged() == JUDGED


def test_one_that_could_not_judge_is_begun_again(box):
    box.have_slots()
    box.listen()
    box.end_with(1)
    box.start()
    until("it to begin again", lambda: box.judged().count(JUDGED) > 1, ENDS)
    assert not box.is_down()
    box.end_with(0)
    until("it to be over", box.is_down, ENDS)


def test_where_there_is_nothing_to_go_back_to_no_python_is_begun(box):
    box.start()
    until("it to be over", box.is_down, ENDS)
    assert box.judged() == ""


@thorough
def test_a_page_that_never_listens_is_judged_a_minute_later(box):
    box.have_slots()
    began = time.monotonic()
    box.start()
    until("the slot to be judged", box.judged, PATIENCE + ENDS)
    assert time.monotonic() - began >= PATIENCE
    until("it to be over", box.is_down, ENDS)
