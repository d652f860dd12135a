"""The verbs about the hardware, and the balancer's module, whose table is as large as the memory allows."""

from __future__ import annotations

import logging
from typing import Literal, Protocol

from applier.base.paths import Paths
from applier.hardware import tune as hardware
from applier.hardware.look import look, machine_of_memory, plain
from applier.host.host import Host, HostError
from applier.kept.generations import Damaged, Generations
from applier.kept.turn import Turn
from applier.wire.shapes_machine import ActionStatus, FindingStatus, MachineStatus, SeatStatus, SettingStatus
from lbconfig.hardware.actions import Write
from lbconfig.hardware.facts import Machine
from lbconfig.hardware.findings.every import findings
from lbconfig.hardware.findings.finding import Finding
from lbconfig.hardware.layout import Seat, layout
from lbconfig.hardware.plan.whole import plan
from lbconfig.hardware.settings import AT_START, TABLE_SIZE, Wanted, wanted
from lbconfig.model.tuning import Tuning
from lbconfig.target import Target

log = logging.getLogger("applier")

# The schedulers that nearly everybody has; the kernel loads others when a service wants them.
BALANCER = ("ip_vs", "ip_vs_rr", "ip_vs_wrr", "ip_vs_lc", "ip_vs_wlc")


class Core(Protocol):
    paths: Paths
    host: Host
    generations: Generations
    running: Target
    turn: Turn


class Tuner:
    def __init__(self, core: Core) -> None:
        self._core = core

    def hardware(self) -> MachineStatus:
        core = self._core
        return describe(look(core.host), core.running.own.tuning, hardware.refused(core.host, core.paths))

    def tune(self, object: str, user: str) -> MachineStatus:
        core = self._core
        with core.turn.take(f"the hardware is being tuned for {user}"):
            ended = [] if object else hardware.end_meddlers(core.host)
            done = hardware.tune(core.host, core.paths, core.running.own.tuning, object)
        log.info("hardware tuned for %s: %d changed, %d refused", user, len(done.changed), len(done.refused))
        if ended:
            log.info("ended, as it moved what is tuned: %s", ", ".join(ended))
        return self.hardware()

    def load_balancer(self) -> None:
        """Before anybody asks for its table: the kernel would load it by itself, with a table of the usual size."""
        core = self._core
        try:
            core.host.put(core.paths.module_options, module_options(core.host, self._confirmed_wish()))
            core.host.command(["modprobe", "-q", "-a", *BALANCER])
        except HostError as error:
            log.error("the balancer was not loaded: %s", error)  # without it every step about it says so

    def _confirmed_wish(self) -> Tuning:
        generations = self._core.generations
        number = generations.confirmed_number()
        try:
            return Tuning() if number is None else generations.load(number).tuning
        except (OSError, Damaged) as error:
            log.error("what is chosen for the hardware cannot be read: %s", error)
            return Tuning()


def module_options(host: Host, tuning: Tuning) -> str:
    """For modprobe: with which table it loads the balancer."""
    rows = wanted(machine_of_memory(host), tuning.settings)
    bits = next(one.value for one in rows if one.key == TABLE_SIZE)
    return f"options ip_vs conn_tab_bits={bits}\n"


def describe(machine: Machine, tuning: Tuning, refused: dict[str, str]) -> MachineStatus:
    """How far the machine is as planned; pure, so that the pretended applier tells it by the same words."""
    return {
        "machine": plain(machine),
        "settings": [_setting(one, machine, refused) for one in wanted(machine, tuning.settings)],
        "actions": [
            _action(one.object, one.what, one.reason, one.source, one.done, refused.get(str(one.do), ""))
            for one in plan(machine, tuning)
        ],
        "findings": [_finding(one) for one in findings(machine)],
        "layout": [_seat(one) for one in layout(machine)],
    }


def _finding(one: Finding) -> FindingStatus:
    return {
        "code": one.code,
        "severity": one.severity,
        "object": one.object,
        "what": one.what,
        "cost": one.cost,
        "source": one.source,
        "mend": one.mend,
        "button": one.button,
        "actionable": one.actionable,
    }


def _seat(one: Seat) -> SeatStatus:
    return {
        "cpu": one.cpu,
        "node": one.node,
        "core": one.core,
        "share": one.share,
        "packets": one.packets,
        "dropped": one.dropped,
        "squeezed": one.squeezed,
        "work": [{"device": work.device, "kind": work.kind, "queue": work.queue} for work in one.work],
    }


def _action(object: str, what: str, reason: str, source: str, done: bool, message: str) -> ActionStatus:
    state: Literal["done", "differs", "refused"] = "done" if done else "refused" if message else "differs"
    shown = "" if done else message
    return {"object": object, "what": what, "reason": reason, "source": source, "state": state, "message": shown}


def _setting(one: Wanted, machine: Machine, refused: dict[str, str]) -> SettingStatus:
    row = one.tunable
    present = machine.settings.get(one.key)
    why = refused.get(str(Write(row.path, one.value)), "")
    state: Literal["done", "differs", "refused", "absent"]
    state = "done" if present == one.value else "absent" if present is None else "refused" if why else "differs"
    return {
        "key": one.key,
        "value": present,
        "wanted": one.value,
        "standard": one.standard,
        "lowest": row.lowest,
        "highest": row.highest,
        "reason": row.reason,
        "source": row.source,
        "state": state,
        "message": (why or (AT_START if row.at_start else "")) if state in ("differs", "refused") else "",
    }
