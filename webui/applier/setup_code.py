"""The one-time code that the console shows and the web page asks for before it takes a new admin password."""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
import threading
import time
from collections.abc import Callable

from applier import durable, storage
from applier.errors import ApplierRefused
from applier.paths import Paths

ALPHABET = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"  # nothing that looks like something else
GROUPS, LETTERS = 3, 4
GUESSES, PERIOD = 5, 60.0  # wrong guesses in so many seconds; 31**12 codes are then safe for ever


class SetupCode:
    def __init__(self, paths: Paths, now: Callable[[], float] = time.monotonic) -> None:
        self._paths = paths
        self._now = now
        self._lock = threading.Lock()
        self._wrong: list[float] = []

    def prepare(self) -> None:
        """At the start of the daemon: a box that nobody has set up needs a code."""
        if not self._paths.set_up.exists() and not self.active():
            self.renew()

    def active(self) -> bool:
        return self._read() is not None

    def renew(self) -> str:
        groups = ("".join(secrets.choice(ALPHABET) for _ in range(LETTERS)) for _ in range(GROUPS))
        code = "-".join(groups)
        self._paths.setup_code.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._paths.setup_code)  # never into a file that somebody else may have opened
        durable.replace(self._paths.setup_code, f"{code}\n".encode())
        return code

    def check(self, code: str) -> bool:
        """Whether it is the code. ApplierRefused after too many that were not."""
        with self._lock:
            return self._check(code)

    def done(self, code: str) -> None:
        """Spend the code: the box is set up."""
        with self._lock:
            if not self._check(code):
                raise ApplierRefused("wrong-code", "This is not the set-up code that the console shows.")
            try:
                durable.replace(self._paths.set_up, b"yes\n")
            except OSError as error:
                raise ApplierRefused(*storage.of_error(error, self._paths)) from None
            os.unlink(self._paths.setup_code)

    def _check(self, code: str) -> bool:
        now = self._now()
        self._wrong = [moment for moment in self._wrong if now - moment < PERIOD]
        if len(self._wrong) >= GUESSES:
            wait = int(PERIOD - (now - self._wrong[0])) + 1
            raise ApplierRefused("too-many-guesses", f"Too many wrong codes; try again in {wait} seconds.")
        known = self._read()
        valid = known is not None and hmac.compare_digest(_plain(code), _plain(known))
        if not valid:
            self._wrong.append(now)
        return valid

    def _read(self) -> str | None:
        try:
            return self._paths.setup_code.read_text().strip()
        except OSError:
            return None


def _plain(code: str) -> bytes:
    """As a person may type it: small letters, blanks or nothing instead of the hyphens."""
    return "".join(code.split()).replace("-", "").upper().encode()
