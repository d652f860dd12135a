"""Clients and real servers around an emulated director: network namespaces of this machine, not emulated themselves.

A guest that played them would take ten times more of the host's processors than the director, and a measurement would
show its limit instead of the director's. `python -m bench` has put itself into namespaces of its own (`inside`), so
this takes no root, reaches nobody, and everything ends with the program. The director's cards need /dev/net/tun.

    servers   10.2.0.0/24   rs1 … at 10.2.0.11 …; the director 10.2.0.1, in a pair also the second one 10.2.0.2;
                            the client's own leg 10.2.0.254
    clients   10.1.0.0/24   the client at 10.1.0.10 to .13; the director 10.1.0.1
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import compiled

MOST_SERVERS = 8
CLIENTS = 4  # each with an address of its own
SERVERS = tuple(f"10.2.0.{10 + number}" for number in range(1, MOST_SERVERS + 1))
ROUTER = "10.2.0.254"
MARK = "FAIRLEAD_BENCH_INSIDE"  # in the environment of a program that is in its own namespaces
NAMESPACES = ("--user", "--map-root-user", "--net", "--mount", "--pid", "--mount-proc", "--fork", "--kill-child")
TICKS = os.sysconf("SC_CLK_TCK")
COMMAND = 60.0  # seconds

GROUND = f"""
mount -t tmpfs tmpfs /run
ip link set lo up
for name in servers clients; do ip link add $name type bridge; ip link set $name up; done
for name in servers clients; do
    ip tuntap add dev tap-$name mode tap
    ip link set tap-$name master $name up
done
ip tuntap add dev tap-second mode tap
ip link set tap-second master servers up
ip netns add client
ip -n client link set lo up
for name in servers clients; do
    ip link add to-$name type veth peer name $name netns client
    ip link set to-$name master $name up
    ip -n client link set $name up
done
for number in 0 1 2 3; do
    ip -n client addr add 10.1.0.1$number/24 dev clients
    ip -n client addr add 10.2.0.24$number/24 dev servers
done
ip -n client addr add {ROUTER}/24 dev servers
ip netns exec client sysctl -qw net.ipv4.ip_forward=1 net.ipv4.ip_local_port_range='1024 65000'
"""
# Answers of a VIP go to the client past the director, whichever way those of NAT take.
ONE_SERVER = f"""
ip netns add $1
ip link add v-$1 type veth peer name eth0 netns $1
ip link set v-$1 master servers up
ip -n $1 link set lo up
ip -n $1 link set eth0 up
ip -n $1 addr add $2/24 dev eth0
ip -n $1 route add default via 10.2.0.1
ip -n $1 rule add from 10.1.0.0/24 lookup 100
ip -n $1 route add default via {ROUTER} table 100
ip netns exec $1 sysctl -qw net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2 \\
    net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0 net.core.somaxconn=4096
"""


class Failed(OSError):
    """A command on this machine failed; the text is the command and what it said."""


@dataclass(frozen=True)
class TapEnd:
    """A network card of the director's, plugged into a bridge of this machine's; as board.machines.link has others."""

    device: str

    def netdev(self, name: str) -> str:
        return f"tap,id={name},ifname={self.device},script=no,downscript=no"


def inside() -> None:
    """Go on in namespaces of our own: the program is started once more in them, with the same words."""
    if MARK in os.environ:
        run("ip link set lo up")  # pages of a director are asked for at this machine's own address
        return
    words = [sys.executable, "-m", "bench", *sys.argv[1:]]
    os.execvpe("unshare", ["unshare", *NAMESPACES, *words], {**os.environ, MARK: "1"})


def run(script: str, *words: str, timeout: float = COMMAND) -> str:
    """A script for sh; its output. Raises Failed."""
    done = subprocess.run(
        ["sh", "-e", "-c", script, "sh", *words], capture_output=True, text=True, timeout=timeout, check=False
    )
    if done.returncode:
        raise Failed(f"{script.strip()}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Neighbours:
    """Use it as a context: what it started ends with it."""

    def __init__(self) -> None:
        self.serving: list[subprocess.Popen] = []
        self.tunnels: list[subprocess.Popen] = []
        self.servers = 0

    def __enter__(self) -> Neighbours:
        run(GROUND)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        end(self.tunnels)
        names = [f"rs{number}" for number in range(1, self.servers + 1)]
        # Links by name: those of a namespace that is deleted go only when the kernel has the time.
        cables = ["to-servers", "to-clients", *(f"v-{name}" for name in names)]
        run(
            "for name; do ip link del $name; done",
            *cables,
            "servers",
            "clients",
            "tap-servers",
            "tap-clients",
            "tap-second",
        )
        run("for name; do ip netns del $name; done", "client", *names)
        run("umount --recursive --lazy /run")

    def add_servers(self, count: int) -> None:
        """Until there are so many."""
        for number in range(self.servers + 1, count + 1):
            run(ONE_SERVER, f"rs{number}", SERVERS[number - 1])
            self.servers = number

    def give_vip(self, number: int, address: str, tunnel: bool = False) -> None:
        """This server takes what comes for that address, plain or through a tunnel, and does not answer ARP for it."""
        name = f"rs{number}"
        if tunnel and not self.has_tunnel(name):
            self.tunnels.append(self.start(name, "untunnel", "tun0"))
            run("for try in $(seq 50); do ip -n $1 link set tun0 up 2>/dev/null && exit; sleep 0.1; done; exit 1", name)
        run("ip -n $1 addr replace $2/32 dev $3", name, address, "tun0" if tunnel else "lo")

    @staticmethod
    def has_tunnel(name: str) -> bool:
        return "tun0" in run("ip -n $1 -o link", name)

    def serve(self, program: str, *words: object, servers: int = 0) -> None:
        """Start a program on each server, or on the first ones."""
        for number in range(1, (servers or self.servers) + 1):
            self.serving.append(self.start(f"rs{number}", program, *words))

    def stop(self) -> None:
        """End what `serve` started."""
        end(self.serving)

    def start(self, namespace: str, program: str, *words: object, **pipes: Any) -> subprocess.Popen:
        command = ["ip", "netns", "exec", namespace, str(compiled.program(program)), *map(str, words)]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, **({"stdout": subprocess.DEVNULL} | pipes))

    def used(self) -> float:
        """Seconds of processor of the servers' programs; without what the kernel does for them in others' time."""
        return sum(cpu_seconds(one.pid) for one in self.serving)


def end(processes: list[subprocess.Popen]) -> None:
    for one in processes:
        one.kill()
        one.wait()
    processes.clear()


def cpu_seconds(process: int) -> float:
    """Of all its threads, in user and system mode (proc_pid_stat(5), fields 14 and 15)."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS
