"""What waits to be confirmed: what an apply asks for, and the note of it in /run.

The note outlives the daemon and not the boot, like what it speaks of. A daemon that finds it goes on waiting with
the time that is left. What the note needs of the configuration lies on the disk, in the generation of that number.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import asdict, dataclass, replace

from lbconfig.diff.cutoff import LONGEST, Cutoff


@dataclass(frozen=True, slots=True)
class Ask:
    """Why an apply asks to be confirmed, and where the one who made it finds the box."""

    within: int  # seconds
    reasons: tuple[str, ...]  # empty: only because the admin asked for it
    addresses: tuple[str, ...]
    dhcp: tuple[str, ...]

    @classmethod
    def of(cls, found: Cutoff, within: int) -> Ask:
        return cls(within, found.reasons, found.addresses, found.dhcp)


@dataclass(frozen=True, slots=True)
class Pending:
    apply: str
    user: str
    number: int  # the generation that waits
    before: int | None  # the confirmed one; None: the factory configuration
    begun: float  # on CLOCK_BOOTTIME
    until: float
    secret: str  # SHA-256 of it, hexadecimal
    ask: Ask
    returning: str = ""  # why the box goes back already; "": it waits

    def going_back(self, why: str) -> Pending:
        return replace(self, returning=why)

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)


def read(text: str) -> Pending:
    """What to_json() made. ValueError for everything else."""
    data = json.loads(text)
    try:
        ask = data.pop("ask")
        lists = {name: tuple(map(_text, ask[name])) for name in ("reasons", "addresses", "dhcp")}
        found = Pending(**data, ask=Ask(within=_number(ask["within"]), **lists))
        for value in (found.apply, found.user, found.secret, found.returning):
            _text(value)
        _number(found.number)
        if found.before is not None:
            _number(found.before)
        if not 0 <= float(found.until) - float(found.begun) <= LONGEST:
            raise ValueError("the time is not one that can be asked for")
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a note of what waits: {error}") from None
    return found


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value


def _number(value: object) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is not a number")
    return value


def hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def is_secret(secret: str, known: str) -> bool:
    """Whether `known` was made of it; takes the same time whatever it is."""
    return hmac.compare_digest(hashed(secret), known)
