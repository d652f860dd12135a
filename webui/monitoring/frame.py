"""What every page shows around its subject: faults, and whether the draft waits to be applied."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from applier.client import ApplierDown, ApplierRefused, connect
from applier.shapes import ENDED, Status
from changes import draft
from lbconfig import diff
from lbconfig.snapshot import Snapshot, SnapshotError, from_data


@dataclass
class Frame:
    """One look at the applier, shared by everything that one page draws."""

    status: Status | None = None
    down: str = ""  # why the applier does not answer
    faults: list = field(default_factory=list)

    @cached_property
    def running(self) -> Snapshot | None:
        """What the box runs; None when nobody can say."""
        if self.status is None:
            return None
        try:
            return from_data(self.status["snapshot"])
        except SnapshotError:
            return None

    @cached_property
    def draft(self) -> Snapshot:
        return draft.current()

    @cached_property
    def waiting(self) -> int:
        """How many changes of the draft do not run yet."""
        if self.running is None or draft.same(self.running, self.draft):
            return 0
        return max(1, len(diff.summary(self.running, self.draft)))

    @property
    def applying(self) -> dict | None:
        """The apply that is under way; it may wait to be confirmed."""
        run = self.status and self.status["apply"]
        return run if run and run["state"] not in ENDED else None


def look(request, anew: bool = False) -> Frame:
    """The frame of this request; the applier is asked once, unless it has been told to do something since."""
    if anew or not hasattr(request, "frame"):
        try:
            status = connect().status()
            request.frame = Frame(status=status, faults=status["faults"])
        except (ApplierDown, ApplierRefused) as error:
            request.frame = Frame(down=str(error))
    return request.frame


def frame(request) -> dict:
    """Context processor; pages before the log-in show nothing of the box."""
    if not getattr(request, "user", None) or not request.user.is_authenticated:
        return {}
    return {"frame": look(request)}
