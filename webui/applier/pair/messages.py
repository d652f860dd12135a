"""How large the messages are in which the kernel tells the other box of connections. Pure.

A message leaves when it is full, or after two seconds. On a box with few new connections a large one is hardly ever
full, and what waits in it is lost when the box dies. On a box with many, a large one is full before the kernel's own
delay of 20 ms is over, and small ones cost more (decision 105).
"""

from __future__ import annotations

from typing import NamedTuple

MANY, FEW = 2000.0, 1000.0  # new connections a second; between the two, the size stays what it is
SOON, LATER = 10.0, 600.0  # seconds that many, and few, have to last: with each change all connections are told again


class Course(NamedTuple):
    large: bool
    since: float | None = None  # since when the other size would fit better


def after(course: Course, now: float, rate: float) -> Course:
    """What becomes of it at this rate of new connections a second."""
    if not (rate < FEW if course.large else rate > MANY):
        return Course(course.large)
    since = now if course.since is None else course.since
    if now - since >= (LATER if course.large else SOON):
        return Course(not course.large)
    return Course(course.large, since)
