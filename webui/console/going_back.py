"""The dialogue that makes the box run an earlier configuration again."""

from __future__ import annotations

from applier.disk.disks import printable
from applier.wire.client import ApplierDown, ApplierRefused, connect
from applier.wire.shapes import GenerationEntry
from console.changing import applied
from console.dialogue import Dialogue, numbered
from lbconfig import migrate
from lbconfig.model.snapshot import SnapshotError

SHOWN = 9  # of the newest


def go_back_to_a_configuration() -> Dialogue:
    try:
        applier = connect()
        found = good_ones(applier.generations(), applier.status()["generation"])
        yield listing(found)
        if not found:
            return
        number = found[(yield from numbered("Number of the line", [True] * len(found)))]["number"]
        earlier = migrate.read(applier.generation(number)["text"])
        yield f"This changes on the way back to revision {number}. The draft on the web page stays as it is.\n"
        yield from applied(earlier, f"back to revision {number}, at the console")
    except (ApplierDown, ApplierRefused, SnapshotError) as error:
        yield f"\n{error}\n"


def good_ones(entries: list[GenerationEntry], running: int | None) -> list[GenerationEntry]:
    """Those that passed their checks, the newest first, without the one that runs."""
    return [one for one in entries if one["outcome"] == "confirmed" and one["number"] != running][:SHOWN]


def listing(found: list[GenerationEntry]) -> str:
    if not found:
        return "There is no earlier configuration that was confirmed.\n"
    lines = [
        f"  {line}  revision {one['number']}  {one['created']}  {printable(one['user'], 20)}  "
        f"{printable(one['comment'], 40)}".rstrip()
        for line, one in enumerate(found, 1)
    ]
    return "\n".join([*lines, ""])
