"""How much this box can forward: measured while clients of the admin's load it, kept, and compared with now.

Watching reads counters and changes nothing, so an apply may go on beside it. The load comes from outside; how the
limit follows from what was seen is lbconfig.hardware.capacity's to say.
"""

from __future__ import annotations

import logging
import secrets
import threading
from dataclasses import asdict, dataclass, field

from applier import capacity_record, network
from applier.capacity_meter import Look, Meter, between, look
from applier.errors import ApplierRefused
from applier.faults import now
from applier.host import Host, HostError
from applier.paths import Paths
from applier.shapes_capacity import Capacity, LoadStatus, Measurement, WatchJob
from lbconfig.hardware.capacity import WINDOW, Hardware, Rates, Sample, share, sustained

log = logging.getLogger("applier")

SECOND = 1.0
RELEASE = "kernel/osrelease"
NOTHING_LASTED = (
    f"There were no {WINDOW} seconds in a row in which the box forwarded and dropped no packet, so nothing was kept."
)


@dataclass(slots=True)
class Job:
    id: str
    user: str
    wanted: int  # seconds
    state: str = "running"
    message: str = "Watching"
    samples: list[Sample] = field(default_factory=list)
    stop: bool = False  # somebody wants it to end

    @property
    def seconds(self) -> float:
        return sum(one.seconds for one in self.samples)

    @property
    def dropped(self) -> int:
        return sum(one.dropped for one in self.samples)

    def to_data(self) -> WatchJob:
        last = self.samples[-1] if self.samples else None
        return {
            "id": self.id,
            "user": self.user,
            "state": self.state,
            "percent": min(100, int(100 * self.seconds / self.wanted)) if self.state == "running" else 100,
            "message": self.message,
            "rates": asdict(last.rates) if last else None,
            "busiest": round(last.cpus.busiest, 3) if last else 0.0,
            "dropped": self.dropped,
        }


class Capacities:
    def __init__(self, paths: Paths, host: Host) -> None:
        self._paths = paths
        self._host = host
        self._record = capacity_record.Record(paths)
        self._meter = Meter(host)
        self._starting = threading.Lock()
        self._job: Job | None = None
        self._hardware: Hardware | None = None

    # --- verbs -------------------------------------------------------------------------------------

    def capacity(self) -> Capacity:
        hardware = self._look_at_hardware()
        rates = self._now()
        return {
            "job": self._job.to_data() if self._job else None,
            "hardware": hardware.to_data(),
            "now": asdict(rates) if rates else None,
            "load": self.load(),
            "measurements": self._record.of(hardware),
        }

    def capacity_watch(self, seconds: int, user: str) -> dict:
        with self._starting:
            if self._job is not None and self._job.state == "running":
                text = f"{self._job.user} is measuring at this moment; wait until that has ended."
                raise ApplierRefused("busy", text)
            hardware = self._look_at_hardware()
            try:
                cards = tuple(link.name for link in network.links(self._host) if self._is_card(link.name))
                first = look(self._host, cards)
            except HostError as error:
                raise ApplierRefused("no-capacity", f"The box cannot be measured: {error}.") from None
            job = Job(secrets.token_hex(4), user, seconds)
            self._job = job
        log.info("user %s measures what the box forwards, for %d seconds", user, seconds)
        threading.Thread(target=self._watch, args=(job, hardware, cards, first), name=job.id, daemon=True).start()
        return {"job": job.id}

    def capacity_stop(self, user: str) -> dict:
        job = self._job
        if job is None or job.state != "running":
            raise ApplierRefused("not-measuring", "Nothing is being measured at this moment.")
        log.info("user %s stops the measurement of %s", user, job.user)
        job.stop = True
        return {}

    # --- for status() ------------------------------------------------------------------------------

    def load(self) -> LoadStatus | None:
        """None: never measured on this hardware, or nobody can say what it is."""
        if not self._record.all():
            return None
        try:
            hardware = self._hardware or self._look_at_hardware()
        except ApplierRefused as refusal:
            log.error("%s", refusal)
            return None
        limits = self._record.known(hardware)
        if not limits:
            return None
        rates = self._now()
        nearest = share(rates, limits) if rates else None
        return {
            "share": round(nearest[1], 4) if nearest else None,
            "figure": nearest[0] if nearest else None,
            "now": asdict(rates) if rates else None,
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

    def _watch(self, job: Job, hardware: Hardware, cards: tuple[str, ...], before: Look) -> None:
        try:
            while job.seconds < job.wanted and not job.stop:
                self._host.sleep(SECOND)
                after = look(self._host, cards)
                job.samples.append(between(before, after))
                before = after
            job.message = self._keep(job, hardware)
            job.state = "stopped" if job.stop else "done"
        except (HostError, OSError, ValueError) as error:  # ValueError: a counter that is no number
            job.message, job.state = f"It was not measured to the end: {error}.", "failed"
        log.info("measurement %s: %s", job.id, job.message)

    def _keep(self, job: Job, hardware: Hardware) -> str:
        """OSError where it cannot be kept; a sentence."""
        limit = sustained(job.samples)
        if limit is None:
            return NOTHING_LASTED
        one: Measurement = {
            "when": now(),
            "user": job.user,
            "seconds": round(job.seconds, 1),
            "hardware": hardware.to_data(),
            "kernel": self._host.setting(RELEASE) or "",
            "version": self._paths.version,
            "limit": capacity_record.to_status(limit),
            "dropped": job.dropped,
            "same": True,
        }
        self._record.add(one)
        return f"Measured for {job.seconds:.0f} seconds, and kept."

    def _look_at_hardware(self) -> Hardware:
        try:
            self._hardware = capacity_record.hardware(self._host)
        except HostError as error:
            raise ApplierRefused("no-capacity", f"The box cannot say what hardware it is: {error}.") from None
        return self._hardware

    def _is_card(self, name: str) -> bool:
        return bool(capacity_record.driver(self._host, name))
