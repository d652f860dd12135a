"""Applying at size: 1,000 virtual services with 10 real servers each, beside `ipvsadm` called by hand, in one run.

    make bench-apply [SERVICES=1000]

    from empty     the whole table into an empty kernel: an apply, its step that writes the table, `ipvsadm -R` with the
                   same lines, and `ipvsadm` called once a line
    one server     one server gets another weight: an apply, its step, one call of ipvsadm, and the way of those who
                   clear the table and load it anew
    review         seconds until the review page of that change is there
    memory         MiB of the applier (proportional set size): before, with the table, and the highest

Nothing is checked, so that the health of servers plays no part. Emulated processors (TCG) are many times slower than
real ones, so only figures of one run compare.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from board.lab.build import build
from board.machines import updating
from board.machines.director import VIP, Director, wish
from board.machines.lab import boot, make_lab

from lbconfig.model.snapshot import CheckKind, HealthCheck, RealServer, Snapshot, VirtualService, to_json
from lbconfig.wanted import table as ipvs

SERVERS = 10  # of each service
PATIENCE = 1800.0  # seconds
APPLIER = "cat /run/service/applier/supervise/pid"
CHANGED = 7  # the service whose first server gets another weight
DRAFT = (
    "from changes import actions; actions.discard('bench'); from dataclasses import replace; from draft import store; "
    f"row = store.service({CHANGED}); one, *rest = row.wish.real_servers; "
    "store.write_service(replace(row.wish, real_servers=(replace(one, weight=2), *rest)), row, 'bench')"
)


def services(count: int, weight: int = 1) -> Snapshot:
    """`weight`: of the first server of CHANGED."""
    return wish(
        *(
            VirtualService(
                number, f"s{number}", VIP, 10_000 + number, check=HealthCheck(CheckKind.OFF),
                real_servers=tuple(
                    RealServer(
                        number * 100 + place, f"10.2.0.{20 + place}", 80,
                        weight if (number, place) == (CHANGED, 0) else 1,
                    )
                    for place in range(SERVERS)
                ),
            )
            for number in range(1, count + 1)
        )
    )  # fmt: skip


def main(count: int) -> None:
    with tempfile.TemporaryDirectory(prefix="fairlead-") as folder:
        lab = make_lab(Path(folder), build())
        with lab.world, lab.director as director:
            boot(lab)
            updating.set_up(director)  # while its draft is small
            director.apply(wish())
            before = memory(director)
            whole = services(count)
            applied = apply(director, whole)
            with_table = memory(director)
            by_hand = tables(director, whole)
            review = review_page(director)
            one = apply(director, services(count, 2))
            print(f"{count} services with {SERVERS} real servers each; seconds, and times that of the apply's own step")
            step = applied["ipvs"]
            rows = {
                "from empty: whole apply": applied["all"],
                "from empty: its step": step,
                "from empty: ipvsadm -R": by_hand["one call"],
                "from empty: ipvsadm once a line": by_hand["once a line"],
                "one server: whole apply": one["all"],
                "one server: its step": one["ipvs"],
                "one server: clear and load anew": by_hand["anew"],
                "review page": review,
            }
            for name, seconds in rows.items():
                print(f"{name:34} {seconds:8.2f} {seconds / step:8.2f}")
            print(
                f"memory of the applier, MiB: {before[0]:.0f}, {with_table[0]:.0f}, highest {memory(director)[1]:.0f}"
            )


def apply(director: Director, snapshot: Snapshot) -> dict[str, float]:
    """Seconds of each step, and of all together with the check before."""
    director.write("/run/wish.json", to_json(snapshot))
    began = time.monotonic()
    words = ("apply", "/run/wish.json", "--user", "bench", "--timeout", str(int(PATIENCE)))
    run = json.loads(director.applier(*words, timeout=PATIENCE))
    whole = time.monotonic() - began
    return {step["name"]: step["seconds"] for step in run["steps"]} | {"all": whole}


def tables(director: Director, snapshot: Snapshot) -> dict[str, float]:
    """The table by hand, in the three ways; it is as before afterwards."""
    lines = ipvs.render(snapshot).splitlines()[1:]
    director.write("/run/bench.rules", "".join(f"{line}\n" for line in lines))
    director.write("/run/bench.sh", "ipvsadm -C\n" + "".join(f"ipvsadm {line}\n" for line in lines))
    found = {"once a line": seconds(director, "sh /run/bench.sh")}
    director.succeed("ipvsadm -C")
    found["one call"] = seconds(director, "ipvsadm -R </run/bench.rules")
    found["anew"] = seconds(director, "ipvsadm -C; ipvsadm -R </run/bench.rules")
    return found


def seconds(director: Director, command: str) -> float:
    said = director.succeed(f"s=$(date +%s.%N); {command}; e=$(date +%s.%N); echo $s $e", PATIENCE)
    begun, ended = map(float, said.split())
    return ended - begun


def review_page(director: Director) -> float:
    """Change a server in the draft of what runs, open the review; the seconds that the page takes."""
    page = updating.Page(director)
    director.succeed(["fairlead-web-user", "python3", "manage.py", "shell", "-c", DRAFT], PATIENCE)
    began = time.monotonic()
    with page.opener.open(f"{director.url}/changes/", timeout=PATIENCE) as answer:
        text = answer.read().decode()
    took = time.monotonic() - began
    if "Review changes" not in text or f"s{CHANGED}" not in text:
        raise SystemExit(f"this is no review of the change: {text[:2000]}")
    return took


def memory(director: Director) -> tuple[float, float]:
    """MiB: now, and the highest (resident)."""
    text = director.succeed(f"p=$({APPLIER}); grep ^Pss: /proc/$p/smaps_rollup; grep ^VmHWM: /proc/$p/status")
    now, highest = (int(line.split()[1]) / 1024 for line in text.splitlines())
    return now, highest


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
