"""The firewall: what is not asked for is dropped.

IPVS sits behind the filter hooks, as any local service does: packets of clients pass `input` with
the VIP still as their destination, replies of real servers pass `forward` with the real server's
address and port still as their source. Connection tracking never sees such a connection whole (IPVS
takes the packets before they are confirmed), so each of its packets may count as new or invalid.
Therefore services and replies are matched by address, before anything looks at the state, and ICMP
errors, which belong to no connection that is tracked, are matched by their type.

With source NAT it is tracked after all (net.ipv4.vs.conntrack), and a packet that IPVS sends on is masqueraded as it
leaves. Its tracked connection was made for the VIP: a server may stand behind one VIP with source NAT and behind
another one without.

IPVS's hooks stand at priorities 98 to 100 (ip_vs_core.c): it takes a client's packet out of `input`
there, and gives a reply in `forward` the VIP as its source. So a chain at 150 sees only what IPVS did
not want: without it a service on a VIP's port 443 would be the web UI, for everybody, while the IPVS
table is empty.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable

from lbconfig import addresses
from lbconfig.addresses import order
from lbconfig.firewall import Where
from lbconfig.ports import parse
from lbconfig.render import own_rules, untracked
from lbconfig.snapshot import Forwarding, RealServer, Snapshot, VirtualService

_AFTER_IPVS = 150
_ICMP_ERRORS = "destination-unreachable, time-exceeded, parameter-problem"
_FAMILIES = ((4, "", "ipv4_addr"), (6, "6", "ipv6_addr"))  # version, end of names, nft's type
_All = tuple[Snapshot, ...]  # the wished one, and what leaves
_ND = "nd-neighbor-solicit, nd-neighbor-advert"
_ROUTERS = "nd-router-solicit, nd-router-advert"  # said by every host on the wire; not worth a line in the log
_ICMP6_ERRORS = "destination-unreachable, packet-too-big, time-exceeded, parameter-problem"


def render(snapshot: Snapshot, *leaving: Snapshot) -> str:
    """A file for `nft -f`: it replaces the table at once or, on an error, changes nothing.

    With `leaving`, the rules for as long as IPVS still has services and real servers of these configurations: theirs
    pass, too. Such an element opens nothing by itself: what IPVS does not know is dropped behind it.
    """
    all_of = (snapshot, *leaving)
    parts = [
        "table inet fairlead {}",
        "delete table inet fairlead",
        "",
        *_translation(all_of),
        "table inet fairlead {",
        *_sets(all_of),
        *_marking(all_of),
        *untracked.web(all_of[0].management.port),
        *own_rules.chains(snapshot.firewall, snapshot.own_ports),
        *_input(all_of),
        "",
        *_forward(all_of),
        "",
        *_after_ipvs(all_of),
        "",
        *_source_nat(all_of),
        "\tchain output {",
        "\t\ttype filter hook output priority filter; policy accept;",
        "\t}",
        "}",
    ]
    return "".join(f"{line}\n" for line in parts)


def _sets(all_of: _All) -> list[str]:
    """Each set twice, for IPv4 and IPv6."""
    snapshot, lines = all_of[0], []
    for version, suffix, kind in _FAMILIES:
        lines += _set(
            f"management_v{version}",
            kind,
            _management(snapshot, version),
            "from where the web UI may be reached",
            "interval",
        )
        lines += _set(
            f"vips{suffix}", kind, _foreign_vips(all_of, version), "addresses on which the web UI does not answer"
        )
        place = f"{kind} . inet_proto . inet_service"
        lines += _set(f"services{suffix}", place, _services(all_of, version), "what clients may reach")
        lines += _set(f"replies{suffix}", place, _replies(all_of, version), "sources of NAT replies")
        if _by_mark(all_of, version):
            lines += _ranges(all_of, version, suffix, place)
    for name, kind, elements, comment, flags in own_rules.sets(snapshot.firewall):
        lines += _set(name, kind, elements, comment, flags)
    return lines


def _ranges(all_of: _All, version: int, suffix: str, place: str) -> list[str]:
    """The same for services of several ports or protocols, and the mark by which IPVS knows them."""
    fronts: dict[tuple[str, str], list[tuple[tuple[int, int], VirtualService]]] = {}
    for one in _by_mark(all_of, version):
        for vip in one.vips:
            for protocol in one.protocol.parts:
                taken = fronts.setdefault((vip, protocol), [])
                # An interval may be in a map once; that of the wished configuration comes first.
                taken += [(ports, one) for ports in one.port_ranges if not _overlaps(ports, taken)]
    elements = [
        (f"{vip} . {protocol} . {_range(ports)}", one)
        for (vip, protocol), taken in fronts.items()
        for ports, one in taken
    ]
    backs = sorted(
        {
            (order(server.address), protocol, ports, server.address)
            for one in _by_mark(all_of, version)
            for server in one.machines
            for protocol in one.protocol.parts
            for ports in ([(server.port, server.port)] if server.port else one.port_ranges)
        }
    )
    return [
        *_set(
            f"marks{suffix}",
            f"{place} : mark",
            (f'{element} comment "{one.name}" : {one.mark}' for element, one in elements),
            "services of several ports, and their marks",
            "interval",
            "map",
        ),
        *_set(
            f"service_ranges{suffix}", place, (element for element, _ in elements), "what clients may reach", "interval"
        ),
        *_set(
            f"reply_ranges{suffix}",
            place,
            _apart(backs),
            "sources of NAT replies",
            "interval",
        ),
    ]


def _overlaps(ports: tuple[int, int], taken: list[tuple[tuple[int, int], VirtualService]]) -> bool:
    return any(first <= ports[1] and ports[0] <= last for (first, last), _ in taken)


def _apart(backs: list[tuple]) -> list[str]:
    """Servers behind several services: an interval set refuses ranges that overlap."""
    found: dict[tuple[str, str], list[str]] = {}
    for _, protocol, ports, address in backs:
        found.setdefault((address, protocol), []).append(_range(ports))
    return [
        f"{address} . {protocol} . {_range(ports)}"
        for (address, protocol), entries in found.items()
        for ports in parse(",".join(entries))
    ]


def _range(ports: tuple[int, int]) -> str:
    return str(ports[0]) if ports[0] == ports[1] else f"{ports[0]}-{ports[1]}"


def _by_mark(all_of: _All, version: int) -> list[VirtualService]:
    return [
        one
        for snapshot in all_of
        for one in sorted(snapshot.enabled_services, key=lambda one: (order(one.address), one.id))
        if one.by_mark and addresses.version(one.address) == version
    ]


def _set(
    name: str, kind: str, elements: Iterable[str], comment: str, flag: str = "", keyword: str = "set"
) -> list[str]:
    lines = [f"\t{keyword} {name} {{", f"\t\ttype {kind}"]
    if flag:
        lines.append(f"\t\tflags {flag}")
    lines.append(f'\t\tcomment "{comment}"')
    elements = list(elements)
    if elements:
        lines += ["\t\telements = {", *(f"\t\t\t{element}," for element in elements), "\t\t}"]
    return [*lines, "\t}", ""]


def _management(snapshot: Snapshot, version: int) -> list[str]:
    """Networks in order; an interval set refuses overlaps, so what lies in another one is left out."""
    networks = [ipaddress.ip_network(text) for text in snapshot.management.allow if addresses.version(text) == version]
    return [str(network) for network in ipaddress.collapse_addresses(networks)]


def _foreign_vips(all_of: _All, version: int) -> list[str]:
    """VIPs that are not an interface's own address: a shared address must keep its web UI."""
    used = [interface for interface in all_of[0].network.interfaces if interface.on]
    own = {address.partition("/")[0] for interface in used for address in interface.addresses}
    vips = {vip for snapshot in all_of for service in snapshot.enabled_services for vip in service.vips} - own
    return sorted((vip for vip in vips if addresses.version(vip) == version), key=order)


def _services(all_of: _All, version: int) -> list[str]:
    services = {
        (order(one.address), one.protocol, one.port): one
        for snapshot in reversed(all_of)
        for one in snapshot.enabled_services
        if not one.by_mark and addresses.version(one.address) == version
    }
    return [
        f'{service.address} . {service.protocol} . {service.port} comment "{service.name}"'
        for _, service in sorted(services.items(), key=lambda found: found[0])
    ]


def _replies(all_of: _All, version: int) -> list[str]:
    """Also of disabled servers and of those that have another method now: what began by NAT ends in peace.

    It opens nothing: what IPVS does not know as an answer is dropped behind it.
    """

    def place(service: VirtualService, server: RealServer):
        return ipaddress.ip_address(server.address), str(service.protocol), server.port

    return _by_place(all_of, version, place)


def _masqueraded(all_of: _All, version: int) -> list[str]:
    def place(service: VirtualService, server: RealServer):
        if service.forwarding_of(server) is not Forwarding.SNAT:
            return None
        vip, address = ipaddress.ip_address(service.address), ipaddress.ip_address(server.address)
        return vip, str(service.protocol), address, server.port

    return _by_place(all_of, version, place)


def _masqueraded_marks(all_of: _All, version: int) -> list[str]:
    found: dict[tuple[int, str], str] = {}
    for one in _by_mark(all_of, version):
        for server in one.machines:
            if one.forwarding_of(server) is Forwarding.SNAT:
                found.setdefault((one.mark, server.address), one.name)
    return [f'{mark} . {address} comment "{name}"' for (mark, address), name in found.items()]


def _by_place(all_of: _All, version: int, place: Callable[[VirtualService, RealServer], tuple | None]) -> list[str]:
    """Elements of a set, in order: what `place` says of each server, with the names of the services it is said for."""
    found: dict[tuple, list[str]] = {}
    for snapshot in all_of:
        here: dict[tuple, list[str]] = {}
        for service in snapshot.enabled_services:
            if service.by_mark or addresses.version(service.address) != version:
                continue
            for server in service.machines:
                if (element := place(service, server)) is not None:
                    here.setdefault(element, []).append(service.name)
        found = here | found  # named as in the wished configuration, so that nothing differs where nothing leaves
    return [f'{" . ".join(map(str, element))} comment "{_comment(names)}"' for element, names in sorted(found.items())]


def _comment(names: list[str]) -> str:
    """nft takes 127 characters; a server of many services names the first and counts the rest."""
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _marking(all_of: _All) -> list[str]:
    """Before anything else looks at a packet; IPVS finds its service by the mark."""
    rules = [
        f"\t\tmeta mark set ip{suffix} daddr . meta l4proto . th dport map @marks{suffix}"
        for version, suffix, _ in _FAMILIES
        if _by_mark(all_of, version)
    ]
    if not rules:
        return []
    return ["\tchain marking {", "\t\ttype filter hook prerouting priority mangle; policy accept;", *rules, "\t}", ""]


def _ranged(all_of: _All, rule: str) -> list[str]:
    """A rule about services of several ports; {ip} and {six} differ between IPv4 and IPv6."""
    return [rule.format(ip=f"ip{suffix}", six=suffix) for version, suffix, _ in _FAMILIES if _by_mark(all_of, version)]


def _input(all_of: _All) -> list[str]:
    """The admin's own rules stand behind all that the box needs to live and to be managed."""
    snapshot = all_of[0]
    firewall, web = snapshot.firewall, snapshot.management.port
    dhcp = [f'"{interface.name}"' for interface in snapshot.network.interfaces if interface.on and interface.dhcp]
    take = f"goto {own_rules.CHAINS[Where.SERVICES]}" if own_rules.used(firewall, Where.SERVICES) else "accept"
    rules = [
        "type filter hook input priority filter; policy drop;",
        "iif lo accept",
        f"ip daddr . meta l4proto . th dport @services {take}",
        f"ip6 daddr . meta l4proto . th dport @services6 {take}",
        *_ranged(all_of, f"{{ip}} daddr . meta l4proto . th dport @service_ranges{{six}} {take}"),
        "ct state established,related accept",
        f"icmp type {{ {_ICMP_ERRORS} }} accept",
        f"icmpv6 type {{ {_ICMP6_ERRORS}, {_ND} }} accept",
        f"icmpv6 type {{ {_ROUTERS} }} drop",
        *([f"iifname {{ {', '.join(dhcp)} }} udp sport 67 udp dport 68 accept"] if dhcp else []),
        "ct state invalid counter drop",
        f"ip saddr @management_v4 ip daddr != @vips tcp dport {web} accept",
        f"ip6 saddr @management_v6 ip6 daddr != @vips6 tcp dport {web} accept",
        *([f"jump {own_rules.CHAINS[Where.BOX]}"] if own_rules.used(firewall, Where.BOX) else []),
        "icmp type echo-request limit rate 50/second burst 100 packets accept",
        "icmpv6 type echo-request limit rate 50/second burst 100 packets accept",
        'limit rate 5/second burst 20 packets log prefix "fairlead input drop: "',
        "counter drop",
    ]
    return ["\tchain input {", *(f"\t\t{rule}" for rule in rules), "\t}"]


def _after_ipvs(all_of: _All) -> list[str]:
    return [
        "\tchain input_after_ipvs {",
        f"\t\ttype filter hook input priority {_AFTER_IPVS}; policy accept;",
        "\t\tip daddr . meta l4proto . th dport @services counter drop",
        "\t\tip6 daddr . meta l4proto . th dport @services6 counter drop",
        *_ranged(all_of, "\t\t{ip} daddr . meta l4proto . th dport @service_ranges{six} counter drop"),
        "\t}",
        "",
        "\tchain forward_after_ipvs {",
        f"\t\ttype filter hook forward priority {_AFTER_IPVS}; policy accept;",
        "\t\tip saddr . meta l4proto . th sport @replies counter drop",
        "\t\tip6 saddr . meta l4proto . th sport @replies6 counter drop",
        *_ranged(all_of, "\t\t{ip} saddr . meta l4proto . th sport @reply_ranges{six} counter drop"),
        "\t}",
    ]


def _translation(all_of: _All) -> list[str]:
    """A table that is added and not replaced: it stays until the box restarts.

    The kernel translates the addresses of open connections while any chain of this kind is there, and no longer.
    """
    if not _source_nat(all_of):
        return []
    return [
        "table inet fairlead_translation {",
        "\tchain postrouting {",
        "\t\ttype nat hook postrouting priority srcnat; policy accept;",
        "\t}",
        "}",
        "",
    ]


def _source_nat(all_of: _All) -> list[str]:
    """Only where it is wanted: a chain of this kind makes the kernel look at every packet once more."""
    sets, rules = [], []
    for version, suffix, kind in _FAMILIES:
        if masqueraded := _masqueraded(all_of, version):
            name, place = f"masqueraded{suffix}", f"{kind} . inet_proto . {kind} . inet_service"
            sets += _set(name, place, masqueraded, "VIPs and real servers with source NAT")
            rules.append(
                f"\t\tct original ip{suffix} daddr . meta l4proto . ip{suffix} daddr . th dport @{name} masquerade"
            )
        if marked := _masqueraded_marks(all_of, version):
            name = f"masqueraded_marks{suffix}"
            sets += _set(name, f"mark . {kind}", marked, "the same for services of several ports")
            rules.append(f"\t\tmeta mark . ip{suffix} daddr @{name} masquerade")
    rules += own_rules.masquerades(all_of[0].firewall)
    if not rules:
        return []
    return [
        *sets,
        "\tchain postrouting {",
        "\t\ttype nat hook postrouting priority srcnat; policy accept;",
        *rules,
        "\t}",
        "",
    ]


def _forward(all_of: _All) -> list[str]:
    own = f"jump {own_rules.CHAINS[Where.THROUGH]}"
    used = own_rules.used(all_of[0].firewall, Where.THROUGH)
    routed = ["ct state established,related accept", "ct state invalid counter drop", own] if used else []
    errors = [f"icmp type {{ {_ICMP_ERRORS} }} accept", f"icmpv6 type {{ {_ICMP6_ERRORS} }} accept"]
    rules = [
        "type filter hook forward priority filter; policy drop;",
        "ip saddr . meta l4proto . th sport @replies accept",
        "ip6 saddr . meta l4proto . th sport @replies6 accept",
        *_ranged(all_of, "{ip} saddr . meta l4proto . th sport @reply_ranges{six} accept"),
        *(errors if routed or any(snapshot.enabled_services for snapshot in all_of) else []),
        *routed,
        'limit rate 5/second burst 20 packets log prefix "fairlead forward drop: "',
        "counter drop",
    ]
    return ["\tchain forward {", *(f"\t\t{rule}" for rule in rules), "\t}"]
