"""The director whose instructions are counted, the boxes that it can be, and what goes through it.

The same guest is one box after the other, so that all figures are of one kernel in one run; the stock one is started
anew, as our own kernel does not clear memory before use (OUR_WORDS):
  ours    the appliance as its applier configured it
  stock   Debian as it is set up in ten minutes: its settings, and rules that keep state and name one thing a line
  bare    no rules at all, settings of ours: the least that a router of this kernel can do
The services and the real servers are the same; in `stock` and `ours` IPVS's own table is, too.

What runs beside the data path is stopped (web page, health checks, the applier), and what still runs is counted before
each load and taken off. Idle instructions could be left in by making the load longer; but then a slow machine, on which
a connection takes longer, would show more of them.
"""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from bench.counting import Counting, Counts, per_unit
from bench.neighbours import SERVERS
from bench.settings import Settings
from bench.stage import PAGE, PORT, WAYS, Stage, booted, service
from board.machines.director import Director, wish

from bench import counting, neighbours
from lbconfig.model.firewall import Firewall, Rule, RuleProtocol, Where
from lbconfig.model.snapshot import Protocol, Snapshot
from lbconfig.render import nftables

COUNT = 3  # real servers
ROUTED = 8010  # of servers that packets are routed to: what comes from the port of a service, IPVS must know
UDP = 8003  # datagrams are sent to it, and nobody answers
LOCAL = "9001-9009"  # ports of balancers that run on the director
# More addresses of the servers: the answers of the first kind go past the director, as those of a VIP do.
BESIDE, THROUGH = "10.3.0.1{}", "10.4.0.1{}"
FORGET = 1  # seconds after which an ended connection is forgotten: its end belongs to its cost
TAIL = 1.5  # seconds after a load until that has happened
AT_ONCE = 64  # connections
ROUNDS = 3  # of a quick run, too: how far the counts differ is a figure of its own
BURST, PAUSE = 32, 0.02  # datagrams at once, and seconds between
QUIET = "for one in web applier ldirectord nginx sorry time bootcheck; do sv down /etc/sv/$one /run/service/$one; done"
# As every processor of the last fifteen years. Without SSSE3 the link of a pair takes the slow form of its cipher.
PROCESSOR = "qemu64,+ssse3"
WORDS = "mitigations=auto"  # as every kernel has it that nobody told otherwise
OUR_WORDS = f"{WORDS} init_on_alloc=0"  # as our own kernel is built; Debian's is told so
MORE_ADDRESSES = """
ip -n rs$1 addr add 10.3.0.1$1/32 dev lo
ip -n rs$1 addr add 10.4.0.1$1/32 dev lo
ip -n rs$1 rule add from 10.3.0.0/24 lookup 100
"""
# A socket that nobody reads takes datagrams until it is full, and says nothing to those that come then.
TAKE = "import socket,time; s=socket.socket(2,2); s.bind(('',{port})); time.sleep(9999)"
SEND = """
import socket, time
many = [socket.socket(2, 2) for _ in range(64)]
end, sent, places = time.monotonic() + {seconds}, 0, {places}
while time.monotonic() < end:
    for _ in range({burst}):
        many[sent % 64].sendto(bytes(100), places[sent % 64 % len(places)])
        sent += 1
    time.sleep({pause})
print(sent)
"""
SETTINGS_OF_STOCK = {  # of the kernel, or where it has one of systemd (sysctl.d/50-default.conf)
    "net.ipv4.ip_early_demux": 1,
    "net.ipv4.vs.snat_reroute": 1,
    **{f"net.ipv4.conf.{place}.rp_filter": 2 for place in ("all", "eth1", "eth2")},
}
FORGED = tuple(key for key in SETTINGS_OF_STOCK if key.endswith("rp_filter"))
ALSO_ROUTES = "ours that routes"  # it has a rule about what is routed, and so tracks connections
ONE_INTERFACE = "ours with one interface"  # there nobody can come in by a wrong one, so senders are not checked
RULES_OF_STOCK = f"""flush ruleset
table inet filter {{
	chain input {{
		type filter hook input priority filter; policy drop;
		iif lo accept
		ct state established,related accept
		ip protocol icmp accept
		tcp dport 22 accept
		tcp dport 443 accept
		tcp dport {PORT} accept
		tcp dport {LOCAL} accept
		udp dport {UDP} accept
	}}
	chain forward {{
		type filter hook forward priority filter; policy drop;
		ct state established,related accept
		ip saddr 10.2.0.0/24 accept
		ip daddr 10.2.0.0/24 accept
		ip daddr {{ 10.3.0.0/24, 10.4.0.0/24 }} accept
		ip saddr {{ 10.3.0.0/24, 10.4.0.0/24 }} accept
	}}
	chain output {{
		type filter hook output priority filter; policy accept;
	}}
}}
"""


def snapshot(routes: bool = False) -> Snapshot:
    """Services of each way, over TCP and UDP, and a rule for balancers on the box; `routes`: one for what is routed."""
    services = []
    for number, way in enumerate(WAYS, 1):
        datagrams = service(number + 10, way, COUNT, UDP)
        services += [service(number, way, COUNT), dataclasses.replace(datagrams, protocol=Protocol.UDP)]
    rules = (
        Rule(1, "balancers", where=Where.BOX, protocol=RuleProtocol.TCP, ports=LOCAL),
        Rule(2, "routed", where=Where.THROUGH),
    )
    return dataclasses.replace(wish(*services), firewall=Firewall(rules if routes else rules[:1]))


Value = TypeVar("Value")


@dataclass(frozen=True)
class Cost:
    """Of one load: instructions for each connection, or for each datagram, and what went through."""

    counts: Counts
    units: int
    failed: int
    packets: float  # that the director took in for each unit
    idle: float  # instructions a second while nothing went through

    @property
    def all(self) -> float:
        return self.counts.all

    def said(self) -> str:
        return (
            f"{self.all:,.0f} instructions ({self.counts.programs:,.0f} of programs; {self.units} done, {self.failed} "
            f"failed, {self.packets:.1f} packets each; idle {self.idle:,.0f} a second)"
        )


@dataclass
class CountedStage:
    stage: Stage
    counting: Counting

    @property
    def director(self) -> Director:
        return self.stage.director

    def connections(self, *places: str, seconds: float, size: int = PAGE, at_once: int = AT_ONCE) -> Cost:
        """HTTP/1.0, a new connection for each page of `size` bytes."""

        def load() -> tuple[int, int]:
            log = self.stage.load(*places, seconds=seconds, at_once=at_once, size=size, timeout=3.0).log
            return log.replies + log.late, log.failed

        return self.cost(load)

    def datagrams(self, *places: str, seconds: float) -> Cost:
        """Of 100 bytes, from 64 ports. What counts is what the director passes on."""
        pairs = [(place.partition(":")[0], int(place.partition(":")[2])) for place in places]
        program = SEND.format(seconds=seconds, places=pairs, burst=BURST, pause=PAUSE)
        command = ["ip", "netns", "exec", "client", sys.executable, "-c", program]

        def load() -> tuple[int, int]:
            before = self.packets("eth1", "tx")
            done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=seconds + 60)
            passed = self.packets("eth1", "tx") - before
            return passed, max(0, int(done.stdout) - passed)

        return self.cost(load)

    def cost(self, load: Callable[[], tuple[int, int]]) -> Cost:
        """`load` returns how many units went through, and how many failed. Raises ValueError where none did."""
        idle, idle_seconds, _ = self.counted(lambda: time.sleep(TAIL))
        before = self.taken_in()

        def loaded() -> tuple[int, int]:
            passed = load()
            time.sleep(TAIL)
            return passed

        used, seconds, (units, failed) = self.counted(loaded)
        packets = self.taken_in() - before
        counts = per_unit(used, seconds, idle, idle_seconds, units)
        return Cost(counts, units, failed, packets / units, idle.all / idle_seconds)

    def counted(self, action: Callable[[], Value]) -> tuple[Counts, float, Value]:
        before, began = self.counting.read(), time.monotonic()
        result = action()
        return self.counting.read() - before, time.monotonic() - began, result

    def taken_in(self) -> int:
        return self.packets("eth1", "rx") + self.packets("eth2", "rx")

    def packets(self, card: str, way: str) -> int:
        return int(self.director.read(f"/sys/class/net/{card}/statistics/{way}_packets"))

    # --- which box it is ---

    def become(self, box: str) -> None:
        """ "ours", ALSO_ROUTES, ONE_INTERFACE, "stock" or "bare"."""
        self.director.succeed(f"sysctl -qp /run/bench/{'stock' if box == 'stock' else 'ours'}.sysctl")
        if box == ONE_INTERFACE:
            self.director.succeed(f"sysctl -q {' '.join(f'{key}=0' for key in FORGED)}")
        rules = "ours" if box == ONE_INTERFACE else box
        self.director.succeed("nft flush ruleset" if box == "bare" else f"nft -f '/run/bench/{rules}.nft'")

    def rules(self, text: str) -> None:
        """Of nft, on top of what there is."""
        self.director.succeed(["nft", "-f", "-"], stdin=text.encode())


def prepare(stage: Stage) -> None:
    """Configure the box as an admin does, set up the servers, note what the box is, and end what else runs on it."""
    director, near = stage.director, stage.near
    stage.apply(snapshot())
    stage.serve()
    near.serve("serve", ROUTED)
    for number in range(1, COUNT + 1):
        neighbours.run(MORE_ADDRESSES, str(number))
        command = ["ip", "netns", "exec", f"rs{number}", sys.executable, "-c", TAKE.format(port=UDP)]
        near.serving.append(subprocess.Popen(command))
        for address in (BESIDE, THROUGH):
            director.succeed(f"ip route replace {address.format(number)} via {SERVERS[number - 1]}")
    neighbours.run("for one in 3 4; do ip -n client route add 10.$one.0.0/24 via 10.1.0.1; done")
    director.succeed(f"{QUIET} >/dev/null 2>&1; ipvsadm --set 900 {FORGET} {FORGET}; mkdir -p /run/bench")
    director.succeed(
        "set -e; (echo flush ruleset; cat /run/fairlead/nftables.conf) >/run/bench/ours.nft; "
        f"sysctl {' '.join(SETTINGS_OF_STOCK)} >/run/bench/ours.sysctl"
    )
    director.write("/run/bench/stock.sysctl", "".join(f"{key}={value}\n" for key, value in SETTINGS_OF_STOCK.items()))
    director.write("/run/bench/stock.nft", RULES_OF_STOCK)
    director.write(f"/run/bench/{ALSO_ROUTES}.nft", f"flush ruleset\n{nftables.render(snapshot(routes=True))}")
    time.sleep(10)  # until what was stopped has ended


@contextmanager
def counted_stage(settings: Settings, words: str = WORDS, given: bool = False) -> Iterator[CountedStage]:
    """A director that is booted and prepared; `words` are more for its kernel; `given`: from the image of IMAGE=."""
    settings.stages.close()
    with tempfile.TemporaryDirectory(prefix="fairlead-") as folder:
        file = Path(folder, "counts")
        devices = counting.plugin_words(file)
        image, say = settings.image, settings.say
        with booted(image, say, devices=devices, kernel_words=words, processor=PROCESSOR, given=given) as stage:
            prepare(stage)
            yield CountedStage(stage, Counting(file))
