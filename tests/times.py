"""The table of `make test-times`: what each test spent its time on when it ran last.

    python -m tests.times [LINES]

Where the time goes: booting machines, going back to a saved moment, applying, waiting for the health of servers, the
web page, and the rest. Two tests run side by side on two cores, so the seconds of all tests together are more than
those on the clock. A machine that is booted once for all stories counts for the first of them.

At the end: what was tried once more, and the waits that took more than a fourth of their bound. On a quick host there
should be none of these, or a slow one fails.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path

from board.machines.spent import KINDS, SLOWER

TIMES = Path(__file__).parents[1] / "build" / "times"
HEAD = ("seconds", *KINDS, "rest")


def read(folder: Path) -> dict[str, dict]:
    """The last record of each test, by its name."""
    found = {}
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            record = json.loads(line)
            found[record["test"]] = record
    return found


def row(records: list[dict]) -> list[float]:
    """The seconds of these tests together, in the order of HEAD."""
    whole = sum(record["seconds"] for record in records)
    parts = [sum(record["spent"].get(kind, 0.0) for record in records) for kind in KINDS]
    return [whole, *parts, max(whole - sum(parts), 0.0)]


def table(records: dict[str, dict], lines: int) -> list[str]:
    """The folders, the files, and the `lines` slowest tests."""
    folders, files = defaultdict(list), defaultdict(list)
    for name, record in records.items():
        file = name.split("::")[0]
        files[file].append(record)
        folders[str(Path(file).parent)].append(record)
    out = []
    for title, groups in (
        ("folder", folders),
        ("file", files),
        ("test", {name: [record] for name, record in records.items()}),
    ):
        out.append(" ".join(f"{word:>10}" for word in HEAD) + f"  {title}")
        rows = sorted(((row(group), name, len(group)) for name, group in groups.items()), reverse=True)
        for figures, name, count in rows[:lines]:
            many = f" ({count})" if count > 1 else ""
            out.append(" ".join(f"{figure:10.1f}" for figure in figures) + f"  {name}{many}")
        out.append("")
    retries = [f"{name}: {what}" for name, record in records.items() for what in record["retries"]]
    close = [
        f"{name}: {what}: {seconds:g} of {bound:g} s"
        for name, record in records.items()
        for what, (seconds, bound) in record["close"].items()
    ]
    out += [f"tried once more: {len(retries)}", *retries]
    return [*out, f"waits that a host {SLOWER} times slower would not end in time: {len(close)}", *close]


def main() -> None:
    records = read(TIMES)
    if not records:
        raise SystemExit("No test has run here yet: make test")
    print("\n".join(table(records, int(sys.argv[1]) if len(sys.argv) > 1 else 60)))


if __name__ == "__main__":
    main()
