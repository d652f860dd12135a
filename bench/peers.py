"""Other balancers on the same director, in the same run: HAProxy, nginx stream, nftables DNAT, keepalived's IPVS."""

from __future__ import annotations

from dataclasses import dataclass

from bench.neighbours import SERVERS
from bench.result import Cell, Measured, Picture, Result, Series, Table
from bench.settings import Settings
from bench.stage import PORT, Stage, services, vip
from board.lab import bench as layer
from board.lab.build import Image

NAME = "peers"
SERVERS_USED = 4
AT_ONCE = 256
VIP = "10.1.0.200"  # of the others
PLACES = tuple(f"{address}:{PORT}" for address in SERVERS[:SERVERS_USED])
METHOD = (
    f"As fast as {AT_ONCE} clients allow: a page of 628 bytes, a new connection for each, {SERVERS_USED} real servers "
    "in turn. All balancers run on the same box, one at a time, with one virtual processor. The box's firewall stays; "
    "the others get one rule in front of it that lets their packets pass, so what it does behind costs them nothing. "
    "nftables DNAT has Linux's connection tracking, which it needs."
)
# What lets the others' packets pass, and the address that they answer at.
OPEN = f"""
ip addr add {VIP}/32 dev eth2
nft insert rule inet fairlead input ip daddr {VIP} counter accept comment '"bench"'
nft insert rule inet fairlead input ip saddr 10.2.0.0/24 counter accept comment '"bench"'
nft insert rule inet fairlead forward counter accept comment '"bench"'
mkdir -p /run/bench
"""
HAPROXY = """global
    maxconn 20000
    nbthread 1
defaults
    mode {mode}
    timeout connect 5s
    timeout client 30s
    timeout server 30s
listen site
    bind {vip}:{port}
    balance roundrobin
{servers}
"""
NGINX = """load_module /usr/lib/nginx/modules/ngx_stream_module.so;
user root;
worker_processes 1;
worker_rlimit_nofile 20000;
pid /run/bench/nginx.pid;
error_log /run/bench/nginx.log crit;
events {{ worker_connections 10000; }}
stream {{
    upstream site {{
{servers}
    }}
    server {{ listen {vip}:{port} backlog=4096; proxy_pass site; }}
}}
"""
DNAT = """table ip bench {{
    chain prerouting {{
        type nat hook prerouting priority dstnat;
        ip daddr {vip} tcp dport {port} dnat to numgen inc mod {count} map {{ {places} }} : {port}
    }}
    chain tracked {{
        type filter hook prerouting priority raw - 10;
        ip saddr 10.2.0.0/24 tcp sport {port} ct zone set 0 comment "the box leaves answers of its servers untracked"
    }}
}}
"""
KEEPALIVED = """virtual_server {vip} {port} {{
    delay_loop 5
    lb_algo rr
    lb_kind {kind}
    protocol TCP
{servers}
}}
"""
CHECKED = "    real_server {address} {port} {{ weight 1\n TCP_CHECK {{ connect_timeout 3 }} }}"


def lines(pattern: str) -> str:
    return "\n".join(
        pattern.format(number=number, address=address, port=PORT)
        for number, address in enumerate(SERVERS[:SERVERS_USED])
    )


@dataclass(frozen=True)
class Peer:
    name: str
    file: str = ""  # its configuration
    start: str = ""  # a line for sh; FILE is that file
    stop: str = ""
    version: str = ""  # a line for sh that prints it


END = "kill $(cat /run/bench/{0}.pid); while kill -0 $(cat /run/bench/{0}.pid); do sleep 0.1; done 2>/dev/null"
PEERS = (
    *(
        Peer(
            f"HAProxy {mode.upper()}",
            HAPROXY.format(mode=mode, vip=VIP, port=PORT, servers=lines("    server s{number} {address}:{port}")),
            "ulimit -n 50000; haproxy -D -p /run/bench/haproxy.pid -f FILE",
            END.format("haproxy"), "haproxy -v | head -n 1",
        )
        for mode in ("tcp", "http")
    ),
    Peer(
        "nginx stream", NGINX.format(vip=VIP, port=PORT, servers=lines("        server {address}:{port};")),
        "nginx -c FILE", END.format("nginx"), "nginx -v 2>&1",
    ),
    Peer(
        "nftables DNAT",
        DNAT.format(
            vip=VIP, port=PORT, count=SERVERS_USED,
            places=", ".join(f"{number} : {address}" for number, address in enumerate(SERVERS[:SERVERS_USED])),
        ),
        "nft -f FILE", "nft delete table ip bench", "nft --version",
    ),
    *(
        Peer(
            f"keepalived, {kind}",
            KEEPALIVED.format(vip=VIP, port=PORT, kind=kind, servers=lines(CHECKED)),
            "keepalived --check --use-file FILE --pid /run/bench/keepalived.pid "
            f"--checkers_pid /run/bench/checkers.pid; "
            f"for try in $(seq 100); do [ $(ipvsadm -Ln -t {VIP}:{PORT} 2>/dev/null | grep -c '10.2.0') = "
            f"{SERVERS_USED} ] && exit 0; sleep 0.2; done; exit 1",
            END.format("keepalived"), "keepalived --version 2>&1 | head -n 1",
        )
        for kind in ("NAT", "DR")
    ),
)  # fmt: skip


def prepare(image: Image) -> Image:
    """With the layer that brings the others."""
    return layer.add(image)


def run(settings: Settings) -> Result:
    ours = ("NAT", "DR", "TUN")
    found: dict[str, list] = {f"this box, {way}": [] for way in ours} | {one.name: [] for one in PEERS}
    with settings.stages.take() as here:
        here.apply(services((SERVERS_USED,)))
        for number in range(1, SERVERS_USED + 1):
            here.near.give_vip(number, VIP)
        here.serve()
        here.director.succeed(f"set -e; {OPEN}")
        versions = {one.name: here.director.succeed(one.version).strip() for one in PEERS}
        for number in range(settings.rounds):
            for way in ours:
                found[f"this box, {way}"].append(loaded(here, vip(way, SERVERS_USED), settings))
            for one in PEERS:
                found[one.name].append(beside(here, one, settings))
            for name, loads in found.items():
                here.say(
                    f"round {number + 1}, {name}: {loads[-1].log.rate:.0f} replies/s, {loads[-1].log.failed} errors"
                )
    remarks = tuple(dict.fromkeys(versions.values()))
    return Result(
        NAME, "Other balancers on the same director", "Side by side, for who has to choose.", (table(found),),
        (picture(found),), (f"Versions: {'; '.join(remarks)}.",), METHOD,
    )  # fmt: skip


def loaded(here: Stage, place: str, settings: Settings):
    here.load(place, seconds=1, at_once=AT_ONCE)  # whatever is slow at the first time
    return here.load(place, seconds=settings.seconds, at_once=AT_ONCE)


def beside(here: Stage, one: Peer, settings: Settings):
    """Start it, load it, and end it."""
    file = f"/run/bench/{one.name.split()[0].strip(',').lower()}.conf"
    here.director.write(file, one.file)
    here.director.succeed(one.start.replace("FILE", file))
    try:
        return loaded(here, VIP, settings)
    finally:
        here.director.succeed(one.stop)


def table(found: dict[str, list]) -> Table:
    rates = {name: Measured(tuple(one.log.rate for one in loads)) for name, loads in found.items()}
    base = rates["this box, NAT"]
    rows: list[tuple[Cell, ...]] = []
    for name, loads in found.items():
        cost = Measured(tuple(1e6 * one.director / max(1.0, one.log.rate) for one in loads))
        rows.append((
            name, rates[name], rates[name].times(base), Measured(tuple(100 * one.director for one in loads)), cost,
            Measured(tuple(one.log.median for one in loads)), Measured(tuple(one.log.p99 for one in loads)),
            sum(one.log.failed for one in loads),
        ))  # fmt: skip
    columns = (
        "balancer", "replies/s", "times this box with NAT", "director's CPU, %", "CPU for a reply, µs", "median, ms",
        "99 %, ms", "errors",
    )  # fmt: skip
    return Table("Most replies a second", columns, tuple(rows))


def picture(found: dict[str, list]) -> Picture:
    rates = {name: Measured(tuple(one.log.rate for one in loads)) for name, loads in found.items()}
    names = tuple(name.replace(" ", "\n", 1).replace("this\nbox,", "this box,\n") for name in rates)
    drawn = Series(
        "replies a second", names, tuple(one.median for one in rates.values()),
        tuple(one.low for one in rates.values()), tuple(one.high for one in rates.values()),
    )  # fmt: skip
    return Picture(NAME, "On the same director", "", "replies a second", (drawn,), "bars")
