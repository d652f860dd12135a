"""The sets of the firewall: what clients may reach, where answers come from, who may manage."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lbconfig.model import addresses
from lbconfig.model.addresses import order, parse_network
from lbconfig.model.kept import kept
from lbconfig.model.ports import Range, parse
from lbconfig.model.snapshot import Snapshot, VirtualService
from lbconfig.model.spelling import in_comment
from lbconfig.render import own_rules

FAMILIES = ((4, "", "ipv4_addr"), (6, "6", "ipv6_addr"))  # version, end of names, nft's type
FORGOTTEN = 60  # seconds after which nothing is known any more of a client of the web UI
KNOWN = 8192  # of them at once: a flood from forged sources takes a few megabytes, and then nobody else is limited
All = tuple[Snapshot, ...]  # the new one, and what leaves
Order = tuple[int, int]  # of an address (addresses.order)
Element = tuple[tuple[object, ...], str]  # what its place in a set is by, and its own text


def sets(all_of: All) -> list[str]:
    """Each set twice, for IPv4 and IPv6."""
    snapshot, lines = all_of[0], []
    for version, suffix, kind in FAMILIES:
        lines += one_set(
            f"management_v{version}",
            kind,
            _management(snapshot, version),
            "from where the web UI may be reached",
            "interval",
        )
        lines += one_set(
            f"vips{suffix}", kind, foreign_vips(all_of, version), "addresses on which the web UI does not answer"
        )
        came = own_rules.remembering(FORGOTTEN, KNOWN)
        lines += one_set(f"web_clients{suffix}", kind, [], "who came to the web UI lately", came)
        place = f"{kind} . inet_proto . inet_service"
        lines += one_set(f"services{suffix}", place, _services(all_of, version), "what clients may reach")
        lines += one_set(f"replies{suffix}", place, _replies(all_of, version), "sources of NAT replies")
        lines += one_set(f"answering{suffix}", kind, _answering(all_of, version), "their sources when IPVS knows them")
        if by_mark(all_of, version):
            lines += _ranges(all_of, version, suffix, place)
    for name, kind, elements, comment, flags in own_rules.sets(snapshot.firewall):
        lines += one_set(name, kind, elements, comment, flags)
    return lines


def _ranges(all_of: All, version: int, suffix: str, place: str) -> list[str]:
    """The same for services of several ports or protocols, and the mark by which IPVS knows them."""
    fronts: dict[tuple[str, str], list[tuple[tuple[int, int], VirtualService]]] = {}
    for one in by_mark(all_of, version):
        for vip in one.vips:
            for protocol in one.protocol.parts:
                taken = fronts.setdefault((vip, protocol), [])
                # An interval may be in a map once; that of the new configuration comes first.
                taken += [(ports, one) for ports in one.port_ranges if not _overlaps(ports, taken)]
    elements = [
        (f"{vip} . {protocol} . {_range(ports)}", one)
        for (vip, protocol), taken in fronts.items()
        for ports, one in taken
    ]
    backs = sorted(
        {
            (order(server.address), protocol, ports, server.address)
            for one in by_mark(all_of, version)
            for server in one.machines
            for protocol in one.protocol.parts
            for ports in ([(server.port, server.port)] if server.port else one.port_ranges)
        }
    )
    return [
        *one_set(
            f"marks{suffix}",
            f"{place} : mark",
            (f'{element} comment "{in_comment(one.name)}" : {one.mark}' for element, one in elements),
            "services of several ports, and their marks",
            "interval",
            "map",
        ),
        *one_set(
            f"service_ranges{suffix}", place, (element for element, _ in elements), "what clients may reach", "interval"
        ),
        *one_set(
            f"reply_ranges{suffix}",
            place,
            _apart(backs),
            "sources of NAT replies",
            "interval",
        ),
    ]


def _overlaps(ports: tuple[int, int], taken: list[tuple[tuple[int, int], VirtualService]]) -> bool:
    return any(first <= ports[1] and ports[0] <= last for (first, last), _ in taken)


def _apart(backs: Iterable[tuple[Order, str, Range, str]]) -> list[str]:
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


def by_mark(all_of: All, version: int) -> list[VirtualService]:
    return [one for snapshot in all_of for one in _by_mark(snapshot) if addresses.version(one.address) == version]


@kept
def _by_mark(snapshot: Snapshot) -> list[VirtualService]:
    found = (one for one in snapshot.enabled_services if one.by_mark)
    return sorted(found, key=lambda one: (order(one.address), one.id))


def one_set(
    name: str,
    kind: str,
    elements: Iterable[str],
    comment: str,
    flag: str = "",
    keyword: str = "set",
    grows: bool = False,
) -> list[str]:
    """The lines of a set or map. One of a known size gets the kernel's quicker table (nft_set_hash.c)."""
    lines = [f"\t{keyword} {name} {{", f"\t\ttype {kind}"]
    if flag:
        lines.append(f"\t\tflags {flag}")
    lines.append(f'\t\tcomment "{comment}"')
    elements = list(elements)
    if elements and not flag and not grows:
        lines.append(f"\t\tsize {len(elements)}")
    if elements:
        lines += ["\t\telements = {", *(f"\t\t\t{element}," for element in elements), "\t\t}"]
    return [*lines, "\t}", ""]


def _management(snapshot: Snapshot, version: int) -> list[str]:
    """Networks in order; an interval set refuses overlaps, so what lies in another one is left out."""
    networks = (parse_network(text) for text in snapshot.management.allow if addresses.version(text) == version)
    return [str(network) for network in addresses.collapsed(networks)]


def foreign_vips(all_of: All, version: int) -> list[str]:
    """VIPs that are not an interface's address as well: a shared address must keep its web UI."""
    used = [interface for interface in all_of[0].network.interfaces if interface.on]
    own = {text.partition("/")[0] for interface in used for text in (*interface.addresses, *interface.floating)}
    vips = {vip for snapshot in all_of for service in snapshot.enabled_services for vip in service.vips} - own
    return sorted((vip for vip in vips if addresses.version(vip) == version), key=order)


def _services(all_of: All, version: int) -> list[str]:
    places = [
        place
        for snapshot in reversed(all_of)
        for one in snapshot.enabled_services
        if (place := _place(one)) and place[0] == version
    ]
    found = {place[1]: place[2] for place in places}
    return [found[place] for place in sorted(found)]


@kept
def _place(service: VirtualService) -> tuple[int, tuple[Order, str, int], str] | None:
    """Version, order and element of a service that is found by its address and port."""
    if service.by_mark:
        return None
    element = f'{service.address} . {service.protocol} . {service.port} comment "{in_comment(service.name)}"'
    return addresses.version(service.address), (order(service.address), service.protocol, service.port), element


def _replies(all_of: All, version: int) -> list[str]:
    """Also of disabled servers and of those that have another method now: what began with NAT ends in peace.

    It opens nothing: what IPVS does not know as an answer is dropped behind it.
    """

    return by_place(all_of, version, _answers)


@kept
def _answers(service: VirtualService) -> tuple[Element, ...]:
    protocol = str(service.protocol)
    return tuple(
        ((order(server.address), protocol, server.port), f"{server.address} . {protocol} . {server.port}")
        for server in service.machines
    )


def _answering(all_of: All, version: int) -> list[str]:
    """All VIPs; were a real server's own address one of them, nobody could tell its answer from one that IPVS knows."""
    services = [service for snapshot in all_of for service in snapshot.enabled_services]
    vips = {vip for service in services for vip in service.vips}
    vips.difference_update(*map(_machines, services))
    return sorted((vip for vip in vips if addresses.version(vip) == version), key=order)


@kept
def _machines(service: VirtualService) -> frozenset[str]:
    return frozenset(server.address for server in service.machines)


def by_place(all_of: All, version: int, places: Callable[[VirtualService], Iterable[Element]]) -> list[str]:
    """Elements of a set, in order, with the names of the services that have them.

    `places` gives those of a service, each as a key for their order and the element's own text.
    """
    found: dict[Element, list[str]] = {}
    for snapshot in all_of:
        here: dict[Element, list[str]] = {}
        for service in snapshot.enabled_services:
            if service.by_mark or addresses.version(service.address) != version:
                continue
            for element in places(service):
                here.setdefault(element, []).append(service.name)
        found = here | found  # named as in the new configuration, so that nothing differs where nothing leaves
    return [f'{text} comment "{_comment(names)}"' for (_, text), names in sorted(found.items())]


def _comment(names: list[str]) -> str:
    """A server of many services names the first and counts the rest."""
    first = in_comment(names[0])
    return first if len(names) == 1 else f"{first} and {len(names) - 1} more"
