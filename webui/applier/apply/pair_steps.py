"""The steps of an apply that are about the other box of a pair. What a step is: see job.py; their order: steps.py.

Without a pair no run has them.
"""

from __future__ import annotations

from collections.abc import Iterable

from applier.apply.job import Job, Step
from applier.host.host import HostError, wait_until
from applier.host.ipvs_netlink import Daemon
from applier.pair import election, ready, roles
from applier.pair.election import Files
from applier.pair.joining import record
from applier.parts.network import act as network
from applier.parts.network.present import links
from applier.parts.pair import daemons, link
from lbconfig.pair import floating
from lbconfig.render.pair_files import with_those_of
from lbconfig.wanted.netstate import NOTHING, Address, NetworkState

STARTS = 5.0  # seconds that the kernel may take to show what it has started
HELD = 20.0  # seconds that the floater may take on a busy box
ELECTED = 10.0  # seconds that keepalived may take to elect a box that nobody contends with
TOLD = 10  # addresses that a sentence names


class PairStep(Step):
    """One that a box without a pair does not have."""

    def concerns(self, job: Job) -> bool:
        if job.new.in_pair:
            return True
        left = (job.paths.pair_link, job.paths.floating, job.paths.keepalived)
        try:
            return any(job.host.read(path) is not None for path in left)
        except HostError:
            return True  # the step says what is wrong


class MakePairLink(PairStep):
    name = "pair-link"
    why = "After the interfaces that it may run over, and before all that goes through it."

    def concerns(self, job: Job) -> bool:
        return super().concerns(job) or bool(link_of(job))

    def due(self, job: Job) -> bool:
        return link.altered(job.host, job.paths, link_of(job)) is not None

    def do(self, job: Job) -> str:
        saved = job.saved
        saved.pair = job.host.read(job.paths.pair_link) or ""
        saved.pair_daemons = daemons.running(job.host)
        # They hold on to the link and to the address that it has now; what is wanted comes in a step of its own.
        daemons.put(job.host, ())
        link.put(job.host, job.paths, link_of(job))
        return "made" if link_of(job) else "removed"

    def undo(self, job: Job) -> None:
        if job.saved.pair is None or job.saved.pair_daemons is None:
            return
        daemons.put(job.host, ())
        link.put(job.host, job.paths, job.saved.pair)
        daemons.put(job.host, job.saved.pair_daemons)


class EndElection(PairStep):
    name = "floating-end"
    why = "Before addresses that floated are the box's own: the kernel takes none that it has as a lease."

    def due(self, job: Job) -> bool:
        there = any(job.host.read(path) is not None for path in (job.paths.floating, job.paths.keepalived))
        return there and not job.new.in_pair

    def do(self, job: Job) -> str:
        host, paths, before = job.host, job.paths, job.before
        job.saved.ended = election.files(host, paths)
        held = floating(before.snapshot, before.box) if before is not None and before.box is not None else ()
        # What it led with becomes its own without a moment in which nobody has it. Where not all does, the other box
        # may be about to lead.
        wanted = network.own(job.network, held)
        kept = bool(held) and len(wanted) == len(held) and election.keep(host, paths)
        election.end(host, paths)
        if kept:
            network.adopt(host, wanted)
        return "given up"

    def undo(self, job: Job) -> None:
        ended = job.saved.ended
        if ended is None or not ended.keepalived:
            return
        if job.before is not None and job.before.box is not None:
            # Whoever leads has what floats, and that may be the other box by now.
            made = (*floating(job.before.snapshot, job.before.box), *job.network.addresses)
            network.remove(job.host, job.paths, NetworkState(addresses=made), job.before.network)
        # A floater that has not ended has forgotten what it held.
        election.reload(job.host, job.paths, ended.floating, remove=False)
        election.begin(job.host, job.paths, ended)


class AddFloating(PairStep):
    name = "floating-add"
    why = "Before the services that live on them; those that leave are held until nothing uses them."

    def due(self, job: Job) -> bool:
        meanwhile = self._meanwhile(job)
        differs = meanwhile != job.host.read(job.paths.floating)
        return meanwhile is not None and (differs or _not_held(job) is not None)

    def do(self, job: Job) -> str:
        job.saved.floating = job.host.read(job.paths.floating)
        election.reload(job.host, job.paths, self._meanwhile(job) or "", remove=False)
        wait_until(job.host, "the floating addresses", HELD, lambda: _not_held(job))
        return "held while this box leads"

    def undo(self, job: Job) -> None:
        if job.saved.floating is not None:
            election.reload(job.host, job.paths, job.saved.floating, remove=True)

    @staticmethod
    def _meanwhile(job: Job) -> str | None:
        """What the floater has until the end of the run; None: it does not run yet, or no more."""
        present = job.host.read(job.paths.floating)
        return with_those_of(job.new.floating, present) if job.new.in_pair and present is not None else None


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


class Elect(PairStep):
    name = "vrrp"
    why = "After the services: only then may it lead. Before addresses go: those that float are never without a holder."

    def due(self, job: Job) -> bool:
        return job.new.in_pair and election_differs(job) is not None

    def do(self, job: Job) -> str:
        host, paths, new = job.host, job.paths, job.new
        # A kill may have left one file of the two.
        present = host.read(paths.keepalived) if host.read(paths.floating) is not None else None
        job.saved.keepalived = present or ""
        if not present:
            if _goes_on(job):
                return self._go_on(job)
            election.begin(host, paths, Files(new.keepalived, new.floating, roles.hold_text(ready.NOT_YET)))
            return "begun; the box may lead once it is ready"
        if present == new.keepalived:
            election.up(host, paths)
            return "started again"
        if job.relieved and election.leads(host, paths):
            election.make_way(host, paths)
        election.restart(host, paths, new.keepalived)
        return "restarted"

    @staticmethod
    def _go_on(job: Job) -> str:
        """The floater makes leases of the box's own addresses while they are there; clients see nothing of it."""
        host, paths, new = job.host, job.paths, job.new
        job.saved.own = network.present(host)
        # The floater holds an address of IPv4 beside the same one of a network; of IPv6 there is each one once.
        six = _whole6(floating(new.snapshot, new.box), job.saved.own) if new.box is not None else ()
        meanwhile = NetworkState(addresses=six)
        network.add(host, paths, meanwhile, job.trouble)
        election.begin(host, paths, Files(new.keepalived, new.floating, roles.hold_text(None)))
        try:
            wait_until(host, "this box to lead", ELECTED, lambda: _not_led(job))
        except HostError:
            network.remove(host, paths, meanwhile, NOTHING)
            return "begun; the box does not lead yet"
        return "begun; the box leads"

    def undo(self, job: Job) -> None:
        saved = job.saved.keepalived
        if saved == "":
            # Boxes that were joined before this go on talking.
            election.end(job.host, job.paths, channel=not job.saved.pair)
            if job.saved.own is not None:
                network.add(job.host, job.paths, job.saved.own, job.trouble)
        elif saved is not None and job.host.read(job.paths.keepalived) != saved:
            election.restart(job.host, job.paths, saved)


class RemoveFloating(PairStep):
    name = "floating-remove"
    why = "After the table: until then clients of these addresses were still served."

    def due(self, job: Job) -> bool:
        return job.new.in_pair and job.host.read(job.paths.floating) not in (None, job.new.floating)

    def do(self, job: Job) -> str:
        job.saved.floating_meanwhile = job.host.read(job.paths.floating)
        election.reload(job.host, job.paths, job.new.floating, remove=True)
        return "only those that are configured"

    def undo(self, job: Job) -> None:
        if job.saved.floating_meanwhile is not None:
            election.reload(job.host, job.paths, job.saved.floating_meanwhile, remove=False)


def link_of(job: Job) -> str:
    """What the link to the other box is made of, in a pair or where the boxes were joined; empty: there is none."""
    if job.new.snapshot.pair is not None:
        return job.new.pair_conf
    joined = record.load(job.paths)
    return record.conf(joined) if joined else ""


def election_differs(job: Job) -> str | None:
    """What of keepalived and the floater is not as configured, in a box of a pair; None: nothing."""
    if job.host.read(job.paths.floating) is None:
        return "not there"
    if job.host.read(job.paths.keepalived) != job.new.keepalived:
        return "made for another configuration"
    return None if election.runs(job.host, job.paths) else "not running"


def floating_wrong(job: Job) -> tuple[list[Address], list[Address]]:
    """Floating addresses that a leading box lacks, and those that another one has."""
    wanted = floating(job.new.snapshot, job.new.box) if job.new.box is not None else ()
    cards = {link.name: link.addresses for link in links(job.host)}
    if election.leads(job.host, job.paths):
        return [(name, address) for name, address in wanted if address not in cards.get(name, (address,))], []
    return [], [(name, address) for name, address in wanted if address in cards.get(name, ())]


def election_missing(job: Job) -> str | None:
    """What the last look at a box of a pair sees; None: all is there. Without a pair there is nothing to see."""
    if not job.new.in_pair:
        return None
    lacks, has = floating_wrong(job)
    words = [f"{address} on {name} is not there" for name, address in lacks]
    words += [f"{address} on {name} is there, and this box does not lead" for name, address in has]
    return election_differs(job) or "; ".join(words[:TOLD]) or None


def _not_held(job: Job) -> str | None:
    """What the floater lacks, if it runs."""
    lacks = floating_wrong(job)[0] if election.runs(job.host, job.paths) else []
    return f"{', '.join(address for _, address in lacks[:TOLD])} not there" if lacks else None


def _not_led(job: Job) -> str | None:
    return _not_held(job) if election.leads(job.host, job.paths) else "it does not"


def _whole6(floats: Iterable[Address], own: NetworkState) -> tuple[Address, ...]:
    """Those of IPv6 that the box has, each for itself alone."""
    there = {(name, address.partition("/")[0]) for name, address in own.addresses}
    return tuple((name, one) for name, one in floats if one.endswith("/128") and (name, one.partition("/")[0]) in there)


def _goes_on(job: Job) -> bool:
    """Whether this box served alone what floats from now on: it leads at once, or nobody would."""
    if job.before is None or job.before.snapshot.pair is not None or job.new.box is None:
        return False
    own = {address.partition("/")[0] for _, address in job.before.network.addresses}
    return any(address.partition("/")[0] in own for _, address in floating(job.new.snapshot, job.new.box))


def daemons_differ(job: Job) -> bool:
    """Of a box with a pair."""
    return daemons.differ(daemons.running(job.host), _wanted(job))


def _wanted(job: Job) -> tuple[Daemon, ...]:
    return daemons.wanted(link.wanted(job.new.pair_conf))
