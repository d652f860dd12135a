"""Names that people give: which letters they may have, and when two of them are the same to the eye."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

PUNCTUATION = frozenset(" ._-")
COMMENT = 90  # bytes
MARKS = 3  # at most on one letter
# Letters by their category, of which nothing is seen.
INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0") | frozenset(map(chr, range(0xFE00, 0xFE10)))
_CYRILLIC = dict(zip("АВЕЅІЈКМНОРСТХУаеѕіјкорсухһԁԛԝ", "ABESIJKMHOPCTXYaesijkopcyxhdqw", strict=True))
_GREEK = dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧοιν", "ABEZHIKMNOPTYXoiv", strict=True))
_OTHERS = {"ı": "i", "ȷ": "j", "ɡ": "g", "ɑ": "a", "ℓ": "l", "օ": "o", "ո": "n", "ս": "u"}
_LOOKS_LIKE = str.maketrans(_CYRILLIC | _GREEK | _OTHERS)


def letters_only(text: str) -> bool:
    """Whether it is made of letters and digits of any script, blanks, dots, underscores and hyphens.

    Each of them can be seen, and none means anything to the programs that read a name as a comment.
    """
    marks = 0
    for one in text:
        kind = unicodedata.category(one)[0]
        marks = marks + 1 if kind == "M" else 0
        if one in INVISIBLE or marks > MARKS or not (kind in "LMN" or one in PUNCTUATION):
            return False
    return True


@lru_cache(8192)
def looks(text: str) -> frozenset[str]:
    """What the name looks like: two that have one of these in common cannot be told apart, or only by capitals."""
    plain = unicodedata.normalize("NFKC", text)
    return frozenset({_folded(plain), _folded(plain.translate(_LOOKS_LIKE))})


def in_comment(name: str) -> str:
    """As much of the name as a comment of nft has room for, which takes 127 bytes in all."""
    return name.encode()[:COMMENT].decode(errors="ignore").rstrip()


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text.casefold())


def ascii_name(name: str) -> str:
    """An international name as programs send it; empty where it is none, or has letters that only look like others."""
    try:
        sent = name.encode("idna")
        return sent.decode() if name.isascii() or sent.decode("idna") == name.lower() else ""
    except UnicodeError:
        return ""
