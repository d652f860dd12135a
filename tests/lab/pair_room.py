"""Two directors as network namespaces of one machine, driven from the host.

tests/lab/pair_guest.py runs in there, and pair_elects.py where they elect who leads.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

from board.machines.director import PYTHON, Director

HERE = Path(__file__).parent
GUEST, ELECTS, PROBE, CROWD = "pair_guest", "pair_elects", "pair_probe", "pair_crowd"
FOLDER = "/run/pair"


class Room:
    """`ask` calls a function of the module by its name."""

    def __init__(self, director: Director, module: str = GUEST) -> None:
        self._director = director
        self._numbers = itertools.count()
        director.succeed(f"mkdir -p {FOLDER}/tests/lab")
        for name in (GUEST, ELECTS, PROBE, CROWD):
            director.write(f"{FOLDER}/tests/lab/{name}.py", (HERE / f"{name}.py").read_text())
        start = f"cd {FOLDER} && {PYTHON} -m tests.lab.{module} >{FOLDER}/log 2>&1 </dev/null"
        director.succeed(f"({start}) & echo $! >{FOLDER}/pid")

    def ask(self, name: str, *arguments: object, timeout: float = 240) -> Any:
        number = next(self._numbers)
        self._director.write(f"{FOLDER}/in.new", json.dumps([name, *arguments]))
        wait = f"until [ -e {FOLDER}/out.{number} ]; do kill -0 $(cat {FOLDER}/pid) || break; sleep 0.1; done"
        said = self._director.succeed(
            f"mv {FOLDER}/in.new {FOLDER}/in.{number}; {wait}; cat {FOLDER}/out.{number} || cat {FOLDER}/log", timeout
        )
        try:
            answer = json.loads(said)
        except ValueError:
            raise AssertionError(f"{name}: {said}") from None
        assert "error" not in answer, f"{name}: {answer['error']}"
        return answer["found"]


def a_pair(director: Director) -> Room:
    """Both directors, joined; the first one leads because it was given the addresses."""
    room = joined(Room(director))
    room.ask("lead", "A")
    return room


def one_that_elects(director: Director, *more: str) -> Room:
    """Both directors, with keepalived and the floater. `more`: what is different from the usual, in this order."""
    room = Room(director, ELECTS)
    for one in more:
        room.ask(one)
    joined(room)
    room.ask("elect")
    return room


def joined(room: Room) -> Room:
    for step in (("build",), ("keys",), ("start", "A"), ("start", "B")):
        room.ask(*step)
    for box in ("A", "B"):
        assert room.ask("join", box) == "", box
    assert room.ask("joined", "A") and room.ask("joined", "B")
    return room
