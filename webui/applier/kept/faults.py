"""What is wrong with the box at the moment, each in a sentence an admin can act on."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

from applier.wire.shapes import Fault


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Faults:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._faults: dict[str, Fault] = {}

    def set(self, code: str, message: str | None) -> None:
        """One fault a code; its `since` stays while only the words change. None: it is over."""
        with self._lock:
            if message is None:
                self._faults.pop(code, None)
            else:
                since = self._faults[code]["since"] if code in self._faults else now()
                self._faults[code] = {"code": code, "message": message, "since": since}

    def clear(self, *codes: str) -> None:
        for code in codes:
            self.set(code, None)

    def codes(self) -> list[str]:
        with self._lock:
            return list(self._faults)

    def to_data(self) -> list[Fault]:
        with self._lock:
            return [fault.copy() for fault in self._faults.values()]
