"""The machines that QEMU plays for the doctor of the hardware; captures/machines/README.md tells what they show."""

from __future__ import annotations

from dataclasses import dataclass

# What QEMU's emulated clocks are is no matter of the machine that is played, unless it is its fault.
TSC = "tsc=reliable"
USER = ("-netdev", "user,id=n0,restrict=off")
Q35, PC = ("-machine", "q35"), ("-machine", "pc")
SPREAD = """\
for file in /sys/class/net/eth*/queues/rx-*/rps_cpus; do
	printf '%x' $(((1 << $(nproc)) - 1)) > "$file"
done
"""
# A script has its own name in /proc/PID/comm.
BALANCER = """\
printf '#!/bin/sh\\nsleep 600\\n' > /tmp/irqbalance
chmod 755 /tmp/irqbalance
/tmp/irqbalance &
"""


@dataclass(frozen=True)
class Kind:
    words: tuple[str, ...]  # for QEMU
    append: str = TSC  # to the kernel's command line
    arrange: str = ""  # shell, when the cards are up
    without: tuple[str, ...] = ()  # modules that are not loaded
    taps: int = 0  # cards with several queues need one each: t0, t1 …
    memory: int = 512  # MiB
    processor: str = "qemu64,cx16=off"


def cpus(many: int) -> tuple[str, ...]:
    return ("-smp", str(many))


def card(model: str, number: int = 0, more: str = "") -> tuple[str, ...]:
    return ("-device", f"{model},netdev=n{number},romfile={more}")


def tap(number: int, queues: int) -> tuple[str, ...]:
    return ("-netdev", f"tap,id=n{number},ifname=t{number},script=no,downscript=no,vhost=off,queues={queues}")


def virtio(number: int, queues: int, more: str = "") -> tuple[str, ...]:
    return card("virtio-net-pci", number, f",mq=on,vectors={2 * queues + 2},speed=10000,duplex=full{more}")


def queue_to_cpu(*cpus: int) -> str:
    """Shell: both ways of queue N of each virtio card to the CPU at place N."""
    places = " ".join(str(cpu) for cpu in cpus)
    return f"""\
set -- {places}
queue=0
for cpu in "$@"; do
	for irq in $(sed -n "s/^ *\\([0-9]*\\):.*virtio[0-9]*-\\(input\\|output\\)\\.$queue\\$/\\1/p" /proc/interrupts); do
		echo "$cpu" > "/proc/irq/$irq/smp_affinity_list"
	done
	queue=$((queue + 1))
done
"""


TWO_NODES = (
    *cpus(4), "-m", "512",
    "-object", "memory-backend-ram,id=m0,size=256M", "-object", "memory-backend-ram,id=m1,size=256M",
    "-numa", "node,nodeid=0,cpus=0-1,memdev=m0", "-numa", "node,nodeid=1,cpus=2-3,memdev=m1",
    "-numa", "dist,src=0,dst=1,val=21",
)  # fmt: skip


def at_node(card: str, node: int) -> str:
    """Shell: what a board's firmware says of the slot. The kernel takes it where the firmware says nothing."""
    return f"echo {node} > /sys/class/net/{card}/device/../numa_node\n"


KINDS = {
    # Healthy
    "healthy-kvm-one-cpu": Kind((*Q35, *cpus(1), *USER, *card("virtio-net-pci"))),
    "healthy-kvm-queues": Kind((*Q35, *cpus(4), *tap(0, 4), *virtio(0, 4)), arrange=queue_to_cpu(0, 1, 2, 3), taps=1),
    "healthy-kvm-spread": Kind((*Q35, *cpus(4), *USER, *card("virtio-net-pci")), arrange=SPREAD),
    "healthy-numa": Kind(
        (*Q35, *TWO_NODES, *tap(0, 2), *virtio(0, 2)), arrange=at_node("eth0", 1) + queue_to_cpu(2, 3), taps=1
    ),
    # Faulty
    "xt-pic": Kind((*PC, *cpus(1), *USER, *card("e1000")), f"{TSC} noapic"),
    "no-msi": Kind((*Q35, *cpus(2), *USER, *card("virtio-net-pci")), f"{TSC} pci=nomsi", SPREAD),
    "shared-with-usb": Kind(
        (*PC, *cpus(1), *USER, "-device", "piix3-usb-uhci,addr=0x5", *card("rtl8139", 0, ",addr=0x4"))
    ),
    "shared-cards": Kind(
        (*PC, *cpus(1), *USER, "-netdev", "user,id=n1", *card("e1000", 0, ",addr=0x4"), *card("e1000", 1, ",addr=0x8"))
    ),
    "emulated-e1000e": Kind((*Q35, *cpus(4), *USER, *card("e1000e")), arrange=SPREAD),
    "emulated-rtl8139": Kind((*PC, *cpus(2), *USER, *card("rtl8139"))),
    "one-queue": Kind((*Q35, *cpus(4), *USER, *card("virtio-net-pci"))),
    "queues-unused": Kind(
        (*Q35, *cpus(4), *tap(0, 4), *virtio(0, 4)), arrange="ethtool -L eth0 combined 1\n", taps=1
    ),
    "queues-together": Kind(
        (*Q35, *cpus(4), *tap(0, 4), *virtio(0, 4)),
        arrange="ethtool -L eth0 combined 4\n" + queue_to_cpu(0, 0, 0, 0),
        taps=1,
    ),
    "lro-vmxnet3": Kind((*Q35, *cpus(1), *USER, *card("vmxnet3"))),
    "numa-remote-queue": Kind(
        (*Q35, *TWO_NODES, *tap(0, 2), *virtio(0, 2)), arrange=at_node("eth0", 1) + queue_to_cpu(0, 1), taps=1
    ),
    "numa-cards-apart": Kind(
        (*Q35, *TWO_NODES, *tap(0, 2), *virtio(0, 2), *tap(1, 2), *virtio(1, 2)),
        arrange=at_node("eth0", 0) + at_node("eth1", 1) + queue_to_cpu(0, 1),
        taps=2,
    ),
    "irqbalance": Kind(
        (*Q35, *cpus(2), *USER, *card("virtio-net-pci")),
        arrange=SPREAD + BALANCER,
    ),
    "half-duplex": Kind((*Q35, *cpus(1), *USER, *card("virtio-net-pci", 0, ",speed=100,duplex=half"))),
    "slow-link": Kind((*Q35, *cpus(1), *USER, *card("virtio-net-pci", 0, ",speed=100,duplex=full"))),
    "slow-clock": Kind((*Q35, *cpus(1), *USER, *card("virtio-net-pci")), "clocksource=acpi_pm"),
    "no-driver": Kind(
        (*Q35, *cpus(1), *USER, *card("virtio-net-pci"), "-netdev", "user,id=n1", *card("pcnet", 1)),
        without=("pcnet32",),
    ),
    "debug-options": Kind((*Q35, *cpus(1), *USER, *card("virtio-net-pci")), f"{TSC} slub_debug=FZP kmemleak=off"),
}  # fmt: skip
