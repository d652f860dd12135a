"""The record of one run through the steps: what the web page shows while it happens, and after."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from applier.shapes import RunState, RunStatus, StepState, StepStatus

# The steps in their order, as an admin reads them. Why each stands where it stands: see steps.py.
TITLES = {
    "store": "Store the new configuration",
    "lint": "Try the new files",
    "nftables": "Load the firewall rules",
    "links": "Make VLANs, bonds and bridges",
    "sysctl": "Set the kernel's network settings",
    "interfaces-add": "Add addresses and routes",
    "announce": "Tell the neighbours where addresses are now",
    "names": "Set name and time servers",
    "sorry-page": "Write the sorry page",
    "ldirectord-stop": "Pause the health checks",
    "ipvs": "Change the table of virtual services",
    "ldirectord-start": "Start the health checks",
    "interfaces-remove": "Remove addresses and routes",
    "verify": "Look whether everything runs as wished",
    "confirm": "Confirm: the next boot uses it",
}


@dataclass(slots=True)
class StepRecord:
    name: str
    state: StepState = "waiting"
    seconds: float = 0.0
    detail: str = ""

    def to_data(self) -> StepStatus:
        return {
            "name": self.name,
            "title": TITLES[self.name],
            "state": self.state,
            "seconds": round(self.seconds, 3),
            "detail": self.detail,
        }


@dataclass(slots=True)
class RunRecord:
    id: str
    user: str
    steps: list[StepRecord]
    generation: int | None = None
    state: RunState = "running"
    message: str = ""
    started: float = field(default=0.0)  # monotonic

    @classmethod
    def of(cls, id_: str, user: str, generation: int | None, names: Iterable[str] = TITLES) -> RunRecord:
        return cls(id_, user, [StepRecord(name) for name in names], generation)

    def __getitem__(self, name: str) -> StepRecord:
        return next(step for step in self.steps if step.name == name)

    def to_data(self) -> RunStatus:
        return {
            "id": self.id,
            "user": self.user,
            "state": self.state,
            "steps": [step.to_data() for step in self.steps],
            "generation": self.generation,
            "message": self.message,
        }
