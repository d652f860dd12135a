"""What the kernel tells about the machine, as plain data: the input of the plan and of the findings.

Everything is as `reading` found it; what a kernel or a card does not tell is empty, 0 or None, never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# Who delivers an interrupt, from the slowest way to the best.
XT_PIC, IO_APIC, MSI, MSI_X, OTHER = "XT-PIC", "IO-APIC", "MSI", "MSI-X", "other"


@dataclass(frozen=True, slots=True)
class Cpu:
    number: int
    package: int = 0
    core: int = 0  # within its package; CPUs of one core are hyper-threads
    node: int = 0  # NUMA
    governor: str = ""  # of cpufreq: "performance", "schedutil", …; empty where the board has none
    driver: str = ""  # of cpufreq: "intel_pstate", "acpi-cpufreq", …
    longest_wake: int = 0  # µs to leave the deepest C-state that may be entered; 0: there are none
    deepest_state: str = ""  # its name: "C6"
    wake_limit: int | None = None  # µs (pm_qos_resume_latency_us), 0: none; None: this kernel or board has no C-states


@dataclass(frozen=True, slots=True)
class Interrupt:
    """One numbered line of /proc/interrupts."""

    number: int
    kind: str  # XT_PIC, IO_APIC, MSI, MSI_X or OTHER
    devices: tuple[str, ...]  # who has registered for it: "eth0-rx-0", "ahci[0000:00:1f.2]"
    counts: tuple[int, ...] = ()  # by CPU, in the order of Machine.cpus
    cpus: tuple[int, ...] = ()  # where it may go (smp_affinity_list)
    managed: bool = False  # the kernel alone decides where it goes, writing is refused

    @property
    def total(self) -> int:
        return sum(self.counts)


@dataclass(frozen=True, slots=True)
class Queues:
    """What `ethtool -l` says; a card that says nothing has one queue each way."""

    rx: int = 1  # in use (combined ones count for both)
    tx: int = 1
    most_rx: int = 1  # what the card has
    most_tx: int = 1
    combined: bool = False  # it is set by `combined`, not by `rx` and `tx`
    settable: bool = False


@dataclass(frozen=True, slots=True)
class Ring:
    """What `ethtool -g` says, in descriptors; 0: the driver does not tell."""

    rx: int = 0
    tx: int = 0
    most_rx: int = 0
    most_tx: int = 0


@dataclass(frozen=True, slots=True)
class Coalescing:
    """What `ethtool -c` says; None: the driver does not tell."""

    rx_usecs: int | None = None
    tx_usecs: int | None = None
    adaptive_rx: bool | None = None
    adaptive_tx: bool | None = None


@dataclass(frozen=True, slots=True)
class Card:
    """A network interface with hardware (or a hypervisor's) behind it."""

    name: str  # "eth0"
    driver: str = ""  # "igb"
    bus: str = ""  # "0000:03:00.0"
    node: int = -1  # NUMA; -1: the board does not tell
    link: bool = False
    speed: int = 0  # Mbit/s; 0: not told
    duplex: str = ""  # "full", "half"
    mtu: int = 1500
    queues: Queues = Queues()
    ring: Ring = Ring()
    coalescing: Coalescing = Coalescing()
    offloads: Mapping[str, bool] = field(default_factory=dict)  # ethtool's long names: "large-receive-offload"
    fixed: frozenset[str] = frozenset()  # those of them that cannot be changed
    interrupts: tuple[int, ...] = ()  # numbers, in the order of its queues
    rps: tuple[tuple[int, ...], ...] = ()  # by receive queue: the CPUs that it is spread over; empty: it is not
    xps: tuple[tuple[int, ...], ...] = ()  # by transmit queue: the CPUs that use it; empty: the kernel decides
    counters: Mapping[str, int] = field(default_factory=dict)  # /sys/class/net/…/statistics: "rx_missed_errors"
    link_lost: int = 0  # carrier_down_count since the start
    threaded: bool | None = None  # NAPI in kernel threads; None: this kernel cannot


@dataclass(frozen=True, slots=True)
class Softnet:
    """A line of /proc/net/softnet_stat, since the start, and what /proc/softirqs says of the same CPU."""

    cpu: int
    processed: int = 0  # packets
    dropped: int = 0  # no room in the backlog
    squeezed: int = 0  # the budget ran out and packets were left
    net_rx: int = 0  # how often the softirq ran
    net_tx: int = 0


@dataclass(frozen=True, slots=True)
class Machine:
    cpus: tuple[Cpu, ...]
    memory: int  # MiB
    interrupts: tuple[Interrupt, ...] = ()
    cards: tuple[Card, ...] = ()
    softnet: tuple[Softnet, ...] = ()
    hypervisor: str = ""  # "kvm", "vmware", …; empty: none is known
    product: str = ""  # what the board calls itself
    clocksource: str = ""
    clocksources: tuple[str, ...] = ()
    command_line: str = ""  # the kernel's
    processes: frozenset[str] = frozenset()  # names of those that meddle, where they run: "irqbalance"
    # Below /proc/sys, as far as the plan has them; parameters of modules as "module/ip_vs/conn_tab_bits".
    settings: Mapping[str, str] = field(default_factory=dict)
    distances: tuple[tuple[int, ...], ...] = ()  # between NUMA nodes, 10: the same
    driverless: tuple[str, ...] = ()  # PCI network devices without a driver: "0000:05:00.0 (8086:1563)"

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(cpu.number for cpu in self.cpus)

    def interrupt(self, number: int) -> Interrupt | None:
        return next((one for one in self.interrupts if one.number == number), None)
