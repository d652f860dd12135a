"""Health checks at size: ldirectord as it comes, without and with fork=yes, with our module, and with agents besides.

    make bench-health [SERVERS="50 200 1000"]

All in one run. Two guests: the appliance, and one that plays all real servers. All ways get the same services with ten
real servers each, HTTP checks every 2 s, timeout 2 s, down after 2 failures, and find the IPVS table loaded with
every server up, as after an apply. What is measured comes from outside: the servers write down when they were
asked, and the kernel's table tells when a server has left.

    first round    seconds from the start of ldirectord until every server was asked
    between        seconds from one check of a server to the next: median and longest over all servers
    leaves         seconds until a server that falls silent has weight 0: median and longest of DEATHS
    memory         MiB of all its processes (proportional set size)
    agents         seconds from one question to an agent to the next, on average, with all servers up; asked for are 5

`between` and `leaves` come twice: with all servers up, and with one in twenty silent for a while. Emulated
processors (TCG) are many times slower than real ones, so only figures of one run compare.
"""

from __future__ import annotations

import itertools
import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Container, Set
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from board.lab.build import build
from board.machines.director import Director, wish
from board.machines.lab import Lab, boot, make_lab
from board.machines.wait import WaitedInVain, until

from lbconfig.model.snapshot import (
    Agent,
    AgentKind,
    CheckKind,
    HealthCheck,
    RealServer,
    Scheduler,
    Snapshot,
    VirtualService,
)
from lbconfig.render import ldirectord
from lbconfig.wanted import table as ipvs

SERVERS = "10.2.0.100"
FIRST_PORT = 10_000
CHECK = HealthCheck(CheckKind.HTTP, path="/health", expect="ok", interval=2, timeout=2, failures=2)
PATIENCE = 180  # seconds for the first round, and for a box that is busy with it to answer us
WATCHED = 40  # seconds over which rounds are looked at
DEATHS = 5
DEATH = 120  # seconds after which nobody waits for a server to leave
MODULE = "PERL5OPT=-Mfairlead PERL5LIB=/usr/lib/fairlead/perl"
WAYS = {
    "plain": ("", "fork=no"),
    "fork": ("", "fork=yes"),
    "ours": (MODULE, "fork=yes"),
    "agents": (MODULE, "fork=yes"),
}
AGENT = Agent(AgentKind.TEXT, port=3334, interval=5)  # the world's own agents have 3333
# The processes of its group: the third number behind the name is the group's.
MEMORY = """
read -r group </run/bench.pid
for folder in /proc/[0-9]*; do
    read -r line <$folder/stat && set -- ${line##*) } && [ "$3" = "$group" ] && cat $folder/smaps_rollup
done 2>/dev/null; true
"""


@dataclass
class Result:
    first: float = 0.0
    between: str = "-"
    between_silent: str = "-"
    leaves: str = "-"
    leaves_silent: str = "-"
    memory: float = 0.0
    agents: str = "-"

    def line(self, count: int, way: str) -> str:
        first = f"{self.first:.1f}" if self.first else f"> {PATIENCE}"
        return (
            f"{count:7} {way:6} {first:>11} {self.between:>13} {self.leaves:>13} {self.between_silent:>14}"
            f" {self.leaves_silent:>13} {self.memory:8.0f} {self.agents:>8}"
        )


HEAD = "servers        first round       between        leaves   between, 5 %   leaves, 5 %   memory   agents"


def main(counts: list[int]) -> None:
    image = build()
    with tempfile.TemporaryDirectory(prefix="fairlead-") as folder:
        lab = make_lab(Path(folder), image)
        with lab.world, lab.director:
            boot(lab)
            lab.director.apply(wish())
            lab.director.succeed("sv -w 10 down /run/service/ldirectord")
            start_servers(lab, max(counts))
            print(HEAD, flush=True)
            for count in counts:
                for way in WAYS:
                    print(measure(lab, count, way).line(count, way), flush=True)


def start_servers(lab: Lab, count: int) -> None:
    world = lab.world
    world.write("/run/servers.py", Path(__file__).with_name("health_servers.py").read_text())
    world.succeed(f"ip -n rs1 addr add {SERVERS}/24 dev eth0")
    world.succeed(
        "ip netns exec rs1 nft 'table inet silence { set dead { type inet_service; }; chain input {"
        " type filter hook input priority -300; policy accept; tcp dport @dead drop; }; }'"
    )
    world.succeed(
        f"ulimit -n 65536; ip netns exec rs1 python3 /run/servers.py /run/asked {SERVERS} {count} {FIRST_PORT}"
        f" {AGENT.port} >/run/servers.log 2>&1 &"
    )
    last = FIRST_PORT + count - 1
    world.wait_until_succeeds(f"ip netns exec rs1 ss -Hlnt 'sport = :{last}' | grep -q {last}", PATIENCE)


def services(count: int, agents: bool) -> Snapshot:
    """The agent of all servers says another share to each question."""
    agent = AGENT if agents else Agent()
    return wish(
        *(
            VirtualService(
                first + 1, f"s{first}", "10.1.0.100", 20_000 + first, check=CHECK, agent=agent, scheduler=Scheduler.WRR,
                real_servers=tuple(
                    RealServer(100_000 + number, SERVERS, FIRST_PORT + number)
                    for number in range(first, min(first + 10, count))
                ),
            )
            for first in range(0, count, 10)
        )
    )  # fmt: skip


def measure(lab: Lab, count: int, way: str) -> Result:
    director, world, result = lab.director, lab.world, Result()
    snapshot = services(count, way == "agents")
    module, fork = WAYS[way]
    text = (
        ldirectord.render(snapshot)
        .replace("fork=yes", fork)
        .replace("\n\n", f"\ncheckinterval={CHECK.interval}\n\n", 1)
    )
    director.write("/run/bench.cf", text)
    director.write("/run/bench.rules", ipvs.render(snapshot))
    director.succeed("ipvsadm -C && ipvsadm -R </run/bench.rules")
    revive(lab)
    world.succeed("truncate -s 0 /run/asked")
    started = float(world.succeed("date +%s.%N"))
    director.succeed(
        f"PERLIO=perlio {module} chpst -P /usr/sbin/ldirectord /run/bench.cf start >/run/bench.log 2>&1 &"
        " echo $! >/run/bench.pid"
    )
    try:
        try:
            until("the first round", lambda: len(asked(lab)) == count, PATIENCE, 0.5)
        except WaitedInVain:
            result.memory = memory(director)
            return result
        result.first = max(times[0] for times in asked(lab).values()) - started
        result.between = rounds(lab)
        if questions := asked(lab, (AGENT.port,)).get(AGENT.port):
            result.agents = f"{WATCHED * count / len(questions):.1f}"
        result.leaves = deaths(lab, count, set())
        silent = set(random.Random(count).sample(range(count), count // 20))
        silence(lab, silent)
        time.sleep(2 * (CHECK.interval + CHECK.timeout) * CHECK.failures)
        result.between_silent, result.leaves_silent = rounds(lab, silent), deaths(lab, count, silent)
        result.memory = memory(director)
        return result
    finally:
        director.succeed("kill -KILL -$(cat /run/bench.pid)", PATIENCE)
        revive(lab)


def asked(lab: Lab, ports: Container[int] = range(FIRST_PORT, 65536)) -> dict[int, list[float]]:
    """Port -> when it was asked; those of the servers, unless others are named."""
    found = defaultdict(list)
    for line in lab.world.read("/run/asked").splitlines():
        seconds, _, port = line.partition(" ")
        if int(port) in ports:
            found[int(port)].append(float(seconds))
    return found


def rounds(lab: Lab, silent: Set[int] = frozenset()) -> str:
    lab.world.succeed("truncate -s 0 /run/asked")
    time.sleep(WATCHED)
    gaps = []
    for port, times in asked(lab).items():
        if port - FIRST_PORT not in silent:
            gaps += [after - before for before, after in itertools.pairwise(times)]
    return f"{statistics.median(gaps):.1f} / {max(gaps):.1f}" if gaps else f"> {WATCHED}"


def deaths(lab: Lab, count: int, silent: set[int]) -> str:
    chance = random.Random(len(silent) + 1)
    took = []
    for number in chance.sample(sorted(set(range(count)) - silent), DEATHS):
        time.sleep(chance.uniform(0, CHECK.interval))
        place = f"{SERVERS}:{FIRST_PORT + number}"
        start = time.monotonic()
        silence(lab, {number})
        try:
            until(f"{place} gone", partial(has_weight, lab.director, place, 0), DEATH, 0.1)
        except WaitedInVain:
            return f"> {DEATH}"
        took.append(time.monotonic() - start)
        revive(lab, {number})
    return f"{statistics.median(took):.1f} / {max(took):.1f}"


def weight(director: Director, place: str) -> int:
    return int(director.succeed(f"ipvsadm -Ln | grep -F '{place} '", PATIENCE).split()[3])


def has_weight(director: Director, place: str, wanted: int) -> bool:
    return weight(director, place) == wanted


def silence(lab: Lab, numbers: set[int]) -> None:
    ports = ", ".join(str(FIRST_PORT + number) for number in numbers)
    lab.world.succeed(["ip", "netns", "exec", "rs1", "nft", f"add element inet silence dead {{ {ports} }}"])


def revive(lab: Lab, numbers: Set[int] = frozenset()) -> None:
    """All, where none is named."""
    ports = ", ".join(str(FIRST_PORT + number) for number in numbers)
    words = f"delete element inet silence dead {{ {ports} }}" if numbers else "flush set inet silence dead"
    lab.world.succeed(["ip", "netns", "exec", "rs1", "nft", words])


def memory(director: Director) -> float:
    lines = director.succeed(MEMORY, PATIENCE).splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [50, 200, 1000])
