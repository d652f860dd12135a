"""Why does a service not work although everything is configured? The usual faults, found from the box itself.

Nothing is changed. Three kinds of evidence: what answers ARP for the VIP besides this box (direct routing), whether
the servers' ports are open from here, and the connections that never got past their first packet (IPVS's table: a
client has asked, and the server's answer did not come back).
"""

from __future__ import annotations

import ipaddress
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from applier.host.host import Host
from applier.parts.network import act as network
from applier.wire.shapes import Finding
from lbconfig.model.addresses import contains, version
from lbconfig.model.snapshot import TUNNELS, Forwarding, RealServer, Snapshot, VirtualService
from lbconfig.wanted import network as interfaces

CONNECTIONS = Path("/proc/net/ip_vs_conn")
MOST_VIPS = 8  # of one service that ARP is asked for; each takes seconds
ARP_SECONDS = 2
CONNECT_SECONDS = 2
WAITING = 3  # connections without an answer that are no accident
IP_HEADERS = {4: 20, 6: 40}  # bytes; a tunnel adds one
TUNNEL_HEADERS = {Forwarding.TUNNEL: 0, Forwarding.GRE: 4, Forwarding.GUE: 12}  # beside those: GRE's; UDP's and GUE's
TCP_HEADER = 20
USUAL_MTU = 1500  # what clients take for granted

_ARP_REPLY = re.compile(r"reply from (?P<address>\S+) .*\[(?P<mac>[0-9a-f:]{17})\]", re.IGNORECASE)


def examine(host: Host, snapshot: Snapshot, service: VirtualService) -> list[Finding]:
    """The worst first; empty: nothing was found. HostError where the box itself cannot be asked."""
    servers = [server for server in service.real_servers if server.in_table]
    found = [
        *_arp(host, snapshot, service, servers),
        *_closed_ports(host, service, servers),
        *_unanswered(host, snapshot, service, servers),
        *_narrow_tunnels(host, service, servers),
    ]
    return sorted(found, key=lambda finding: finding["kind"] != "fault")


# --- who answers ARP for the VIP -----------------------------------------------------------------


def _arp(host: Host, snapshot: Snapshot, service: VirtualService, servers: list[RealServer]) -> Iterator[Finding]:
    if version(service.address) == 6:
        return  # the kernel of a real server answers for an address only where it is (ndisc_recv_ns)
    links = network.links(host)
    own = {link.mac.lower() for link in links}
    here = {text.partition("/")[0] for link in links for text in link.addresses}
    # Of a pair, the box that leads answers, and it may be the other one.
    vips = [vip for vip in service.vips[:MOST_VIPS] if snapshot.pair is None or vip in here]
    places = itertools.product(vips, _interfaces(host, snapshot, service, servers))
    for vip, (name, source) in places:
        argv = ["arping", "-I", name, "-s", source, "-c", "2", "-w", str(ARP_SECONDS), vip]
        output = host.command(argv, timeout=ARP_SECONDS + 5)
        macs = {match["mac"].lower() for match in _ARP_REPLY.finditer(output.stdout)} - own
        for mac in sorted(macs):
            yield _answers_arp(service, vip, mac, name, _neighbours(host, name).get(mac, []))


def _answers_arp(service: VirtualService, vip: str, mac: str, interface: str, addresses: list[str]) -> Finding:
    guilty = [server.address for server in service.real_servers if server.address in addresses]
    who = f"The real server {guilty[0]}" if guilty else "A machine that is not a real server of this service"
    advice = (
        "Run this server's script (“What the servers need”); it keeps the address from answering ARP."
        if guilty
        else f"Find the machine with this MAC and take {vip} away from it, or choose another VIP."
    )
    return _finding(
        "arp",
        guilty[0] if guilty else "",
        f"{who} (MAC {mac}, on {interface}) answers ARP for {vip}: clients that hear it first go past this box.",
        advice,
    )


def _interfaces(
    host: Host, snapshot: Snapshot, service: VirtualService, servers: list[RealServer]
) -> list[tuple[str, str]]:
    """(interface, address of the box on it): where the VIP is, and where its servers are."""
    places = [service.address, *(server.address for server in servers)]
    vips = {vip for one in snapshot.enabled_services for vip in one.vips}
    found: dict[str, str] = {}
    for link in network.links(host):
        for text in link.addresses:
            address = ipaddress.ip_interface(text)
            beside = any(contains(address.network, place) for place in places)
            if address.network.num_addresses > 1 and str(address.ip) not in vips and beside:
                found.setdefault(link.name, str(address.ip))
    home = interfaces.homes(snapshot.network, [service.address])[service.address]
    return sorted(found.items(), key=lambda pair: (pair[0] != home, pair))


def _neighbours(host: Host, interface: str) -> dict[str, list[str]]:
    """MAC -> the addresses that it was seen with."""
    seen: dict[str, list[str]] = {}
    for entry in json.loads(host.command(["ip", "-json", "neigh", "show", "dev", interface]).stdout or "[]"):
        if "lladdr" in entry:
            seen.setdefault(entry["lladdr"].lower(), []).append(entry["dst"])
    return seen


# --- ports ---------------------------------------------------------------------------------------


def _closed_ports(host: Host, service: VirtualService, servers: list[RealServer]) -> Iterator[Finding]:
    for server in servers if "tcp" in service.protocol.parts else ():
        port = server.port or service.port
        answer = host.connect(server.address, port, CONNECT_SECONDS)
        if answer != "open":
            yield closed_port(server.address, port, answer)


def closed_port(address: str, port: int, answer: str) -> Finding:
    """`answer`: as Host.connect gives it."""
    if answer == "refused":
        message = f"{address} refuses connections to port {port}."
        advice = "Start the program there, and let it listen on all addresses of the server."
    else:
        message = f"{address} does not answer on port {port}: {answer}."
        advice = "Is it on, is the address right, does a firewall on the server drop packets from this box?"
    return _finding("port", address, message, advice)


# --- answers that do not come back ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Connections:
    waiting: int
    established: int


def _connections(host: Host, service: VirtualService) -> dict[tuple[str, int], _Connections]:
    """By real server, of this TCP service, from IPVS's list of connections (ip_vs_conn.c: all numbers in hex)."""
    waiting: Counter[tuple[str, int]] = Counter()
    established: Counter[tuple[str, int]] = Counter()
    wanted = {(_hex(vip), f"{service.port:04X}") for vip in service.vips}
    for line in (host.read(CONNECTIONS) or "").splitlines():
        words = line.split()
        if len(words) < 8 or words[0] != "TCP" or (words[3], words[4]) not in wanted:
            continue
        place = (_from_hex(words[5]), int(words[6], 16))
        if words[7] == "SYN_RECV":
            waiting[place] += 1
        elif words[7] == "ESTABLISHED":
            established[place] += 1
    return {place: _Connections(waiting[place], established[place]) for place in waiting | established}


def _hex(address: str) -> str:
    """The kernel writes IPv4 as one number and IPv6 in full (ip_vs_conn_seq_show: %08X and %pI6)."""
    parsed = ipaddress.ip_address(address)
    return f"{int(parsed):08X}" if parsed.version == 4 else parsed.exploded


def _from_hex(text: str) -> str:
    return str(ipaddress.IPv6Address(text) if ":" in text else ipaddress.IPv4Address(int(text, 16)))


def _unanswered(
    host: Host, snapshot: Snapshot, service: VirtualService, servers: list[RealServer]
) -> Iterator[Finding]:
    if "tcp" not in service.protocol.parts:
        return
    found = _connections(host, service)
    for server in servers:
        seen = found.get((server.address, server.port or service.port), _Connections(0, 0))
        if seen.waiting >= WAITING and seen.waiting > seen.established:
            yield _finding(
                "no-answer",
                server.address,
                f"{seen.waiting} clients were sent to {server.address} and got no answer ({seen.established} did).",
                _advice(snapshot, service.forwarding_of(server), server.address),
            )


def _advice(snapshot: Snapshot, method: Forwarding, address: str) -> str:
    if method is Forwarding.NAT:
        beside = [
            str(ipaddress.ip_interface(text).ip)
            for interface in snapshot.network.interfaces
            for text in (*interface.floating, *interface.addresses)
            if contains(ipaddress.ip_interface(text).network, address)
        ]
        gateway = f" ({beside[0]})" if beside else ""
        return (
            f"Its default gateway must be this box{gateway}. If that cannot be, or clients are in its network, "
            "choose “NAT with source NAT”."
        )
    if method is Forwarding.SNAT:
        return "It answers this box itself: look for a firewall on the server, and whether its port is open."
    return (
        "Run this server's script with “verify”: it has no virtual address, or something listens on one address only. "
        "Its answers also need a way to the clients that does not lead through this box."
    )


# --- tunnels -------------------------------------------------------------------------------------


def _narrow_tunnels(host: Host, service: VirtualService, servers: list[RealServer]) -> Iterator[Finding]:
    for server in servers:
        method = service.forwarding_of(server)
        if method not in TUNNELS:
            continue
        routes = json.loads(host.command(["ip", "-json", "route", "get", server.address]).stdout or "[]")
        link = routes[0].get("dev", "") if routes else ""
        text = host.read(Path("/sys/class/net") / link / "mtu") if link else None
        header = IP_HEADERS[version(server.address)]
        room = int(text) - header - TUNNEL_HEADERS[method] if text else USUAL_MTU
        if room < USUAL_MTU:
            segment = room - header - TCP_HEADER
            yield _finding(
                "mtu",
                server.address,
                f"The tunnel to {server.address} has room for packets of {room} bytes; clients send up to {USUAL_MTU}.",
                "This box tells clients to send smaller ones, which works unless something on the way drops ICMP. If "
                f"uploads hang, let the server ask for less: ip route change default … advmss {segment}.",
                kind="note",
            )


def _finding(code: str, server: str, message: str, advice: str, kind: Literal["fault", "note"] = "fault") -> Finding:
    return {"kind": kind, "code": code, "server": server, "message": message, "advice": advice}


def looked_at(service: VirtualService) -> list[str]:
    """What was checked, in words, so that an empty result says something."""
    tcp = "tcp" in service.protocol.parts
    vips = " and ".join(service.vips[:MOST_VIPS])
    return [
        *([f"whether anybody else answers ARP for {vips}"] if version(service.address) == 4 else []),
        *(["whether the servers' ports are open"] if tcp else []),
        *(["whether clients wait for answers"] if tcp else []),
        *(["whether tunnels are wide enough"] if _has_tunnel(service) else []),
    ]


def _has_tunnel(service: VirtualService) -> bool:
    return any(service.forwarding_of(server) in TUNNELS for server in service.real_servers)
