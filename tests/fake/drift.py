"""A box in memory that does not run what it should. Part of appliance.py.

appliance.box.drift.found = drift.sample()   # two differences; FAIRLEAD_FAKE_DRIFT=1 make dev has them from the start
appliance.box.drift.fresh = 1                     # one more, which was seen once
appliance.box.failing_step = "ipvs"               # the next repair fails there, and the differences stay
"""

from __future__ import annotations

import os
import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.fake import run as fake_run
from tests.fake.part import Part

from applier.apply.runs import RunRecord
from applier.wire.errors import ApplierRefused
from applier.wire.shapes import Difference, DriftStatus, RepairStarted
from lbconfig.diff import drift

if TYPE_CHECKING:
    from tests.fake.appliance import Box

STEPS = (
    "nftables", "web-page", "links", "hardware", "sysctl", "interfaces-add", "interrupts", "announce", "names",
    "sorry-page", "ldirectord-stop", "ipvs", "ldirectord-start", "interfaces-remove", "nftables-remove", "verify",
)  # fmt: skip


def sample() -> list[Difference]:
    return [
        {
            "where": "table",
            "object": "virtual service 'names'",
            "wanted": "round robin",
            "present": "source hashing",
            "why": "Its clients are distributed differently than configured.",
            "disturbs": drift.REFUSED,
        },
        {
            "where": "addresses",
            "object": "virtual address 192.168.10.25",
            "wanted": "on eth0",
            "present": "not there",
            "why": "The box does not answer at this address, so no client reaches the services there.",
            "disturbs": "",
        },
    ]


@dataclass
class FakeDriftState:
    """Everything that can be arranged."""

    found: list[Difference] = field(default_factory=lambda: sample() if os.environ.get("FAIRLEAD_FAKE_DRIFT") else [])
    fresh: int = 0
    trouble: str = ""
    looks: int = 0  # how often somebody asked for one
    looked: str = "2026-01-31T12:00:00Z"

    def to_data(self) -> DriftStatus:
        return {
            "looked": self.looked,
            "count": len(self.found),
            "differences": [one.copy() for one in self.found],
            "fresh": self.fresh,
            "trouble": self.trouble,
        }


class FakeDrift(Part):
    """The methods of applier.wire.client.Client that are about drift."""

    def look(self) -> DriftStatus:
        with self._box() as box:
            _refuse(box)
            box.drift.looks += 1
            return box.drift.to_data()

    def repair(self, user: str) -> RepairStarted:
        with self._box() as box:
            _refuse(box)
            run = RunRecord.of(f"repair-{box.confirmed or 0}-{secrets.token_hex(4)}", user, box.confirmed, STEPS)
            run.kind, run.started = "repair", time.monotonic()
            box.run = run
            advance(box, run, float("inf") if box.instant else 0.0)
            return {"apply": run.id}


def advance(box: Box, run: RunRecord, elapsed: float) -> None:
    """Bring the record of a repair to where it is after so many seconds."""
    for index, step in enumerate(run.steps):
        begin = index * fake_run.STEP_SECONDS
        if elapsed < begin + fake_run.STEP_SECONDS:
            step.state, step.seconds = "running", max(0.0, elapsed - begin)
            return
        failed = step.name == box.failing_step
        step.state, step.seconds = "failed" if failed else "done", 0.01 if box.instant else fake_run.STEP_SECONDS
    if any(step.state == "failed" for step in run.steps):
        run.state = "failed"
        run.message = f"Not as it should be: {', '.join(one['object'] for one in box.drift.found)}."
        return
    many = f"{len(box.drift.found)} difference{'s' * (len(box.drift.found) != 1)}"
    run.message = f"The box runs what it should: {many} repaired." if box.drift.found else "Nothing differed."
    box.drift.found, run.state = [], "done"


def _refuse(box: Box) -> None:
    if box.update.installing:
        raise ApplierRefused("busy", "Right now an update is being installed; wait until that has ended.")
    if reason := fake_run.busy(box):
        raise ApplierRefused("busy", reason)
