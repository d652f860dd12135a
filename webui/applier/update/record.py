"""What became of the last update: one small file that both slots read, and its sentences.

installed   the bundle is in its slot; the box still runs the other one
trying      the box was told to start that slot; nobody knows yet whether it comes up
good        it came up, and was looked at
failed      it did not, and the box went back by itself
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from applier.base import durable
from applier.kept.faults import now
from applier.wire.shapes import UpdateOutcome

State = Literal["installed", "trying", "good", "failed"]
Kind = Literal["update", "return"]
NEVER_SAID = "it stopped before it could say why"


@dataclass(frozen=True, slots=True)
class Record:
    slot: str  # the one that was installed or chosen
    version: str
    from_slot: str  # the one that ran then
    from_version: str
    user: str
    kind: Kind  # return: nothing was installed, somebody went to what the slot held already
    state: State
    since: str  # when it came into this state
    reason: str = ""  # why it did not come up, as far as that slot could tell
    known_faults: tuple[str, ...] = ()  # codes of what was wrong before: no reason to go back
    seen: bool = False  # an admin has read of the failure

    def now(self, state: State, reason: str = "") -> Record:
        return replace(self, state=state, reason=reason, since=now(), seen=False)

    @property
    def sentence(self) -> str:
        return _SENTENCES[self.state, self.kind].format(record=self, reason=self.reason or NEVER_SAID)

    @property
    def fault(self) -> str | None:
        return self.sentence if self.state == "failed" and not self.seen else None

    def to_data(self) -> UpdateOutcome:
        return {
            "slot": self.slot,
            "version": self.version,
            "from_version": self.from_version,
            "user": self.user,
            "kind": self.kind,
            "state": self.state,
            "since": self.since,
            "seen": self.seen,
            "sentence": self.sentence,
        }


_SENTENCES = {
    ("installed", "update"): "Version {record.version} is in slot {record.slot}; the box runs it once it is restarted.",
    ("trying", "update"): "Version {record.version} has started and is being checked.",
    ("good", "update"): "Version {record.version} came up, passed its checks, and runs.",
    ("trying", "return"): "The box goes to version {record.version} in slot {record.slot}.",
    ("good", "return"): "The box went to version {record.version}, with the configuration of that slot.",
}
_SENTENCES |= {
    ("failed", kind): "Version {record.version} did not come up: {reason}. "
    "The box went back to version {record.from_version}."
    for kind in ("update", "return")
}
_SENTENCES["installed", "return"] = _SENTENCES["installed", "update"]


def load(path: Path) -> Record | None:
    """None where there is none, or none that can be read: it decides nothing, it only tells."""
    try:
        data = json.loads(path.read_bytes())
        record = Record(**{**data, "known_faults": tuple(data.get("known_faults", ()))})
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return None
    texts = (record.slot, record.version, record.from_slot, record.from_version, record.user, record.since)
    good = all(isinstance(text, str) for text in (*texts, record.reason, *record.known_faults))
    return record if good and (record.state, record.kind) in _SENTENCES else None


def save(path: Path, record: Record) -> None:
    """Raises OSError."""
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    durable.replace(path, json.dumps(asdict(record), indent=1).encode() + b"\n")
