"""Load, and what became of it: several clients that begin together, their logs collected into one."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Log:
    """What one client (bench/programs/load.c) saw, or several together."""

    seconds: int
    tried: int  # connections that were begun
    replies: int  # whole ones, within the seconds
    late: int  # whole ones, after them
    bytes: int  # heads and bodies
    errors: dict[str, int]  # kind -> number: timeout, refused, reset, wrong, no_port
    median: float  # milliseconds from the beginning of a connection to the end of its reply
    p95: float
    p99: float
    longest: float
    each: tuple[tuple[int, int], ...]  # replies and bytes of each second

    @property
    def rate(self) -> float:
        """Replies a second."""
        return self.replies / self.seconds

    @property
    def offered(self) -> float:
        """Connections begun a second: less than was asked for where the clients cannot make more."""
        return self.tried / self.seconds

    @property
    def failed(self) -> int:
        return sum(self.errors.values())


def parse(line: str) -> Log:
    """Of one client. Raises ValueError, KeyError or TypeError where that is no log."""
    data = json.loads(line)
    return Log(**data | {"each": tuple((replies, size) for replies, size in data["each"])})


def collect(logs: Sequence[Log]) -> Log:
    """One log of clients that ran together: sums; of times, the mean by replies, and the longest of all.

    A mean of medians is no median; for clients that do the same it comes near enough.
    """
    if not logs:
        raise ValueError("no client left a log")
    if len({one.seconds for one in logs}) > 1:
        raise ValueError("these clients did not run for the same seconds")

    def mean(times: Sequence[float]) -> float:
        weights = [one.replies + one.late for one in logs]
        return statistics.fmean(times, weights) if sum(weights) else 0.0

    return Log(
        seconds=logs[0].seconds,
        tried=sum(one.tried for one in logs),
        replies=sum(one.replies for one in logs),
        late=sum(one.late for one in logs),
        bytes=sum(one.bytes for one in logs),
        errors={kind: sum(one.errors[kind] for one in logs) for kind in logs[0].errors},
        median=mean([one.median for one in logs]),
        p95=mean([one.p95 for one in logs]),
        p99=mean([one.p99 for one in logs]),
        longest=max(one.longest for one in logs),
        each=tuple(
            (sum(replies for replies, _ in second), sum(size for _, size in second))
            for second in zip(*(one.each for one in logs), strict=True)
        ),
    )


def best_third(each: Sequence[float]) -> float:
    """HAProxy's way of averaging: of 60 measures, one a second, the 5 best are left out and the next 20 averaged.

    Of fewer measures the same shares, at least one of each: a twelfth left out, a third averaged.
    """
    if len(each) < 2:
        raise ValueError(f"two seconds at least, not {len(each)}")
    ordered = sorted(each, reverse=True)
    left_out = max(1, round(len(each) * 5 / 60))
    taken = max(1, round(len(each) * 20 / 60))
    return statistics.fmean(ordered[left_out : left_out + taken])
