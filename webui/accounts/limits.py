"""What anybody may try without a log-in, and how often: counted for each source, in the memory of the one web process.

Passwords are hashed to be slow, so each guess costs the box what it costs the guesser. Few are hashed at once, one of
them for each source; who comes when there is no place is turned away before anything is hashed.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass

from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.core.cache import cache

from lbconfig.model.addresses import source

HASHES = 2  # at once, of the box's eight threads
LOG_INS = 4  # at once: those that are hashed, and as many that wait for it
_hashes = threading.BoundedSemaphore(HASHES)
_log_ins: set[str] = set()  # sources
_lock = threading.Lock()


class Refused(Exception):
    """The text is a sentence for who tried."""

    def __init__(self, message: str, seconds: int) -> None:
        super().__init__(message)
        self.seconds = seconds  # after which it is worth another try


@dataclass(frozen=True)
class Limit:
    """`most` in so many seconds from one source."""

    name: str
    most: int
    seconds: int

    def count(self, address: str) -> None:
        """Raises Refused where that makes too many."""
        key = self._key(address)
        cache.add(key, 0, self.seconds)
        try:
            count = cache.incr(key)
        except ValueError:  # it has ended in this very moment
            return
        if count > self.most:
            raise self._refused(address)

    def ask(self, address: str) -> None:
        """Raises Refused where there were as many as may be."""
        if cache.get(self._key(address), 0) >= self.most:
            raise self._refused(address)

    def forget(self, address: str) -> None:
        cache.delete(self._key(address))

    def _key(self, address: str) -> str:
        return f"{self.name.replace(' ', '-')}:{source(address)}"

    def _refused(self, address: str) -> Refused:
        wait = f"{self.seconds // 60} minutes" if self.seconds > 60 else "a minute"
        return Refused(f"Too many {self.name} from {source(address) or 'here'}. Try again in {wait}.", self.seconds)


TRIES = Limit("log-ins", 10, 60)  # whatever the names
CODES = Limit("wrong set-up codes", 5, 60)
TOKENS = Limit("wrong tokens", 6, 15 * 60)  # as many as passwords


@contextlib.contextmanager
def logging_in(address: str) -> Iterator[None]:
    """Inside, a password may be asked for. Raises Refused."""
    TRIES.count(address)
    here = source(address)
    with _lock:
        if here in _log_ins:
            raise Refused("Another log-in from your address is being looked at. Try again in a moment.", 1)
        if len(_log_ins) >= LOG_INS:
            raise Refused("Many are logging in at the moment. Try again in a few seconds.", 5)
        _log_ins.add(here)
    try:
        yield
    finally:
        with _lock:
            _log_ins.discard(here)


class FewAtOnce(PBKDF2PasswordHasher):
    """Django's own, whatever asks for it: log-in, set-up, a change of the password."""

    def encode(self, *args, **kwargs) -> str:
        with _hashes:
            return super().encode(*args, **kwargs)
