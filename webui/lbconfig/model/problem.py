"""What validation says: a problem names its object and its field, and where that stands in the snapshot."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    object: str  # "virtual service 'web'"
    field: str  # "port": the name of the dataclass field
    message: str  # a sentence without the object: "must be 1 to 65535, not 0"
    path: str  # "services[id=3].port"

    def __str__(self) -> str:
        return f"{self.object}, {self.field}: {self.message}"


@dataclass(frozen=True, slots=True)
class Place:
    """The object that is being looked at."""

    object: str
    path: str

    def problem(self, field: str, message: str) -> Problem:
        return Problem(self.object, field, message, f"{self.path}.{field}")

    def inner(self, step: str) -> Place:
        return Place(self.object, f"{self.path}.{step}")


ACCESS = Place("access", "management")  # called as its page is; the snapshot has a longer word


# What is wrong with a text, and with a field that no object has; both are said of what is read, before any rule.
UNPRINTABLE = "contains a character that cannot be printed"
UNKNOWN_FIELD = "is not a known field"


def quote(text: str) -> str:
    """Somebody's text in a message, as it was typed: short, and what cannot be printed is spelled out."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


def number(value: int) -> str:
    """A number in a message; an absurd one is not spelled out."""
    return str(value) if abs(value) < 10**20 else "a number of more than 20 digits"


def written_as(usual: object) -> str:
    """What is wrong with a value that has one usual spelling, and was given in another one."""
    return f"must be written as {usual}"


def each(place: Place, **sentences: str | None) -> Iterator[Problem]:
    for field, sentence in sentences.items():
        if sentence is not None:
            yield place.problem(field, sentence)


class Unseen:
    """Was this value not seen before?"""

    def __init__(self) -> None:
        self._seen: set[Hashable] = set()

    def __call__(self, value: Hashable) -> bool:
        if value in self._seen:
            return False
        self._seen.add(value)
        return True

    def all(self, values: frozenset[Hashable]) -> bool:
        """The same for several; they count as seen only if none of them was."""
        if not self._seen.isdisjoint(values):
            return False
        self._seen |= values
        return True
