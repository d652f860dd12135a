"""Measuring between two of the box's own ports that a cable joins: what is sent, how fast, and what follows from it.

One port belongs to a balancer with nothing but a service of its own, the other one to a sender (the kernel's pktgen)
that plays clients and real server at once: by direct routing every packet goes back over the same cable. The highest
rate of which nothing is lost is looked for as in RFC 2544, section 26.1; the addresses are those that RFC 6815 keeps
for it. The rules of the firewall and the kernel settings are those of a box of ours with this service.

What is found is a lower bound: the sender takes part of the same processor's time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from lbconfig.capacity.figures import CLOSE, SENDER, WINDOW, Cpus, Limit, Rates
from lbconfig.model.network import Interface, Network
from lbconfig.model.snapshot import (
    CheckKind,
    Forwarding,
    HealthCheck,
    Management,
    Protocol,
    RealServer,
    Scheduler,
    Snapshot,
    VirtualService,
)

NETWORK = 15  # bits: 198.18.0.0/15
BALANCER, VIP, SERVER = "198.18.0.1", "198.18.0.10", "198.18.0.20"
CLIENTS = "198.19.0.1", "198.19.255.254"  # the first and the last one of many
PORT = 9  # of the service; "discard"
CLIENT_PORTS = 1024, 65535
FEW = 1024  # connections that stay open
FIRST = 5_000.0  # packets a second; doubled until some are lost, so that the box never gets much more than it can do
SHORT = 2.0  # seconds of such a trial
TRIALS = 6  # of WINDOW seconds, at most
KEEPS_UP = 0.9  # of what it was asked for; a sender that sends less is at its end
DOUBLED = 10  # times, on a fast box
FORGET = 1  # seconds after which a connection without packets is forgotten; the table would grow by millions else
_SENT = re.compile(r"pkts-sofar: (\d+)")
_RESULT = re.compile(r"^Result: (\w+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Traffic:
    """What is sent, over UDP. Each kind comes to its limit by another figure."""

    name: str  # for an admin
    frame: int  # bytes of an Ethernet frame, without its checksum
    new: bool  # a connection with each packet, by any client from any port; else FEW of one client


CONNECTIONS = Traffic("a new connection with each packet", 60, True)
SMALL = Traffic(f"small packets of {FEW:,} connections", 60, False)
LARGE = Traffic(f"packets of 1,500 bytes of {FEW:,} connections", 1514, False)
TRAFFICS = (CONNECTIONS, SMALL, LARGE)


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of one rate."""

    asked: float  # packets a second
    seconds: float
    sent: int  # packets
    rates: Rates  # of what the balancer took in
    cpus: Cpus

    @property
    def lasted(self) -> bool:
        """Long enough to be kept."""
        return self.seconds >= KEEPS_UP * WINDOW

    @property
    def lost(self) -> int:
        return max(0, self.sent - round(self.rates.packets * self.seconds))


def longest() -> float:
    """Seconds that it takes on a fast box."""
    return len(TRAFFICS) * (DOUBLED * SHORT + TRIALS * WINDOW)


def following(trials: Sequence[Trial]) -> tuple[float, float] | None:
    """What to ask for next, in packets a second, and for how many seconds; None: it is found, or nothing comes through.

    The rate is doubled until some packets are lost, or the sender can do no more; then it is looked for between the
    highest rate that lost nothing and the lowest that lost some.
    """
    if not trials:
        return FIRST, SHORT
    last, lasting = trials[-1], [one for one in trials if one.lasted]
    if len(lasting) == TRIALS or not trials[0].rates.packets:
        return None
    good = max((one.asked for one in trials if not one.lost), default=0.0)
    bad = min((one.asked for one in trials if one.lost), default=0.0)
    if not bad:
        if last.sent >= KEEPS_UP * last.asked * last.seconds:
            return None if last.lasted else (2 * last.asked, SHORT)
        return None if last.lasted else (last.sent / last.seconds, float(WINDOW))
    if good * (1 + CLOSE) < bad:
        return (math.sqrt(good * bad) if good else bad / 2), float(WINDOW)
    found = any(one.asked == good and not one.lost for one in lasting)
    return None if found else (good, float(WINDOW))


def limit(trials: Sequence[Trial]) -> Limit | None:
    """The highest rate that lasted, nothing lost; None: there was none. Never more than "at least"."""
    lasted = [one for one in trials if one.lasted and not one.lost and one.rates.packets]
    if not lasted:
        return None
    best = max(lasted, key=lambda one: one.rates.packets)
    return Limit(best.rates, best.cpus, SENDER)


def snapshot(port: str) -> Snapshot:
    """The configuration of the balancer that has this port alone."""
    service = VirtualService(
        1, "measuring", VIP, PORT, Protocol.UDP, Scheduler.RR, Forwarding.DIRECT, HealthCheck(CheckKind.OFF),
        real_servers=(RealServer(1, SERVER, PORT),),
    )  # fmt: skip
    network = Network(interfaces=(Interface(port, addresses=(f"{BALANCER}/{NETWORK}",)),))
    return Snapshot((service,), network, Management(("127.0.0.1/32",)))


def addresses(port: str, other_end: str) -> str:
    """Lines for `ip -batch`. `other_end`: the hardware address of the sender's port."""
    lines = (
        "link set dev lo up",
        f"link set dev {port} up",
        f"address add {BALANCER}/{NETWORK} dev {port}",
        f"address add {VIP}/32 dev {port}",
        f"neighbour replace {SERVER} lladdr {other_end} nud permanent dev {port}",
    )
    return "".join(f"{line}\n" for line in lines)


def orders(traffic: Traffic, other_end: str, rate: float) -> tuple[str, ...]:
    """What pktgen is told about its device (Documentation/networking/pktgen.rst); `rate` as in Trial.asked."""
    first, last = CLIENTS
    port, last_port = CLIENT_PORTS
    who = (last, last_port, "flag IPSRC_RND", "flag UDPSRC_RND") if traffic.new else (first, port + FEW - 1)
    return (
        "count 0",
        "clone_skb 0",
        "delay 0",
        f"ratep {round(rate)}",
        f"pkt_size {traffic.frame}",
        f"dst_mac {other_end}",
        f"dst {VIP}",
        f"src_min {first}",
        f"src_max {who[0]}",
        f"udp_dst_min {PORT}",
        f"udp_dst_max {PORT}",
        f"udp_src_min {port}",
        f"udp_src_max {who[1]}",
        *who[2:],
    )


def read_sent(text: str) -> int:
    """Of pktgen's file of a device: packets. ValueError where it did not send."""
    sent, result = _SENT.search(text), _RESULT.search(text)
    if not sent or (result and result[1] != "OK"):
        raise ValueError(" ".join(text.split())[-200:] or "the sender says nothing")
    return int(sent[1])
