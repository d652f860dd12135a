"""From whatever the kernel holds to the confirmed generation, when the daemon starts; or on with what waits for a yes.

Nothing here may keep the daemon from answering: only through it an admin can see what is wrong.
"""

from __future__ import annotations

import json
import logging
from typing import Protocol

from applier.apply.deadline import boottime
from applier.apply.early import Early
from applier.apply.engine import Engine
from applier.apply.job import Job, Tools
from applier.apply.runs import RunRecord
from applier.apply.steps import CONVERGE
from applier.apply.verbs import Applies
from applier.base.paths import Paths
from applier.host import reserve
from applier.host.host import Host, HostError, run
from applier.kept import events, storage, way_back
from applier.kept.faults import Faults
from applier.kept.generations import Damaged, Generations
from applier.kept.setup_code import SetupCode
from applier.kept.turn import Held, Turn
from applier.kept.way_back import Recovered
from applier.pair.lookout import Lookout
from applier.update.verbs import Updates
from lbconfig import migrate
from lbconfig.model.snapshot import FACTORY, Snapshot, SnapshotError
from lbconfig.target import Target, joined

log = logging.getLogger("applier")

LATER = "later"  # the service that holds back what clients do not wait for (overlay/etc/sv/later)


class Core(Protocol):
    """What a start needs of the daemon."""

    paths: Paths
    host: Host
    generations: Generations
    faults: Faults
    turn: Turn
    setup_code: SetupCode
    reasons: events.Events
    early: Early
    applies: Applies
    updates: Updates
    lookout: Lookout
    running: Target
    confirmed: int | None
    known_good: bool

    @property
    def tools(self) -> Tools: ...

    def target(self, number: int | None, snapshot: Snapshot, was: int | None = None) -> Target: ...
    def set_running(self, target: Target) -> None: ...


class Start:
    def __init__(self, core: Core) -> None:
        self.record: RunRecord | None = None  # None until the turn of the start has come
        self._core = core

    @property
    def over(self) -> bool:
        return self.record is not None and self.record.state != "running"

    def bring_up(self) -> None:
        """Once, before anything else has its turn. Whatever fails is a fault of the box, and told as one."""
        core = self._core
        with core.turn.take("the box is being started", wait=True) as held:
            try:
                self._bring_up(held)
            # The daemon must answer anyway.
            except Exception as error:
                log.exception("start")
                core.faults.set("start", f"The applier has failed when the box started: {error}.")
                if self.record is not None:
                    self.record.state = "failed"

    def let_the_rest_start(self) -> None:
        """Unless it is ldirectord that does so, after its first round, or has left a word that this is over."""
        core = self._core
        if core.running.has_checks and not core.paths.first_round.exists():
            return
        try:
            run(core.host, ["sv", "down", str(core.paths.services / LATER)])
        except HostError as error:
            log.error("%s", error)  # they start by themselves a little later

    def _bring_up(self, held: Held) -> None:
        core = self._core
        reserve.keep(core.host)
        left = core.applies.left_waiting()
        interrupted = self._open_storage(left.number if left else None)
        if left is None:
            self._load(interrupted)
        core.updates.start()
        if left is not None:
            self.record = RunRecord.of("start", "system", left.number, [])
            self.record.message = f"Revision {left.number} waits to be confirmed, as before."
            self.record.state = "done"
            core.applies.take_up(left, held)

    def _load(self, interrupted: list[Target]) -> None:
        core = self._core
        recovered = self._recover()
        target = self._to_load(recovered)
        ran = self._what_ran()
        may_be_there = (*interrupted, *([ran] if ran else []))
        job = Job(
            *core.tools,
            new=target,
            before=ran,
            old=joined([one.network for one in may_be_there]),
            leaving=tuple(one.own for one in may_be_there),
            lenient=True,
        )
        core.running, core.confirmed = target, core.generations.confirmed_number()
        if ran is None:  # the box was started, and not the daemon alone
            core.lookout.booted()
        record = RunRecord.of("start", "system", target.number, [step.name for step in CONVERGE])
        self.record = record
        failure = Engine(job, record).forward(CONVERGE)
        name = "the factory configuration" if target.number is None else f"revision {target.number}"
        record.message = failure or f"The box runs {name}."
        said = " ".join(f"{error}." for error in job.troubles)
        core.faults.set("start", f"Not all of {name} could be brought up: {said}" if failure else None)
        core.set_running(target)
        core.applies.close()
        if ran is None:
            core.updates.restart_seconds = round(boottime(), 1)
        core.known_good = failure is None
        if failure is None and recovered.fault is None and target.number is not None:
            core.early.keep(job)
        record.state = "failed" if failure else "done"
        log.info("start: %s", record.message)

    def _open_storage(self, waiting: int | None) -> list[Target]:
        """The snapshots of applies that were cut short; what they had changed may have to go. `waiting` is none."""
        core = self._core
        try:
            if storage.trouble(core.paths) != storage.MISSING:
                core.generations.prepare()
                core.setup_code.prepare()
                way_back.refresh_second_copy(core.generations)
                found = core.generations.mark_interrupted(waiting)
                storage.keep_reserve(core.paths)
                core.reasons.load()
                targets = (core.target(one.number, one.snapshot, one.box) for one in found)
                return [one for one in targets if one.known]
        except (OSError, Damaged) as error:
            log.error("the data partition: %s", error)
            if isinstance(error, OSError):
                core.faults.set(*storage.of_error(error, core.paths))
        return []

    def _recover(self) -> Recovered:
        found = way_back.recover(self._core.generations)
        if found.fault:
            self._core.faults.set(*found.fault)
            log.error("%s: %s", *found.fault)
        return found

    def _to_load(self, recovered: Recovered) -> Target:
        """Who is in his pair no more keeps his network, and takes no part in it."""
        if recovered.snapshot is None:
            return Target(recovered.number, FACTORY)
        target = self._core.target(recovered.number, recovered.snapshot, recovered.box)
        if target.snapshot.pair is None or target.in_pair:
            return target
        runs = "its own network and holds no floating address" if target.known else "the factory configuration"
        self._core.faults.set(
            "not-in-pair",
            f"Revision {recovered.number} is that of a pair, and the key of this box is not in it. The box runs "
            f"{runs}. Join the pair again, or apply a configuration without a pair.",
        )
        return target if target.known else Target(None, FACTORY)

    def _what_ran(self) -> Target | None:
        """What the system was last brought to since boot; None after a boot."""
        core = self._core
        try:
            data = json.loads(core.host.read(core.paths.running) or "null")
            if data is None:
                return None
            found = core.target(data["number"], migrate.read(json.dumps(data["snapshot"])), data.get("box"))
            return found if found.known else None
        except (ValueError, KeyError, TypeError, SnapshotError, HostError) as error:
            log.error("%s cannot be read: %s", core.paths.running, error)
            return None
