"""Processors: their clock, their sleep, and what the kernel's command line makes them do besides."""

from __future__ import annotations

from collections.abc import Iterator

from lbconfig.hardware.facts import Machine
from lbconfig.hardware.findings.finding import BOX, COSTS, LOOK, Finding, listed

SLOW_CLOCKS = {
    "hpet": "a chip beside the processor",
    "acpi_pm": "a timer of the power management, behind an I/O port",
    "pit": "the timer chip of 1981",
    "jiffies": "a counter that the timer's interrupt moves on",
    "refined-jiffies": "a counter that the timer's interrupt moves on",
}
# What QEMU offers its guest as soon as it has KVM; without, it emulates every clock.
KVM_CLOCK = "kvm-clock"
# Governors that hold the frequency down, or raise it only after the load has been there for a while.
SLOW_GOVERNORS = frozenset({"powersave", "conservative"})
# µs. The shallow states (C1, C1E) need 2 to 10, C3 some 30 to 90, C6 and deeper 100 to 1,000
# (drivers/idle/intel_idle.c). A card's interrupt is held back for some 50 µs anyway (coalescing).
LONG_WAKE = 100
# Words of the command line that are for finding faults, and what each does.
FOR_DEBUGGING = {
    "slub_debug": "checks each piece of memory when it is taken and when it is given back",
    "slab_debug": "checks each piece of memory when it is taken and when it is given back",
    "page_poison": "fills each page that is given back",
    "debug_pagealloc": "takes each free page out of the page tables",
    "page_owner": "notes who took each page",
    "kmemleak": "notes each allocation and looks for lost ones",
    "kasan": "checks each access to memory",
    "kfence.sample_interval": "guards samples of memory",
    "ftrace": "traces functions of the kernel",
    "trace_event": "traces events of the kernel",
    "ftrace_filter": "traces functions of the kernel",
    "initcall_debug": "logs each step of the start",
    "lockdep": "checks the order of locks",
    "nosmp": "switches all processors off but one",
    "maxcpus": "limits the processors",
    "nr_cpus": "limits the processors",
    "notsc": "switches the processor's own clock off",
}
HARMLESS_VALUES = frozenset({"0", "off", "n", "no"})  # of those that are switches: "kmemleak=off"


def clock(machine: Machine) -> Iterator[Finding]:
    name = machine.clocksource
    if name not in SLOW_CLOCKS:
        return
    by_hand = f"clocksource={name}" in machine.command_line.split()
    emulated = machine.hypervisor == "kvm" and KVM_CLOCK not in machine.clocksources and not by_hand
    if emulated:
        mend = f"Nothing: QEMU emulates this processor. With KVM the guest gets a quick clock ({KVM_CLOCK})."
    elif by_hand:
        mend = f"Take clocksource={name} off the kernel's command line."
    elif machine.hypervisor:
        mend = "In the hypervisor's settings give the guest its clock (kvm-clock, Hyper-V's, or an invariant TSC)."
    else:
        mend = "Update the firmware, and switch on in its set-up what keeps the processors' clocks (TSC) together."
    yield Finding(
        "slow-clock",
        COSTS,
        BOX,
        f"The kernel reads the time from {name}, {SLOW_CLOCKS[name]}.",
        "Ten million readings took 12.3 s with hpet and 24.5 s with acpi_pm, against 0.6 s with the processor's own "
        "clock; and every packet, timer and log line is stamped.",
        "Red Hat Enterprise Linux for Real Time 7, Reference Guide, chapter 15 (Timestamping)",
        mend,
        actionable=not emulated,
    )


def governor(machine: Machine) -> Iterator[Finding]:
    slow = [cpu for cpu in machine.cpus if cpu.governor in SLOW_GOVERNORS]
    if not slow:
        return
    names = listed(sorted({f"{cpu.governor} of {cpu.driver}" if cpu.driver else cpu.governor for cpu in slow}))
    yield Finding(
        "governor",
        COSTS,
        BOX,
        f"{len(slow)} of {len(machine.cpus)} CPUs are set to save power ({names}).",
        "They run at a low frequency when packets come, and are raised too late or never.",
        "Linux, Documentation/admin-guide/pm/cpufreq.rst (powersave: the lowest frequency) and intel_pstate.rst",
        "Sets the governor to performance. The box uses more power.",
        button=True,
    )


def sleep(machine: Machine) -> Iterator[Finding]:
    deep = [cpu for cpu in machine.cpus if cpu.longest_wake > LONG_WAKE and not 0 < (cpu.wake_limit or 0) <= LONG_WAKE]
    if not deep:
        return
    longest = max(deep, key=lambda cpu: cpu.longest_wake)
    yield Finding(
        "deep-sleep",
        COSTS,
        BOX,
        f"Idle CPUs sleep as deep as {longest.deepest_state or 'they can'} and wake after {longest.longest_wake} µs.",
        "The first packet after a pause waits that long, and so does every answer on a box with little load.",
        "Linux, Documentation/admin-guide/pm/cpuidle.rst; the processor's own table of its states",
        "Keeps the CPUs out of the deep states. The box uses more power."
        if longest.wake_limit is not None
        else "In the firmware's set-up switch deep C-states off (C6 and below).",
        button=longest.wake_limit is not None,
    )


def debugging(machine: Machine) -> Iterator[Finding]:
    for word in dict.fromkeys(machine.command_line.split()):
        name, _, value = word.partition("=")
        if name not in FOR_DEBUGGING or value.lower() in HARMLESS_VALUES:
            continue
        yield Finding(
            "debug-option",
            LOOK,
            word[:60],
            f"The kernel was started with {word[:60]}, which {FOR_DEBUGGING[name]}.",
            "Each packet is several allocations and hundreds of function calls, and each of them is slowed down; a "
            "processor that is switched off does no work at all.",
            "Linux, Documentation/admin-guide/kernel-parameters.rst",
            f"Take {word[:60]} off the kernel's command line when the search is over.",
        )


CHECKS = (clock, governor, sleep, debugging)
