"""/proc/interrupts and its neighbours, as kernels from 2.6 to 6.18 write them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lbconfig.hardware.cpu_lists import parse_list
from lbconfig.hardware.facts import IO_APIC, MSI, MSI_X, OTHER, XT_PIC, Interrupt

_LINE = re.compile(r"\s*(?P<number>\d{1,6}):(?P<rest>.*)")
_CPU = re.compile(r"CPU(\d{1,5})\b")
# The first that is found in the words behind the counts. "IR-": the interrupt is remapped by the IOMMU.
_KINDS = (
    (re.compile(r"XT-PIC"), XT_PIC),
    (re.compile(r"PCI-MSI-?X|-msi-x\b", re.IGNORECASE), MSI_X),
    (re.compile(r"PCI-MSI|PCIe MSI|DMAR[_-]MSI|HPET[_-]MSI|\bMSI\b|-msi\b", re.IGNORECASE), MSI),
    (re.compile(r"IO-APIC"), IO_APIC),
)
# What stands between the counts and the names: chip, place in the chip, kind of signal.
# "IO-APIC-fasteoi   eth0" (before 3.19), "IO-APIC  16-fasteoi   eth0", "PCI-MSIX-0000:03:00.0    1-edge      eth0".
_CHIP = re.compile(
    r"(?:Hyper-V PCIe MSI|[^\s,]+(?: MSI)?)"  # the chip
    r"(?:\s+(?=\d+-|\d+\s|-)\d*(?:-?[A-Za-z][\w-]*)?)?"  # "1-edge", "2", "-event"
    r"(?:\s+(?:Edge|Level)\b)?"
)
# Drivers whose queues are spread by the kernel itself; it refuses (EIO) what is written to them.
# Documentation/core-api/irq/managed_irq.rst; PCI_IRQ_AFFINITY in the drivers.
_MANAGED = re.compile(
    r"nvme\d+q(?!0$)\d+|virtio\d+-req\.\d+|virtio\d+-request|mpt\dsas\d+-msix\d+|megasas\d+-msix\d+|megaraid_sas"
    r"|smartpqi|aacraid|lpfc|qla2xxx.*\((?:qpair|rsp_q)"
)


def columns(text: str) -> tuple[int, ...]:
    """The CPUs of the first line, in its order."""
    return tuple(int(number) for number in _CPU.findall(text.partition("\n")[0]))


def interrupts(files: Mapping[str, str], cpus: tuple[int, ...], msi: Mapping[int, str]) -> tuple[Interrupt, ...]:
    """Of the numbered lines; counts in the order of `cpus`. `msi`: what sysfs calls them, "msi" or "msix"."""
    text = files.get("/proc/interrupts", "")
    heads = columns(text)
    found: dict[int, Interrupt] = {}
    for line in text.splitlines()[1:]:
        if match := _LINE.fullmatch(line):
            number = int(match["number"])
            found.setdefault(number, _interrupt(files, number, match["rest"], heads, cpus, msi.get(number, "")))
    return tuple(found.values())


def _interrupt(
    files: Mapping[str, str], number: int, rest: str, heads: tuple[int, ...], cpus: tuple[int, ...], told: str
) -> Interrupt:
    words = rest.split(maxsplit=len(heads))
    counts: dict[int, int] = {}
    while words and words[0].isdecimal() and len(counts) < len(heads):
        counts[heads[len(counts)]] = int(words.pop(0)[:18])
    tail = " ".join(words)
    kind = next((kind for pattern, kind in _KINDS if pattern.search(_chip(tail))), OTHER)
    if kind in (MSI, MSI_X) and told:
        kind = {"msi": MSI, "msix": MSI_X}.get(told, kind)  # older kernels call both "PCI-MSI"
    devices = _devices(tail)
    return Interrupt(
        number=number,
        kind=kind,
        devices=devices,
        counts=tuple(counts.get(cpu, 0) for cpu in cpus),
        cpus=parse_list(files.get(f"/proc/irq/{number}/smp_affinity_list", "")),
        managed=any(_MANAGED.match(name) for name in devices),
    )


def _chip(tail: str) -> str:
    match = _CHIP.match(tail)
    return match[0] if match else ""


def _devices(tail: str) -> tuple[str, ...]:
    names = tail[len(_chip(tail)) :].strip()
    return tuple(name.strip() for name in names.split(", ") if name.strip())
