"""Two directors as network namespaces of one machine, driven from the host (tests/lab/pair_guest.py runs in there)."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

from board.machines.director import Director

SCRIPT = Path(__file__).with_name("pair_guest.py")
FOLDER = "/run/pair"
PYTHON = "PYTHONPATH=/usr/lib/fairlead/webui:/usr/lib/fairlead/python python3"


class Room:
    """`ask` calls a function of the script by its name."""

    def __init__(self, director: Director) -> None:
        self._director = director
        self._numbers = itertools.count()
        director.succeed(f"mkdir -p {FOLDER}")
        director.write(f"{FOLDER}/guest.py", SCRIPT.read_text())
        director.succeed(f"{PYTHON} {FOLDER}/guest.py >{FOLDER}/log 2>&1 </dev/null & echo $! >{FOLDER}/pid")

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
    """Both directors, joined; the first one leads."""
    room = Room(director)
    for step in (("build",), ("keys",), ("start", "A"), ("start", "B")):
        room.ask(*step)
    for box in ("A", "B"):
        assert room.ask("join", box) == "", box
    assert room.ask("joined", "A") and room.ask("joined", "B")
    room.ask("lead", "A")
    return room
