"""Memory and time as the configuration grows: 10, 100 and 1,000 virtual services with 10 real servers each, in one run.

    make bench ONLY=growth

    from empty     seconds of an apply of all of it to an empty box, and of its step that writes the table
    one server     the same when one server gets another weight
    review         seconds until the review page of that change is there
    applier, web   MiB (proportional set size) with that configuration
    kernel         MiB that its tables have grown (Slab and Percpu of /proc/meminfo)

Nothing is checked, so that the health of servers plays no part; `make bench-health` measures checks at size.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from pathlib import Path

from bench.result import Picture, Result, Series, Table
from bench.settings import Settings
from board.machines import updating
from board.machines.director import Director, wish
from board.machines.lab import boot, make_lab

from bench import apply

COLUMNS = (
    "services", "from empty, s", "of it the table, s", "one server, s", "of it the table, s", "review, s",
    "applier, MiB", "web, MiB", "kernel's tables, MiB",
)  # fmt: skip
# MiB of the box. With 512 the programs are held back at 1,000 services, once `manage.py shell`, which changes the draft
# here, is beside the web page: their share of memory is 60 % (overlay/etc/init.d/S01share).
MEMORY = 1024
TABLES = "awk '/^(Slab|Percpu):/ { all += $2 } END { print all }' /proc/meminfo"


@dataclass(frozen=True)
class Row:
    services: int
    whole: float  # seconds
    table: float  # seconds of them that the step took that writes the table
    one: float  # seconds for another weight of one server
    one_table: float
    review: float  # seconds
    applier: float  # MiB
    web: float
    kernel: float


def run(settings: Settings) -> Result:
    rows = []
    for row in measured(settings):
        settings.say(f"{row.services} services: {row.whole:.1f} s from empty, applier {row.applier:.0f} MiB")
        rows.append(tuple(round(value, 2) for value in astuple(row)))
    counts = tuple(row[0] for row in rows)
    pictures = (
        Picture(
            "growth", "As the configuration grows", "virtual services with 10 real servers each", "seconds",
            (Series("apply from empty", counts, tuple(row[1] for row in rows)),
             Series("apply of one server", counts, tuple(row[3] for row in rows)),
             Series("memory of applier and web, MiB", counts, tuple(row[6] + row[7] for row in rows), right=True)),
            right="MiB", logarithmic=True,
        ),
    )  # fmt: skip
    title = "Seconds and memory by the number of virtual services, each with 10 real servers"
    return Result(
        "growth", "As the configuration grows", "how far a box of ours goes", (Table(title, COLUMNS, tuple(rows)),),
        pictures, method="Nothing is checked, so that the health of servers plays no part. One emulated processor, "
        f"{MEMORY} MiB of memory.",
    )  # fmt: skip


def measured(settings: Settings) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="fairlead-") as folder:
        lab = make_lab(Path(folder), settings.image, memory=MEMORY)
        with lab.world, lab.director as director:
            boot(lab)
            updating.set_up(director)  # while its draft is small
            for count in settings.pick((10, 100), (10, 100, 1000)):
                yield measure(director, count)


def measure(director: Director, count: int) -> Row:
    director.applier("apply", *empty(director), timeout=apply.PATIENCE)
    before = tables(director)
    whole = apply.apply(director, apply.services(count))
    grown = tables(director) - before
    review = apply.review_page(director)
    one = apply.apply(director, apply.services(count, 2))
    memory = apply.memory(director)[0]
    return Row(count, whole["all"], whole["ipvs"], one["all"], one["ipvs"], review, memory, web(director), grown)


def empty(director: Director) -> tuple[str, ...]:
    director.write("/run/empty.json", apply.to_json(wish()))
    return "/run/empty.json", "--user", "bench", "--timeout", str(int(apply.PATIENCE))


def tables(director: Director) -> float:
    return int(director.succeed(TABLES)) / 1024


def web(director: Director) -> float:
    """Of gunicorn and its worker."""
    said = director.succeed(
        "for one in $(ps -o pid,args | awk '/[g]unicorn/ { print $1 }'); do grep ^Pss: /proc/$one/smaps_rollup; done"
    )
    return sum(int(line.split()[1]) for line in said.splitlines()) / 1024
