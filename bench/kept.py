"""Results on the disk: a folder for each run, a file for each part. A run that is cut loses one part only.

build/bench/2026-11-23-1204/head.json        machine, versions, command
build/bench/2026-11-23-1204/lisa2001.json    a part's result
docs/benchmarks/lisa2001.json                the result that docs/benchmarks.md shows, with its head

What the page shows is part of the project: who measures one part anew leaves the others on it, on any machine.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bench.head import TOP, Head
from bench.result import Result, from_data, from_json, to_json

KEPT = TOP / "build/bench"
SHOWN = TOP / "docs/benchmarks"
HEAD = "head.json"


@dataclass(frozen=True)
class Part:
    """A part's result, and the run that it is of."""

    head: Head
    result: Result


def begin(head: Head, below: Path = KEPT) -> Path:
    """The folder of a new run."""
    folder = below / head.date.replace(" ", "-").replace(":", "")
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / HEAD, json.dumps(dataclasses.asdict(head), indent=1))
    return folder


def keep(folder: Path, result: Result) -> None:
    write(folder / f"{result.name}.json", to_json(result))


def write(path: Path, text: str) -> None:
    """Whole, or not at all."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.rename(path)


def parts_of(folder: Path) -> list[Part]:
    """Those of one run; none where the folder is that of no run."""
    if not (folder / HEAD).exists():
        return []
    head = Head(**json.loads((folder / HEAD).read_text()))
    files = sorted(path for path in folder.glob("*.json") if path.name != HEAD)
    return [Part(head, from_json(path.read_text())) for path in files]


def best(parts: Iterable[Part]) -> dict[str, Part]:
    """The result to show of each part: the newest of a full run, or else the newest of a quick one."""
    ordered = sorted(parts, key=lambda part: (not part.head.quick, part.head.date))
    return {part.result.name: part for part in ordered}


def every(below: Path = KEPT) -> list[Part]:
    return [part for folder in sorted(below.glob("*")) for part in parts_of(folder)]


def show(parts: Iterable[Part], below: Path = SHOWN) -> None:
    """Keep with the project what its page shows."""
    below.mkdir(parents=True, exist_ok=True)
    for part in parts:
        kept = {"head": dataclasses.asdict(part.head), "result": dataclasses.asdict(part.result)}
        write(below / f"{part.result.name}.json", json.dumps(kept, indent=1) + "\n")


def shown(below: Path = SHOWN) -> list[Part]:
    found = [json.loads(path.read_text()) for path in sorted(below.glob("*.json"))]
    return [Part(Head(**one["head"]), from_data(one["result"])) for one in found]
