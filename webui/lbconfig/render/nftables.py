"""The firewall: what is not asked for is dropped.

IPVS sits behind the filter hooks, as any local service does: packets of clients pass `input` with
the VIP still as their destination, replies of real servers pass `forward` with the real server's
address and port still as their source. Connection tracking never sees such a connection whole (IPVS
takes the packets before they are confirmed), so each of its packets may count as new or invalid.
Therefore services and replies are matched by address, before anything looks at the state, and ICMP
errors, which belong to no connection that is tracked, are matched by their type.

IPVS's hooks stand at priorities 98 to 100 (ip_vs_core.c): it takes a client's packet out of `input`
there, and gives a reply in `forward` the VIP as its source. So a chain at 150 sees only what IPVS did
not want: without it a service on a VIP's port 443 would be the web UI, for everybody, while the IPVS
table is empty.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from lbconfig.names import MANAGEMENT_PORT
from lbconfig.snapshot import Snapshot, VirtualService

_AFTER_IPVS = 150
_ICMP_ERRORS = "destination-unreachable, time-exceeded, parameter-problem"
_ND = "nd-neighbor-solicit, nd-neighbor-advert"
_ICMP6_ERRORS = "destination-unreachable, packet-too-big, time-exceeded, parameter-problem"


def render(snapshot: Snapshot) -> str:
    """A file for `nft -f`: it replaces the table at once or, on an error, changes nothing."""
    parts = [
        "table inet fairlead {}",
        "delete table inet fairlead",
        "",
        "table inet fairlead {",
        *_sets(snapshot),
        *_input(snapshot),
        "",
        *_forward(snapshot),
        "",
        *_after_ipvs(),
        "",
        "\tchain output {",
        "\t\ttype filter hook output priority filter; policy accept;",
        "\t}",
        "}",
    ]
    return "".join(f"{line}\n" for line in parts)


def _sets(snapshot: Snapshot) -> list[str]:
    lines = _set(
        "management_v4", "ipv4_addr", _management(snapshot), "from where the web UI may be reached", "interval"
    )
    lines += _set("vips", "ipv4_addr", _foreign_vips(snapshot), "addresses on which the web UI does not answer")
    lines += _set("services", "ipv4_addr . inet_proto . inet_service", _services(snapshot), "what clients may reach")
    lines += _set("replies", "ipv4_addr . inet_proto . inet_service", _replies(snapshot), "sources of NAT replies")
    return lines


def _set(name: str, kind: str, elements: Iterable[str], comment: str, flag: str = "") -> list[str]:
    lines = [f"\tset {name} {{", f"\t\ttype {kind}"]
    if flag:
        lines.append(f"\t\tflags {flag}")
    lines.append(f'\t\tcomment "{comment}"')
    elements = list(elements)
    if elements:
        lines += ["\t\telements = {", *(f"\t\t\t{element}," for element in elements), "\t\t}"]
    return [*lines, "\t}", ""]


def _management(snapshot: Snapshot) -> list[str]:
    """Networks in order; an interval set refuses overlaps, so what lies in another one is left out."""
    networks = map(ipaddress.IPv4Network, snapshot.management.allow)
    return [str(network) for network in ipaddress.collapse_addresses(networks)]


def _foreign_vips(snapshot: Snapshot) -> list[str]:
    """VIPs that are not an interface's own address: a shared address must keep its web UI."""
    own = {address.partition("/")[0] for interface in snapshot.network.interfaces for address in interface.addresses}
    return sorted({service.address for service in snapshot.services} - own, key=ipaddress.IPv4Address)


def _services(snapshot: Snapshot) -> list[str]:
    def order(service: VirtualService):
        return ipaddress.IPv4Address(service.address), service.protocol, service.port

    return [
        f'{service.address} . {service.protocol} . {service.port} comment "{service.name}"'
        for service in sorted(snapshot.services, key=order)
    ]


def _replies(snapshot: Snapshot) -> list[str]:
    """Also of disabled servers: connections that are still open end in peace."""
    sources: dict[tuple, list[str]] = {}
    for service in snapshot.services:
        for server in service.real_servers:
            place = (ipaddress.IPv4Address(server.address), str(service.protocol), server.port)
            sources.setdefault(place, []).append(service.name)
    return [
        f'{address} . {protocol} . {port} comment "{_comment(names)}"'
        for (address, protocol, port), names in sorted(sources.items())
    ]


def _comment(names: list[str]) -> str:
    """nft takes 127 characters; a server of many services names the first and counts the rest."""
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _input(snapshot: Snapshot) -> list[str]:
    dhcp = [f'"{interface.name}"' for interface in snapshot.network.interfaces if interface.dhcp]
    rules = [
        "type filter hook input priority filter; policy drop;",
        "iif lo accept",
        "ip daddr . meta l4proto . th dport @services accept",
        "ct state established,related accept",
        f"icmp type {{ {_ICMP_ERRORS} }} accept",
        f"icmpv6 type {{ {_ICMP6_ERRORS}, {_ND} }} accept",
        "icmp type echo-request limit rate 50/second burst 100 packets accept",
        "icmpv6 type echo-request limit rate 50/second burst 100 packets accept",
        *([f"iifname {{ {', '.join(dhcp)} }} udp sport 67 udp dport 68 accept"] if dhcp else []),
        "ct state invalid counter drop",
        f"ip saddr @management_v4 ip daddr != @vips tcp dport {MANAGEMENT_PORT} accept",
        'limit rate 5/second burst 20 packets log prefix "fairlead input drop: "',
        "counter drop",
    ]
    return ["\tchain input {", *(f"\t\t{rule}" for rule in rules), "\t}"]


def _after_ipvs() -> list[str]:
    return [
        "\tchain input_after_ipvs {",
        f"\t\ttype filter hook input priority {_AFTER_IPVS}; policy accept;",
        "\t\tip daddr . meta l4proto . th dport @services counter drop",
        "\t}",
        "",
        "\tchain forward_after_ipvs {",
        f"\t\ttype filter hook forward priority {_AFTER_IPVS}; policy accept;",
        "\t\tip saddr . meta l4proto . th sport @replies counter drop",
        "\t}",
    ]


def _forward(snapshot: Snapshot) -> list[str]:
    rules = [
        "type filter hook forward priority filter; policy drop;",
        "ip saddr . meta l4proto . th sport @replies accept",
        *([f"icmp type {{ {_ICMP_ERRORS} }} accept"] if snapshot.services else []),
        'limit rate 5/second burst 20 packets log prefix "fairlead forward drop: "',
        "counter drop",
    ]
    return ["\tchain forward {", *(f"\t\t{rule}" for rule in rules), "\t}"]
