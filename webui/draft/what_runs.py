"""What the box runs, as one lbconfig snapshot. Asked for by every page, and read once for each apply.

Of a thousand services the snapshot is megabytes, and to read it takes a small box seconds. What somebody has just
applied here is at hand already.
"""

from __future__ import annotations

from applier.wire.client import connect
from applier.wire.shapes import Status
from lbconfig.model.canonical import digest
from lbconfig.model.kept import Reading
from lbconfig.model.snapshot import Snapshot

AT_HAND = 3  # what runs, what is tried, and one between

_at_hand: dict[str, Snapshot] = {}  # by digest, the newest last
_reading = Reading()


def remember(snapshot: Snapshot) -> None:
    """It may run in a moment."""
    key = digest(snapshot)
    _at_hand.pop(key, None)
    _at_hand[key] = snapshot
    for old in list(_at_hand)[:-AT_HAND]:
        _at_hand.pop(old, None)  # perhaps another thread was quicker


def status() -> Status:
    """Without its snapshot where that is at hand. Raises ApplierDown, ApplierRefused."""
    found = connect().status(list(_at_hand))
    runs = _at_hand.get(found["digest"])
    if runs is not None:
        remember(runs)  # so it is the last to give way to others
    return found


def of(seen: Status) -> Snapshot:
    """What ran when the status was asked for. Raises ApplierDown, ApplierRefused, SnapshotError."""
    found = _at_hand.get(seen["digest"])
    if found is None:
        data = seen["snapshot"]
        if data is None:  # others have taken its place since
            data = connect().status()["snapshot"]
        found = _reading(data)
        remember(found)
    return found


def current() -> Snapshot:
    """Raises as of() does."""
    return of(status())
