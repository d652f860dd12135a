"""Collect what lbconfig.hardware.reading.machine wants to read: files of /proc and /sys, and what ethtool prints."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from applier.host.host import Host, HostError
from lbconfig.hardware.facts import Machine
from lbconfig.hardware.reading import machine as reading
from lbconfig.hardware.reading.cards import NET, OPTIONS, by_card
from lbconfig.hardware.settings import TABLE

ETHTOOL_TIMEOUT = 10.0  # seconds; a card's firmware may be slow to answer
PCI = "/sys/bus/pci/devices/"
_WHOLE = (
    "/proc/interrupts", "/proc/cpuinfo", "/proc/meminfo", "/proc/cmdline", "/proc/softirqs",
    "/proc/net/softnet_stat", "/sys/hypervisor/type", f"{reading.CPU}online", f"{reading.CLOCK}current_clocksource",
    f"{reading.CLOCK}available_clocksource", f"{reading.DMI}sys_vendor", f"{reading.DMI}product_name",
    f"{reading.DMI}bios_vendor",
)  # fmt: skip
_OF_A_CPU = (
    "topology/physical_package_id", "topology/core_id", "cpufreq/scaling_governor", "cpufreq/scaling_driver",
    "power/pm_qos_resume_latency_us",
)  # fmt: skip
_OF_A_SLEEP = ("name", "latency", "disable")
_OF_A_CARD = (
    "device/numa_node", "device/../numa_node", "carrier", "carrier_down_count", "speed", "duplex", "mtu", "threaded",
)  # fmt: skip
_CPU = re.compile(r"cpu\d+")
_NODE = re.compile(r"node\d+")
_LINE = re.compile(r"^\s*(\d+):", re.MULTILINE)


def look(host: Host) -> Machine:
    """The whole machine. What cannot be read is not told; nothing is an error."""
    files, commands = texts(host)
    return reading.read(files, commands)


def texts(host: Host) -> tuple[dict[str, str], dict[str, str]]:
    """What a recording of this machine consists of: files by path, and outputs by command."""
    files: dict[str, str] = {}
    for path in _paths(host):
        # A card without a link has no speed to read, for one.
        with contextlib.suppress(HostError):
            text = host.read(Path(path))
            if text is not None:
                files[path] = text
    for number in _LINE.findall(files.get("/proc/interrupts", "")):
        path = f"/proc/irq/{number}/smp_affinity_list"
        with contextlib.suppress(HostError):
            files[path] = host.read(Path(path)) or ""
    files |= _msi(host) | {f"/proc/{pid}/comm": name for pid, name in meddlers(host).items()}
    cards = {path[len(NET) :].split("/")[0] for path in files if path.startswith(NET) and "/device/" in path}
    return files, _said(host) if cards else {}


def machine_of_memory(host: Host) -> Machine:
    """As much as the settings depend on, for looks that must be cheap."""
    paths = ("/proc/meminfo", *(row.path for row in TABLE))
    files = {}
    for path in paths:
        with contextlib.suppress(HostError):
            text = host.read(Path(path))
            if text is not None:
                files[path] = text
    return reading.read(files, {})


def _paths(host: Host) -> Iterator[str]:
    yield from _WHOLE
    yield from (row.path for row in TABLE)
    for cpu in host.names(Path(reading.CPU)):
        if _CPU.fullmatch(cpu):
            here = f"{reading.CPU}{cpu}/"
            yield from (here + place for place in _OF_A_CPU)
            for state in host.names(Path(here + "cpuidle")):
                yield from (f"{here}cpuidle/{state}/{name}" for name in _OF_A_SLEEP)
    for node in host.names(Path(reading.NODE)):
        if _NODE.fullmatch(node):
            yield from (f"{reading.NODE}{node}/{name}" for name in ("cpulist", "distance"))
    for device in host.names(Path(PCI)):
        yield from (f"{PCI}{device}/{name}" for name in ("uevent", "irq"))
    for name in host.names(Path(NET)):
        here = f"{NET}{name}/"
        yield f"{here}device/uevent"
        if "uevent" in host.names(Path(here + "device")):
            yield f"{here}device/../uevent"
            yield from (here + place for place in _OF_A_CARD)
            yield from (f"{here}statistics/{one}" for one in host.names(Path(here + "statistics")))
            for queue in host.names(Path(here + "queues")):
                yield f"{here}queues/{queue}/{'rps_cpus' if queue.startswith('rx') else 'xps_cpus'}"


def _msi(host: Host) -> dict[str, str]:
    """Which interrupts each device has; all of a device are of one kind."""
    found: dict[str, str] = {}
    for device in host.names(Path(PCI)):
        folder = f"{PCI}{device}/msi_irqs"
        numbers = host.names(Path(folder))
        kind = host.read(Path(folder) / numbers[0]) if numbers else None
        found |= {f"{folder}/{number}": kind or "" for number in numbers}
    return found


def meddlers(host: Host) -> dict[int, str]:
    """Process id -> name. Only those that the reading asks for: what else runs is nobody's business."""
    found = ((one.pid, Path(one.argv[0]).name[:15]) for one in host.processes() if one.argv)
    return {pid: name for pid, name in found if name in reading.MEDDLERS}


def _said(host: Host) -> dict[str, str]:
    """All cards at once: a process for each card and option took most of the time of a look."""
    found: dict[str, str] = {}
    for option in OPTIONS:
        with contextlib.suppress(HostError):
            output = host.command(["ethtool", option, "*"], timeout=ETHTOOL_TIMEOUT)
            found |= {f"ethtool {option} {name}": text for name, text in by_card(output.stdout).items()}
    return found


def plain(machine: Machine) -> dict[str, object]:
    """As JSON has it: sets become sorted lists."""
    data = asdict(machine)
    data["processes"] = sorted(machine.processes)
    for card in data["cards"]:
        card["fixed"] = sorted(card["fixed"])
    return data
