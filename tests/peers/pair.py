"""Two boxes that elect who leads, and a client between them; all in network namespaces, nothing of it booted.

    client 10.1.0.10 --- front --- eth0 box 1, box 2 eth0        10.1.0.1, 10.1.0.2; gateway 10.1.0.254
                         back  --- eth1 box 1, box 2 eth1        10.2.0.1, 10.2.0.2
                         cable --- eth2 box 1, box 2 eth2        192.0.2.1, 192.0.2.2

The client's room has the two bridges; the cable goes from box to box. keepalived and the floater are started by the
run scripts and the supervisor of the image.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import json
import os
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from board.lab.build import TOP
from board.machines.wait import until
from tests.peers.room import CLEAN, ENDS, Room

from applier.base import durable
from applier.base.paths import Paths
from applier.host.host import Live
from applier.pair import client
from applier.pair.roles import Role

OVERLAY = TOP / "overlay"
NETWORKS = {"eth0": ("front", "10.1.0.{}", 24), "eth1": ("back", "10.2.0.{}", 24), "eth2": ("cable", "192.0.2.{}", 30)}
VIP, VIP6, GATEWAY = "10.1.0.100", "2001:db8:1::100", "10.2.0.254"
WAY_OUT = "10.1.0.254"  # the boxes' own gateway
FLOATING = (("eth0", f"{VIP}/24"), ("eth0", f"{VIP6}/64"), ("eth1", f"{GATEWAY}/24"))
PRIORITIES = (254, 251)  # so high that whoever stands by takes over in no time when it is told (decision 82)
ADVERT = 500  # ms; twice as patient as a real pair: other tests run on this machine
LEASE = 5  # seconds
SERVICES = ("syslogd", "vrrp", "floater")
EACH = 0.02  # seconds between two looks, and between two pings
NEW_NETWORK = 0x40000000  # setns(2), CLONE_NEWNET
_libc = ctypes.CDLL(None, use_errno=True)


def keepalived_conf(number: int, advert: int = ADVERT) -> str:
    """What keepalived reads on the first (0) or the second box (1)."""
    instances = "".join(_instance(at, number, advert) for at in range(len(NETWORKS)))
    names = "\n".join(name for name, _, _ in NETWORKS.values())
    return f"""global_defs {{
 vrrp_version 3
 vrrp_rt_priority 50
 vrrp_rlimit_rttime 5000000
 vrrp_notify_fifo /run/fairlead/vrrp.fifo
 vrrp_garp_master_repeat 1
 vrrp_garp_master_delay 0
}}
track_file hold {{
 file /run/fairlead/hold
 init_file 0
 weight 0
}}
vrrp_sync_group pair {{
 group {{
{names}
 }}
 track_file {{
  hold
 }}
}}
{instances}"""


def _instance(at: int, number: int, advert: int) -> str:
    card, (name, address, _) = list(NETWORKS.items())[at]
    own, peer = (address.format(box) for box in ((1, 2), (2, 1))[number])
    return f"""vrrp_instance {name} {{
 state BACKUP
 interface {card}
 virtual_router_id {51 + at}
 priority {PRIORITIES[number]}
 advert_int {advert / 1000:g}
 nopreempt
 timer_expired_backup 254
 {"dont_track_primary" if name == "cable" else ""}
 unicast_src_ip {own}
 unicast_peer {{
  {peer}
 }}
 virtual_ipaddress {{
  169.254.255.{51 + at}/32 dev lo
 }}
}}
"""


class Place(Room):
    """A room whose files and kernel are looked at from outside."""

    def do(self, line: str) -> str:
        done = subprocess.run(
            self.inside("sh", "-c", line), env=CLEAN, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, f"{self.name}: {line}: {done.stdout}{done.stderr}"
        return done.stdout

    def kernel(self, name: str) -> str:
        """A file of its /proc/net."""
        return Path(f"/proc/{self.first}/net/{name}").read_text()


class Box(Place):
    def __init__(self, number: int, tree: Path) -> None:
        super().__init__(f"box{number + 1}", OVERLAY, tree)
        self.number = number
        place = self.root / "usr/lib/fairlead/webui"
        place.mkdir(parents=True)
        inside = f"{self.folder}/root/usr/lib/fairlead/webui"
        enter = ["nsenter", f"--target={self.first}", "--mount", "mount", "--bind", TOP / "webui", inside]
        subprocess.run(enter, check=True, timeout=30)
        self.do("mkdir -p /run/fairlead /run/service /var/log")
        self.paths = Paths(run=self.root / "run/fairlead")
        self._services: list[subprocess.Popen[bytes]] = []

    def configure(self) -> None:
        self.paths.keepalived.write_text(keepalived_conf(self.number))
        self.float(FLOATING)

    def supervise(self) -> None:
        """Start its services, as the box does when it starts."""
        for service in SERVICES:
            self.do(f"cp -Rp /etc/sv/{service} /run/service/")
            words = self.inside("runsv", f"/run/service/{service}")
            self._services.append(
                subprocess.Popen(words, env=CLEAN, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            )

    def float(self, floating: Sequence[tuple[str, str]]) -> None:
        data = {"version": 1, "addresses": [list(one) for one in floating], "lease": LEASE}
        durable.replace(self.paths.floating, json.dumps(data).encode())

    def close(self) -> str:
        self.freeze(stopped=False)  # a room ends when whoever entered it has seen the end of what it started
        said = super().close()
        for service in self._services:
            service.wait(ENDS)
        return said

    def freeze(self, stopped: bool) -> None:
        """All its processes; what has entered the room from outside stops along, and does not go on by itself."""
        if stopped:
            self.stop()
            return
        self.signal(signal.SIGCONT)
        for service in self._services:
            service.send_signal(signal.SIGCONT)

    def pid(self, service: str) -> str:
        return (self.root / f"run/service/{service}/supervise/pid").read_text().strip()

    @property
    def role(self) -> Role | None:
        return client.role(Live(), self.paths)

    def enter(self) -> None:
        """Take the thread that calls this into the box's network."""
        with open(f"/proc/{self.first}/ns/net") as network:
            if _libc.setns(network.fileno(), NEW_NETWORK):
                raise OSError(ctypes.get_errno(), "setns")

    def ask(self, command: Callable[..., None], **more: object) -> None:
        command(Live(), self.paths, **more)

    def addresses(self) -> set[str]:
        """Without those of the kernel's own."""
        words = self.beside("ip", "-json", "address", "show")
        done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=True)
        return {
            one["local"] for link in json.loads(done.stdout) for one in link["addr_info"] if one["scope"] == "global"
        }

    def holds(self) -> bool:
        """Whether it has the VIP; so cheap that one may look all the time."""
        return f" {VIP}\n" in self.kernel("fib_trie")

    def mac(self) -> str:
        return self.do("ip -json link show dev eth0").split('"address":"')[1][:17]

    @property
    def log(self) -> str:
        path = self.root / "var/log/messages"
        return path.read_text(errors="replace") if path.exists() else ""


class World(Place):
    """The client, and the switches of the two networks."""

    def __init__(self, tree: Path) -> None:
        super().__init__("world", OVERLAY, tree)
        for name in ("front", "back"):
            self.ip("link", "add", name, "type", "bridge", "forward_delay", "0", "mcast_snooping", "0")
            self.ip("link", "set", name, "up")
        self.ip("address", "add", "10.1.0.10/24", "dev", "front")
        self.ip("address", "add", f"{WAY_OUT}/24", "dev", "front")
        self.ip("-6", "address", "add", "2001:db8:1::10/64", "dev", "front", "nodad")
        self._network = os.open(f"/proc/{self.first}/ns/net", os.O_RDONLY)

    def close(self) -> str:
        os.close(self._network)
        return super().close()

    def enter(self) -> None:
        """Take the thread that calls this into the client's network."""
        if _libc.setns(self._network, NEW_NETWORK):
            raise OSError(ctypes.get_errno(), "setns")

    def knows(self) -> str:
        """The MAC at which the client believes the VIP."""
        found = [line.split()[3] for line in self.kernel("arp").splitlines() if line.startswith(f"{VIP} ")]
        return found[0] if found else ""


class Watch:
    """What the client saw of the VIP, and for how long both boxes had it."""

    def __init__(self, pair: Pair) -> None:
        self._pair = pair
        self._ended = threading.Event()
        self.answers: list[float] = []
        self.both = 0.0
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._ping, self._look)]

    def __enter__(self) -> Watch:
        for thread in self._threads:
            thread.start()
        until("an answer of the VIP", lambda: self.answers)
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    @property
    def silence(self) -> float:
        """The longest time without an answer, in ms."""
        gaps = [later - earlier for earlier, later in itertools.pairwise(self.answers)]
        return 1000 * max(gaps, default=0.0)

    def _ping(self) -> None:
        self._pair.world.enter()
        with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as raw:
            raw.setblocking(False)
            while not self._ended.wait(EACH):
                with contextlib.suppress(OSError):
                    raw.sendto(echo(), (VIP, 0))
                with contextlib.suppress(OSError):
                    while answer := raw.recv(2000):
                        if answer[20] == 0:
                            self.answers.append(time.monotonic())

    def _look(self) -> None:
        last = time.monotonic()
        while not self._ended.wait(EACH):
            now = time.monotonic()
            if all(box.holds() for box in self._pair.boxes):
                self.both += now - last
            last = now


def echo() -> bytes:
    """A ping of the Internet Control Message Protocol (RFC 792)."""
    words = [0x0800, 0, 0x4641, 1]
    total = sum(words)
    words[1] = ~(total + (total >> 16)) & 0xFFFF
    return struct.pack("!4H", *words)


class Pair:
    def __init__(self, tree: Path) -> None:
        with contextlib.ExitStack() as opened:
            self.world = opened.enter_context(contextlib.closing(World(tree)))
            self.boxes = [opened.enter_context(contextlib.closing(Box(number, tree))) for number in (0, 1)]
            first, second = self.boxes
            first.ip("link", "add", "eth2", "type", "veth", "peer", "name", "eth2", "netns", str(second.first))
            for box in self.boxes:
                self._wire(box)
            self._opened = opened.pop_all()

    def close(self) -> None:
        self._opened.close()

    def _wire(self, box: Box) -> None:
        for card, (network, address, length) in NETWORKS.items():
            if network != "cable":
                far = f"{network}{box.number}"
                self.world.ip("link", "add", far, "type", "veth", "peer", "name", card, "netns", str(box.first))
                self.plug(box, network)
            box.ip("address", "add", f"{address.format(box.number + 1)}/{length}", "dev", card)
            box.ip("link", "set", card, "up")
        box.ip("-6", "address", "add", f"2001:db8:1::{box.number + 1}/64", "dev", "eth0", "nodad")

    def start(self) -> None:
        for box in self.boxes:
            box.configure()
            box.supervise()

    # --- its networks ---

    def plug(self, box: Box, network: str) -> None:
        self.world.ip("link", "set", f"{network}{box.number}", "master", network, "up")

    def silence(self, box: Box, network: str) -> None:
        """Its switch forwards nothing any more; the card sees a carrier."""
        self.world.ip("link", "set", f"{network}{box.number}", "nomaster")

    def unplug(self, box: Box, network: str) -> None:
        self.world.ip("link", "set", f"{network}{box.number}", "down")

    def answer(self, *boxes: Box) -> None:
        """From now on the boxes' gateway answers these and no others."""
        rules = [
            f'add rule bridge gateway asked iifname "front{box.number}" arp daddr ip {WAY_OUT} drop'
            for box in self.boxes
            if box not in boxes
        ]
        chain = "table bridge gateway { chain asked { type filter hook input priority 0; }; }"
        self.world.do("; ".join(f"nft '{one}'" for one in (chain, "flush chain bridge gateway asked", *rules)))

    def cable(self, state: str) -> None:
        self.boxes[0].ip("link", "set", "eth2", state)

    # --- who leads ---

    def roles(self) -> list[str]:
        return [box.role.role if box.role else "" for box in self.boxes]

    def leads(self, box: Box, other: str = "stands by") -> None:
        """Wait until it alone leads, has all addresses, and the client reaches it there."""
        expected = {box.number: "leads", 1 - box.number: other}
        until(f"{box.name} to lead", lambda: dict(enumerate(self.roles())) == expected)
        until(f"the addresses at {box.name}", lambda: {VIP, VIP6, GATEWAY} <= box.addresses())
        rest = self.other(box)
        until(f"{rest.name} to let go", lambda: not {VIP, VIP6, GATEWAY} & rest.addresses())
        self.reached(box)

    def reached(self, box: Box) -> None:
        with Watch(self):
            until(f"the client to find {box.name}", lambda: self.world.knows() == box.mac())
            self.world.do(f"ping -6 -c 1 -W 20 {VIP6}")

    def other(self, box: Box) -> Box:
        return self.boxes[1 - box.number]

    def settle(self) -> Box:
        """Whoever leads, once nothing is held or cut any more."""
        until("one to lead and one to stand by", lambda: sorted(self.roles()) == ["leads", "stands by"])
        leading = self.boxes[self.roles().index("leads")]
        self.leads(leading)
        return leading


@contextlib.contextmanager
def watched(pair: Pair, what: str) -> Iterator[Watch]:
    """Print what the client saw meanwhile."""
    with Watch(pair) as watch:
        yield watch
    print(f"{what}: {watch.silence:.0f} ms without an answer, both had the VIP for {watch.both * 1000:.0f} ms")
