"""Health checks at size: ldirectord as it comes, without and with fork=yes, with our module, and with agents besides.

    make bench-health [SERVERS="50 200 1000"] [WAYS="plain ours agents"] [BEFORE=v1.2] [PATIENCE=600]

`BEFORE` is a commit, whose checks (the Perl modules) run as two more ways: "before", and "before-agents" with agents.
All in one run. Two guests: the appliance, and one that plays all real servers. All ways get the same services with ten
real servers each, HTTP checks every 2 s, timeout 2 s, down after 2 failures, and find the IPVS table loaded with
every server up, as after an apply. What is measured comes from outside: the servers write down when they were
asked, and the kernel's table tells when a server has left.

    first round    seconds from the start of ldirectord until every server was asked; nobody waits for it any longer
                   than PATIENCE, 180 s where it is not said: a plain ldirectord with 1,000 servers takes more
    between        seconds from one check of a server to the next: median and longest over all servers
    leaves         seconds until a server that falls silent has weight 0: median and longest of DEATHS
    memory         MiB of all its processes (proportional set size)
    agents         seconds from one question to an agent to the next, on average, with all servers up; asked for are 5

`between` and `leaves` come twice: with all servers up, and with one in twenty silent for a while. Emulated
processors (TCG) are many times slower than real ones, so only figures of one run compare: after each number of servers
come the medians of each way as parts of those of the first one, which is plain unless WAYS says otherwise; and those
of ours as parts of those before.
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Container, Sequence, Set
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
# Who was asked and when, in the world; with a thousand servers the first of them has megabytes after some minutes.
ASKED, FIRST = "/run/asked", "/run/asked.first"
CHECK = HealthCheck(CheckKind.HTTP, path="/health", expect="ok", interval=2, timeout=2, failures=2)
PATIENCE = 180  # seconds for the first round where nothing else is said, and for a box that is busy with it to answer
WATCHED = 40  # seconds over which rounds are looked at
DEATHS = 5
DEATH = 120  # seconds after which nobody waits for a server to leave
PERL = "overlay/usr/lib/fairlead/perl"
EARLIER = "/run/before"
OURS, BEFORE = (f"PERL5OPT=-Mfairlead PERL5LIB={folder}" for folder in ("/usr/lib/fairlead/perl", f"{EARLIER}/{PERL}"))


@dataclass(frozen=True)
class Way:
    module: str = ""  # of ours, in its environment
    fork: str = "fork=yes"
    agents: bool = False


WAYS = {
    "plain": Way(fork="fork=no"),
    "fork": Way(),
    "ours": Way(OURS),
    "agents": Way(OURS, agents=True),
    "before": Way(BEFORE),
    "before-agents": Way(BEFORE, agents=True),
}
USUAL = ("plain", "fork", "ours", "agents")
# Which way is compared with which other one, beside the first of all.
ALSO = {"ours": "before", "agents": "before-agents"}
AGENT = Agent(AgentKind.TEXT, port=3334, interval=5)  # the world's own agents have 3333
# The processes of its group: the third number behind the name is the group's.
MEMORY = """
read -r group </run/bench.pid
for folder in /proc/[0-9]*; do
    read -r line <$folder/stat && set -- ${line##*) } && [ "$3" = "$group" ] && cat $folder/smaps_rollup
done 2>/dev/null; true
"""


@dataclass(frozen=True)
class Span:
    """Seconds that something took; `beyond`: nobody waited any longer."""

    median: float
    longest: float = 0.0
    beyond: bool = False

    def __str__(self) -> str:
        if self.beyond:
            return f"> {self.median:.0f}"
        return f"{self.median:.1f} / {self.longest:.1f}" if self.longest else f"{self.median:.1f}"

    @classmethod
    def of(cls, seconds: list[float]) -> Span:
        return cls(statistics.median(seconds), max(seconds))


@dataclass
class Result:
    first: Span | None = None
    between: Span | None = None
    leaves: Span | None = None
    between_silent: Span | None = None
    leaves_silent: Span | None = None
    memory: float = 0.0
    agents: float = 0.0

    def spans(self) -> list[Span | None]:
        return [self.first, self.between, self.leaves, self.between_silent, self.leaves_silent]

    def line(self, count: int, way: str) -> str:
        cells = _cells(["-" if one is None else str(one) for one in self.spans()])
        return f"{count:7} {way:15}{cells} {self.memory:8.0f} {f'{self.agents:.1f}' if self.agents else '-':>8}"


def _cells(texts: Sequence[str]) -> str:
    return "".join(f"{text:>{width}}" for text, width in zip(texts, (12, 14, 14, 14, 14), strict=True))


COLUMNS = ("first round", "between", "leaves", "between, 5 %", "leaves, 5 %")
HEAD = f"{'servers':<23}{_cells(COLUMNS)} {'memory':>8} {'agents':>8}"


def share(one: Span | None, other: Span | None) -> str:
    """The median of one as a part of the other's; a bound where nobody waited for the end of one of them."""
    if one is None or other is None or (one.beyond and other.beyond) or not other.median:
        return "-"
    sign = "> " if one.beyond else "< " if other.beyond else ""
    return f"{sign}{one.median / other.median:.2f}"


def comparison(results: dict[str, Result]) -> list[str]:
    """A line for each way beside the first one, and for ours beside those before."""
    first, *others = results
    pairs = [(way, first) for way in others]
    pairs += [(way, other) for way, other in ALSO.items() if way in results and other in results and other != first]
    return [
        f"{f'{way} / {other}':<23}"
        + _cells([share(*pair) for pair in zip(results[way].spans(), results[other].spans(), strict=True)])
        for way, other in pairs
    ]


def main(counts: list[int], ways: list[str], before: str, patience: int) -> None:
    modules = earlier(before) if before else {}
    image = build()
    with tempfile.TemporaryDirectory(prefix="fairlead-") as folder:
        lab = make_lab(Path(folder), image)
        with lab.world, lab.director:
            boot(lab)
            lab.director.apply(wish())
            lab.director.succeed("sv -w 10 down /run/service/ldirectord")
            for path, text in modules.items():
                lab.director.succeed(["mkdir", "-p", str(Path(f"{EARLIER}/{path}").parent)])
                lab.director.write(f"{EARLIER}/{path}", text)
            start_servers(lab, max(counts))
            print(HEAD, flush=True)
            for count in counts:
                results = {}
                for way in ways:
                    results[way] = measure(lab, count, way, patience)
                    print(results[way].line(count, way), flush=True)
                print("\n".join(comparison(results)), flush=True)


def earlier(commit: str) -> dict[str, str]:
    """The Perl modules as they were."""
    git = partial(subprocess.run, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=True)
    names = git(["git", "ls-tree", "-r", "--name-only", commit, f"{PERL}/"]).stdout.split()
    if not names:
        raise SystemExit(f"{commit} has no modules in {PERL}")
    return {name: git(["git", "show", f"{commit}:{name}"]).stdout for name in names}


def start_servers(lab: Lab, count: int) -> None:
    world = lab.world
    world.write("/run/servers.py", Path(__file__).with_name("health_servers.py").read_text())
    world.succeed(f"ip -n rs1 addr add {SERVERS}/24 dev eth0")
    world.succeed(
        "ip netns exec rs1 nft 'table inet silence { set dead { type inet_service; }; chain input {"
        " type filter hook input priority -300; policy accept; tcp dport @dead drop; }; }'"
    )
    world.succeed(
        f"ulimit -n 65536; ip netns exec rs1 python3 /run/servers.py {ASKED} {SERVERS} {count} {FIRST_PORT}"
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


def measure(lab: Lab, count: int, name: str, patience: int) -> Result:
    director, world, result, way = lab.director, lab.world, Result(), WAYS[name]
    snapshot = services(count, way.agents)
    text = (
        ldirectord.render(snapshot)
        .replace("fork=yes", way.fork)
        .replace("\n\n", f"\ncheckinterval={CHECK.interval}\n\n", 1)
    )
    director.write("/run/bench.cf", text)
    director.write("/run/bench.rules", ipvs.render(snapshot))
    director.succeed("ipvsadm -C && ipvsadm -R </run/bench.rules")
    revive(lab)
    world.succeed(f"truncate -s 0 {ASKED} {FIRST}")
    started = float(world.succeed("date +%s.%N"))
    # In the group of the checks, as the service: outside of it, it takes processor and memory from whoever asks.
    director.succeed(
        "{ echo 0 >/sys/fs/cgroup/services/checks/cgroup.procs;"
        f" PERLIO=perlio {way.module} exec chpst -P /usr/sbin/ldirectord /run/bench.cf start; }} >/run/bench.log 2>&1 &"
        " echo $! >/run/bench.pid"
    )
    try:
        try:
            until("the first round", lambda: len(asked(lab, file=FIRST)) == count, patience, 0.5)
        except WaitedInVain:
            result.first = Span(patience, beyond=True)
            result.memory = memory(director)
            return result
        result.first = Span(max(times[0] for times in asked(lab, file=FIRST).values()) - started)
        result.between = rounds(lab)
        if questions := asked(lab, (AGENT.port,)).get(AGENT.port):
            result.agents = WATCHED * count / len(questions)
        result.leaves = deaths(lab, count, set())
        silent = set(random.Random(count).sample(range(count), count // 20))
        silence(lab, silent)
        time.sleep(2 * (CHECK.interval + CHECK.timeout) * CHECK.failures)
        result.between_silent, result.leaves_silent = rounds(lab, silent), deaths(lab, count, silent)
        result.memory = memory(director)
        return result
    finally:
        # A box that is busy with a thousand servers may be too busy to answer at once.
        until("the end of the checks", partial(ended, director), PATIENCE)
        revive(lab)


def ended(director: Director) -> bool:
    director.succeed("kill -KILL -$(cat /run/bench.pid) || true", PATIENCE)
    return True


def asked(lab: Lab, ports: Container[int] = range(FIRST_PORT, 65536), file: str = ASKED) -> dict[int, list[float]]:
    """Port -> when it was asked; those of the servers, unless others are named."""
    found = defaultdict(list)
    for line in lab.world.read(file).splitlines():
        seconds, _, port = line.partition(" ")
        if int(port) in ports:
            found[int(port)].append(float(seconds))
    return found


def rounds(lab: Lab, silent: Set[int] = frozenset()) -> Span:
    lab.world.succeed(f"truncate -s 0 {ASKED}")
    time.sleep(WATCHED)
    gaps = []
    for port, times in asked(lab).items():
        if port - FIRST_PORT not in silent:
            gaps += [after - before for before, after in itertools.pairwise(times)]
    return Span.of(gaps) if gaps else Span(WATCHED, beyond=True)


def deaths(lab: Lab, count: int, silent: set[int]) -> Span:
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
            return Span(DEATH, beyond=True)
        took.append(time.monotonic() - start)
        revive(lab, {number})
    return Span.of(took)


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


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure health checks at size.")
    parser.add_argument("servers", nargs="*", type=int, default=[50, 200, 1000])
    parser.add_argument("--ways", nargs="+", choices=WAYS, metavar="WAY")
    parser.add_argument("--before", default="", metavar="COMMIT")
    parser.add_argument("--patience", type=int, default=PATIENCE, metavar="SECONDS")
    found = parser.parse_args(words)
    older = [name for name in WAYS if WAYS[name].module == BEFORE]
    found.ways = found.ways or [*USUAL, *(older if found.before else ())]
    if not found.before and (asked_for := [name for name in found.ways if name in older]):
        parser.error(f"{' and '.join(asked_for)}: say which commit (BEFORE)")
    return found


if __name__ == "__main__":
    chosen = arguments()
    main(chosen.servers, chosen.ways, chosen.before, chosen.patience)
