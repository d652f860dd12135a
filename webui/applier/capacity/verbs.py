"""How much this box can forward: measured, kept, and compared with now.

The load comes from clients of the admin's; watching them reads counters and changes nothing, so an apply may go on
beside it. Or the box sends to itself, by a cable between two of its ports (ports.py); the system is not to be
changed meanwhile. How the limit follows from what was seen is lbconfig.hardware's to say.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from applier.base.paths import Paths
from applier.capacity import ports as capacity_ports
from applier.capacity import record as capacity_record
from applier.capacity.meter import Counters, Meter, between, read_counters
from applier.capacity.record import to_rates
from applier.host.host import Host, HostError
from applier.kept.faults import now
from applier.kept.turn import Turn, beside
from applier.parts.network import act as network
from applier.wire.errors import ApplierRefused
from applier.wire.shapes import Nothing, Problem
from applier.wire.shapes_capacity import Capacity, KeptMeasurement, LoadStatus, WatchJob, WatchStarted
from lbconfig.capacity import cable
from lbconfig.capacity.figures import WINDOW, Hardware, Limit, Rates, Sample, share, sustained
from lbconfig.target import Target
from lbconfig.validate.cards import Card

log = logging.getLogger("applier")

Ended = Literal["done", "stopped", "failed"]

SECOND = 1.0
RELEASE = "kernel/osrelease"
NOTHING_LASTED = (
    f"There were no {WINDOW} seconds in a row in which the box forwarded and dropped no packet, so nothing was kept."
)
NO_CARD = "is not a network card of this box"
TWICE = "must be another port than the sender's"


class Core(Protocol):
    paths: Paths
    host: Host
    running: Target
    turn: Turn


@dataclass(slots=True)
class Watch:
    id: str
    user: str
    wanted: float  # seconds
    state: Literal["running"] | Ended = "running"
    message: str = "Watching"
    between: bool = False  # two ports of the box
    samples: list[Sample] = field(default_factory=list)
    stop: bool = False  # somebody wants it to end

    @property
    def seconds(self) -> float:
        return sum(one.seconds for one in self.samples)

    @property
    def dropped(self) -> int:
        return sum(one.dropped for one in self.samples)

    def end(self, state: Ended) -> None:
        """With its last message; whoever sees the state may measure again."""
        log.info("measurement %s: %s", self.id, self.message)
        self.state = state

    def fail(self, error: BaseException) -> Ended:
        """By a mistake of ours."""
        self.message = f"It was not measured to the end: the applier has failed: {error!r}."
        return "failed"

    def to_data(self) -> WatchJob:
        last = self.samples[-1] if self.samples else None
        return {
            "id": self.id,
            "user": self.user,
            "state": self.state,
            "percent": min(100, int(100 * self.seconds / self.wanted)) if self.state == "running" else 100,
            "message": self.message,
            "between": self.between,
            "rates": to_rates(last.rates) if last else None,
            "busiest": round(last.cpus.busiest, 3) if last else 0.0,
            "dropped": self.dropped,
        }


class Capacities:
    def __init__(self, core: Core) -> None:
        self._core = core
        self._paths = core.paths
        self._host = core.host
        self._measurements = capacity_record.Measurements(core.paths)
        self._meter = Meter(core.host)
        self._starting = threading.Lock()
        self._job: Watch | None = None
        self._lent: tuple[Card, ...] = ()
        self._hardware: Hardware | None = None

    # --- verbs -------------------------------------------------------------------------------------

    def capacity(self) -> Capacity:
        hardware = self._look_at_hardware()
        rates = self._now()
        return {
            "job": self._job.to_data() if self._job else None,
            "hardware": hardware.to_data(),
            "now": to_rates(rates) if rates else None,
            "load": self.load(),
            "measurements": self._measurements.of(hardware),
            "ports": self._free_ports(),
        }

    def capacity_watch(self, seconds: int, user: str) -> WatchStarted:
        with self._starting:
            self._must_be_idle()
            hardware = self._look_at_hardware()
            try:
                cards = tuple(link.name for link in network.links(self._host) if self._is_card(link.name))
                first = read_counters(self._host, cards)
            except HostError as error:
                raise ApplierRefused("no-capacity", f"The box cannot be measured: {error}.") from None
            job = Watch(secrets.token_hex(4), user, seconds)
            self._job = job
        log.info("user %s measures what the box forwards, for %d seconds", user, seconds)
        beside(job.id, lambda: self._watch(job, hardware, cards, first), job.fail, job.end)
        return {"job": job.id, "seconds": job.wanted}

    def capacity_between(self, sender: str, receiver: str, user: str) -> WatchStarted:
        """`receiver` is the port of the balancer that is measured."""
        core = self._core
        with self._starting:
            self._must_be_idle()
            with core.turn.take(f"{user} measures between {sender} and {receiver}") as held:
                try:
                    self._must_be_free(sender, receiver)
                    hardware = self._look_at_hardware()
                    rig = capacity_ports.Rig(core, sender, receiver)
                except HostError as error:
                    raise ApplierRefused("no-capacity", f"The box cannot be measured: {error}.") from None
                words = f"From {sender} to {receiver}"
                job = Watch(secrets.token_hex(4), user, cable.longest(), message=words, between=True)
                self._job, self._lent = job, rig.cards
                log.info("user %s measures between %s and %s", user, sender, receiver)
                held.hand_on(job.id, lambda: self._between(job, hardware, rig), job.fail, job.end)
        return {"job": job.id, "seconds": job.wanted}

    def capacity_stop(self, user: str) -> Nothing:
        job = self._job
        if job is None or job.state != "running":
            raise ApplierRefused("not-measuring", "Nothing is being measured at the moment.")
        log.info("user %s stops the measurement of %s", user, job.user)
        job.stop = True
        return {}

    def lent(self) -> tuple[Card, ...]:
        """The ports of a measurement that runs. They are cards of the box, though it does not see them meanwhile."""
        return self._lent

    # --- for status() ------------------------------------------------------------------------------

    def load(self) -> LoadStatus | None:
        """None: never measured on this hardware, or the hardware is unknown."""
        if not self._measurements.all():
            return None
        try:
            hardware = self._hardware or self._look_at_hardware()
        except ApplierRefused as refusal:
            log.error("%s", refusal)
            return None
        limits = self._measurements.known(hardware)
        if not limits:
            return None
        rates = self._now()
        nearest = share(rates, limits) if rates else None
        return {
            "share": round(nearest[1], 4) if nearest else None,
            "figure": nearest[0] if nearest else None,
            "now": to_rates(rates) if rates else None,
            "limits": [
                {"figure": figure, "rate": one.rate, "at_least": one.at_least} for figure, one in limits.items()
            ],
        }

    def _now(self) -> Rates | None:
        try:
            return self._meter.rates()
        except HostError as error:
            log.debug("%s", error)  # IPVS is not loaded yet: nothing is forwarded
            return None

    # --- the measurement ---------------------------------------------------------------------------

    def _watch(self, job: Watch, hardware: Hardware, cards: tuple[str, ...], before: Counters) -> Ended:
        try:
            while job.seconds < job.wanted and not job.stop:
                self._host.sleep(SECOND)
                after = read_counters(self._host, cards)
                job.samples.append(between(before, after))
                before = after
            limit = sustained(job.samples)
            return self._keep(job, hardware, [("", limit, job.dropped)] if limit else [])
        except (HostError, OSError, ValueError) as error:  # ValueError: a counter that is no number
            job.message = f"The measurement did not finish: {error}."
        return "failed"

    def _between(self, job: Watch, hardware: Hardware, rig: capacity_ports.Rig) -> Ended:
        try:
            try:
                for trial in rig.trials():
                    job.samples.append(Sample(trial.seconds, trial.rates, trial.cpus, trial.lost))
                    job.message = rig.words(trial)
                    if job.stop:
                        break
            finally:
                try:
                    rig.end()
                finally:
                    self._lent = ()
            return self._keep(job, hardware, rig.found())
        except capacity_ports.NotMeasured as error:
            job.message = f"The measurement did not finish: {error}"
        except (HostError, OSError) as error:
            job.message = f"The measurement did not finish: {error}."
        return "failed"

    def _keep(self, job: Watch, hardware: Hardware, found: Iterable[tuple[str, Limit, int]]) -> Ended:
        """`found`: traffic as in Measurement, its limit, and packets dropped. OSError where it cannot be kept."""
        ended: Ended = "failed"
        job.message = NOTHING_LASTED
        for traffic, limit, dropped in found:
            one: KeptMeasurement = {
                "when": now(),
                "user": job.user,
                "seconds": round(job.seconds, 1),
                "hardware": hardware.to_data(),
                "kernel": self._host.setting(RELEASE) or "",
                "version": self._paths.version,
                "limit": capacity_record.to_status(limit),
                "dropped": dropped,
                "traffic": traffic,
            }
            self._measurements.add(one)
            job.message, ended = f"Measured for {job.seconds:.0f} seconds, and kept.", "done"
        return "stopped" if job.stop else ended

    def _must_be_idle(self) -> None:
        if self._job is not None and self._job.state == "running":
            text = f"{self._job.user} is measuring at the moment; wait until that has ended."
            raise ApplierRefused("busy", text)

    def _free_ports(self) -> list[str]:
        try:
            return capacity_ports.free(self._host, self._core.running.own.network)
        except HostError as error:
            log.error("%s", error)
            return []

    def _must_be_free(self, sender: str, receiver: str) -> None:
        """Refused, by the name of the field, where these two cannot be taken."""
        why = capacity_ports.uses(self._host, self._core.running.own.network)
        said = {"sender": why.get(sender, NO_CARD), "receiver": why.get(receiver, NO_CARD)}
        if sender == receiver:
            said["receiver"] = TWICE
        if any(said.values()):
            raise not_free(sender, receiver, {field: message for field, message in said.items() if message})

    def _look_at_hardware(self) -> Hardware:
        try:
            self._hardware = capacity_record.hardware(self._host)
        except HostError as error:
            raise ApplierRefused("no-capacity", f"The box cannot say what hardware it is: {error}.") from None
        return self._hardware

    def _is_card(self, name: str) -> bool:
        return bool(capacity_record.driver(self._host, name))


def not_free(sender: str, receiver: str, said: dict[str, str]) -> ApplierRefused:
    """`said`: what is wrong, by the field, "sender" or "receiver"."""
    wrong: list[Problem] = [
        {"object": "measurement", "field": field, "message": message, "path": field} for field, message in said.items()
    ]
    ports = {"sender": sender, "receiver": receiver}
    words = "; ".join(f"{ports[field]} {message}" for field, message in said.items())
    return ApplierRefused("not-free", f"It cannot be measured from {sender} to {receiver}: {words}.", wrong)
