"""Does the box still run what it should? Looked at now and then, told in `status`, repaired when somebody asks.

The comparisons are those by which the steps know what there is to do; so whatever is found is what the steps of the
boot would repair. Nothing is compared while the system is changed, and what was seen only once is not told: a check
of a server, a lease or a restart may just have been on its way.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from applier.apply import steps
from applier.apply.deadline import Clock, boottime
from applier.apply.engine import Engine
from applier.apply.job import Job
from applier.apply.network_steps import names_differ, time_differs
from applier.apply.pair_steps import daemons_differ, election_differs, floating_wrong, link_of
from applier.apply.runs import RunRecord
from applier.apply.verbs import Applies, Core
from applier.hardware import tune as hardware
from applier.host.host import HostError
from applier.kept.faults import now
from applier.kept.loop import Loop
from applier.pair import client
from applier.parts import director, firewall, table, web_server
from applier.parts.network import act as network
from applier.parts.pair import link
from applier.wire import shapes
from applier.wire.errors import ApplierRefused
from applier.wire.shapes import DriftStatus, RepairStarted, RunState
from lbconfig.diff import drift
from lbconfig.diff.drift import Difference
from lbconfig.target import joined
from lbconfig.wanted.netstate import NOTHING

log = logging.getLogger("applier")

EVERY = 60.0  # seconds between two looks
AGAIN = 10.0  # seconds after which what was seen once is looked at again, and told if it is still there
TICK = 5.0
SETTLES = 5.0  # seconds after a change of role
TOLD = 100  # differences that are told one by one; a flushed table of a thousand services need not be


@dataclass(frozen=True)
class Comparison:
    turn: int
    at: float
    when: str
    found: tuple[Difference, ...] = ()
    fresh: int = 0  # differences that were seen this once
    trouble: str = ""


# --- comparing -------------------------------------------------------------------------------------


def differences(job: Job) -> tuple[list[Difference], list[HostError]]:
    """Between the kernel and `job.new`; and what could not be compared."""
    found, troubles = [], []
    for part in (_table, _firewall, _network, _settings, _timeouts, _files, _checks, _pair):
        try:
            found += part(job)
        except HostError as error:
            troubles.append(error)
    return found, troubles


def _table(job: Job) -> list[Difference]:
    return drift.table(table.read_table(job.host), job.new.snapshot)


def _firewall(job: Job) -> list[Difference]:
    words = firewall.altered(job.host, job.paths, job.new.rules)
    why = "Packets that you have denied may pass, or allowed ones may be dropped."
    as_loaded = "the rules of the running configuration, as they were loaded"
    return [Difference("firewall", "rule set of the firewall", as_loaded, words, why)] if words else []


def _network(job: Job) -> list[Difference]:
    return network.differences(job.host, job.paths, job.new.network)[0]


def _settings(job: Job) -> list[Difference]:
    # What this kernel has not cannot be repaired; the start of the box has told it.
    seen = [(setting, present) for setting, present in steps.settings_that_differ(job) if present is not None]
    found = drift.settings([*seen, *hardware.settings_that_differ(job.host, job.paths, job.new.own.tuning)])
    wished, present = job.new.network.hostname, job.host.setting("kernel/hostname")
    if wished and present != wished:
        why = "The box logs under another name."
        found.append(Difference("settings", "host name", wished, present or "none", why))
    return found


def _timeouts(job: Job) -> list[Difference]:
    return drift.timeouts(table.timeouts(job.host), job.new.timeouts)


def _files(job: Job) -> list[Difference]:
    files: tuple[tuple[Callable[[Job], bool], str, str], ...] = (
        (names_differ, "name servers (resolv.conf)", "Health checks and time servers given by name are not found."),
        (time_differs, "time servers (chrony.conf)", "The clock may go wrong, and with it certificates and logs."),
        (
            _web_differs,
            "web page (web.conf)",
            "After its next start it may show another certificate, or listen on a closed port.",
        ),
        (steps.sorry_page_differs, "sorry page", "Clients read it while every real server is down."),
    )
    return [
        Difference("settings", what, "as configured", "another text", why)
        for differs, what, why in files
        if differs(job)
    ]


def _web_differs(job: Job) -> bool:
    return web_server.differs(job.host, job.paths, job.new)


def _checks(job: Job) -> list[Difference]:
    state, wished = director.state(job.host, job.paths), job.new.has_checks
    found = []
    if steps.checks_change(job):
        why = "Servers are checked differently than configured, or not at all."
        found.append(Difference("checks", "file of the health checks", "as configured", "another text", why))
    if wished and state.pid is None:
        why = "A server that dies is not noticed: its clients are sent to it anyway."
        found.append(
            Difference("checks", "health checks (ldirectord)", "running", f"not running for {state.seconds} s", why)
        )
    if not wished and state.pid is not None:
        why = "They change the table of virtual services although no service is to be checked."
        found.append(Difference("checks", "health checks (ldirectord)", "not running", "running", why))
    return found


def _pair(job: Job) -> list[Difference]:
    conf = link_of(job)
    words = link.altered(job.host, job.paths, conf)
    if words is not None:
        should, why = ("as configured", "The other box is not heard.") if conf else ("none", "This box has no peer.")
        return [Difference("pair", "link to the other box (pair0)", should, words, why)]
    if job.new.pair_conf and daemons_differ(job):
        why = "When the other box takes over, connections that it was not told of are cut off."
        return [Difference("pair", "synchronisation of connections", "to and from the other box", "not so", why)]
    return [*_election(job)] if job.new.in_pair else []


def _election(job: Job) -> Iterator[Difference]:
    why = "When a box fails, the other one does not take over."
    words = election_differs(job)
    if words is not None:
        yield Difference("pair", "election of the box that leads (keepalived, floater)", "running", words, why)
    if job.host.read(job.paths.floating) != job.new.floating:
        why = "The box may lead without some of its addresses."
        yield Difference("pair", "list of floating addresses", "as configured", "another text", why)
    role = client.role(job.host, job.paths)
    lacks, has = floating_wrong(job)
    # While addresses come or go with the role, they are neither here nor there.
    if role is not None and boottime() - role.since > SETTLES and role == client.role(job.host, job.paths):
        yield from drift.floating(lacks, has)


# --- now and then ----------------------------------------------------------------------------------


def told(one: Difference) -> shapes.Difference:
    """As an answer has it."""
    return {
        "where": one.where,
        "object": one.object,
        "wanted": one.wanted,
        "present": one.present,
        "why": one.why,
        "disturbs": one.disturbs,
    }


class Drift:
    """The verbs `look` and `repair`, and the timer."""

    def __init__(self, core: Core, applies: Applies, clock: Clock) -> None:
        self._core = core
        self._applies = applies
        self._clock = clock
        self._last: Comparison | None = None
        self._begun = clock()  # the steps of the start compare everything, so the first look has time
        self._since: dict[tuple[str, str], float] = {}  # what the last look found, and when it was first seen
        self._looking = threading.Lock()
        self.loop = Loop("the box and its configuration", self.tick, lambda: core.host.sleep(TICK))

    def to_data(self) -> DriftStatus:
        """Of before the last change of the system nothing is told."""
        last = self._last
        if last is None or last.turn != self._core.turn.count:
            last = Comparison(0, 0.0, "")
        return {
            "looked": last.when,
            "count": len(last.found),
            "differences": [told(one) for one in last.found[:TOLD]],
            "fresh": last.fresh,
            "trouble": last.trouble,
        }

    def tick(self) -> None:
        """Look, if it is time."""
        last = self._last
        soon = last is not None and (last.fresh or last.turn != self._core.turn.count)
        at = self._begun if last is None else last.at
        if self._clock() - at >= (AGAIN if soon else EVERY):
            self._look()

    # --- verbs -----------------------------------------------------------------------------------

    def look(self) -> DriftStatus:
        """At once. What is seen for the first time counts as fresh; the timer looks again soon."""
        if not self._look():
            refusal = self._core.turn.refusal()
            raise refusal or ApplierRefused("busy", "The box was changed while it was looked at; look again.")
        return self.to_data()

    def repair(self, user: str) -> RepairStarted:
        """The steps of the boot, from what is there to what should run; {"apply": id} to follow."""
        core = self._core
        with core.turn.take(f"the box is being repaired for {user}") as held:
            running = core.running
            name = f"repair-{running.number or 0}-{secrets.token_hex(4)}"
            record = RunRecord.of(name, user, running.number, [step.name for step in steps.CONVERGE])
            record.kind = "repair"
            self._applies.begin(held, record, lambda: self._carry_out(record))
            return {"apply": record.id}

    # ---------------------------------------------------------------------------------------------

    def _look(self) -> bool:
        """False: the system is being changed, so nothing was compared."""
        core = self._core
        with self._looking:
            count = core.turn.count
            if core.turn.taken:
                return False
            found, troubles = differences(self._job())
            if core.turn.taken or core.turn.count != count:
                return False
            self._keep(found, troubles)
        return True

    def _keep(self, found: list[Difference], troubles: list[HostError], at_once: bool = False) -> None:
        at = self._clock()
        before = {one.key for one in self._last.found} if self._last else set()
        self._since = {one.key: self._since.get(one.key, at - AGAIN if at_once else at) for one in found}
        told = tuple(one for one in found if at - self._since[one.key] >= AGAIN)
        for one in told:
            if one.key not in before:
                log.warning("%s should be: %s; is: %s", one.object, one.wanted, one.present)
        trouble = " ".join(f"{error}." for error in troubles)
        self._core.known_good = not found and not troubles
        self._last = Comparison(self._core.turn.count, at, now(), told, len(found) - len(told), trouble)

    def _job(self) -> Job:
        core = self._core
        running = core.running
        return Job(
            *core.tools,
            new=running,
            before=running,
            old=running.network,
            confirmed=core.confirmed,
            lenient=True,  # what can be repaired is repaired
        )

    def _carry_out(self, record: RunRecord) -> RunState:
        job = self._job()
        found, _ = differences(job)
        try:
            extra = network.differences(job.host, job.paths, job.new.network)[1]
        except HostError:
            extra = NOTHING  # the steps will say why
        job.old = joined([job.old, extra])
        failure = Engine(job, record).forward(steps.CONVERGE)
        left, troubles = differences(replace(job, troubles=[]))
        self._keep(left, troubles, at_once=True)
        if failure or left:
            names = ", ".join(one.object for one in left[:5])
            record.message = " ".join(
                [*([f"Not as it should be: {names}."] if left else []), *(f"{error}." for error in job.troubles)]
            )
        else:
            self._core.faults.clear("start", "not-restored")
            many = f"{len(found)} difference{'s' * (len(found) != 1)}"
            record.message = f"The box runs what it should: {many} repaired." if found else "Nothing differed."
        log.info("repair for %s: %s", record.user, record.message)
        return "failed" if failure or left else "done"
