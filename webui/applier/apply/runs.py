"""The record of one run through the steps: what the web page shows while it happens, and after."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from applier.apply.deadline import Deadline
from applier.apply.pending import Ask
from applier.wire.shapes import ConfirmStatus, RunKind, RunState, RunStatus, StepState, StepStatus

# The steps in their order, as an admin reads them. Why each stands where it stands: see steps.py.
TITLES = {
    "store": "Store the new configuration",
    "lint": "Try the new files",
    "nftables": "Load the firewall rules",
    "web-page": "Open the web page: port and certificate",
    "links": "Make VLANs, bonds and bridges",
    "pair-link": "Make the link to the other box of the pair",
    "hardware": "Tune settings, queues and clock to the hardware",
    "sysctl": "Set the kernel's network settings",
    "floating-end": "Give up floating addresses and the election",
    "interfaces-add": "Add addresses and routes",
    "floating-add": "Add floating addresses",
    "interrupts": "Give each queue and interrupt its CPU",
    "announce": "Tell the neighbours where addresses are now",
    "names": "Set name and time servers",
    "sorry-page": "Write the sorry page",
    "ldirectord-stop": "Pause the health checks",
    "ipvs": "Change the table of virtual services",
    "connections": "Tell the other box of connections, and take its own",
    "ldirectord-start": "Start the health checks",
    "vrrp": "Take part in the election of the box that leads",
    "interfaces-remove": "Remove addresses and routes",
    "floating-remove": "Remove floating addresses",
    "nftables-remove": "Remove the firewall rules of what has left",
    "verify": "Verify that everything runs as configured",
    "confirm": "Confirm: the next boot uses it",
}
# Of no other box.
IN_A_PAIR = ("pair-link", "floating-end", "floating-add", "connections", "vrrp", "floating-remove")
ALONE = tuple(name for name in TITLES if name not in IN_A_PAIR)
# What becomes of a step's state when the run is put back; the others stay.
UNDONE: dict[StepState, StepState] = {"done": "undone", "waiting": "skipped"}
WAITING_SENTENCE = "Everything runs. It stays so only if it is confirmed in time."


def confirmed_sentence(number: int | None, user: str = "") -> str:
    """`user`: who confirmed it, where that is another one than who applied."""
    return f"Revision {number} runs{f'; {user} confirmed it' if user else ' and is confirmed'}."


def in_vain_sentence(seconds: int) -> str:
    """Nobody confirmed it in that time."""
    return f"Nobody confirmed the changes within {seconds} seconds, so the box went back by itself."


def waits_words(user: str, seconds: float) -> str:
    """What the box is doing while nobody has confirmed the changes yet; the end of a sentence."""
    return f"the changes of {user} wait to be confirmed ({seconds:.0f} seconds left)"


def taken_back_sentence(user: str) -> str:
    return f"{user} took the changes back before they were confirmed."


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
    ask: Ask | None = None  # None: it is confirmed as soon as everything runs
    deadline: Deadline | None = None  # while it waits
    kind: RunKind = "apply"

    @classmethod
    def of(cls, id_: str, user: str, generation: int | None, names: Iterable[str] = TITLES) -> RunRecord:
        return cls(id_, user, [StepRecord(name) for name in names], generation)

    def __getitem__(self, name: str) -> StepRecord:
        return next(step for step in self.steps if step.name == name)

    def leave_out(self, name: str) -> None:
        """The box has no such step."""
        self.steps = [step for step in self.steps if step.name != name]

    def note(self, step: StepStatus) -> None:
        """Take over what was known of a step; one that this version has not is left out."""
        for mine in self.steps:
            if mine.name == step["name"]:
                mine.state, mine.seconds, mine.detail = step["state"], step["seconds"], step["detail"]

    def mark_undone(self) -> None:
        for step in self.steps:
            step.state = UNDONE.get(step.state, step.state)

    def _confirm(self) -> ConfirmStatus | None:
        ask, deadline = self.ask, self.deadline
        if ask is None:
            return None
        return {
            "within": ask.within,
            "reasons": list(ask.reasons),
            "addresses": list(ask.addresses),
            "dhcp": list(ask.dhcp),
            "left": round(deadline.left(), 1) if deadline else None,
            "waited": round(deadline.waited(), 3) if deadline else None,
        }

    def to_data(self) -> RunStatus:
        return {
            "id": self.id,
            "kind": self.kind,
            "user": self.user,
            "state": self.state,
            "steps": [step.to_data() for step in self.steps],
            "generation": self.generation,
            "message": self.message,
            "confirm": self._confirm(),
        }
