"""The shapes of the answers about the hardware, as they come out of `applier.wire.client` and `tests.fake`."""

from __future__ import annotations

from typing import Any, Literal, TypedDict


class SettingStatus(TypedDict):
    key: str  # "net/core/somaxconn"
    value: str | None  # as the kernel has it; None: it has none of that name
    wanted: str  # the admin's choice, or the standard
    standard: str  # of the table, for this machine
    lowest: int
    highest: int  # of each of its numbers
    reason: str
    source: str
    state: Literal["done", "differs", "refused", "absent"]
    message: str  # why it differs or was refused; "" where nothing has to be said


class ActionStatus(TypedDict):
    object: str  # "eth0", "CPU 0", "interrupt 27"
    what: str  # as it should be: "4 queues"
    reason: str
    source: str
    state: Literal["done", "differs", "refused"]
    message: str  # of the kernel or the card, where it was refused


class FindingStatus(TypedDict):
    code: str  # "shared-interrupt"
    severity: Literal["costs", "look"]
    object: str  # "eth0", "interrupt 16", "the box"
    what: str
    cost: str  # with a figure, where one is known
    source: str
    mend: str  # what the button does, or what a person has to do
    button: bool  # whether tune() fixes it
    actionable: bool  # whether somebody can do something about it, on the box or around it


class WorkStatus(TypedDict):
    device: str  # "eth0", "ahci[0000:00:17.0]"
    kind: Literal["takes", "sends", "helps", "other"]  # packets in, only out, by RPS, no packets
    queue: int | None  # None: the device has a single one


class SeatStatus(TypedDict):
    cpu: int
    node: int
    core: int
    share: float  # of all packets of the box since its start, 0 to 1
    packets: int
    dropped: int
    squeezed: int
    work: list[WorkStatus]


class MachineStatus(TypedDict):
    machine: dict[str, Any]  # lbconfig.hardware.facts.Machine as plain data
    settings: list[SettingStatus]
    actions: list[ActionStatus]
    layout: list[SeatStatus]  # who does the work
    findings: list[FindingStatus]  # what is wrong; empty on a healthy machine
