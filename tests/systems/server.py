"""One machine with a system of real servers, and beside it, in network namespaces of its own, who asks it.

    eth0 10.2.0.11 (the system's) --- QEMU's hub --- eth1 in "director": 10.2.0.1 with IPVS, bridge --- "client"

The client asks the director for a virtual address, IPVS sends that to the machine by direct routing or in a tunnel,
and the machine answers the client, which is its gateway.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path

from board.lab.systems import Installed
from board.machines.machine import Machine, make_overlay

from lbconfig.model.addresses import bits
from lbconfig.model.snapshot import Snapshot
from lbconfig.wanted import table as ipvs

BOOT = 300.0  # seconds, on a busy host
AGENT_PORT = 3333
NETWORKD = """[Match]
Name=eth0
[Network]
Address=10.2.0.11/24
Address=2001:db8:2::11/64
Gateway=10.2.0.254
Gateway=2001:db8:2::254
IPv6AcceptRA=no
"""
NETPLAN = """network:
  version: 2
  ethernets:
    eth0:
      addresses: [10.2.0.11/24, '2001:db8:2::11/64']
      routes: [{to: '0.0.0.0/0', via: 10.2.0.254}, {to: '::/0', via: '2001:db8:2::254'}]
      accept-ra: false
"""
NETWORKMANAGER = """[connection]
id=eth0
type=ethernet
interface-name=eth0
[ipv4]
method=manual
address1=10.2.0.11/24,10.2.0.254
[ipv6]
method=manual
address1=2001:db8:2::11/64,2001:db8:2::254
"""
UNMANAGED = "[keyfile]\nunmanaged-devices=interface-name:eth1\n"
WEB = """[Service]
ExecStart=python3 -m http.server 80 --bind ::
WorkingDirectory=/usr/share/misc
[Install]
WantedBy=multi-user.target
"""
NEIGHBOURS = """set -e
modprobe --all ip_vs ip_vs_rr veth bridge
ip netns add director
ip netns add client
ip link set eth1 netns director
ip -n director link add lan type bridge
ip -n director link set eth1 master lan
ip -n director link add to-client type veth peer name eth0 netns client
ip -n director link set to-client master lan
for link in lo eth1 to-client lan; do ip -n director link set $link up; done
ip netns exec director sysctl -qw net.ipv4.conf.all.arp_ignore=1
ip -n director address add 10.2.0.1/24 dev lan
ip -n director address add 2001:db8:2::1/64 dev lan nodad
ip -n director route add default via 10.2.0.254
ip -n director route add default via 2001:db8:2::254
ip -n client link set lo up
ip -n client link set eth0 up
ip -n client address add 10.2.0.254/24 dev eth0
ip -n client address add 2001:db8:2::254/64 dev eth0 nodad
ip -n client address add 203.0.113.7/32 dev lo
ip -n client address add 2001:db8:7::7/128 dev lo nodad
ip -n client route add 10.1.0.0/24 via 10.2.0.1 src 203.0.113.7
ip -n client route add 2001:db8:1::/64 via 2001:db8:2::1 src 2001:db8:7::7
"""
STATE = """
ip -o address | sed 's/^[0-9]*: //; s/ *valid_lft.*//'
ip -o link show | sed 's/^[0-9]*: //'
ip route
ip -6 route
ip fou show 2>/dev/null
grep -H . /proc/sys/net/ipv4/conf/*/arp_* /proc/sys/net/ipv4/conf/*/rp_filter
find /etc /var/lib/fairlead* /run/fairlead* /run/systemd/network -type f -exec md5sum {} + 2>/dev/null
find /etc -not -type f
nmcli -g NAME,TYPE connection show 2>/dev/null
true
"""
# The kernel makes them with the first tunnel of a kind, and keeps them.
OF_THE_KERNEL = re.compile(r"\b(tunl0|gre0|gretap0|erspan0|ip6tnl0|ip6gre0)\b")


@dataclass(frozen=True)
class Kept:
    """How a system keeps its network."""

    unit: str
    files: dict[str, str]
    ready: str = "true"


KEPT = {
    "networkd": Kept("systemd-networkd", {"/etc/systemd/network/10-eth0.network": NETWORKD}),
    "netplan": Kept("systemd-networkd", {"/etc/netplan/10-eth0.yaml": NETPLAN}, "netplan generate"),
    "networkmanager": Kept(
        "NetworkManager",
        {
            "/etc/NetworkManager/system-connections/eth0.nmconnection": NETWORKMANAGER,
            "/etc/NetworkManager/conf.d/eth1.conf": UNMANAGED,
        },
    ),
}


@dataclass(frozen=True)
class Hub:
    """Both network cards of the machine are plugged into it."""

    def netdev(self, name: str) -> str:
        return f"hubport,id={name},hubid=0"


class Server(Machine):
    def __init__(self, folder: Path, installed: Installed, name: str) -> None:
        super().__init__("server", folder, nics=(Hub(), Hub()))
        self.installed = installed
        self.kept = KEPT[name]
        make_overlay(installed.disk, self.path("qcow2"))

    def started_from(self) -> list[str | Path]:
        """NVMe is built into the kernel."""
        words = "console=ttyS0 quiet mitigations=off net.ifnames=0 root=/dev/nvme0n1 rw"
        drive = f"if=none,id=root,file={self.path('qcow2')},format=qcow2"
        return [
            "-kernel", self.installed.kernel, "-append", words,
            "-drive", drive, "-device", "nvme,drive=root,serial=root",
        ]  # fmt: skip

    def keep_network(self) -> None:
        """By its system, from now on."""
        self.write("/etc/systemd/system/web.service", WEB)
        for path, text in self.kept.files.items():
            self.write(path, text)
            self.succeed(["chmod", "644" if path.endswith(".network") else "600", path])
        self.succeed(f"{self.kept.ready} && systemctl enable --quiet --now web {self.kept.unit}", BOOT)

    def wait_until_up(self) -> None:
        self.wait_for_agent(BOOT)
        self.succeed("systemctl is-system-running --wait || [ $(systemctl is-system-running) = degraded ]", BOOT)
        self.wait_until_succeeds("ip -4 route | grep -q '^default.* eth0' && ss -Hlnt | grep -q :80", 120)
        self.wait_until_succeeds("ip -6 -o address show dev eth0 to 2001:db8:2::11 -tentative | grep -q .")
        self.succeed(NEIGHBOURS, BOOT)

    def restart(self) -> None:
        """As an admin does it."""
        before = self.read("/proc/sys/kernel/random/boot_id")
        self.execute("systemctl --no-block reboot")
        end = time.monotonic() + BOOT
        while True:
            try:
                if self.agent().run(["cat", "/proc/sys/kernel/random/boot_id"], 10).output != before:
                    return self.wait_until_up()
            except OSError:
                if self._agent:
                    self._agent.close()
                    self._agent = None
            assert time.monotonic() < end, f"it did not restart; its console:\n{self.console[-1500:]}"
            time.sleep(0.5)

    def state(self) -> list[str]:
        """All that an undo has to restore, over a restart, too."""
        lines = self.succeed(STATE, BOOT).splitlines()
        return sorted(line for line in lines if not OF_THE_KERNEL.search(line))

    def balance(self, snapshot: Snapshot) -> None:
        """From now on the director does what the snapshot says."""
        table = "".join(f"{line}\n" for line in ipvs.render(snapshot).splitlines() if line.startswith(("-A", "-a")))
        addresses = {f"{one.address}/{bits(one.address)}" for one in snapshot.services}
        self.succeed("; ".join(f"ip -n director address replace {one} dev lo" for one in sorted(addresses)))
        self.succeed("ip netns exec director ipvsadm -C")
        self.succeed("ip netns exec director ipvsadm -R", stdin=table.encode())

    def answer(self, vip: str) -> str:
        """What the client gets; "" where nobody answers."""
        ask = f"exec 3<>/dev/tcp/{vip}/80; printf 'HEAD / HTTP/1.0\\r\\n\\r\\n' >&3; head -n 1 <&3"
        return self.execute(["ip", "netns", "exec", "client", "timeout", "30", "bash", "-c", ask], 120).output.strip()

    def agent_says(self, place: str, who: str = "director") -> str:
        """What the one in this namespace hears from the agent at this address; "" where nobody answers."""
        ask = f"exec 3<>/dev/tcp/{place}/{AGENT_PORT}; timeout 10 cat <&3"
        return self.execute(["ip", "netns", "exec", who, "timeout", "20", "bash", "-c", ask], 120).output.strip()

    def answers_arp(self, vip: str) -> bool:
        """The director, which has it on its lo, does not."""
        said = self.execute(["ip", "netns", "exec", "client", "arping", "-I", "eth0", "-c", "2", "-w", "3", vip], 60)
        assert "Sent" in said.output, said
        return "Received 0 response" not in said.output
