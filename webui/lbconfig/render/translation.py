"""Source NAT, and the connections whose tracking it needs."""

from __future__ import annotations

from lbconfig.model import addresses
from lbconfig.model.addresses import order
from lbconfig.model.kept import kept
from lbconfig.model.snapshot import Forwarding, VirtualService
from lbconfig.model.spelling import in_comment
from lbconfig.render import own_rules
from lbconfig.render.firewall_sets import FAMILIES, All, Element, by_mark, by_place, foreign_vips, one_set

LASTING = "inet fairlead_translation"


def lasting(all_of: All) -> list[str]:
    """A table that is added and not replaced: it stays until the box restarts.

    The kernel translates the addresses of open connections while any chain of this kind is there, and no longer. They
    must stay tracked, too, also when nothing new is translated any more: so the VIPs of all that ever was are kept.
    A packet with a zone of connection tracking is tracked, whatever `notrack` says behind it (nft_notrack_eval in the
    kernel's nft_ct.c); 0 is the zone of all packets.
    """
    if not chain(all_of):
        return []
    tracked, rules = [], []
    if any(_tracked(all_of, version) for version, _, _ in FAMILIES):
        for version, suffix, kind in FAMILIES:
            vips = _tracked(all_of, version)
            tracked += one_set(f"tracked{suffix}", kind, vips, "VIPs of translated connections", grows=True)
            rules.append(f"\t\tip{suffix} daddr @tracked{suffix} ct zone set 0")
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
    """VIPs with source NAT; where the box masquerades, also its own addresses: answers come to them."""
    masquerades = any(own_rules.masquerades(snapshot.firewall) for snapshot in all_of)
    foreign = set(foreign_vips(all_of, version))
    found = {
        vip
        for snapshot in all_of
        for service in snapshot.enabled_services
        for vip in service.vips
        if addresses.version(vip) == version
        and (bool(_with_own_source(service)) or (masquerades and vip not in foreign))
    }
    return sorted(found, key=order)


def chain(all_of: All) -> list[str]:
    """Only where it is wanted: a chain of this kind makes the kernel look at every packet once more."""
    sets, rules = [], []
    for version, suffix, kind in FAMILIES:
        if masqueraded := _masqueraded(all_of, version):
            name, place = f"masqueraded{suffix}", f"{kind} . inet_proto . {kind} . inet_service"
            sets += one_set(name, place, masqueraded, "VIPs and real servers with source NAT")
            rules.append(
                f"\t\tct original ip{suffix} daddr . meta l4proto . ip{suffix} daddr . th dport @{name} masquerade"
            )
        if marked := _masqueraded_marks(all_of, version):
            name = f"masqueraded_marks{suffix}"
            sets += one_set(name, f"mark . {kind}", marked, "the same for services of several ports")
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


def _masqueraded(all_of: All, version: int) -> list[str]:
    return by_place(all_of, version, _with_own_source)


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
