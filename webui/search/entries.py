"""What can be found, and how well it fits what somebody types. Nothing here knows Django."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

LONGEST = 100  # characters that are looked for; who pastes a page finds what its beginning says
# What a word of the question is worth, by where it was found. Each word has to be found somewhere.
TITLE_BEGINS, TITLE, WORDS, TEXT = 8, 5, 4, 1
SAME = 20  # the title is just what was typed


@dataclass(frozen=True, slots=True)
class Entry:
    title: str
    url: str
    where: str  # what kind of thing it is, or the page that it is on
    words: str = ""  # other words for it: synonyms, addresses, ports
    text: str = ""  # what is said about it
    weight: int = 0  # in favour of what people look for more often


def question(text: str) -> str:
    """Return what is looked for, in one line of a sensible length."""
    return " ".join(text.split())[:LONGEST]


def best(entries: Iterable[Entry], asked: str, most: int) -> list[Entry]:
    """Return the entries that have every word, the best first; of equal ones, the first that is given."""
    words = asked.casefold().split()
    found = [(score, entry) for entry in entries if words and (score := _score(entry, asked, words))]
    found.sort(key=lambda one: -one[0])
    return [entry for _, entry in found[:most]]


def _score(entry: Entry, asked: str, words: list[str]) -> int:
    """0: a word is missing."""
    title, others, text = entry.title.casefold(), f"{entry.words} {entry.where}".casefold(), entry.text.casefold()
    total = entry.weight + SAME * (title == asked.casefold())
    for word in words:
        worth = (
            TITLE_BEGINS
            if _begins(word, title)
            else TITLE
            if word in title
            else WORDS * (1 + _begins(word, others))
            if word in others
            else TEXT * (1 + _begins(word, text))
            if word in text
            else 0
        )
        if not worth:
            return 0
        total += worth
    return total


def _begins(word: str, text: str) -> bool:
    """Whether a word of the text begins so."""
    return re.search(rf"(?<!\w){re.escape(word)}", text) is not None
