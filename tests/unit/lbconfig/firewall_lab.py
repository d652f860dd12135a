"""Two network namespaces: the box with its rules, and everybody else, who sends single packets.

    outside: c0 === up0 :box: down0 === s0 :outside
             p0 === pair0 :box        as if it were the link of a pair

Packets are made here byte by byte and sent on the wire, so that nothing but the box decides what becomes of them.
"""

import contextlib
import itertools
import json
import os
import re
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

from lbconfig.model.firewall import Packet, RuleProtocol
from lbconfig.model.snapshot import Snapshot
from lbconfig.wanted import network as interfaces
from lbconfig.wanted import settings as sysctl
from lbconfig.wanted.netstate import EVERYWHERE, MAIN

BOX_SIDE = {"up0": "02:00:00:00:00:01", "down0": "02:00:00:00:00:02", "pair0": "02:00:00:00:00:03"}
OUTSIDE = "02:00:00:00:00:99"
WIRES = {"up0": "c0", "down0": "s0", "pair0": "p0"}
ADDRESSES = {
    "up0": ["192.168.50.1/24", "192.168.50.100/32", "192.168.50.101/32", "2001:db8:50::1/64", "2001:db8:50::100/128"],
    "down0": ["10.2.0.1/24", "2001:db8:2::1/64"],
    "pair0": ["169.254.64.1/30"],
}
NEIGHBOURS = {
    "up0": ["192.168.50.2", "192.168.50.3", "192.168.50.77", "2001:db8:50::2", "2001:db8:50::3"],
    "down0": ["10.2.0.3", "10.2.0.11", "2001:db8:2::11"],
    "pair0": ["169.254.64.2"],
}
SETTINGS = {
    "net/ipv4/ip_forward": 1,
    "net/ipv6/conf/all/forwarding": 1,
    "net/ipv4/conf/all/rp_filter": 1,
    "net/ipv4/conf/all/send_redirects": 0,
    "net/ipv4/icmp_ratelimit": 0,
    "net/ipv6/icmp/ratelimit": 0,
}
MARK_HOPS = 77  # of our packets, so that nothing else that is on the wire counts
# Behind all chains of ours: what comes so far has passed.
PROBE = """
table inet probe {}
delete table inet probe
table inet probe {
    chain seen {
        ip ttl 76-77 counter comment "passed"
        ip6 hoplimit 76-77 counter comment "passed"
        ip6 hoplimit 1 ip6 saddr fe80::77 counter comment "passed"
    }
    chain input { type filter hook input priority 200; jump seen; }
    chain forward { type filter hook forward priority 200; jump seen; }
}
"""
NUMBERS = {
    RuleProtocol.TCP: 6,
    RuleProtocol.UDP: 17,
    RuleProtocol.SCTP: 132,
    RuleProtocol.GRE: 47,
    RuleProtocol.ESP: 50,
    RuleProtocol.OSPF: 89,
    RuleProtocol.VRRP: 112,
}
# Reads {"wire": "c0", "frame": hex, "wait": seconds}; answers with the frames that came back, in hex.
SENDER = """
import json, select, socket, sys, time
wires = {}
for name in ("c0", "s0", "p0"):
    one = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    one.bind((name, 0))
    wires[name] = one
def drain(until):
    found = []
    while True:
        left = max(0, until - time.monotonic())
        ready = select.select(list(wires.values()), [], [], left)[0]
        if not ready:
            return found
        for one in ready:
            data, place = one.recvfrom(2000)
            # Most of what the kernel says to groups is no answer.
            if place[2] != socket.PACKET_OUTGOING and (order["groups"] or not data[0] & 1):
                found.append([place[0], data.hex()])
                until = until if order["groups"] else min(until, time.monotonic() + 0.05)
print("ready", flush=True)
for line in sys.stdin:
    order = json.loads(line)
    drain(0)
    wires[order["wire"]].send(bytes.fromhex(order["frame"]))
    print(json.dumps(drain(time.monotonic() + order["wait"])), flush=True)
"""


def within(namespace: str) -> list[str]:
    """What runs the command behind it in this network. `ip netns exec` mounts /sys anew, too: 17 ms each time."""
    return ["nsenter", f"--net=/run/netns/{namespace}"]


class Seen(NamedTuple):
    passed: bool
    answers: list[bytes]  # IP packets that came back or were passed on, without the frame
    rules: dict[int, int]  # id of the rule -> packets, of those that counted something


class FirewallLab:
    def __init__(self, nft: str, ip: str) -> None:
        self.nft, self.ip = nft, ip
        self.names = {who: f"flfw{os.getpid()}-{who}" for who in ("box", "outside")}
        self._open = contextlib.ExitStack()
        self._numbers = itertools.count(1)

    def __enter__(self) -> "FirewallLab":
        for name in self.names.values():
            self._run([self.ip, "netns", "add", name])
            self._open.callback(subprocess.run, [self.ip, "netns", "del", name], check=False)
        for far, near in WIRES.items():
            near_end = [near, "netns", self.names["outside"], "address", OUTSIDE]
            far_end = [far, "address", BOX_SIDE[far], "netns", self.names["box"]]
            self._run([self.ip, "link", "add", *near_end, "type", "veth", "peer", "name", *far_end])
        for key, value in SETTINGS.items():
            self.box(["sh", "-c", f"echo {value} > /proc/sys/{key}"])
        self.box([self.ip, "link", "set", "lo", "up"])
        for far, near in WIRES.items():
            for who, name in (("box", far), ("outside", near)):
                self._run([self.ip, "-n", self.names[who], "link", "set", name, "addrgenmode", "none"])
                self._run([self.ip, "-n", self.names[who], "link", "set", name, "up"])
            self.box(["sh", "-c", f"echo 0 > /proc/sys/net/ipv4/conf/{far}/send_redirects"])
            for text in ADDRESSES[far]:
                self.box([self.ip, "address", "add", text, "dev", far, *(["nodad"] if ":" in text else [])])
            for text in NEIGHBOURS[far]:
                self.box([self.ip, "neigh", "replace", text, "lladdr", OUTSIDE, "nud", "permanent", "dev", far])
        self.box([self.ip, "route", "add", "default", "via", "192.168.50.2"])
        self.box([self.ip, "-6", "route", "add", "default", "via", "2001:db8:50::2"])
        self._sender = subprocess.Popen(
            [*within(self.names["outside"]), sys.executable, "-I", "-c", SENDER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._open.callback(self._sender.wait, 60)
        self._open.callback(self._sender.stdin.close)
        assert self._sender.stdout.readline() == "ready\n"
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _run(self, words: list[str], text: str = "") -> str:
        done = subprocess.run(words, input=text, capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 0, f"{words[:6]}: {done.stderr}"
        return done.stdout

    def box(self, words: list[str], text: str = "") -> str:
        return self._run([*within(self.names["box"]), *words], text)

    def load(self, rules: str, whole: bool = False) -> None:
        """Unless they are to be whole: as if IPVS, which is not here, took what comes to it."""
        self.box([self.nft, "-f", "-"], (rules if whole else taken_by_ipvs(rules)) + PROBE)

    @contextlib.contextmanager
    def routed(self, snapshot: Snapshot) -> Iterator[None]:
        """With its IPv4 routes, ways out and checks of senders, as long as it lasts."""
        state = interfaces.wanted(snapshot)
        wanted = [(one.key, f"{one.device} {one.via}") for one in state.routes if one.version == 4]
        checks = [one for one in sysctl.settings(snapshot) if one.key.endswith("/rp_filter")]
        with contextlib.ExitStack() as undo:
            for (table, target, metric), way in wanted:
                device, via = way.split()
                words = [target, "via", via, "dev", device, "table", str(table), "metric", str(metric)]
                if not (table == MAIN and target == EVERYWHERE[4]):  # the lab has that one
                    self.box([self.ip, "route", "add", *words])
                    undo.callback(self.box, [self.ip, "route", "del", *words])
            for rule in state.rules:
                shut = ["suppress_prefixlength", "0"] if rule.table == MAIN else []
                words = ["from", rule.source, "lookup", str(rule.table), "pref", str(rule.preference), *shut]
                self.box([self.ip, "rule", "add", *words])
                undo.callback(self.box, [self.ip, "rule", "del", *words])
            for one in checks:
                self.box(["sh", "-c", f"echo {one.value} > /proc/sys/{one.key}"])
            yield

    def listing(self) -> str:
        return self.box([self.nft, "-j", "-t", "list", "ruleset"])

    def send(self, packet: Packet, wait: float = 0.0, same_port: bool = False) -> Seen:
        """It begins a connection of its own, by another source port each time; unless that is to be the `same_port`."""
        before = self.counts()
        frame = make(packet, 0 if same_port else next(self._numbers))
        answers = self._answers({"wire": WIRES[packet.interface], "frame": frame.hex(), "wait": wait, "groups": False})
        after = self.counts()
        found = {name: after[name] - before.get(name, 0) for name in after if after[name] != before.get(name, 0)}
        rules = {int(name.split()[1]): count for name, count in found.items() if name.startswith("rule ")}
        return Seen(bool(found.get("passed")), answers, rules)

    def said_to_groups(self, packet: Packet, wait: float) -> list[bytes]:
        """All that comes back within so many seconds, also to groups."""
        frame = make(packet, next(self._numbers))
        return self._answers({"wire": WIRES[packet.interface], "frame": frame.hex(), "wait": wait, "groups": True})

    def _answers(self, order: dict) -> list[bytes]:
        self._sender.stdin.write(json.dumps(order) + "\n")
        self._sender.stdin.flush()
        return [bytes.fromhex(text)[14:] for _, text in json.loads(self._sender.stdout.readline())]

    def counts(self) -> dict[str, int]:
        """Comment -> packets."""
        found: dict[str, int] = {}
        for entry in json.loads(self.listing())["nftables"]:
            rule = entry.get("rule", {})
            if "comment" in rule:
                packets = sum(part["counter"]["packets"] for part in rule["expr"] if "counter" in part)
                found[rule["comment"]] = found.get(rule["comment"], 0) + packets
        return found


def taken_by_ipvs(rules: str) -> str:
    """These rules as if IPVS took every packet that comes to it: behind it nothing is dropped that it does not know."""
    known = re.sub(r"(meta mark 0x20000000|th sport @repl\w+) counter drop\n", r"\1 counter accept\n", rules)
    return re.sub(r"(th dport @service\w+) counter drop\n", r"\1 counter accept\n", known)


def make(packet: Packet, number: int) -> bytes:
    """The frame; `number` makes it the first packet of a connection of its own."""
    six = ":" in packet.source
    family = socket.AF_INET6 if six else socket.AF_INET
    source, target = socket.inet_pton(family, packet.source), socket.inet_pton(family, packet.destination)
    own = packet.source_port + number % 20000
    protocol = NUMBERS.get(packet.protocol) or (58 if six else 1)
    body = _body(packet, own, number)

    def pseudo(text: bytes) -> bytes:
        tail = struct.pack("!II", len(text), protocol) if six else struct.pack("!BBH", 0, protocol, len(text))
        return source + target + tail + text

    if packet.protocol in _CHECKSUMS:
        place = _CHECKSUMS[packet.protocol]
        summed = body if protocol == 1 else pseudo(body)
        body = body[:place] + struct.pack("!H", checksum(summed)) + body[place + 2 :]
    if packet.protocol is RuleProtocol.SCTP:
        body = body[:8] + struct.pack("<I", crc32c(body)) + body[12:]
    ethernet = bytes.fromhex(f"{BOX_SIDE[packet.interface]}{OUTSIDE}".replace(":", ""))
    if six:
        hops, first = (1, 0) if packet.icmp in LISTENERS else (MARK_HOPS, protocol)
        if packet.icmp in LISTENERS:
            body = bytes([protocol, 0]) + ROUTER_ALERT + body
        head = struct.pack("!IHBB", 6 << 28, len(body), first, hops)
        return ethernet + b"\x86\xdd" + head + source + target + body
    head = (
        struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(body), number & 0xFFFF, 0, MARK_HOPS, protocol, 0) + source + target
    )
    return ethernet + b"\x08\x00" + head[:10] + struct.pack("!H", checksum(head)) + head[12:] + body


_CHECKSUMS = {RuleProtocol.TCP: 16, RuleProtocol.UDP: 6, RuleProtocol.PING: 2, RuleProtocol.ICMP: 2}
LISTENERS = (130, 131, 132, 143)  # RFC 3810: hop limit 1, and an option that makes routers look at them
ROUTER_ALERT = bytes([5, 2, 0, 0, 1, 0])


def _body(packet: Packet, own: int, number: int) -> bytes:
    match packet.protocol:
        case RuleProtocol.TCP:  # SYN
            return struct.pack("!HHIIBBHHH", own, packet.port, number, 0, 5 << 4, 2, 1000, 0, 0)
        case RuleProtocol.UDP:
            return struct.pack("!HHHH4s", own, packet.port, 12, 0, b"data")
        case RuleProtocol.SCTP:  # INIT
            chunk = struct.pack("!BBHIIHHI", 1, 0, 20, number, 65536, 1, 1, number)
            return struct.pack("!HHII", own, packet.port, 0, 0) + chunk
        case RuleProtocol.PING:
            kind = 128 if ":" in packet.source else 8
            return struct.pack("!BBHHH", kind, 0, 0, number & 0xFFFF, 1)
        case RuleProtocol.ICMP:  # of a listener query all that version 2 has, answered at once
            return struct.pack("!BBHI", packet.icmp, 0, 0, 1 << 16 if packet.icmp == 130 else 0) + bytes(20)
        case _:
            return bytes(24)


def checksum(data: bytes) -> int:
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF
