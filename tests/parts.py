"""What `make test` leaves out, and how it is divided: make test-long PART=1/4.

A test marked `thorough` runs only with FAIRLEAD_ALL or FAIRLEAD_IMAGE. FAIRLEAD_PART=1/4 keeps the first of four parts
of what was collected. The parts are about equally long by tests/seconds.json, which must not change between the first
part and the last one: so it is a file of the repository, renewed by hand from what ran here last:

    python -m tests.parts
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests import times

TABLE = Path(__file__).with_name("seconds.json")
UNKNOWN = 60.0  # seconds of a test that is not in the table
MACHINES = "tests/vm/"
LONG = 3.0  # seconds of a file of other tests from which on it is in the table
ALL = bool(os.environ.get("FAIRLEAD_IMAGE") or os.environ.get("FAIRLEAD_ALL"))
# Examples are drawn anew: for a full run, and where somebody asks for so many (docs/decisions/0067).
ANEW = ALL or any(os.environ.get(f"FAIRLEAD_{what}") for what in ("SNAPSHOTS", "NETWORKS", "FUZZ"))


def read_part(text: str) -> tuple[int, int]:
    """The two numbers of "1/4". Raises ValueError."""
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise ValueError(f"PART must be such as 1/4, not {text!r}")
    return int(found[1]), int(found[2])


def part_of(names: Sequence[str], part: int, parts: int, seconds: Mapping[str, float]) -> set[str]:
    """The names that belong to this part. Each name belongs to exactly one, whatever the table says."""
    loads = [0.0] * parts
    own = set()
    for name in sorted(names, key=lambda name: (-seconds.get(name, UNKNOWN), name)):
        least = loads.index(min(loads))
        loads[least] += seconds.get(name, UNKNOWN)
        if least == part - 1:
            own.add(name)
    return own


def longest_first(files: Sequence[str], seconds: Mapping[str, float]) -> list[int]:
    """The places of these files' tests in the order in which they begin; those of one file stay together.

    Whole files are handed to processes that run side by side: one that takes long and begins last keeps a single
    processor busy while the others have nothing left to do.
    """
    return sorted(range(len(files)), key=lambda place: -seconds.get(files[place], 0.0))


def read_table() -> dict[str, float]:
    return json.loads(TABLE.read_text())


def main() -> None:
    """Renew the table with what ran here, and keep what did not: tests of machines, and other files that take long."""
    table = read_table()
    files: defaultdict[str, float] = defaultdict(float)
    for name, record in times.read(times.TIMES).items():
        if name.startswith(MACHINES):
            table[name] = round(record["seconds"])
        else:
            files[name.partition("::")[0]] += record["seconds"]
    table |= {name: round(seconds) for name, seconds in files.items() if seconds >= LONG}
    TABLE.write_text(json.dumps(dict(sorted(table.items())), indent=1) + "\n")


if __name__ == "__main__":
    main()
