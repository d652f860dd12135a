"""docs/benchmarks.md from the results: a head, then each part with its tables, pictures and remarks."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from bench.head import TOP
from bench.kept import Part
from bench.remarks import REMARKS
from bench.result import Cell, Measured, Table

PAGE = TOP / "docs/benchmarks.md"
IMAGES = TOP / "docs/images"
INTRODUCTION = """# Measurements

Made by `make bench` and not by hand; [bench/README.md](../bench/README.md) tells how each part measures. The \
director is a guest; clients and real servers run beside it on the same machine. An emulated processor is many times \
slower than a real one, so **a figure counts beside the others of its own run**: that is why ratios stand beside the \
papers' ratios. A figure with parentheses is the median of its rounds, with the lowest and the highest of them.
"""


def write(parts: Iterable[Part], page: Path = PAGE, images: Path = IMAGES) -> None:
    """The page and the files of its pictures."""
    from bench import pictures  # here: what draws is there for `make bench` alone

    parts = list(parts)
    images.mkdir(parents=True, exist_ok=True)
    for part in parts:
        for picture in part.result.pictures:
            pictures.draw(picture, images / f"bench-{picture.name}.svg")
    page.write_text(text(parts))


def text(parts: list[Part]) -> str:
    runs = {part.head.date: part.head for part in parts}
    blocks = [INTRODUCTION]
    for number, (_, head) in enumerate(sorted(runs.items()), 1):
        title = f"Run {number}" + (" (quick)" if head.quick else "")
        blocks.append(
            f"## {title}\n\n" + "\n".join(f"- {name}: {value}" for name, value in head.facts().items()) + "\n"
        )
    numbers = {date: number for number, date in enumerate(sorted(runs), 1)}
    blocks += [block for part in parts for block in section(part, numbers[part.head.date])]
    return "\n".join(blocks)


def section(part: Part, run: int) -> list[str]:
    result = part.result
    how = "measured only quickly: short loads, few rounds" if part.head.quick else "measured in full"
    blocks = [f"## {result.title}\n", f"{result.source} Run {run}, {how}.\n"]
    blocks += [f"{result.method}\n"] if result.method else []
    for picture in result.pictures:
        blocks.append(f"![{picture.title}](images/bench-{picture.name}.svg)\n")
    blocks += [table(one) for one in result.tables]
    for title, remarks in (
        ("Seen in this run", result.remarks),
        ("What differs, and why", REMARKS.get(result.name, ())),
    ):
        if remarks:
            blocks.append(f"**{title}**\n\n" + "\n".join(f"- {one}" for one in remarks) + "\n")
    return blocks


def table(one: Table) -> str:
    """A table of Markdown; numbers to the right."""
    numeric = [all(not isinstance(row[place], str) for row in one.rows) for place in range(len(one.columns))]
    lines = [
        f"**{one.title}**\n",
        f"| {' | '.join(map(escaped, one.columns))} |",
        f"|{'|'.join('--:' if right else '---' for right in numeric)}|",
        *(f"| {' | '.join(escaped(shown(cell)) for cell in row)} |" for row in one.rows),
    ]
    return "\n".join([*lines, *(["", one.note] if one.note else [])]) + "\n"


def shown(cell: Cell) -> str:
    """A figure with three digits that count, the median with its lowest and highest round, or a dash for None."""
    if cell is None:
        return "–"
    if isinstance(cell, Measured):
        if len(cell.rounds) == 1:
            return number(cell.median)
        return f"{number(cell.median)} ({number(cell.low)}–{number(cell.high)})"
    return cell if isinstance(cell, str) else number(cell)


def number(value: float) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    if abs(value) >= 100 or value == 0:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}" if abs(value) >= 0.1 else f"{value:.3g}"


def escaped(text: str) -> str:
    """A bar would end the cell."""
    return text.replace("|", "\\|")
