"""The pictures of the report, drawn by matplotlib as SVG: small files that any browser shows sharply."""

from __future__ import annotations

from pathlib import Path

import matplotlib
from bench.result import Picture, Series
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

# Equal results give equal files: no date, no random ids. Text stays text, in whatever plain font the reader has.
matplotlib.rcParams.update({
    "svg.hashsalt": "fairlead", "svg.fonttype": "none", "font.size": 10, "axes.grid": True, "grid.alpha": 0.3,
    "axes.spines.top": False, "font.family": "sans-serif",
})  # fmt: skip
SIZE = (7.6, 4.3)  # inches
MARKS = "osD^vPX*<>"


def draw(picture: Picture, path: Path) -> None:
    figure = Figure(figsize=SIZE, layout="constrained")
    figure.patch.set_facecolor("white")  # readable on a dark page, too
    axes = figure.add_subplot()
    axes.set(title=picture.title, xlabel=picture.x, ylabel=picture.y)
    other = axes.twinx() if picture.right else None
    if other:
        other.set_ylabel(picture.right)
        other.grid(visible=False)
    else:
        axes.spines["right"].set_visible(False)
    if all(isinstance(x, int) for series in picture.series for x in series.x) and not picture.logarithmic:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))  # there is no half server
    DRAWERS[picture.kind](picture, axes, other)
    for one in filter(None, (axes, other)):
        one.set_ylim(bottom=0)
    handles = [handle for one in filter(None, (axes, other)) for handle in one.get_legend_handles_labels()[0]]
    axes.legend(handles=handles, fontsize="small", framealpha=0.8)
    figure.savefig(path, format="svg", metadata={"Date": None})


def lines(picture: Picture, axes: Axes, other: Axes | None) -> None:
    for number, series in enumerate(picture.series):
        where = other if series.right and other else axes
        line = "--" if series.right else "-"
        colour, mark = f"C{number % 10}", MARKS[number % len(MARKS)]
        where.errorbar(
            series.x, series.y, yerr=bars_of(series), label=series.name, color=colour, linestyle=line, marker=mark,
            markersize=4, capsize=2,
        )  # fmt: skip
    if picture.logarithmic:
        axes.set_xscale("log")
    if picture.diagonal:
        end = max(x for series in picture.series for x in series.x)
        axes.plot([0, end], [0, end], color="grey", linewidth=0.8, linestyle=":", label="all that was offered")


def bars(picture: Picture, axes: Axes, other: Axes | None) -> None:
    groups = list(dict.fromkeys(x for series in picture.series for x in series.x))
    width = 0.8 / len(picture.series)
    for number, series in enumerate(picture.series):
        where = other if series.right and other else axes
        shift = (number - (len(picture.series) - 1) / 2) * width
        places = [groups.index(x) + shift for x in series.x]
        where.bar(places, series.y, width, yerr=bars_of(series), label=series.name, color=f"C{number % 10}", capsize=2)
    axes.set_xticks(range(len(groups)), [str(one) for one in groups])


def bars_of(series: Series) -> list[list[float]] | None:
    """How far the rounds reach below and above what is drawn."""
    if not series.low:
        return None
    below = [y - low for y, low in zip(series.y, series.low, strict=True)]
    above = [high - y for y, high in zip(series.y, series.high, strict=True)]
    return [below, above]


DRAWERS = {"lines": lines, "bars": bars}
