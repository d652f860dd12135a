"""A pretended apply: what becomes of its record as time goes by. Part of appliance.py."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tests.fake import drift as fake_drift

from applier.apply.deadline import Deadline
from applier.apply.pending import Ask
from applier.apply.runs import (
    ALONE,
    TITLES,
    UNDONE,
    WAITING_SENTENCE,
    RunRecord,
    confirmed_sentence,
    in_vain_sentence,
    taken_back_sentence,
    waits_words,
)
from applier.wire.errors import ApplierRefused
from applier.wire.shapes import ENDED, ApplyStarted, RunStatus
from lbconfig.model import canonical
from lbconfig.model.snapshot import Snapshot

if TYPE_CHECKING:
    from tests.fake.appliance import Box

STEP_SECONDS = 0.5  # how long each step takes where the box is not instant
CONFIRM = "confirm"


def _addresses(snapshot: Snapshot) -> tuple:
    return snapshot.network, {vip for service in snapshot.enabled_services for vip in service.vips}


# What a step looks at, of those that have nothing to do where that stays as it is; the others always have.
PARTS: dict[str, Callable[[Snapshot], object]] = {
    "web-page": lambda snapshot: snapshot.management,
    "links": lambda snapshot: snapshot.network,
    "hardware": lambda snapshot: snapshot.tuning,
    "interfaces-add": _addresses,
    "interrupts": lambda snapshot: snapshot.tuning,
    "announce": _addresses,
    "names": lambda snapshot: snapshot.network,
    "sorry-page": lambda snapshot: snapshot.sorry,
    "interfaces-remove": _addresses,
    "nftables-remove": _addresses,
}


@dataclass
class Change:
    """What is being applied, and what ran before."""

    new: Snapshot
    before: Snapshot
    secret: str  # "": it does not wait to be confirmed


def start(box: Box, new: Snapshot, files: dict[str, str], user: str, comment: str, ask: Ask | None) -> ApplyStarted:
    number = max((entry["number"] for entry in box.generations), default=0)
    number = max(number, box.recovery.number) + 1
    box.run = run = RunRecord.of(f"apply-{number}", user, number, ALONE)
    run.started, run.ask = time.monotonic(), ask
    box.change = change = Change(new, box.snapshot, secrets.token_urlsafe(24) if ask else "")
    box.generations.insert(
        0,
        {
            "number": number,
            "user": user,
            "comment": comment,
            "created": now(),
            "outcome": "applying",
            "seconds": 0.0,
            "steps": [],
            "text": canonical.text(new),
            "files": files,
        },
    )
    advance(box, float("inf") if box.instant else 0.0)
    return {"apply": run.id, "secret": change.secret, "confirm_within": ask.within if ask else 0}


def advance(box: Box, elapsed: float | None = None) -> None:
    """Bring the record of the run to where it is after so many seconds; None: after those that have passed."""
    run, change = box.run, box.change
    if run is None or run.state in ENDED:
        return
    if run.state == "waiting":
        if run.ask and change and run.deadline and run.deadline.left() <= 0:
            _go_back(box, run, change, in_vain_sentence(run.ask.within))
        return
    elapsed = time.monotonic() - run.started if elapsed is None else elapsed
    if run.kind == "repair":
        fake_drift.advance(box, run, elapsed)
        return
    if change is None:
        return
    for index, step in enumerate(run.steps):
        begin = index * STEP_SECONDS
        if step.name == CONFIRM and run.ask:
            _wait(box, run, run.ask, change)
            break
        if elapsed < begin + STEP_SECONDS:
            step.state, step.seconds = "running", max(0.0, elapsed - begin)
            break
        step.seconds = 0.01 if box.instant else STEP_SECONDS
        if step.name == box.failing_step:
            _fail(box, run, index)
            break
        if _due(step.name, change):
            step.state = "done"
        else:
            step.state, step.seconds, step.detail = "skipped", 0.0, "nothing to change"
    else:
        _succeed(box, run, change)
    _note(box, run)


def _due(step: str, change: Change) -> bool:
    """Whether the step has something to do, as far as this pretended apply knows."""
    part = PARTS.get(step)
    return part is None or part(change.new) != part(change.before)


def _note(box: Box, run: RunRecord) -> None:
    entry = box.generations[0]
    entry["steps"] = [step.to_data() for step in run.steps]
    entry["seconds"] = round(sum(step.seconds for step in run.steps), 3)


def _wait(box: Box, run: RunRecord, ask: Ask, change: Change) -> None:
    begun = time.monotonic()
    run.deadline = Deadline(begun, begun + ask.within, time.monotonic)
    run.state, run.message = "waiting", WAITING_SENTENCE
    box.generations[0]["outcome"] = "waiting"
    box.snapshot = change.new


def decide(box: Box, keep: bool, apply: str, secret: str, user: str) -> RunStatus:
    run, change = box.run, box.change
    if run is None or change is None or run.state != "waiting" or apply not in ("", run.id):
        said = run.message if run and run.state in ENDED and apply in ("", run.id) else ""
        raise ApplierRefused("not-waiting", f"These changes are not waiting to be confirmed. {said}")
    if (secret and secret != change.secret) or not (secret or (apply and user)):
        raise ApplierRefused("wrong-secret", "This is not the link that the apply gave out.")
    if keep:
        run[CONFIRM].state, run[CONFIRM].seconds = "done", 0.01
        _succeed(box, run, change)
        _note(box, run)
    else:
        _go_back(box, run, change, taken_back_sentence(user or run.user))
    return run.to_data()


def busy(box: Box) -> str | None:
    """Why nothing else can be applied now."""
    run = box.run
    if run is None or run.state in ENDED:
        return None
    if run.state == "waiting" and run.deadline:
        waits = waits_words(run.user, run.deadline.left())
        return f"Right now {waits}; wait until that has ended."
    if run.kind == "repair":
        return f"Right now the box is being repaired for {run.user}; wait until that has ended."
    return f"The changes of {run.user} are being applied at the moment."


def _go_back(box: Box, run: RunRecord, change: Change, why: str) -> None:
    run.deadline, run.state, run.message = None, "not confirmed", f"{why} Everything was put back."
    run.mark_undone()
    box.snapshot = change.before
    box.generations[0]["outcome"] = "not confirmed"
    _note(box, run)


def _fail(box: Box, run: RunRecord, index: int) -> None:
    run.steps[index].state = "failed"
    run.steps[index].detail = "The sample box was told to fail here."
    for step in run.steps[1:index]:
        step.state = UNDONE.get(step.state, step.state)
    for step in run.steps[index + 1 :]:
        step.state = "skipped"
    run.state = box.generations[0]["outcome"] = "rolled back"
    title = TITLES[run.steps[index].name]
    run.message = f"“{title}” failed; everything was put back. The sample box was told to fail here."


def _succeed(box: Box, run: RunRecord, change: Change) -> None:
    run.deadline, run.state = None, "done"
    run.message = confirmed_sentence(run.generation)
    box.generations[0]["outcome"] = "confirmed"
    box.snapshot, box.confirmed = change.new, run.generation


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
