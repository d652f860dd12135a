"""A box in memory that can be measured. Part of appliance.py.

appliance.box.capacity.measured = [capacity.sample()]   # FAIRLEAD_FAKE_CAPACITY=1 make dev has it from the start
appliance.box.capacity.now = {...}                           # what it forwards at the moment
appliance.box.capacity.end()                                 # the measurement under way ends now
"""

from __future__ import annotations

import copy
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.fake import run as fake_run
from tests.fake.part import Part

from applier.capacity.record import to_limit
from applier.capacity.verbs import NO_CARD, NOTHING_LASTED, TWICE, Watch, not_free
from applier.wire.errors import ApplierRefused
from applier.wire.shapes import Nothing
from applier.wire.shapes_capacity import (
    Capacity,
    HardwareStatus,
    Held,
    LoadStatus,
    Measurement,
    RatesStatus,
    WatchStarted,
)
from lbconfig.capacity import cable
from lbconfig.capacity.figures import Cpus, Rates, Sample, known, share

if TYPE_CHECKING:
    from tests.fake.appliance import Box

HARDWARE: HardwareStatus = {
    "processor": "Example CPU @ 2.40GHz",
    "cpus": 4,
    "cards": ["igb 0000:03:00.0", "igb 0000:03:00.1"],
}


def sample(held: Held = "box", factor: float = 1.0) -> Measurement:
    return {
        "when": "2026-01-31T12:00:00Z",
        "user": "admin",
        "seconds": 30.0,
        "hardware": copy.deepcopy(HARDWARE),
        "kernel": "6.18.33",
        "version": "0.2.0",
        "limit": {
            "rates": {"connections": 20_000 * factor, "packets": 240_000 * factor, "bytes": 96_000_000 * factor},
            "busy": 0.71,
            "busiest": 0.97,
            "softirq": 0.66,
            "held": held,
        },
        "dropped": 12 if held == "box" else 0,
        "traffic": "",
        "same": True,
    }


def _usual() -> list[Measurement]:
    return [sample()] if os.environ.get("FAIRLEAD_FAKE_CAPACITY") else []


def _moderate() -> RatesStatus:
    return {"connections": 4_000.0, "packets": 60_000.0, "bytes": 12_000_000.0}


@dataclass
class FakeCapacityState:
    """Everything that can be arranged."""

    measured: list[Measurement] = field(default_factory=_usual)
    now: RatesStatus | None = field(default_factory=_moderate)
    job: Watch | None = None
    ports: list[str] = field(default_factory=lambda: ["eth4", "eth5"])  # that nothing uses
    between: str = ""  # the traffic that the measurement under way sends itself

    def begin(self, seconds: float, user: str, between: str = "") -> Watch:
        self.between = between
        rates = Rates(**self.now) if self.now else Rates(0, 0, 0)
        self.job = Watch(
            "ab12cd34",
            user,
            seconds,
            message=between or "Watching",
            between=bool(between),
            samples=[Sample(seconds / 2, rates, Cpus(0.5, 0.62, 0.4), 0)],
        )
        return self.job

    def end(self, stopped: bool = False) -> None:
        """As if the clients had asked for as much as `now` all the time."""
        job = self.job
        if job is None:
            raise LookupError("nothing is being measured")
        job.state, job.message = "stopped" if stopped else "failed", NOTHING_LASTED
        if self.now and any(self.now.values()):
            one = sample("sender") | {"user": job.user, "seconds": job.seconds, "when": fake_run.now()}
            one["traffic"] = self.between
            self.measured.insert(0, one | {"limit": one["limit"] | {"rates": self.now.copy(), "busiest": 0.62}})
            job.message = f"Measured for {job.seconds:.0f} seconds, and kept."
            job.state = "stopped" if stopped else "done"

    def load(self) -> LoadStatus | None:
        limits = known(to_limit(one["limit"]) for one in self.measured if one["same"])
        if not limits:
            return None
        nearest = share(Rates(**self.now), limits) if self.now else None
        return {
            "share": nearest[1] if nearest else None,
            "figure": nearest[0] if nearest else None,
            "now": copy.deepcopy(self.now),
            "limits": [{"figure": name, "rate": one.rate, "at_least": one.at_least} for name, one in limits.items()],
        }


class FakeCapacity(Part):
    """The methods of applier.wire.client.Client that are about capacity."""

    def capacity(self) -> Capacity:
        with self._box() as b:
            state = b.capacity
            return {
                "job": state.job.to_data() if state.job else None,
                "hardware": copy.deepcopy(HARDWARE),
                "now": copy.deepcopy(state.now),
                "load": state.load(),
                "measurements": copy.deepcopy(state.measured),
                "ports": list(state.ports),
            }

    def capacity_watch(self, seconds: int, user: str) -> WatchStarted:
        with self._box() as b:
            return self._begun(b, seconds, user)

    def capacity_between(self, sender: str, receiver: str, user: str) -> WatchStarted:
        with self._box() as b:
            said = {
                name: NO_CARD
                for name, port in (("sender", sender), ("receiver", receiver))
                if port not in b.capacity.ports
            }
            if sender == receiver:
                said["receiver"] = TWICE
            if said:
                raise not_free(sender, receiver, said)
            return self._begun(b, cable.longest(), user, f"{sender} to {receiver}: {cable.SMALL.name}")

    def capacity_stop(self, user: str) -> Nothing:
        with self._box() as b:
            if not (b.capacity.job and b.capacity.job.state == "running"):
                raise ApplierRefused("not-measuring", "Nothing is being measured at the moment.")
            b.capacity.end(stopped=True)
        return {}

    @staticmethod
    def _begun(b: Box, seconds: float, user: str, between: str = "") -> WatchStarted:
        job = b.capacity.job
        if job and job.state == "running":
            raise ApplierRefused("busy", f"{job.user} is measuring at the moment; wait until that has ended.")
        job = b.capacity.begin(seconds, user, between)
        if b.instant:
            b.capacity.end()
        return {"job": job.id, "seconds": job.wanted}
