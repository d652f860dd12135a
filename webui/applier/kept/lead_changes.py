"""When which box of the pair began to lead, and why: the newest ones, as this box saw them."""

from __future__ import annotations

import contextlib
import json
import logging
import threading
from datetime import datetime
from pathlib import Path
from typing import Any

from applier.base import durable
from applier.kept.events import TIME
from applier.kept.faults import now
from applier.wire.shapes_pair import LeadChange

log = logging.getLogger("applier")

MOST = 50  # changes that are kept
LONGEST = 300  # characters of a reason


class LeadChanges:
    """`path` is a line of JSON for each change, the oldest first; it is written anew with each."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._changes: list[LeadChange] | None = None  # None: not read yet

    def newest(self) -> list[LeadChange]:
        """The newest first."""
        with self._lock:
            return [change.copy() for change in reversed(self._known())]

    def note(self, leads: str, reason: str) -> None:
        with self._lock:
            change: LeadChange = {"when": now(), "leads": leads, "reason": reason[:LONGEST]}
            self._changes = [*self._known(), change][-MOST:]
            try:
                self._path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
                durable.replace(self._path, "".join(f"{json.dumps(one)}\n" for one in self._changes).encode())
            except OSError as error:
                log.error("%s: %s", self._path, error)  # the data partition has faults of its own for that

    def _known(self) -> list[LeadChange]:
        """A line that is no change, as a damaged disk leaves one, takes nothing else along."""
        if self._changes is None:
            lines: list[bytes] = []
            with contextlib.suppress(OSError):
                lines = self._path.read_bytes().splitlines()[-MOST:]
            self._changes = []
            for line in lines:
                with contextlib.suppress(Exception):
                    self._changes.append(_change(json.loads(line)))
        return self._changes


def _change(data: dict[str, Any]) -> LeadChange:
    """ValueError, KeyError or TypeError where it is none."""
    when = datetime.strptime(data["when"], TIME).strftime(TIME)
    return {"when": when, "leads": str(data["leads"]), "reason": str(data["reason"])[:LONGEST]}
