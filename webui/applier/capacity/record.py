"""What was measured, kept for each hardware on the data partition; and which hardware this is."""

from __future__ import annotations

import json
import logging
import threading
from pathlib import Path

from applier.base import durable
from applier.base.paths import Paths
from applier.host.host import Host
from applier.parts.network import act as network
from applier.wire.shapes_capacity import KeptMeasurement, LimitStatus, Measurement, RatesStatus
from lbconfig.capacity.figures import Cpus, Figure, Hardware, Known, Limit, Rates, known, read_driver, read_processor

log = logging.getLogger("applier")

KEPT = 20  # measurements
CPU_INFO = Path("/proc/cpuinfo")
NET = Path("/sys/class/net")


def hardware(host: Host) -> Hardware:
    """HostError where it cannot be asked."""
    info = host.read(CPU_INFO) or ""
    cards = (driver(host, link.name) for link in network.links(host))
    cpus = sum(line.startswith("processor") for line in info.splitlines())
    return Hardware(read_processor(info), cpus, tuple(sorted(filter(None, cards))))


def driver(host: Host, name: str) -> str:
    """Driver and place of a card; "" for what has no hardware behind it."""
    text = host.read(NET / name / "device/uevent")
    if text is None:
        return ""
    # A virtio device tells its driver; the PCI card that it sits on tells its place.
    above = host.read(NET / name / "device/../uevent") or ""
    found = read_driver(text)
    return found if " " in found else f"{found} {read_driver(above).rpartition(' ')[2]}".strip()


def to_rates(rates: Rates) -> RatesStatus:
    return {"connections": rates.connections, "packets": rates.packets, "bytes": rates.bytes}


def to_status(limit: Limit) -> LimitStatus:
    return {
        "rates": to_rates(limit.rates),
        "busy": round(limit.cpus.mean, 3),
        "busiest": round(limit.cpus.busiest, 3),
        "softirq": round(limit.cpus.softirq, 3),
        "held": limit.held,
    }


def to_limit(told: LimitStatus) -> Limit:
    """ValueError, KeyError or TypeError where a file says what none of ours would."""
    cpus = Cpus(told["busy"], told["busiest"], told["softirq"])
    rates = told["rates"]
    return Limit(Rates(float(rates["connections"]), float(rates["packets"]), float(rates["bytes"])), cpus, told["held"])


class Measurements:
    """The file; one that cannot be read counts as none, and is written anew by the next measurement."""

    def __init__(self, paths: Paths) -> None:
        self._path = paths.capacity
        self._kept: list[KeptMeasurement] | None = None
        self._lock = threading.RLock()  # who looks while the first one is added must not put back that there was none

    def all(self) -> list[KeptMeasurement]:
        """The newest first."""
        with self._lock:
            if self._kept is None:
                self._kept = self._load()
            return self._kept

    def of(self, hardware_: Hardware) -> list[Measurement]:
        """The same, and whether each was measured on this hardware."""
        return [{**one, "same": one["hardware"] == hardware_.to_data()} for one in self.all()]

    def known(self, hardware_: Hardware) -> dict[Figure, Known]:
        return known(to_limit(one["limit"]) for one in self.of(hardware_) if one["same"])

    def add(self, one: KeptMeasurement) -> None:
        """OSError where it cannot be kept."""
        with self._lock:
            kept = [one, *self.all()][:KEPT]
            durable.replace(self._path, json.dumps(kept, indent=1).encode() + b"\n")
            self._kept = kept

    def _load(self) -> list[KeptMeasurement]:
        try:
            found: list[KeptMeasurement] = json.loads(self._path.read_text())
            for one in found:
                _must_be_ours(one)
        except FileNotFoundError:
            return []
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            log.error("%s cannot be read: %r", self._path, error)
            return []
        return found


def _must_be_ours(one: KeptMeasurement) -> None:
    if lacking := KeptMeasurement.__required_keys__ - one.keys():
        raise KeyError(*lacking)
    to_limit(one["limit"])
