"""Instructions of the director for each balanced connection and each forwarded packet: ours, stock, and others."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from bench.counted import (
    ALSO_ROUTES,
    BESIDE,
    COUNT,
    ONE_INTERFACE,
    OUR_WORDS,
    ROUNDS,
    ROUTED,
    THROUGH,
    UDP,
    WORDS,
    Cost,
    CountedStage,
    counted_stage,
)
from bench.neighbours import SERVERS, Failed
from bench.result import Measured, Result, Table
from bench.second import second_box
from bench.settings import Settings
from bench.stage import PORT, vip
from board.lab import bench as layer
from board.lab.build import Image
from board.machines.machine import CommandFailed
from board.machines.wait import WaitedInVain

OWN = "10.1.0.1"  # the director's address, at which balancers of its own listen
BY_KEEPALIVED = "10.1.0.190"
_TARGETS = ", ".join(f"{number} : {address}" for number, address in enumerate(SERVERS[:COUNT]))
DNAT = """table ip translated {{
	chain prerouting {{
		type nat hook prerouting priority dstnat;
		ip daddr {address} {protocol} dport {port} dnat to numgen inc mod {count} map {{ {targets} }}
	}}
}}
"""
HAPROXY = """global
	maxconn 4000
	nbthread 1
defaults
	mode {mode}
	timeout connect 5s
	timeout client 10s
	timeout server 10s
listen one
	bind {own}:{port}
	balance roundrobin
{servers}
"""
NGINX = """daemon off; user root; worker_processes 1; pid /run/bench/nginx.pid; error_log /dev/null;
load_module /usr/lib/nginx/modules/ngx_stream_module.so;
events {{ worker_connections 8000; }}
stream {{ upstream servers {{ {servers} }} server {{ listen {own}:9003; proxy_pass servers; }} }}
"""
KEEPALIVED = """virtual_server {vip} {port} {{
 delay_loop 30
 lb_algo rr
 lb_kind NAT
 protocol TCP
{servers}
}}
"""
SECONDS = {True: 2.5, False: 5.0}  # of a load, quick or full
STARTS = {OUR_WORDS: ("bare", "ours"), WORDS: ("stock",)}  # words for the kernel, and the boxes that have them
PAIRED = ("direct routing", "NAT")  # what is measured in a pair as well
MESSAGES = {"alone": None, "large messages": True, "small messages": False}  # to the other box of the pair
LEFT_OUT = (CommandFailed, Failed, WaitedInVain, ValueError)


Found = dict[tuple[bool, str, str], list[Cost]]


@dataclass(frozen=True)
class Setup:
    name: str
    places: tuple[str, ...]
    boxes: tuple[str, ...]
    rules: str = ""  # of nft, added to those of the box
    ours: str = "ours"  # which one
    program: str = ""  # what runs on the director meanwhile
    file: str = ""  # and what it reads, at /run/bench/peer.conf
    datagrams: bool = False


def setups() -> list[Setup]:
    beside = tuple(f"{BESIDE.format(number)}:{ROUTED}" for number in range(1, COUNT + 1))
    through = tuple(f"{THROUGH.format(number)}:{ROUTED}" for number in range(1, COUNT + 1))
    tcp = [
        # Not through ours: a connection of which it sees half is invalid there, and dropped.
        Setup("routing, requests alone", beside, ("bare", "stock")),
        Setup("routing, both ways", through, ("bare", "ours", "stock"), ours=ALSO_ROUTES),
        *(Setup(name, (f"{vip(way, COUNT)}:{PORT}",), ("ours", "stock")) for way, name in WAYS.items()),
        *(
            Setup(f"{name}, {words}", (f"{vip(way, COUNT)}:{PORT}",), ("ours",), ours=ours)
            for words, ours in ((ONE, ONE_INTERFACE), ("the box also routes", ALSO_ROUTES))
            for way, name in WAYS.items()
        ),
        Setup("nftables DNAT", (f"{OWN}:{PORT}",), ("bare", "stock"), rules=dnat("tcp", PORT)),
        *peers(),
    ]
    places = {way: (f"{vip(way, COUNT)}:{UDP}",) for way in WAYS}
    udp = [
        Setup("routing", tuple(f"{BESIDE.format(one)}:{UDP}" for one in range(1, COUNT + 1)), ("bare", "stock")),
        *(Setup(name, places[way], ("ours", "stock")) for way, name in WAYS.items()),
        Setup("nftables DNAT", (f"{OWN}:{UDP}",), ("bare", "stock"), rules=dnat("udp", UDP)),
    ]
    return tcp + [Setup(one.name, one.places, one.boxes, one.rules, datagrams=True) for one in udp]


ONE = "a box with one interface"
WAYS = {"DR": "direct routing", "NAT": "NAT", "TUN": "tunnel"}


def dnat(protocol: str, port: int) -> str:
    return DNAT.format(address=OWN, protocol=protocol, port=port, count=COUNT, targets=_TARGETS)


def peers() -> list[Setup]:
    servers = [f"{address}:{PORT}" for address in SERVERS[:COUNT]]
    haproxy = "\n".join(f"\tserver s{number} {one}" for number, one in enumerate(servers))
    nginx = " ".join(f"server {one};" for one in servers)
    kept = "\n".join(
        f" real_server {address} {PORT} {{ weight 1\n TCP_CHECK {{ connect_timeout 3 }} }}"
        for address in SERVERS[:COUNT]
    )
    run = "haproxy -db -f /run/bench/peer.conf"
    both = ("ours", "stock")
    return [
        Setup("HAProxy, TCP", (f"{OWN}:9001",), both, program=run,
              file=HAPROXY.format(mode="tcp", own=OWN, port=9001, servers=haproxy)),
        Setup("HAProxy, HTTP", (f"{OWN}:9002",), both, program=run,
              file=HAPROXY.format(mode="http", own=OWN, port=9002, servers=haproxy)),
        Setup("nginx, stream", (f"{OWN}:9003",), both, program="nginx -c /run/bench/peer.conf",
              file=NGINX.format(own=OWN, servers=nginx)),
        Setup("NAT, set up by keepalived", (f"{BY_KEEPALIVED}:{PORT}",), ("stock",),
              program="keepalived -C -n -f /run/bench/peer.conf",
              file=KEEPALIVED.format(vip=BY_KEEPALIVED, port=PORT, servers=kept)),
    ]  # fmt: skip


@contextmanager
def set_up(stage: CountedStage, setup: Setup, box: str) -> Iterator[None]:
    director = stage.director
    stage.become(setup.ours if box == "ours" else box)
    if setup.rules:
        stage.rules(setup.rules)
    if setup.program:
        director.write("/run/bench/peer.conf", setup.file)
        director.succeed(f"ip addr replace {BY_KEEPALIVED}/32 dev eth2")
        director.succeed(f"{setup.program} >/run/bench/peer.log 2>&1 & echo $! >/run/bench/peer.pid")
        port = setup.places[0].rpartition(":")[2]
        listening = f"ss -Hlnt | grep -q :{port}" if port != str(PORT) else f"ipvsadm -Ln | grep -q {BY_KEEPALIVED}"
        director.wait_until_succeeds(f"{listening} && sleep 3", 30)
    try:
        yield
    finally:
        if setup.program:
            director.succeed(
                "one=$(cat /run/bench/peer.pid); kill $one; while kill -0 $one 2>/dev/null; do sleep 0.2; done"
            )


def prepare(image: Image) -> Image:
    """With the layer that brings the others."""
    return layer.add(image)


def run(settings: Settings) -> Result:
    found: Found = {}
    for words, boxes in STARTS.items():
        with counted_stage(settings, words) as stage:
            found |= in_turns(settings, stage, [(one, box) for one in setups() for box in one.boxes if box in boxes])
            if "ours" in boxes:
                try:
                    run_in_a_pair(settings, stage, found)
                except LEFT_OUT as error:  # as above
                    settings.say(f"in a pair: left out: {error}")
    return result(found)


def in_turns(settings: Settings, stage: CountedStage, loads: Sequence[tuple[Setup, str]]) -> Found:
    """Each set-up as its box, ROUNDS times; what fails is said and left out, for the others are worth their time."""
    found: Found = {}
    for turn in range(ROUNDS):
        for setup, box in loads:
            what = f"{turn + 1}: {setup.name}, {'datagrams' if setup.datagrams else 'connections'}, {box}"
            try:
                cost = measure(stage, setup, box, SECONDS[settings.quick])
            except LEFT_OUT as error:
                settings.say(f"{what}: left out: {error}")
                continue
            found.setdefault((setup.datagrams, setup.name, box), []).append(cost)
            settings.say(f"{what}: {cost.said()}")
    return found


def run_in_a_pair(settings: Settings, stage: CountedStage, found: Found) -> None:
    """The same box alone and as the one of a pair that leads, in turns."""
    seconds = SECONDS[settings.quick]
    with second_box(stage, settings.image) as second:
        for turn in range(ROUNDS):
            for setup in (one for one in setups() if one.name in PAIRED and "ours" in one.boxes):
                for messages, large in MESSAGES.items():
                    load = stage.datagrams if setup.datagrams else stage.connections
                    stage.become("ours")
                    with contextlib.nullcontext() if large is None else second.told(large):
                        cost = load(*setup.places, seconds=seconds)
                    found.setdefault((setup.datagrams, setup.name, messages), []).append(cost)
                    kind = "datagrams" if setup.datagrams else "connections"
                    settings.say(f"{turn + 1}: {setup.name}, {kind}, {messages}: {cost.said()}")


def measure(stage: CountedStage, setup: Setup, box: str, seconds: float) -> Cost:
    with set_up(stage, setup, box):
        load = stage.datagrams if setup.datagrams else stage.connections
        return load(*setup.places, seconds=seconds)


def result(found: Found) -> Result:
    return Result(
        name="instructions",
        title="Instructions for each connection and packet",
        source="The emulator counts what the director's processor does, so these figures hold on any machine.",
        method=(
            "A connection is a page of 628 bytes over HTTP/1.0; a datagram has 100 bytes. All is one guest with one "
            "processor, the mitigations of its kernel on: *ours* is the appliance as it was configured, *stock* is "
            "Debian with plain stateful rules, *bare* is our settings without any rule. Debian's kernel runs in all of "
            "them; for *ours* and *bare* it does not clear memory before use, as our own kernel. A box of ours with "
            "one interface does not look where the way back to a sender is; its packets come and go as those of the "
            "others here. What runs anyway is taken off. "
            "Packets come in bursts of some milliseconds, as on a box with something to do."
        ),
        tables=(
            table("Instructions for each connection", found, False),
            table("Instructions for each datagram that was passed on", found, True),
            aims(found),
            in_a_pair(found),
        ),
    )


def in_a_pair(found: Found) -> Table:
    rows = []
    for name, datagrams in ((name, kind) for kind in (False, True) for name in PAIRED):
        alone, large, small = (measured(found, datagrams, name, messages) for messages in MESSAGES)
        what = f"{name}, {'a single datagram' if datagrams else 'a connection'}"
        rows.append((what, alone, large, small, ratio(large, alone), ratio(small, alone)))
    return Table(
        "The leading box of a pair",
        ("way", "alone", "large messages", "small messages", "large ÷ alone", "small ÷ alone"),
        tuple(rows),
        "The other box is told of connections in large messages above 2,000 a second, else in small ones.",
    )


def measured(found: Found, datagrams: bool, name: str, box: str) -> Measured | None:
    costs = found.get((datagrams, name, box))
    return Measured(tuple(round(one.all) for one in costs)) if costs else None


def ratio(one: Measured | None, other: Measured | None) -> float | None:
    return one.times(other) if one and other else None


def table(title: str, found: Found, datagrams: bool) -> Table:
    names = dict.fromkeys(name for kind, name, box in found if kind is datagrams and box not in MESSAGES)
    rows = []
    for name in names:
        bare, ours, stock = (measured(found, datagrams, name, box) for box in ("bare", "ours", "stock"))
        packets = [
            cost.packets
            for (kind, one, box), costs in found.items()
            for cost in costs
            if (kind, one) == (datagrams, name) and box not in MESSAGES
        ]
        rows.append((name, bare, ours, stock, ratio(ours or bare, stock), sum(packets) / len(packets)))
    columns = ("way", "bare", "ours", "stock", "ours (or bare) ÷ stock", "packets taken in")
    return Table(title, columns, tuple(rows), "The median, with the lowest and the highest round.")


AIMS = (
    # what, of which box, in relation to what, of which box, at most
    ("direct routing", "ours", "routing, requests alone", "bare", 1.15),
    ("direct routing", "ours", "routing, requests alone", "stock", 1.15),
    (f"direct routing, {ONE}", "ours", "routing, requests alone", "bare", 1.15),
    ("NAT", "ours", "nftables DNAT", "bare", 1.0),
    ("NAT", "ours", "nftables DNAT", "stock", 1.0),
    ("direct routing", "ours", "direct routing", "stock", 0.67),
    ("NAT", "ours", "NAT", "stock", 0.67),
    ("tunnel", "ours", "tunnel", "stock", 0.67),
    *((f"{way}, {ONE}", "ours", way, "stock", 0.67) for way in WAYS.values()),
)


def aims(found: Found) -> Table:
    rows = []
    for name, box, other, of, most in AIMS:
        reached = ratio(measured(found, False, name, box), measured(found, False, other, of))
        words = None if reached is None else "yes" if reached <= most else "no"
        rows.append((f"{name}, {box}", f"{other}, {of}", reached, most, words))
    return Table("What was aimed at", ("a connection by", "in relation to", "ratio", "at most", "reached"), tuple(rows))
