"""Source NAT, and the connections whose tracking it needs.

A box that is alone writes its own address. In a pair that would end each such connection at a hand-over, so there it
is a floating address of the network by which the packet leaves, where there is one: rather one that interfaces name
than a VIP, whose ports are services'.
"""

from __future__ import annotations

from collections import defaultdict

from lbconfig.model import addresses
from lbconfig.model.addresses import contains, order
from lbconfig.model.kept import kept
from lbconfig.model.snapshot import Forwarding, Snapshot, VirtualService
from lbconfig.model.spelling import in_comment
from lbconfig.pair import floating, named_floating, sides
from lbconfig.render import own_rules
from lbconfig.render.firewall_sets import FAMILIES, All, Element, by_mark, by_place, foreign_vips, one_set
from lbconfig.wanted.network import static_networks

LASTING = "inet fairlead_translation"
FLOATING_SOURCE = "floating_source"  # a chain


def lasting(all_of: All) -> list[str]:
    """A table that is added and not replaced: it stays until the box restarts.

    The kernel translates the addresses of open connections while any chain of this kind is there, and no longer. They
    must stay tracked, too, also when nothing new is translated any more: so the VIPs of all that ever was are kept.
    A packet with a zone of connection tracking is tracked, whatever `notrack` says behind it (nft_notrack_eval in the
    kernel's nft_ct.c); 0 is the zone of all packets.

    The answers of their servers are tracked as well, also those to clients. Of a plain NAT service at such a VIP, or of
    a server with NAT beside one with source NAT, the kernel would see requests alone: an acknowledgement then is a new
    connection to it, whose source port it changes because the first one has that already, and the server resets both.
    And it would see answers alone of a plain NAT service at another VIP with one of these servers: to a client's port
    that was used a moment ago by way of another server, they would come from another port than the service's. So such
    a VIP is tracked, too, with all its servers, and so on.
    """
    if not chain(all_of):
        return []
    tracked, rules = [], []
    if any(_tracked(all_of, version) for version, _, _ in FAMILIES):
        for version, suffix, kind in FAMILIES:
            vips = _tracked(all_of, version)
            tracked += one_set(f"tracked{suffix}", kind, vips, "VIPs of translated connections", grows=True)
            servers = _servers(all_of, vips)
            tracked += one_set(f"tracked_servers{suffix}", kind, servers, "real servers behind these", grows=True)
            rules.append(f"\t\tip{suffix} daddr @tracked{suffix} ct zone set 0")
            rules.append(f"\t\tip{suffix} saddr @tracked_servers{suffix} ct zone set 0")
    return [
        f"table {LASTING} {{",
        *tracked,
        "\tchain postrouting {",
        "\t\ttype nat hook postrouting priority srcnat; policy accept;",
        "\t}",
        *(_before_all_else(rules) if rules else []),
        "}",
        "",
    ]


def _before_all_else(rules: list[str]) -> list[str]:
    """A chain that is there already would get its rules once more."""
    return [
        "",
        "\tchain prerouting {",
        "\t\ttype filter hook prerouting priority raw - 10; policy accept;",
        "\t}",
        "}",
        "",
        f"flush chain {LASTING} prerouting",
        f"table {LASTING} {{",
        "\tchain prerouting {",
        *rules,
        "\t}",
    ]


def _tracked(all_of: All, version: int) -> list[str]:
    """VIPs with source NAT; those that packets leave with, as answers come to them; and those beside them.

    Packets leave with an own address where the box masquerades, and in a pair with a floating one.
    """
    masquerades = any(own_rules.masquerades(snapshot.firewall) for snapshot in all_of)
    written = {text for snapshot in all_of for texts in _sources(snapshot, version) for text in texts.values()}
    foreign = set(foreign_vips(all_of, version))
    found = {
        vip
        for snapshot in all_of
        for service in snapshot.enabled_services
        for vip in service.vips
        if addresses.version(vip) == version
        and (bool(_with_own_source(service)) or vip in written or (masquerades and vip not in foreign))
    }
    return sorted(_with_neighbours(all_of, found), key=order)


def _with_neighbours(all_of: All, vips: set[str]) -> set[str]:
    """And the VIPs of whatever has one of their servers with NAT, until there are no more."""
    if not _translates(all_of):
        return vips
    at: defaultdict[str, list[VirtualService]] = defaultdict(list)
    behind: defaultdict[str, list[VirtualService]] = defaultdict(list)
    for service in (service for snapshot in all_of for service in snapshot.enabled_services):
        for vip in service.vips:
            at[vip].append(service)
        for server in _answering(service):
            behind[server].append(service)
    found, left = set(vips), [*vips]
    while left:
        for service in at.pop(left.pop(), ()):
            beside = [one for server in _answering(service) for one in behind.pop(server, ())]
            more = {vip for one in beside for vip in one.vips} - found
            found |= more
            left += more
    return found


def _servers(all_of: All, vips: list[str]) -> list[str]:
    """Real servers whose answers belong to connections of these VIPs.

    Where a rule alone writes sources, IPVS itself tells the kernel to track none of its packets.
    """
    if not _translates(all_of):
        return []
    tracked = set(vips)
    services = [service for snapshot in all_of for service in snapshot.enabled_services]
    found = {server for one in services if not tracked.isdisjoint(one.vips) for server in _answering(one)}
    return sorted(found, key=order)


def _translates(all_of: All) -> bool:
    return any(_with_source_nat(service) for snapshot in all_of for service in snapshot.enabled_services)


def chain(all_of: All) -> list[str]:
    """Only where it is wanted: a chain of this kind makes the kernel look at every packet once more."""
    sets, rules = [], []
    verdict = _verdict(all_of[0])
    for version, suffix, kind in FAMILIES:
        if masqueraded := _masqueraded(all_of, version):
            name, place = f"masqueraded{suffix}", f"{kind} . inet_proto . {kind} . inet_service"
            sets += one_set(name, place, masqueraded, "VIPs and real servers with source NAT")
            rules.append(
                f"\t\tct original ip{suffix} daddr . meta l4proto . ip{suffix} daddr . th dport @{name} {verdict}"
            )
        if marked := _masqueraded_marks(all_of, version):
            name = f"masqueraded_marks{suffix}"
            sets += one_set(name, f"mark . {kind}", marked, "the same for services of several ports")
            rules.append(f"\t\tmeta mark . ip{suffix} daddr @{name} {verdict}")
    rules += own_rules.masquerades(all_of[0].firewall, verdict)
    if not rules:
        return []
    return [
        *sets,
        *_with_floating_source(all_of[0]),
        "\tchain postrouting {",
        "\t\ttype nat hook postrouting priority srcnat; policy accept;",
        *rules,
        "\t}",
        "",
    ]


def _verdict(snapshot: Snapshot) -> str:
    return "masquerade" if snapshot.pair is None else f"goto {FLOATING_SOURCE}"


def _with_floating_source(snapshot: Snapshot) -> list[str]:
    """The chain that chooses it: by the network that a packet goes to, else by the interface that it leaves by."""
    if snapshot.pair is None:
        return []
    sets, rules = [], []
    for version, suffix, kind in FAMILIES:
        networks, interfaces = _sources(snapshot, version)
        ip = f"ip{suffix}"
        for name, what, key, flag, found, words in (
            (f"floating_networks{suffix}", kind, f"{ip} daddr", "interval", networks, "by the network"),
            (f"floating_interfaces{suffix}", "ifname", "oifname", "", interfaces, "by the interface"),
        ):
            if found:
                elements = [f"{one} : {address}" for one, address in found.items()]
                sets += one_set(name, f"{what} : {kind}", elements, f"sources of packets {words}", flag, "map")
                rules.append(f"\t\tsnat {ip} to {key} map @{name}")
    return [*sets, f"\tchain {FLOATING_SOURCE} {{", *rules, "\t\tmasquerade", "\t}", ""]


def _sources(snapshot: Snapshot, version: int) -> tuple[dict[str, str], dict[str, str]]:
    """The floating address for each network and for each interface, as elements of nft; none without a pair."""
    both = sides(snapshot)
    if both is None:
        return {}, {}
    named, network = named_floating(snapshot.network), snapshot.network
    held = [(home, text.partition("/")[0]) for home, text in floating(snapshot, both.number)]
    ranked = sorted((one for one in held if addresses.version(one[1]) == version), key=lambda one: one[1] not in named)
    by_network, by_interface = {}, {}
    for interface in network.interfaces:
        here = [address for home, address in ranked if home == interface.name]
        for net in static_networks(interface):
            if inside := [address for address in here if contains(net, address)]:
                by_network[str(net)] = inside[0]
        if here:
            by_interface[f'"{interface.name}"'] = here[0]
    return by_network, by_interface


@kept
def _answering(service: VirtualService) -> frozenset[str]:
    """Real servers whose answers come through the box: those of another IP version are reached by a tunnel."""
    ways = (Forwarding.NAT, Forwarding.SNAT)
    return frozenset(server.address for server in service.machines if service.forwarding_of(server) in ways)


def _masqueraded(all_of: All, version: int) -> list[str]:
    return by_place(all_of, version, _with_own_source)


@kept
def _with_source_nat(service: VirtualService) -> bool:
    return any(service.forwarding_of(server) is Forwarding.SNAT for server in service.machines)


@kept
def _with_own_source(service: VirtualService) -> tuple[Element, ...]:
    """Of each server that sees the box as the client, as `by_place` takes it."""
    vip, protocol = service.address, str(service.protocol)
    return tuple(
        (
            (order(vip), protocol, order(server.address), server.port),
            f"{vip} . {protocol} . {server.address} . {server.port}",
        )
        for server in service.machines
        if service.forwarding_of(server) is Forwarding.SNAT
    )


def _masqueraded_marks(all_of: All, version: int) -> list[str]:
    found: dict[tuple[int, str], str] = {}
    for one in by_mark(all_of, version):
        for server in one.machines:
            if one.forwarding_of(server) is Forwarding.SNAT:
                found.setdefault((one.mark, server.address), in_comment(one.name))
    return [f'{mark} . {address} comment "{name}"' for (mark, address), name in found.items()]
