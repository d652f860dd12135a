"""What a part of `make bench` found: tables and pictures as plain data, so that it can be kept and shown again."""

from __future__ import annotations

import dataclasses
import json
import statistics
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Measured:
    """One figure, measured in several rounds; what is told of it is the median and how far the rounds lie apart."""

    rounds: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.rounds:
            raise ValueError("a measured figure needs at least one round")

    @property
    def median(self) -> float:
        return statistics.median(self.rounds)

    @property
    def low(self) -> float:
        return min(self.rounds)

    @property
    def high(self) -> float:
        return max(self.rounds)

    @property
    def spread(self) -> float:
        """(highest − lowest) ÷ median; 0 where all is 0."""
        return (self.high - self.low) / self.median if self.median else 0.0

    def times(self, other: Measured | float) -> float | None:
        """This median as a multiple of another one; None where that is 0."""
        base = other.median if isinstance(other, Measured) else other
        return self.median / base if base else None


Cell = str | int | float | Measured | None  # None: was not measured, or has no meaning


@dataclass(frozen=True)
class Table:
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""  # a sentence below it

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"table {self.title!r}: {len(row)} cells for {len(self.columns)} columns: {row!r}")


@dataclass(frozen=True)
class Series:
    """A line of a picture, or the bars of one colour."""

    name: str
    x: tuple[float | str, ...]  # texts: names of groups of bars
    y: tuple[float, ...]
    low: tuple[float, ...] = ()  # of the rounds; empty: nothing is drawn for them
    high: tuple[float, ...] = ()
    right: bool = False  # has its scale on the right

    def __post_init__(self) -> None:
        if not len(self.x) == len(self.y) or any(part and len(part) != len(self.y) for part in (self.low, self.high)):
            raise ValueError(f"series {self.name!r}: x, y, low and high are not of one length")


@dataclass(frozen=True)
class Picture:
    name: str  # of its file: docs/images/bench-NAME.svg
    title: str
    x: str  # what the axis shows, with its unit
    y: str
    series: tuple[Series, ...]
    kind: str = "lines"  # or "bars"
    right: str = ""  # what the scale on the right shows
    logarithmic: bool = False  # the axis of x
    diagonal: bool = False  # with the line at which y is x

    def __post_init__(self) -> None:
        if self.kind not in ("lines", "bars"):
            raise ValueError(f"picture {self.name!r}: kind {self.kind!r} is neither lines nor bars")


@dataclass(frozen=True)
class Result:
    name: str  # that of the part
    title: str
    source: str  # the paper that it repeats, or why it is there
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()
    remarks: tuple[str, ...] = ()  # what was seen in this run: what had to be capped, what failed, how it was done
    method: str = ""  # in a few sentences: what was measured and how


def to_json(result: Result) -> str:
    return json.dumps(dataclasses.asdict(result), indent=1)  # a measured cell becomes {"rounds": […]}


def from_json(text: str) -> Result:
    """Raises KeyError, TypeError or ValueError where the text is not what `to_json` makes."""
    return from_data(json.loads(text))


def from_data(data: dict) -> Result:
    data = dict(data)
    tables = tuple(
        Table(one["title"], tuple(one["columns"]), tuple(tuple(map(_cell, row)) for row in one["rows"]), one["note"])
        for one in data.pop("tables")
    )
    pictures = tuple(
        Picture(**one | {"series": tuple(_series(line) for line in one["series"])}) for one in data.pop("pictures")
    )
    return Result(**data | {"tables": tables, "pictures": pictures, "remarks": tuple(data["remarks"])})


def _series(data: dict) -> Series:
    fields: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
    return Series(**fields)


def _cell(value: Any) -> Cell:
    return Measured(tuple(value["rounds"])) if isinstance(value, dict) else value
