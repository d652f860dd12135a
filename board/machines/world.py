"""The guest that plays one client and three real servers (board/lab/world)."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from board.lab.build import Image
from board.machines.link import LinkEnd, UserNetwork
from board.machines.machine import BOOT, WORLD, CommandFailed, Machine
from board.machines.spent import BOOTING, spent
from board.machines.wait import PATIENCE, until

SERVERS = {"rs1": "10.2.0.11", "rs2": "10.2.0.12", "rs3": "10.2.0.13"}
SERVERS6 = {"rs1": "2001:db8:2::11", "rs2": "2001:db8:2::12", "rs3": "2001:db8:2::13"}
CLIENT = "/usr/lib/fairlead/world/client.py"
COMMANDS = "/run/world/commands"  # where a client that is loaded already takes them
DIRECTOR = "10.2.0.1"  # its address among the servers; clients keep their own
# Before SILENCE: a check that nobody answers counts, too.
CHECKS = (
    "table inet checks { counter seen {}; counter asked {}; chain input { type filter hook input priority -400; "
    f"ip saddr {DIRECTOR} tcp flags syn / fin,syn,rst,ack counter name seen; "
    f"ip saddr {DIRECTOR} tcp flags & psh == psh counter name asked; }}; }}"
)
SILENCE = "table inet silence { chain input { type filter hook input priority -300; policy drop; }; }"


class World(Machine):
    def __init__(
        self, folder: Path, image: Image, nics: tuple[UserNetwork | LinkEnd, ...], name: str = "world"
    ) -> None:
        super().__init__(name, folder, image, layers=WORLD, nics=nics, memory=256)
        self.held = itertools.count(1)

    # --- the client ---

    def get(self, target: str, count: int = 1, source: str = "", timeout: float = 120) -> list[str]:
        """Who answered each of `count` HTTP requests to "10.1.0.100:80/path"; "error: …" where nobody did."""
        return self._client("get", target, str(count), *([source] if source else []), timeout=timeout)

    def count(self, target: str, count: int) -> Counter[str]:
        """How many of `count` HTTP requests each server answered."""
        return Counter(self.get(target, count))

    def ask(self, target: str, count: int = 1, port: int = 0, timeout: float = 120) -> list[str]:
        """Who answered each of `count` datagrams to "10.1.0.100:7000", sent from one port or from a new one each."""
        return self._client("ask", target, str(count), str(port), timeout=timeout)

    def talk(self, target: str, count: int = 1, timeout: float = 120) -> list[str]:
        """Who answered in each of `count` SCTP associations with "10.1.0.100:7000"."""
        return self._client("talk", target, str(count), timeout=timeout)

    def datagrams(self, name: str) -> int:
        """How many datagrams this real server has taken in (/proc/net/snmp)."""
        words = self.succeed(f"ip netns exec {name} grep ^Udp: /proc/net/snmp").split()
        return int(words[words.index("InDatagrams") + len(words) // 2])

    def load(self, target: str, clients: int, seconds: float, before: float = 0) -> Counter[str]:
        """How many requests each server answered to clients that each ask again as soon as they are answered.

        They begin so many seconds `before` anything counts.
        """
        words = [target, *map(str, (clients, seconds, before))]
        return Counter(self._client("load", *words, timeout=before + seconds + 60))

    def pace(self, name: str, seconds: float) -> None:
        """From now on this server takes so long for an answer to "/work"."""
        self.write(f"/run/world/{name}.pace", str(seconds))

    def agent_says(self, name: str, text: str) -> None:
        """What this server's agent says from now on; empty: its load."""
        self.succeed(f"rm -f /run/world/{name}.agent")
        if text:
            self.write(f"/run/world/{name}.agent", text)

    def hold(self, target: str, count: int) -> Held:
        """Open long TCP connections to the line server behind "10.1.0.100:7000" and keep talking over them."""
        file = f"/run/world/held-{next(self.held)}"
        self.succeed(
            f"ip netns exec client python3 {CLIENT} hold {target} {count} {file} >{file}.log 2>&1 & echo $! >{file}.pid"
        )
        return Held(self, file)

    def download(self, target: str) -> Callable[[], dict]:
        """Begin a download of many seconds; calling the answer waits for its end and gives the client's report."""
        file = f"/run/world/download-{next(self.held)}"
        command = f"ip netns exec client python3 {CLIENT} download {target} >{file} 2>{file}.log"
        self.succeed(f"( {command}; touch {file}.end ) >/dev/null 2>&1 &")
        return lambda: json.loads(
            self.wait_until_succeeds(f"[ -e {file}.end ] && cat {file}.log >&2 && cat {file}", 120)
        )

    def repeat(self, way: str, target: str) -> Repeated:
        """Begin to "get" or "ask" again and again, one after the other."""
        file = f"/run/world/repeated-{next(self.held)}"
        self.succeed(
            f"ip netns exec client python3 {CLIENT} repeat {way} {target} {file} >{file}.log 2>&1 & echo $! >{file}.pid"
        )
        return Repeated(self, file)

    def in_client(self, command: str, timeout: float = 60) -> str:
        """Run a line for sh in the client's network; its output."""
        return self.succeed(["ip", "netns", "exec", "client", "sh", "-c", command], timeout)

    def _client(self, *words: str, timeout: float) -> Any:
        try:
            return json.loads(self.exchange(COMMANDS, json.dumps(words), timeout))
        except CommandFailed as error:
            raise CommandFailed(f"{words}: {error}\n{self.read(f'{COMMANDS}.log')}") from None

    # --- the real servers ---

    def stop_server(self, name: str) -> None:
        """Its ports are closed and its connections gone."""
        self.succeed(["sv", "-w", "10", "stop", f"/run/service/{name}"])

    def start_server(self, name: str) -> None:
        self.succeed(["sv", "up", f"/run/service/{name}"])
        self.wait_until_succeeds(f"ip netns exec {name} ss -Hlnt | grep -q :80")

    def silence(self, name: str) -> None:
        """It swallows every packet, as a machine that lost its power behind a switch."""
        self.succeed(["ip", "netns", "exec", name, "nft", SILENCE])

    def unsilence(self, name: str) -> None:
        self.succeed(["ip", "netns", "exec", name, "nft", "delete table inet silence"])

    def count_checks(self, name: str) -> None:
        """From now on `checks` tells how often the director began to check it."""
        self.succeed(["ip", "netns", "exec", name, "nft", CHECKS])

    def checks(self, name: str, counter: str = "seen") -> int:
        """Over TCP; with the counter "asked" only those that said something."""
        listed = self.succeed(["ip", "netns", "exec", name, "nft", "list", "counter", "inet", "checks", counter])
        return int(listed.split("packets")[1].split()[0])

    def give_servers_a_router(self) -> None:
        """Their way out is the client itself, at 10.2.0.254 and 2001:db8:2::254 in their network: past the director."""
        self.succeed(
            "set -e; ip link add v-client2 type veth peer name eth1 netns client; "
            "ip link set v-client2 master servers up; "
            "ip -n client addr add 10.2.0.254/24 dev eth1; ip -n client link set eth1 up; "
            "ip -n client addr add 2001:db8:2::254/64 dev eth1 nodad; "
            "for name in rs1 rs2 rs3; do ip -n $name route replace default via 10.2.0.254; "
            "ip -n $name -6 route replace default via 2001:db8:2::254; done"
        )

    @spent(BOOTING)
    def wait_for_servers(self, timeout: float = BOOT) -> None:
        self.wait_for_agent(timeout)
        listening = " && ".join(f"ip netns exec {name} ss -Hlnt | grep -q :80" for name in SERVERS)
        self.wait_until_succeeds(f"{listening} && {{ [ ! -e /sys/class/net/eth1 ] || [ -S {COMMANDS} ]; }}", timeout)


def until_answer(world: World, target: str, answer: str) -> None:
    """Wait until a request to "10.1.0.100:80/path" is answered so."""
    until(f"{answer!r} from {target}", lambda: world.get(target) == [answer])


class Repeated:
    """What `World.repeat` began."""

    def __init__(self, world: World, file: str) -> None:
        self.world = world
        self.file = file

    def report(self) -> dict:
        """{"count": number, "failed": [[second since 1970, reason], …], "slowest": seconds, "slow": …, "stalls": …}.

        At most a second old. `slow`: [second since 1970, seconds] of requests that took more than a second; `stalls`:
        the same of moments in which the client's own machine stood still.
        """
        return json.loads(self.world.wait_until_succeeds(["cat", self.file]))

    def end(self) -> dict:
        """As report() has it, of all of them."""
        self.world.succeed(f"kill $(cat {self.file}.pid)")
        self.world.wait_until_succeeds(f"! kill -0 $(cat {self.file}.pid)")
        return json.loads(self.world.read(self.file))


class Held:
    """Connections that `World.hold` opened."""

    def __init__(self, world: World, file: str) -> None:
        self.world = world
        self.file = file

    def report(self) -> dict:
        """{"open": number, "broken": [reasons], "servers": [names], "shares": {name: number}, "rounds": number}.

        At most a second old.
        """
        return json.loads(self.world.wait_until_succeeds(["cat", self.file]))

    def next_round(self, timeout: float = PATIENCE) -> dict:
        """The report after every connection was spoken over at least once more from now on."""
        rounds = self.report()["rounds"] + 2
        return until(
            f"round {rounds} of the held connections",
            lambda: (report := self.report())["rounds"] >= rounds and report,
            timeout,
        )

    def end(self) -> dict:
        """Close them; the last report."""
        report = self.next_round()
        self.world.succeed(f"kill $(cat {self.file}.pid)")
        return report
