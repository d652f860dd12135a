"""A machine in memory that takes what is told to it: files of /proc and /sys, and an ethtool."""

from __future__ import annotations

from applier.host.host import HostError, Output

QUEUES = "/sys/class/net/eth0/queues/"
SHOP = {
    "/proc/interrupts": "",
    "/proc/meminfo": "MemTotal: 2000000 kB\n",
    "/proc/sys/net/core/somaxconn": "128\n",
    "/proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t33554432\n",
    "/proc/sys/net/core/netdev_budget_usecs": "8000\n",
    "/sys/module/ip_vs/parameters/conn_tab_bits": "12\n",
    "/sys/devices/system/cpu/online": "0-1\n",
    "/sys/class/net/eth0/device/uevent": "DRIVER=igb\nPCI_SLOT_NAME=0000:03:00.0\n",
    "/sys/bus/pci/devices/0000:04:00.0/msi_irqs/40": "msi\n",
    "/sys/class/net/lo/mtu": "65536\n",
}


class MachineHost:
    """Two CPUs and a card whose queues come and go with `ethtool -L`. `stubborn`: words of what is refused."""

    def __init__(self) -> None:
        self.files = dict(SHOP)
        self.queues = 1
        self.ring = 256
        self.told: list[str] = []
        self.stubborn: dict[str, str] = {}
        self._make()

    def _make(self) -> None:
        """What the kernel shows of the card's queues."""
        for path in [
            path for path in self.files if path.startswith((QUEUES, "/proc/irq/", "/sys/bus/pci/devices/0000:03"))
        ]:
            del self.files[path]
        lines = ["           CPU0       CPU1", " 40:   7   0  PCI-MSI-0000:04:00.0 0-edge ahci[0000:04:00.0]"]
        self.files["/proc/irq/40/smp_affinity_list"] = "0-1"
        for queue in range(self.queues):
            lines.append(f" {24 + queue}: 9 9  PCI-MSIX-0000:03:00.0  {queue}-edge   eth0-TxRx-{queue}")
            self.files[f"/proc/irq/{24 + queue}/smp_affinity_list"] = "0-1"
            self.files[f"/sys/bus/pci/devices/0000:03:00.0/msi_irqs/{24 + queue}"] = "msix"
            self.files[f"{QUEUES}rx-{queue}/rps_cpus"] = "0"
            self.files[f"{QUEUES}tx-{queue}/xps_cpus"] = "0"
        self.files["/proc/interrupts"] = "\n".join(lines) + "\n"

    def read(self, path):
        text = self.files.get(str(path))
        if text == "unreadable":
            raise HostError(f"read {path}", None, "Invalid argument")
        return text

    def names(self, folder):
        start = f"{folder}/"
        return sorted({path[len(start) :].split("/")[0] for path in self.files if path.startswith(start)})

    def tell(self, path, text):
        self._refuse(f"{path} = {text}")
        assert str(path) in self.files, path
        self.told.append(f"{path} = {text}")
        self.files[str(path)] = text

    def put(self, path, text, mode=0o644):
        if text is None:
            self.files.pop(str(path), None)
        else:
            self.files[str(path)] = text

    def processes(self):
        return []

    def command(self, argv, stdin="", timeout=0):
        match list(argv):
            case ["ethtool", "-l", "*"]:
                used = f"Combined: 4\nCurrent hardware settings:\nCombined: {self.queues}\n"
                return Output(0, f"Channel parameters for eth0:\n{used}", "")
            case ["ethtool", "-g", "*"]:
                used = f"Current hardware settings:\nRX: {self.ring}\nTX: {self.ring}\n"
                return Output(0, f"Ring parameters for eth0:\nRX: 4096\nTX: 4096\n{used}", "")
            case ["ethtool", "-L", "eth0", "combined", number]:
                self._refuse(" ".join(argv))
                self.queues = int(number)
                self._make()
            case ["ethtool", "-G", "eth0", "rx", size, "tx", _]:
                self._refuse(" ".join(argv))
                self.ring = int(size)
            case _:
                return Output(75, "", "netlink error: Operation not supported")
        self.told.append(" ".join(argv))
        return Output(0, "", "")

    def _refuse(self, words: str) -> None:
        for part, why in self.stubborn.items():
            if part in words:
                raise HostError(words, None, why)
