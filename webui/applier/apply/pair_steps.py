"""The steps of an apply that are about the other box of a pair. What a step is: see job.py; their order: steps.py.

Without a pair no run has them.
"""

from __future__ import annotations

from applier.apply.job import Job, Step
from applier.host.host import HostError, wait_until
from applier.host.ipvs_netlink import Daemon
from applier.parts.pair import daemons, link

STARTS = 5.0  # seconds that the kernel may take to show what it has started


class PairStep(Step):
    """One that a box without a pair does not have."""

    def concerns(self, job: Job) -> bool:
        if job.new.pair_conf:
            return True
        try:
            return job.host.read(job.paths.pair_link) is not None
        except HostError:
            return True  # the step says what is wrong


class MakePairLink(PairStep):
    name = "pair-link"
    why = "After the interfaces that it may run over, and before all that goes through it."

    def due(self, job: Job) -> bool:
        return link.altered(job.host, job.paths, job.new.pair_conf) is not None

    def do(self, job: Job) -> str:
        saved = job.saved
        saved.pair = job.host.read(job.paths.pair_link) or ""
        saved.pair_daemons = daemons.running(job.host)
        # They hold on to the link and to the address that it has now; what is wanted comes in a step of its own.
        daemons.put(job.host, ())
        link.put(job.host, job.paths, job.new.pair_conf)
        return "made" if job.new.pair_conf else "removed"

    def undo(self, job: Job) -> None:
        if job.saved.pair is None or job.saved.pair_daemons is None:
            return
        daemons.put(job.host, ())
        link.put(job.host, job.paths, job.saved.pair)
        daemons.put(job.host, job.saved.pair_daemons)


class Connections(PairStep):
    name = "connections"
    why = "After the table: a connection that comes before its service belongs to no server, and never will."

    def due(self, job: Job) -> bool:
        return bool(job.new.pair_conf) and daemons_differ(job)

    def do(self, job: Job) -> str:
        job.saved.daemons = daemons.running(job.host)
        changed = daemons.put(job.host, _wanted(job))
        wait_until(job.host, daemons.WHAT, STARTS, lambda: "not running" if daemons_differ(job) else None)
        return f"{changed} changes"

    def undo(self, job: Job) -> None:
        if job.saved.daemons is not None:
            daemons.put(job.host, job.saved.daemons)


def daemons_differ(job: Job) -> bool:
    """Of a box with a pair."""
    return {*daemons.running(job.host)} != {*_wanted(job)}


def _wanted(job: Job) -> tuple[Daemon, ...]:
    return daemons.wanted(link.wanted(job.new.pair_conf))
