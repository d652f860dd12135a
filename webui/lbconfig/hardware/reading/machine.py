"""From the texts that a kernel shows to the facts of the machine.

`files` are files of /proc and /sys by their path, `commands` what programs printed: "ethtool -l eth0". A recording of
a machine is these two; so is what the applier collects (applier/hardware/tune.py). Whatever is missing or cannot be
read leaves its fact at "not told".
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from lbconfig.hardware.cpu_lists import parse_list
from lbconfig.hardware.facts import Cpu, Machine, Softnet
from lbconfig.hardware.reading import cards as reading_cards
from lbconfig.hardware.reading import interrupts as reading_interrupts
from lbconfig.hardware.reading.cards import whole

CPU = "/sys/devices/system/cpu/"
NODE = "/sys/devices/system/node/"
DMI = "/sys/class/dmi/id/"
CLOCK = "/sys/devices/system/clocksource/clocksource0/"
SETTINGS = "/proc/sys/"
# Programs that set again what the plan has set.
MEDDLERS = frozenset({"irqbalance", "tuned", "irqbalance-ng", "power-profiles-daemon", "thermald", "numad"})
# What hypervisors call themselves in the board's names (dmi_id; /sys/hypervisor/type of Xen).
_HYPERVISORS = (
    ("vmware", "vmware"),
    ("virtualbox", "virtualbox"),
    ("innotek", "virtualbox"),
    ("xen", "xen"),
    ("qemu", "kvm"),
    ("kvm", "kvm"),
    ("openstack", "kvm"),
    ("google compute", "kvm"),
    ("amazon ec2", "kvm"),
    ("bochs", "kvm"),
    ("microsoft corporation virtual", "hyper-v"),
    ("parallels", "parallels"),
    ("bhyve", "bhyve"),
)
_COMM = re.compile(r"/proc/\d{1,9}/comm")
_MSI = re.compile(r"/sys/bus/pci/devices/(?P<bus>[^/]+)/msi_irqs/(?P<number>\d{1,6})")
_DEVICE = re.compile(r"/sys/bus/pci/devices/(?P<bus>[^/]+)/uevent")
_CARD_MSI = re.compile(r"/sys/class/net/(?P<card>[^/]+)/device/(?:\.\./)?msi_irqs/(?P<number>\d{1,6})")
_NODE = re.compile(re.escape(NODE) + r"node(\d{1,4})/(cpulist|distance)")
_PARAMETER = re.compile(r"/sys/module/(?P<module>[^/]+)/parameters/(?P<name>[^/]+)")
_IDLE = re.compile(r"cpuidle/state(\d{1,2})/latency")


def read(files: Mapping[str, str], commands: Mapping[str, str]) -> Machine:
    """The whole machine. Never raises for any text; what it cannot read it leaves out."""
    cpus = _cpus(files)
    numbers = tuple(cpu.number for cpu in cpus)
    places, kinds = _msi(files, commands)
    interrupts = reading_interrupts.interrupts(files, numbers, kinds)
    return Machine(
        cpus=cpus,
        memory=_memory(files.get("/proc/meminfo", "")),
        interrupts=interrupts,
        cards=reading_cards.cards(files, commands, interrupts, places),
        softnet=_softnet(files, numbers),
        hypervisor=_hypervisor(files),
        product=_product(files),
        clocksource=files.get(CLOCK + "current_clocksource", "").strip(),
        clocksources=tuple(files.get(CLOCK + "available_clocksource", "").split()),
        command_line=" ".join(files.get("/proc/cmdline", "").split()),
        processes=frozenset(
            text.strip() for path, text in files.items() if _COMM.fullmatch(path) and text.strip() in MEDDLERS
        ),
        settings=_settings(files),
        distances=_distances(files),
        driverless=_driverless(files),
    )


def _msi(files: Mapping[str, str], commands: Mapping[str, str]) -> tuple[dict[int, str], dict[int, str]]:
    """Interrupt number -> the PCI device that has it, and -> "msi" or "msix"."""
    places, kinds = {}, {}
    for path, text in files.items():
        if match := _MSI.fullmatch(path):
            places[int(match["number"])] = match["bus"]
            kinds[int(match["number"])] = text.strip()
        elif match := _CARD_MSI.fullmatch(path):
            kinds.setdefault(int(match["number"]), text.strip())
    return places, kinds


def _cpus(files: Mapping[str, str]) -> tuple[Cpu, ...]:
    """Those that are online; where sysfs is silent, those of /proc/cpuinfo or of /proc/interrupts; at least one."""
    info = _cpuinfo(files.get("/proc/cpuinfo", ""))
    numbers = (
        parse_list(files.get(CPU + "online", ""))
        or tuple(sorted(info))
        or reading_interrupts.columns(files.get("/proc/interrupts", ""))
        or (0,)
    )
    nodes = {
        cpu: int(match[1])
        for path, text in files.items()
        if (match := _NODE.fullmatch(path)) and match[2] == "cpulist"
        for cpu in parse_list(text)
    }
    idle = _idle_states(files)
    return tuple(_cpu(files, number, info.get(number, {}), nodes.get(number, 0), idle) for number in numbers)


def _cpu(
    files: Mapping[str, str], number: int, info: Mapping[str, str], node: int, idle: Mapping[int, list[tuple[int, str]]]
) -> Cpu:
    here = f"{CPU}cpu{number}/"
    # -1 is what firmware leaves that says nothing.
    package = whole(files.get(here + "topology/physical_package_id", info.get("physical id", "")), 0)
    core = whole(files.get(here + "topology/core_id", info.get("core id", "")), number)
    states = idle.get(number, [])
    limit = whole(files.get(here + "power/pm_qos_resume_latency_us", ""), -1)  # "n/a": no sleep at all
    latency, state = max((one for one in states if limit <= 0 or one[0] <= limit), default=(0, ""))
    return Cpu(
        number=number,
        package=max(package, 0),
        core=core if core >= 0 else number,
        node=node,
        governor=files.get(here + "cpufreq/scaling_governor", "").strip(),
        driver=files.get(here + "cpufreq/scaling_driver", "").strip(),
        longest_wake=latency,
        deepest_state=state,
        wake_limit=limit if states and limit >= 0 else None,
    )


def _idle_states(files: Mapping[str, str]) -> dict[int, list[tuple[int, str]]]:
    """By CPU: (µs, name) of those that are not switched off."""
    found: dict[int, list[tuple[int, str]]] = {}
    for path, text in files.items():
        if not path.startswith(CPU + "cpu"):
            continue
        cpu, _, place = path[len(CPU) + 3 :].partition("/")
        if cpu.isdecimal() and len(cpu) < 6 and _IDLE.fullmatch(place):
            here = path[: -len("latency")]
            if files.get(here + "disable", "0").strip() != "1" and whole(text) > 0:
                found.setdefault(int(cpu), []).append((whole(text), files.get(here + "name", "").strip()))
    return found


def _cpuinfo(text: str) -> dict[int, dict[str, str]]:
    found: dict[int, dict[str, str]] = {}
    present: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon and name.strip() == "processor" and value.strip().isdecimal() and len(value) < 8:
            present = found.setdefault(int(value), {})
        elif colon:
            present[name.strip()] = value.strip()
    return found


def _memory(text: str) -> int:
    match = re.search(r"^MemTotal:\s+(\d{1,15}) kB", text, re.MULTILINE)
    return int(match[1]) // 1024 if match else 0


def _softnet(files: Mapping[str, str], cpus: tuple[int, ...]) -> tuple[Softnet, ...]:
    """Column 13 names the CPU since 5.10; before, the lines are those of the CPUs online, in their order."""
    softirqs = files.get("/proc/softirqs", "")
    heads = reading_interrupts.columns(softirqs)
    runs = {}
    for line in softirqs.splitlines()[1:]:
        name, _, counts = line.partition(":")
        runs[name.strip()] = dict(zip(heads, (whole(word) for word in counts.split()), strict=False))
    found = []
    for place, line in enumerate(files.get("/proc/net/softnet_stat", "").splitlines()):
        try:
            words = [int(word, 16) for word in line.split()]
        except ValueError:
            continue
        cpu = words[12] if len(words) > 12 else cpus[place] if place < len(cpus) else -1
        if len(words) < 3 or cpu not in cpus:
            continue
        net_rx, net_tx = (runs.get(name, {}).get(cpu, 0) for name in ("NET_RX", "NET_TX"))
        processed, dropped, squeezed = words[:3]
        found.append(Softnet(cpu, processed, dropped, squeezed, net_rx, net_tx))
    return tuple(found)


def _product(files: Mapping[str, str]) -> str:
    names = [files.get(DMI + name, "").strip() for name in ("sys_vendor", "product_name")]
    return " ".join(name for name in names if name)


def _hypervisor(files: Mapping[str, str]) -> str:
    """By the board's name; "other" where only the processor says that there is one."""
    if kind := files.get("/sys/hypervisor/type", "").strip():
        return kind
    names = f"{_product(files)} {files.get(DMI + 'bios_vendor', '')}".lower()
    known = next((name for words, name in _HYPERVISORS if words in names), "")
    flags = re.search(r"^flags\s*:.*\bhypervisor\b", files.get("/proc/cpuinfo", ""), re.MULTILINE)
    return known or ("other" if flags else "")


def _driverless(files: Mapping[str, str]) -> tuple[str, ...]:
    """Network devices (class 02 of PCI) that no driver has taken."""
    found = []
    for path, text in sorted(files.items()):
        if match := _DEVICE.fullmatch(path):
            event = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
            kind = event.get("PCI_CLASS", "").zfill(6)
            if kind.startswith("02") and len(kind) == 6 and not event.get("DRIVER"):
                found.append(f"{match['bus']} ({event.get('PCI_ID', '').lower() or 'unknown'})")
    return tuple(found)


def _settings(files: Mapping[str, str]) -> dict[str, str]:
    found = {path[len(SETTINGS) :]: text for path, text in files.items() if path.startswith(SETTINGS)}
    for path, text in files.items():
        if match := _PARAMETER.fullmatch(path):
            found[f"module/{match['module']}/{match['name']}"] = text
    return {key: " ".join(text.split()) for key, text in found.items()}


def _distances(files: Mapping[str, str]) -> tuple[tuple[int, ...], ...]:
    rows = {
        int(match[1]): tuple(whole(word) for word in text.split())
        for path, text in files.items()
        if (match := _NODE.fullmatch(path)) and match[2] == "distance"
    }
    return tuple(rows[node] for node in sorted(rows))
