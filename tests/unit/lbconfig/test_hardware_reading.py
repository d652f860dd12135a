"""From recorded texts of machines to facts: kernels old and new, cards of metal and of hypervisors, nonsense."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbconfig.hardware.cpu_lists import list_text, mask_text, parse_list, parse_mask
from lbconfig.hardware.facts import IO_APIC, MSI, MSI_X, OTHER, XT_PIC, Coalescing, Cpu, Queues, Ring, Softnet
from lbconfig.hardware.queue_names import BOTH, RX, TX, queue_of
from lbconfig.hardware.reading.cards import by_card
from lbconfig.hardware.reading.interrupts import interrupts
from lbconfig.hardware.reading.machine import read

OLD = """           CPU0       CPU1
  0:         45          0   IO-APIC-edge      timer
  1:          2          0    XT-PIC  i8042
 16:         10         20   IO-APIC-fasteoi   ehci_hcd:usb1, eth0, ahci
 17:          0          7   IO-APIC  17-fasteoi   snd_hda_intel
 24:          5          6   PCI-MSI-edge      eth1
 25:          0          0   IR-PCI-MSI-edge      eth2-TxRx-0
NMI:          0          0   Non-maskable interrupts
ERR:          0
"""
NEW = """            CPU0       CPU2       CPU3
   2:          0          0          0    XT-PIC      cascade
   3:          0          4          0    XT-PIC   3  eth9
   9:          1          0          0  IO-APIC   9-fasteoi   acpi, eth8
  24:          3          4          5  PCI-MSI-0000:00:1f.2    0-edge      ahci[0000:00:1f.2]
  27:          0          4          5 PCI-MSIX-0000:00:03.0   1-edge      virtio0-input.0
  28:          9          4          5 IR-PCI-MSI 1572865-edge      eth0-TxRx-0
  29:          9          4          5 IR-PCI-MSIX-0000:3b:00.0    1-edge      mlx5_comp0@pci:0000:3b:00.0
  30:          1          1          1  Hyper-V PCIe MSI 4026531840-edge      mlx5_comp1@pci:a2f1:00:02.0
  31:          1          1          1   xen-dyn    -event     eth7-q0-tx
  32:          7          7          7  PCI-MSIX-0000:04:00.0   1-edge      nvme0q1
  33:          7          7          7  PCI-MSIX-0000:04:00.0   0-edge      nvme0q0
  34:          0          0          0  DMAR-MSI    0-edge      dmar0
"""


def lines(text: str, cpus=(0, 1), **msi) -> dict:
    found = interrupts({"/proc/interrupts": text}, cpus, {int(k[1:]): v for k, v in msi.items()})
    return {one.number: one for one in found}


def test_interrupts_as_old_kernels_write_them():
    seen = lines(OLD, i25="msix")
    assert {number: one.kind for number, one in seen.items()} == {
        0: IO_APIC, 1: XT_PIC, 16: IO_APIC, 17: IO_APIC, 24: MSI, 25: MSI_X,
    }  # fmt: skip
    assert seen[16].devices == ("ehci_hcd:usb1", "eth0", "ahci")
    assert (seen[16].counts, seen[16].total) == ((10, 20), 30)
    assert [seen[number].devices for number in (0, 1, 17, 24, 25)] == [
        ("timer",), ("i8042",), ("snd_hda_intel",), ("eth1",), ("eth2-TxRx-0",),
    ]  # fmt: skip


def test_interrupts_as_new_kernels_write_them_with_a_cpu_that_is_off():
    seen = lines(NEW, (0, 2, 3))
    assert {number: (one.kind, one.devices) for number, one in seen.items()} == {
        2: (XT_PIC, ("cascade",)),
        3: (XT_PIC, ("eth9",)),
        9: (IO_APIC, ("acpi", "eth8")),
        24: (MSI, ("ahci[0000:00:1f.2]",)),
        27: (MSI_X, ("virtio0-input.0",)),
        28: (MSI, ("eth0-TxRx-0",)),
        29: (MSI_X, ("mlx5_comp0@pci:0000:3b:00.0",)),
        30: (MSI, ("mlx5_comp1@pci:a2f1:00:02.0",)),
        31: (OTHER, ("eth7-q0-tx",)),
        32: (MSI_X, ("nvme0q1",)),
        33: (MSI_X, ("nvme0q0",)),
        34: (MSI, ("dmar0",)),
    }
    assert seen[3].counts == (0, 4, 0)
    assert [number for number, one in seen.items() if one.managed] == [32]


@pytest.mark.parametrize(
    ("name", "queue"),
    [
        ("eth0-TxRx-3", (3, BOTH)),
        ("i40e-eth0-TxRx-12", (12, BOTH)),
        ("eth0-Tx-Rx-1", (1, BOTH)),
        ("eth0-rxtx-2", (2, BOTH)),
        ("virtio0-input.1", (1, RX)),
        ("virtio12-output.0", (0, TX)),
        ("eth0-rx-0", (0, RX)),
        ("eth0-tx-1", (1, TX)),
        ("eth0-q1-tx", (1, TX)),
        ("eth0-fp-2", (2, BOTH)),
        ("mlx5_comp7@pci:0000:3b:00.0", (7, BOTH)),
        ("mlx4-2@0000:03:00.0", (2, BOTH)),
        ("gve-ntfy-blk4@pci:0000:00:04.0", (4, BOTH)),
        ("eth0", None),
        ("virtio0-config", None),
        ("mlx5_async0@pci:0000:3b:00.0", None),
        ("ena-mgmnt@pci:0000:00:05.0", None),
        ("i40e-0000:03:00.0:misc", None),
        ("eth0-event-2", None),
        ("", None),
    ],
)
def test_drivers_name_the_queue_of_an_interrupt(name, queue):
    assert queue_of(name) == queue


def test_the_only_interrupt_of_a_card_carries_everything():
    assert queue_of("eth0", alone=True) == (0, BOTH)


# --- a whole machine: two packages, a CPU switched off, an igb card and a virtio card -----------------

MACHINE = {
    "/proc/interrupts": """            CPU0       CPU1       CPU3
 16:          1          2          3   IO-APIC  16-fasteoi   eth2
 24:         10          0          0  IR-PCI-MSIX-0000:03:00.0    0-edge      eth0
 25:        100          0          0  IR-PCI-MSIX-0000:03:00.0    1-edge      eth0-TxRx-0
 26:          0        200          0  IR-PCI-MSIX-0000:03:00.0    2-edge      eth0-TxRx-1
 30:          0          0          0  PCI-MSI 49152-edge      virtio0-config
 31:          0          0          7  PCI-MSI 49153-edge      virtio0-output.0
 32:          0          0          8  PCI-MSI 49154-edge      virtio0-input.0
""",
    "/proc/irq/25/smp_affinity_list": "0\n",
    "/proc/irq/26/smp_affinity_list": "1,3\n",
    "/sys/bus/pci/devices/0000:03:00.0/msi_irqs/24": "msix\n",
    "/sys/bus/pci/devices/0000:03:00.0/msi_irqs/25": "msix\n",
    "/sys/bus/pci/devices/0000:03:00.0/msi_irqs/26": "msix\n",
    "/sys/bus/pci/devices/0000:00:03.0/msi_irqs/30": "msix\n",
    "/sys/bus/pci/devices/0000:00:03.0/msi_irqs/31": "msix\n",
    "/sys/bus/pci/devices/0000:00:03.0/msi_irqs/32": "msix\n",
    "/sys/devices/system/cpu/online": "0-1,3\n",
    "/sys/devices/system/cpu/cpu0/topology/physical_package_id": "0\n",
    "/sys/devices/system/cpu/cpu0/topology/core_id": "0\n",
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver": "intel_pstate\n",
    "/sys/devices/system/cpu/cpu0/cpuidle/state0/name": "POLL\n",
    "/sys/devices/system/cpu/cpu0/cpuidle/state0/latency": "0\n",
    "/sys/devices/system/cpu/cpu0/cpuidle/state1/name": "C1\n",
    "/sys/devices/system/cpu/cpu0/cpuidle/state1/latency": "2\n",
    "/sys/devices/system/cpu/cpu0/cpuidle/state2/name": "C6\n",
    "/sys/devices/system/cpu/cpu0/cpuidle/state2/latency": "133\n",
    "/sys/devices/system/cpu/cpu0/cpuidle/state3/name": "C8\n",
    "/sys/devices/system/cpu/cpu0/cpuidle/state3/latency": "300\n",
    "/sys/devices/system/cpu/cpu0/cpuidle/state3/disable": "1\n",
    "/sys/devices/system/cpu/cpu1/topology/physical_package_id": "0\n",
    "/sys/devices/system/cpu/cpu1/topology/core_id": "0\n",
    "/sys/devices/system/cpu/cpu3/topology/physical_package_id": "1\n",
    "/sys/devices/system/cpu/cpu3/topology/core_id": "0\n",
    "/sys/devices/system/node/node0/cpulist": "0-2\n",
    "/sys/devices/system/node/node1/cpulist": "3\n",
    "/sys/devices/system/node/node0/distance": "10 21\n",
    "/sys/devices/system/node/node1/distance": "21 10\n",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "/sys/devices/system/clocksource/clocksource0/available_clocksource": "tsc hpet acpi_pm \n",
    "/sys/class/dmi/id/sys_vendor": "QEMU\n",
    "/sys/class/dmi/id/product_name": "Standard PC (Q35 + ICH9, 2009)\n",
    "/proc/meminfo": "MemTotal:        8010752 kB\nMemFree: 1 kB\n",
    "/proc/cmdline": "quiet  mitigations=off\n",
    "/proc/1/comm": "init\n",
    "/proc/812/comm": "irqbalance\n",
    "/proc/sys/net/core/somaxconn": "4096\n",
    "/sys/module/ip_vs/parameters/conn_tab_bits": "17\n",
    "/proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t6291456\n",
    "/proc/softirqs": """                    CPU0       CPU1       CPU2       CPU3
      NET_TX:          1          2          3          4
      NET_RX:         10         20         30         40
""",
    "/proc/net/softnet_stat": "000000ff 00000001 00000002 0 0 0 0 0 0 0 0 00000000 00000000 0 0\n"
    "00000010 00000000 00000000 0 0 0 0 0 0 0 0 00000000 00000003 0 0\n",
    "/sys/class/net/eth0/device/uevent": "DRIVER=igb\nPCI_SLOT_NAME=0000:03:00.0\n",
    "/sys/class/net/eth0/device/numa_node": "1\n",
    "/sys/class/net/eth0/carrier": "1\n",
    "/sys/class/net/eth0/carrier_down_count": "3\n",
    "/sys/class/net/eth0/speed": "1000\n",
    "/sys/class/net/eth0/duplex": "full\n",
    "/sys/class/net/eth0/mtu": "9000\n",
    "/sys/class/net/eth0/threaded": "0\n",
    "/sys/class/net/eth0/statistics/rx_missed_errors": "17\n",
    "/sys/class/net/eth0/queues/rx-0/rps_cpus": "0\n",
    "/sys/class/net/eth0/queues/rx-1/rps_cpus": "b\n",
    "/sys/class/net/eth0/queues/tx-0/xps_cpus": "1\n",
    "/sys/class/net/eth0/queues/tx-1/xps_cpus": "00000001,00000002\n",
    "/sys/class/net/eth1/device/uevent": "DRIVER=virtio_net\nMODALIAS=virtio:d00000001v00001AF4\n",
    "/sys/class/net/eth1/device/../uevent": "DRIVER=virtio-pci\nPCI_SLOT_NAME=0000:00:03.0\n",
    "/sys/class/net/eth1/speed": "-1\n",
    "/sys/class/net/eth2/device/uevent": "DRIVER=r8169\nPCI_SLOT_NAME=0000:05:00.0\n",
    "/sys/class/net/lo/mtu": "65536\n",
}
SAID = {
    "ethtool -i eth0": "driver: igb\nversion: 6.18.0\nfirmware-version: 3.25\nbus-info: 0000:03:00.0\n",
    "ethtool -l eth0": """Channel parameters for eth0:
Pre-set maximums:
RX:\t\tn/a
TX:\t\tn/a
Other:\t\t1
Combined:\t4
Current hardware settings:
RX:\t\tn/a
TX:\t\tn/a
Other:\t\t1
Combined:\t2
""",
    "ethtool -g eth0": """Ring parameters for eth0:
Pre-set maximums:
RX:\t\t4096
RX Mini:\tn/a
TX:\t\t4096
Current hardware settings:
RX:\t\t256
TX:\t\t512
RX Buf Len:\t\tn/a
""",
    "ethtool -c eth0": """Coalesce parameters for eth0:
Adaptive RX: off  TX: n/a
stats-block-usecs:\tn/a
rx-usecs:\t3
rx-frames:\tn/a
tx-usecs: n/a
""",
    "ethtool -k eth0": """Features for eth0:
rx-checksumming: on
large-receive-offload: off [fixed]
generic-receive-offload: on
tx-nocache-copy: off [requested on]
""",
    "ethtool -l eth2": "netlink error: Operation not supported\n",
}


def test_a_whole_machine():
    machine = read(MACHINE, SAID)
    assert machine.cpus == (
        Cpu(0, 0, 0, 0, "powersave", "intel_pstate", 133, "C6"),
        Cpu(1, 0, 0, 0),
        Cpu(3, 1, 0, 1),
    )
    assert (machine.memory, machine.hypervisor, machine.clocksource) == (7823, "kvm", "tsc")
    assert machine.clocksources == ("tsc", "hpet", "acpi_pm")
    assert machine.product == "QEMU Standard PC (Q35 + ICH9, 2009)"
    assert machine.command_line == "quiet mitigations=off"
    assert machine.processes == {"irqbalance"}
    assert machine.settings == {
        "net/core/somaxconn": "4096",
        "net/ipv4/tcp_rmem": "4096 131072 6291456",
        "module/ip_vs/conn_tab_bits": "17",
    }
    assert machine.softnet == (Softnet(0, 255, 1, 2, 10, 1), Softnet(3, 16, 0, 0, 40, 4))
    assert machine.distances == ((10, 21), (21, 10))
    assert [machine.interrupt(number).cpus for number in (24, 25, 26)] == [(), (0,), (1, 3)]
    assert machine.interrupt(31).kind == MSI_X


def test_the_cards_of_that_machine():
    igb, virtio, realtek = read(MACHINE, SAID).cards
    assert (igb.name, igb.driver, igb.bus, igb.node) == ("eth0", "igb", "0000:03:00.0", 1)
    assert (igb.link, igb.speed, igb.duplex, igb.mtu, igb.link_lost, igb.threaded) == (
        True,
        1000,
        "full",
        9000,
        3,
        False,
    )
    assert igb.queues == Queues(2, 2, 4, 4, combined=True, settable=True)
    assert igb.ring == Ring(256, 512, 4096, 4096)
    assert igb.coalescing == Coalescing(3, None, False, None)
    assert igb.offloads == {
        "rx-checksumming": True,
        "large-receive-offload": False,
        "generic-receive-offload": True,
        "tx-nocache-copy": False,
    }
    assert igb.fixed == {"large-receive-offload"}
    assert igb.interrupts == (25, 26)  # not 24, which tells of the link
    assert (igb.rps, igb.xps) == (((), (0, 1, 3)), ((0,), (1, 32)))
    assert igb.counters == {"rx_missed_errors": 17}
    assert (virtio.driver, virtio.bus, virtio.speed) == ("virtio_net", "0000:00:03.0", 0)
    assert virtio.interrupts == (32, 31)
    assert (realtek.queues, realtek.interrupts, realtek.threaded) == (Queues(), (16,), None)


@pytest.mark.parametrize(
    ("limit", "found"), [("0", (133, "C6", 0)), ("100", (2, "C1", 100)), ("1", (0, "", 1)), ("n/a", (133, "C6", None))]
)
def test_a_limit_keeps_cpus_from_deep_sleep(limit, found):
    cpu = read(MACHINE | {"/sys/devices/system/cpu/cpu0/power/pm_qos_resume_latency_us": f"{limit}\n"}, {}).cpus[0]
    assert (cpu.longest_wake, cpu.deepest_state, cpu.wake_limit) == found


def test_a_card_with_queues_for_each_way():
    said = "Pre-set maximums:\nRX:\t8\nTX:\t8\nOther:\t0\nCombined:\t0\nCurrent hardware settings:\nRX:\t2\nTX:\t1\n"
    card = read(MACHINE, {"ethtool -l eth0": said}).cards[0]
    assert card.queues == Queues(2, 1, 8, 8, combined=False, settable=True)


def test_what_ethtool_prints_of_all_cards_at_once():
    text = "\nFeatures for lo:\nx: off\n\nFeatures for eth0:\nlarge-receive-offload: on\n"
    assert by_card(text) == {
        "lo": "Features for lo:\nx: off\n\n",
        "eth0": "Features for eth0:\nlarge-receive-offload: on\n",
    }
    assert by_card("netlink error: Operation not supported\n") == by_card("") == {}


def test_a_kernel_that_says_nothing_still_has_a_cpu():
    machine = read({}, {})
    assert machine.cpus == (Cpu(0),) and machine.memory == 0 and machine.cards == machine.interrupts == ()


def test_cpus_of_an_old_kernel_are_those_of_cpuinfo():
    first = "processor\t: 0\nphysical id\t: 0\ncore id\t\t: 1\n\n"
    text = first + "processor\t: 1\nphysical id\t: 3\ncore id\t\t: 0\nflags\t\t: fpu hypervisor\n"
    machine = read({"/proc/cpuinfo": text}, {})
    assert machine.cpus == (Cpu(0, 0, 1), Cpu(1, 3, 0)) and machine.hypervisor == "other"


def test_softnet_of_an_old_kernel_goes_by_the_order_of_the_cpus():
    files = {"/sys/devices/system/cpu/online": "0,2", "/proc/net/softnet_stat": "5 0 0\nx\n7 1 2\n6 1\n"}
    assert read(files, {}).softnet == (Softnet(0, 5),)


def test_sets_of_cpus():
    assert parse_list("0-3,8,8,x,6-5") == (0, 1, 2, 3, 8)
    assert list_text((8, 0, 1, 2, 3)) == "0-3,8" and list_text(()) == ""
    assert parse_mask("00000001,80000001") == (0, 31, 32) and parse_mask("zz") == parse_mask("") == ()
    assert mask_text((0, 31, 32)) == "1,80000001" and mask_text(()) == "0"
    assert len(parse_list("0-99999")) == 8192


@given(st.sets(st.integers(0, 300)))
def test_sets_of_cpus_come_back(cpus):
    assert set(parse_list(list_text(cpus))) == set(parse_mask(mask_text(cpus))) == cpus


GARBAGE = st.one_of(st.text(max_size=80), st.sampled_from(sorted({*MACHINE.values(), *SAID.values()})))


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(st.sampled_from(sorted(MACHINE)), GARBAGE, max_size=30),
    st.dictionaries(st.sampled_from(sorted(SAID)), GARBAGE, max_size=5),
    st.data(),
)
def test_no_text_can_break_it(files, said, data):
    texts = {**MACHINE, **files}
    path = data.draw(st.sampled_from(sorted(MACHINE)))
    cut = data.draw(st.integers(0, len(texts[path])))
    texts[path] = texts[path][:cut] + data.draw(st.text(max_size=10)) + texts[path][cut:]
    machine = read(texts, {**SAID, **said})
    assert machine.cpus and all(one.number >= 0 for one in machine.interrupts)
    assert dataclasses.asdict(machine)
