"""How long a log-in lasts: to half an hour without a click, and to twelve hours in any case.

Time is counted by the clock that runs since the start of the kernel, because the other one may be set to any time by
hand, by a server or by an empty battery. Across a restart only the clock of the wall is left; one that went backwards
since ends the log-in.
"""

from __future__ import annotations

import functools
import time
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.contrib.sessions.models import Session
from django.utils import timezone

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
STAMP_EVERY = 60  # seconds: a session is not written on every click
BEGAN, SEEN = "began", "seen"  # keys of a session


@dataclass(frozen=True)
class Moment:
    boot: str  # of which start of the kernel
    running: int  # seconds since that
    wall: int  # seconds since 1970, as the box believed

    def since(self, earlier: Moment) -> int | None:
        """Seconds that are left; None where that is unknown."""
        if self.boot == earlier.boot:
            return self.running - earlier.running
        return self.wall - earlier.wall if self.wall >= earlier.wall else None


def now() -> Moment:
    return Moment(_boot(), int(time.clock_gettime(time.CLOCK_BOOTTIME)), int(time.time()))


def begin(session) -> None:
    """At the log-in; any log-in before it in the same browser is over."""
    session[BEGAN] = session[SEEN] = asdict(now())


def is_over(session) -> bool:
    """Also a session of an earlier version, which does not know when it began."""
    began, seen, present = _moment(session, BEGAN), _moment(session, SEEN), now()
    if began is None or seen is None:
        return True
    age, silence = present.since(began), present.since(seen)
    if age is None or silence is None:
        return True
    return age >= settings.SESSION_COOKIE_AGE or silence > settings.IDLE_MINUTES * 60


def stamp(session) -> None:
    """Somebody clicked."""
    seen, present = _moment(session, SEEN), now()
    if seen is None or (present.since(seen) or 0) >= STAMP_EVERY or seen.boot != present.boot:
        session[SEEN] = asdict(present)


def clear() -> None:
    """Forget those that are over.

    Where the clock was set, the end in a row is none; a log-in says by itself whether it is over.
    """
    present = timezone.now()
    latest = present + timedelta(seconds=settings.SESSION_COOKIE_AGE)
    for row in Session.objects.exclude(expire_date__range=(present, latest)).iterator():
        if is_over(row.get_decoded()):
            row.delete()


def _moment(session, key: str) -> Moment | None:
    try:
        return Moment(**session[key])
    except (KeyError, TypeError):
        return None


@functools.cache
def _boot() -> str:
    return BOOT_ID.read_text().strip()
