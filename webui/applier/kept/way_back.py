"""The way back to the confirmed generation: what a boot loads, whatever a power cut or a bad disk has left of it."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass

from applier.base import durable
from applier.kept import records
from applier.kept.generations import Generations
from applier.kept.records import Damaged
from lbconfig import migrate
from lbconfig.model import canonical
from lbconfig.model.snapshot import Snapshot, SnapshotError


@dataclass(frozen=True, slots=True)
class Recovered:
    """What to load at boot."""

    number: int | None  # None: no generation holds it
    snapshot: Snapshot | None  # None: nothing is left, or nothing ever was
    box: int | None = None  # of its pair: which of them this one was when it was stored
    fault: tuple[str, str] | None = None  # code and sentence


def recover(generations: Generations) -> Recovered:
    """What to load at boot: the confirmed one; its second copy; an older one; or nothing."""
    number = generations.confirmed_number()
    try:
        if number is not None:
            generation = generations.load(number)
            return Recovered(number, generation.snapshot, generation.box)
        reason = "no revision is named as the confirmed one"
    except Damaged as error:
        reason = str(error)
    copied = _second_copy(generations)
    if number is None and copied is None and not _ever_confirmed(generations):
        return Recovered(None, None)  # a new box
    if copied is not None:
        return _from_second_copy(generations, *copied, reason)
    return _from_older(generations, number, reason)


def refresh_second_copy(generations: Generations) -> None:
    """After a power cut between the two writes of a confirmation."""
    number = generations.confirmed_number()
    if number is not None and (_second_copy(generations) or (None,))[0] != number:
        generation = generations.load(number)
        text = canonical.text(generation.snapshot)
        durable.replace(generations.second_copy, records.second_copy(number, text, generation.box))


def _second_copy(generations: Generations) -> tuple[int, Snapshot, int | None] | None:
    found = generations.second()
    try:
        return None if found is None else (found.number, migrate.read(found.text), found.box)
    except SnapshotError:
        return None


def _from_second_copy(
    generations: Generations, number: int, snapshot: Snapshot, box: int | None, reason: str
) -> Recovered:
    said = f"Revision {number} is missing or damaged ({reason})"
    try:
        new = generations.create(snapshot, "system", f"revision {number} from its second copy", box=box)
        generations.confirm(new)
    except (OSError, Damaged) as error:
        fault = f"{said}. The box runs its second copy, which could not be stored as a revision: {error}."
        return Recovered(None, snapshot, box, ("generation-missing", fault))
    fault = f"{said}. The box runs its second copy, stored as revision {new}."
    return Recovered(new, snapshot, box, ("generation-missing", fault))


def _from_older(generations: Generations, lost: int | None, reason: str) -> Recovered:
    name = "The confirmed revision" if lost is None else f"Revision {lost}"
    for number in reversed(generations.numbers()):
        with contextlib.suppress(Damaged):
            generation = generations.load(number)
            if generation.meta["outcome"] == "confirmed":
                with contextlib.suppress(OSError):
                    durable.point(generations.link, f"generations/{number:06}")
                fault = (
                    f"{name} and its second copy are missing or damaged ({reason}). "
                    f"The box runs the older revision {number}; review it before you change anything."
                )
                return Recovered(number, generation.snapshot, generation.box, ("generation-missing", fault))
    fault = (
        f"{name} and its second copy are missing or damaged ({reason}), and no older one can be read. "
        "The box runs the factory configuration: restore a revision in the web UI and apply it."
    )
    return Recovered(None, None, fault=("generation-missing", fault))


def _ever_confirmed(generations: Generations) -> bool:
    """A generation was confirmed once, as far as anything is left to tell."""
    outcomes = {generations.entry(number)["outcome"] for number in generations.numbers()}
    return (
        os.path.lexists(generations.link)
        or generations.second_copy.exists()
        or bool({"confirmed", "damaged"} & outcomes)
    )
