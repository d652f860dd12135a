"""The little of DER (X.690) that a certificate needs: elements within elements, names, numbers and times."""

from __future__ import annotations

from dataclasses import dataclass

SEQUENCE, OCTET_STRING, INTEGER = 0x30, 0x04, 0x02
_TEXTS = {0x0C: "utf-8", 0x13: "ascii", 0x14: "latin-1", 0x16: "ascii", 0x1C: "utf-32-be", 0x1E: "utf-16-be"}
_UTC_TIME, _TIME = 0x17, 0x18


@dataclass(frozen=True, slots=True)
class Element:
    tag: int
    content: bytes
    whole: bytes  # with tag and length

    @property
    def inner(self) -> list[Element]:
        """What it consists of. ValueError where that is no DER."""
        return elements(self.content)

    def expect(self, tag: int) -> Element:
        if self.tag != tag:
            raise ValueError(f"an element of kind {tag:#x} was expected, and this is {self.tag:#x}")
        return self


def elements(data: bytes) -> list[Element]:
    found, at = [], 0
    while at < len(data):
        start, length, at = at, *_length(data, at + 1)
        if at + length > len(data):
            raise ValueError("an element ends behind its end")
        found.append(Element(data[start], data[at : at + length], data[start : at + length]))
        at += length
    return found


def _length(data: bytes, at: int) -> tuple[int, int]:
    """The length that is written there, and where what is so long begins."""
    if at >= len(data):
        raise ValueError("an element has no length")
    first = data[at]
    if first < 0x80:
        return first, at + 1
    count = first & 0x7F
    if not 1 <= count <= 4 or at + 1 + count > len(data):
        raise ValueError("an element has a length that nobody can read")
    return int.from_bytes(data[at + 1 : at + 1 + count], "big"), at + 1 + count


def one(data: bytes) -> Element:
    """The only element of these bytes."""
    found = elements(data)
    if len(found) != 1:
        raise ValueError(f"one element was expected, and there are {len(found)}")
    return found[0]


def text(element: Element) -> str:
    """Of any kind of string; what cannot be printed becomes a question mark."""
    read = element.content.decode(_TEXTS.get(element.tag, "latin-1"), errors="replace")
    return "".join(letter if letter.isprintable() else "?" for letter in read)


def time(element: Element) -> str:
    """As "2027-03-01T12:00:00Z": two of them are in order when the texts are."""
    digits = element.content.decode("ascii", errors="replace")
    if element.tag == _UTC_TIME:
        digits = f"{'19' if digits[:2] >= '50' else '20'}{digits}"
    elif element.tag != _TIME:
        raise ValueError("a time is of no known kind")
    day, clock = digits[:8], digits[8:14]
    if len(digits) != 15 or digits[14] != "Z" or not (day + clock).isascii() or not (day + clock).isdigit():
        raise ValueError("a time is not written as certificates have it")
    return f"{day[:4]}-{day[4:6]}-{day[6:]}T{clock[:2]}:{clock[2:4]}:{clock[4:]}Z"
