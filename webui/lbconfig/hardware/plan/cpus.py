"""Clock and sleep of the CPUs, where the board lets the system decide; inside a virtual machine it does not."""

from __future__ import annotations

from collections.abc import Iterator

from lbconfig.hardware.actions import Action, Write
from lbconfig.hardware.facts import Machine
from lbconfig.model.tuning import Power, Tuning

CPU = "/sys/devices/system/cpu/cpu"
PERFORMANCE = "performance"
WAKE_LIMITS = {Power.BALANCED: 100, Power.LATENCY: 10, Power.BOARD: 0}  # µs; 0: none


def clocks(machine: Machine, tuning: Tuning) -> Iterator[Action]:
    for cpu in machine.cpus:
        if cpu.governor and tuning.power is not Power.BOARD:
            path = f"{CPU}{cpu.number}/cpufreq/scaling_governor"
            yield Action(
                f"CPU {cpu.number}",
                "full clock as soon as there is work",
                Write(path, PERFORMANCE),
                "A clock that follows the load is low when a burst begins, and packets are lost before it has risen.",
                "Linux, Documentation/admin-guide/pm/cpufreq.rst",
                done=cpu.governor == PERFORMANCE,
                undo=Write(path, cpu.governor),
            )


def sleep(machine: Machine, tuning: Tuning) -> Iterator[Action]:
    limit = WAKE_LIMITS[tuning.power]
    for cpu in machine.cpus:
        if cpu.wake_limit is not None:
            path = f"{CPU}{cpu.number}/power/pm_qos_resume_latency_us"
            yield Action(
                f"CPU {cpu.number}",
                f"sleeps only as deeply as it wakes within {limit} µs" if limit else "sleeps as deeply as it likes",
                Write(path, str(limit)),
                "The first packet after a pause waits until its CPU is awake."
                if limit
                else "You chose to leave this to the board.",
                "Linux, Documentation/admin-guide/pm/cpuidle.rst, Power Management Quality of Service for CPUs",
                done=cpu.wake_limit == limit,
                undo=Write(path, str(cpu.wake_limit)),
            )
