"""What drills of the pair have shown: the newest ones, as far as this box knows them. On the data partition."""

from __future__ import annotations

import contextlib
import json
import logging
import threading
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from applier.base import durable
from applier.kept.events import TIME
from applier.wire.shapes_pair import Drill

log = logging.getLogger("applier")

MOST = 50  # drills that are kept
LONGEST = 300  # characters of a text
LONGEST_LIST = 16  # addresses that did not answer
MAX_COUNT = 10**9


class DrillList:
    """`path` is a line of JSON for each drill, the oldest first; it is written anew with each."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._drills: list[Drill] | None = None  # None: not read yet

    def newest(self) -> list[Drill]:
        """The newest first."""
        with self._lock:
            return [drill.copy() for drill in reversed(self._known())]

    def note(self, drill: Drill) -> None:
        """One that is known already, as it was told twice, stays once."""
        with self._lock:
            others = [one for one in self._known() if one["id"] != drill["id"]]
            self._drills = [*others, drill][-MOST:]
            try:
                self._path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
                durable.replace(self._path, "".join(f"{json.dumps(one)}\n" for one in self._drills).encode())
            except OSError as error:
                log.error("%s: %s", self._path, error)  # the data partition has faults of its own for that

    def _known(self) -> list[Drill]:
        """A line that is no drill, as a damaged disk leaves one, takes nothing else along."""
        if self._drills is None:
            lines: list[bytes] = []
            with contextlib.suppress(OSError):
                lines = self._path.read_bytes().splitlines()[-MOST:]
            self._drills = []
            for line in lines:
                with contextlib.suppress(ValueError, RecursionError):
                    self._drills.append(read(json.loads(line)))
        return self._drills


def read(data: object) -> Drill:
    """A drill, as a file or the other box has it. ValueError, with the field, where it is none."""
    if not isinstance(data, Mapping):
        raise ValueError("must be an object")
    silence, failed = data.get("silence"), _text(data, "failed")
    good = silence is None or (type(silence) in (int, float) and 0 <= silence <= MAX_COUNT)
    if not good:
        raise ValueError("silence: must be a number of milliseconds, or nothing")
    unanswered = data.get("unanswered")
    if not isinstance(unanswered, list) or len(unanswered) > LONGEST_LIST:
        raise ValueError(f"unanswered: must be at most {LONGEST_LIST} addresses")
    if not all(isinstance(one, str) and one.isprintable() and len(one) <= LONGEST for one in unanswered):
        raise ValueError("unanswered: must be addresses")
    part = _count(data, "part")
    if not part:
        raise ValueError(f"part: must be 1 to {MAX_COUNT}")
    return {
        "id": _text(data, "id"),
        "when": _when(data),
        "user": _text(data, "user"),
        "gave": _text(data, "gave"),
        "took": _text(data, "took"),
        "failed": failed,
        "silence": None if silence is None else float(silence),
        "unanswered": list(unanswered),
        "part": part,
        "before": _count(data, "before"),
        "after": _count(data, "after"),
        "ended": _count(data, "ended"),
        "lost": _count(data, "lost"),
    }


def _when(data: Mapping[str, Any]) -> str:
    try:
        return datetime.strptime(data.get("when", ""), TIME).strftime(TIME)
    except (ValueError, TypeError):
        raise ValueError("when: must be a time in UTC") from None


def _text(data: Mapping[str, Any], field: str) -> str:
    text = data.get(field)
    if not isinstance(text, str) or len(text) > LONGEST or not text.isprintable():
        raise ValueError(f"{field}: must be a text of at most {LONGEST} characters")
    return text


def _count(data: Mapping[str, Any], field: str) -> int:
    count = data.get(field)
    if type(count) is not int or not 0 <= count <= MAX_COUNT:
        raise ValueError(f"{field}: must be 0 to {MAX_COUNT}")
    return count
