"""That an admin holds this box of the pair: kept for both slots, so that it is still held after a restart.

How long is told by the clock that counts from the boot, and after a restart by the time of day, which may have been
set meanwhile: a hold never lasts longer than the hours that were asked for, counted from the restart.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from applier.base import durable
from applier.wire.shapes_pair import LONGEST_HOLD

HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Moment:
    """Now, by three clocks."""

    boot: str  # the id of this boot
    boottime: float
    unix: float


@dataclass(frozen=True, slots=True)
class Hold:
    user: str
    since: str
    hours: int  # 0: until it is released
    begun: Moment
    leaves: bool = False  # it has begun to leave the pair, and the other box may be alone already

    @property
    def reason(self) -> str:
        """As the other box and the floater are told it."""
        if self.leaves:
            return "it leaves the pair"
        hours = f", for {self.hours} hour{'s' * (self.hours != 1)}" if self.hours else ""
        return f"by {self.user}{hours}"

    def left(self, now: Moment) -> float | None:
        """Seconds; None: until it is released."""
        if not self.hours:
            return None
        same = now.boot == self.begun.boot
        passed = now.boottime - self.begun.boottime if same else now.unix - self.begun.unix
        return max(0.0, self.hours * HOUR - max(0.0, passed))


def read(path: Path) -> Hold | None:
    """None where there is none, or none that can be read: then nobody knows who wanted what."""
    try:
        data = json.loads(path.read_bytes())
        begun = Moment(str(data["begun"]["boot"]), float(data["begun"]["boottime"]), float(data["begun"]["unix"]))
        hours = min(max(int(data["hours"]), 0), LONGEST_HOLD)
        return Hold(str(data["user"]), str(data["since"]), hours, begun, data.get("leaves") is True)
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def write(path: Path, hold: Hold) -> None:
    """Raises OSError."""
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    durable.replace(path, json.dumps(asdict(hold)).encode())


def remove(path: Path) -> None:
    """Raises OSError."""
    path.unlink(missing_ok=True)
    durable.sync_folder(path.parent)
