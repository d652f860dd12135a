"""The one-time code that the console shows and the web page asks for before it takes a new admin password."""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
import threading

from applier.base import durable
from applier.base.paths import Paths
from applier.kept import storage
from applier.wire.errors import ApplierRefused

ALPHABET = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"  # nothing that looks like something else
GROUPS, LETTERS = 3, 4


class SetupCode:
    """Nobody guesses one of 31**12 codes by this socket, not even a web process that is somebody else's by now. How
    often a stranger may try is for the web process to count, as it knows who asks: a limit for all together would let
    anybody keep the admin out.
    """

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._lock = threading.Lock()  # one code is spent once

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
        """Whether it is the code."""
        known = self._read()
        return known is not None and hmac.compare_digest(_plain(code), _plain(known))

    def done(self, code: str) -> None:
        """Spend the code: the box is set up."""
        with self._lock:
            if not self.check(code):
                raise ApplierRefused("wrong-code", "This is not the set-up code that the console shows.")
            try:
                durable.replace(self._paths.set_up, b"yes\n")
            except OSError as error:
                raise ApplierRefused(*storage.of_error(error, self._paths)) from None
            os.unlink(self._paths.setup_code)

    def _read(self) -> str | None:
        try:
            return self._paths.setup_code.read_text().strip()
        except OSError:
            return None


def _plain(code: str) -> bytes:
    """As a person may type it: small letters, blanks or nothing instead of the hyphens."""
    return "".join(code.split()).replace("-", "").upper().encode()
