"""Bring the hardware to what is planned: settings first, then cards, then what depends on their queues.

Only what differs is written. What the kernel or a card refuses is noted and told, and nothing fails by it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from applier.base.paths import Paths
from applier.hardware.look import look, machine_of_memory, meddlers
from applier.host.host import PROC_SYS, Host, HostError, run, wait_until
from lbconfig.hardware.actions import Action, Ethtool, Write
from lbconfig.hardware.facts import Machine
from lbconfig.hardware.findings.interrupts import ENDED
from lbconfig.hardware.plan.whole import due, plan
from lbconfig.hardware.settings import Wanted, wanted
from lbconfig.model.tuning import Tuning
from lbconfig.wanted.settings import Setting

log = logging.getLogger("applier")

ROUNDS = 5  # queues and rings, what depends on them, and the look that finds nothing more to do
MEDDLER_ENDS = 3.0  # seconds
ETHTOOL_TIMEOUT = 30.0  # seconds; some cards start anew
NOT_KEPT = "it was taken, and is not so"


@dataclass
class Tuned:
    changed: list[str] = field(default_factory=list)
    undo: list[Write | Ethtool] = field(default_factory=list)  # the last change first
    refused: dict[str, str] = field(default_factory=dict)  # what was to be written, and why not
    refused_choices: list[str] = field(default_factory=list)  # those of the admin, in words
    cards: tuple[Ethtool, ...] = ()  # all that cards are told, also what they had been told before


def tune(host: Host, paths: Paths, tuning: Tuning, of: str = "") -> Tuned:
    """`of`: only what concerns this object ("eth0"); empty: everything. Never raises for what is refused."""
    done = Tuned()
    if not of:
        _tune_settings(host, tuning, done)
    tried: set[str] = set()
    for _ in range(ROUNDS):
        actions = [one for one in plan(look(host), tuning) if of in ("", one.object)]
        for action in actions:
            if not action.done and str(action.do) in tried:
                done.refused.setdefault(str(action.do), NOT_KEPT)
        todo = due(tuple(one for one in actions if str(one.do) not in done.refused))
        if not todo:
            break
        for action in todo:
            tried.add(str(action.do))
            _carry_out(host, action, done)
    orders = (action.do for action in actions if isinstance(action.do, Ethtool))
    done.cards = tuple(one for one in orders if str(one) not in done.refused)
    _note(host, paths, done, of)
    return done


def end_meddlers(host: Host) -> list[str]:
    """The names of those that have ended. What keeps such a program running starts it again, and the doctor says so."""
    todo = {pid: name for pid, name in meddlers(host).items() if name in ENDED}
    if not todo:
        return []
    for pid in todo:
        host.end(pid)
    try:
        wait_until(host, "their end", MEDDLER_ENDS, lambda: "still there" if meddlers(host).keys() & todo else None)
    except HostError as error:
        log.warning("%s: %s", ", ".join(todo.values()), error)
    return sorted({name for pid, name in todo.items() if pid not in meddlers(host)})


def undo(host: Host, steps: Iterable[Write | Ethtool]) -> None:
    """All of them. HostError for a setting; of the rest the log tells: an interrupt may be gone with its queue."""
    failed = None
    for step in steps:
        try:
            write(host, step)
        except HostError as error:
            log.warning("not put back: %s", error)
            if isinstance(step, Write) and step.path.startswith(str(PROC_SYS)):
                failed = failed or error
    if failed is not None:
        raise failed


def write(host: Host, step: Write | Ethtool) -> None:
    if isinstance(step, Write):
        host.tell(Path(step.path), step.value)
    else:
        run(host, ["ethtool", *step.arguments], timeout=ETHTOOL_TIMEOUT)


def refused(host: Host, paths: Paths) -> dict[str, str]:
    """By what was to be written: why it was refused when it was tried last."""
    try:
        found = json.loads(host.read(paths.untuned) or "{}")
    except (ValueError, HostError) as error:
        log.error("%s cannot be read: %s", paths.untuned, error)
        return {}
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}


def settings_that_differ(host: Host, paths: Paths, tuning: Tuning) -> list[tuple[Setting, str]]:
    """Of the table, with their present values; without what this kernel has not, or has refused."""
    machine, no = machine_of_memory(host), refused(host, paths)
    return [
        (Setting(one.key, one.value, one.tunable.reason.rstrip(".")), machine.settings[one.key])
        for one in differing(machine, tuning)
        if str(Write(one.tunable.path, one.value)) not in no
    ]


def differing(machine: Machine, tuning: Tuning) -> list[Wanted]:
    """Those that could be written now."""
    return [
        one
        for one in wanted(machine, tuning.settings)
        if not one.tunable.at_start and machine.settings.get(one.key, one.value) != one.value
    ]


def _tune_settings(host: Host, tuning: Tuning, done: Tuned) -> None:
    machine = machine_of_memory(host)
    chosen = {one.key for one in tuning.settings}
    for one in differing(machine, tuning):
        step = Write(one.tunable.path, one.value)
        done.undo.insert(0, Write(one.tunable.path, machine.settings[one.key]))
        try:
            write(host, step)
        except HostError as error:
            done.refused[str(step)] = error.stderr
            if one.key in chosen:
                done.refused_choices.append(f"kernel setting {one.key}: {error.stderr}")
        else:
            done.changed.append(str(step))


def _carry_out(host: Host, action: Action, done: Tuned) -> None:
    try:
        write(host, action.do)
    except HostError as error:
        log.warning("%s: %s", action.object, error)
        done.refused[str(action.do)] = " ".join(error.stderr.split()) or str(error)
        return
    done.changed.append(str(action.do))
    if action.undo is not None:
        done.undo.insert(0, action.undo)


def _note(host: Host, paths: Paths, done: Tuned, of: str) -> None:
    before = refused(host, paths)
    kept = {key: why for key, why in before.items() if of and key not in done.changed} | done.refused
    if kept != before:
        try:
            host.put(paths.untuned, json.dumps(kept) if kept else None)
        except HostError as error:
            log.error("%s", error)
