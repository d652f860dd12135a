"""Links, addresses, DHCP and the default gateway: read, add, remove. All through iproute2 and runit."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from applier.host import Host, HostError, run
from applier.paths import Paths
from lbconfig.addresses import version
from lbconfig.render.interfaces import NetworkState

NOTHING = NetworkState(hostname="", links=(), addresses=(), dhcp=(), gateway="")

Address = tuple[str, str]  # interface, "10.1.0.2/24"


@dataclass(frozen=True, slots=True)
class Link:
    name: str
    mac: str
    on: bool  # switched on here
    up: bool  # on, and there is something at the other end
    addresses: tuple[str, ...]  # as "10.1.0.2/24"; of IPv6 not the link-local one, which the kernel makes


def links(host: Host) -> list[Link]:
    """All but the loopback."""
    found = []
    for entry in _json(host, ["ip", "-json", "address", "show"]):
        if "LOOPBACK" in entry.get("flags", ()):
            continue
        addresses = tuple(
            f"{info['local']}/{info['prefixlen']}"
            for info in entry.get("addr_info", ())
            if info.get("family") == "inet" or (info.get("family") == "inet6" and info.get("scope") != "link")
        )
        on = "UP" in entry.get("flags", ())
        up = on and entry.get("operstate") != "DOWN"
        found.append(Link(entry["ifname"], entry.get("address", ""), on, up, addresses))
    return found


def addresses(host: Host) -> set[Address]:
    return {(link.name, address) for link in links(host) for address in link.addresses}


def gateways(host: Host, kind: int = 4) -> list[str]:
    """Those of the default routes of IPv4 or IPv6, the preferred one first."""
    option = ["-6"] if kind == 6 else []
    routes = _json(host, ["ip", "-json", *option, "route", "show", "default"])
    return [
        route["gateway"] for route in sorted(routes, key=lambda route: route.get("metric", 0)) if "gateway" in route
    ]


def all_gateways(host: Host) -> tuple[str, ...]:
    return tuple(gateway for kind in (4, 6) for gateway in gateways(host, kind))


def _not_preferred(host: Host, state: NetworkState) -> list[str]:
    """The gateways of the wish that are not in use."""
    return [gateway for gateway in state.gateways if gateway not in gateways(host, version(gateway))[:1]]


def leases(host: Host, state: NetworkState) -> dict[str, str]:
    """Interface to the address that DHCP brought there."""
    ours = set(state.addresses)
    return {name: address for name, address in sorted(addresses(host) - ours) if name in state.dhcp}


def missing(host: Host, state: NetworkState) -> list[str]:
    """What of the wish is not there, in words; empty: all is."""
    present = addresses(host)
    words = [f"{address} on {name}" for name, address in state.addresses if (name, address) not in present]
    return words + [f"the gateway {gateway}" for gateway in _not_preferred(host, state)]


def must_exist(host: Host, state: NetworkState) -> None:
    """HostError that names the first interface which this box has not."""
    known = {link.name: link for link in links(host)}
    for name in state.links:
        _existing(known, name)


def _existing(known: dict[str, Link], name: str) -> Link:
    if name not in known:
        there = ", ".join(sorted(known)) or "none at all"
        raise HostError(f"interface {name}", None, f"this box has no interface of that name (there is: {there})")
    return known[name]


def add(host: Host, paths: Paths, state: NetworkState, trouble: Callable[[HostError], None]) -> None:
    """Bring about all of the wish that is not there yet; takes nothing away.

    `trouble` gets each interface's error, and raises it where the rest shall not be tried.
    """
    if state.hostname and host.setting("kernel/hostname") != state.hostname:
        _tolerate(trouble, lambda: host.set("kernel/hostname", state.hostname))
    known = {link.name: link for link in links(host)}
    for name in dict.fromkeys([*state.links, *(name for name, _ in state.addresses)]):
        _tolerate(trouble, lambda name=name: _add_to_link(host, known, name, state))
    for name in state.dhcp:
        folder = paths.services / f"dhcp-{name}"
        if name in known and host.read(folder / "run") is None:
            _tolerate(trouble, lambda folder=folder: host.add_service(folder, paths.dhcp_template))
    for gateway in _not_preferred(host, state):
        _tolerate(trouble, lambda gateway=gateway: _batch(host, [f"route replace default via {gateway}"]))


def _add_to_link(host: Host, known: dict[str, Link], name: str, state: NetworkState) -> None:
    link = _existing(known, name)
    lines = [] if link.on else [f"link set dev {name} up"]
    wished = [address for interface, address in state.addresses if interface == name]
    lines += [
        f"address add {address} dev {name}{_kind(address)}" for address in wished if address not in link.addresses
    ]
    _batch(host, lines)


def _kind(address: str) -> str:
    """A VIP of IPv6 is there at once, and is not what the box itself speaks from (RFC 6724 would choose it)."""
    return " nodad preferred_lft 0" if version(address) == 6 and address.endswith("/128") else ""


def remove(host: Host, paths: Paths, ours: NetworkState, state: NetworkState) -> None:
    """Take away what is of `ours` and not of the wish `state`. What others brought (DHCP) stays."""
    dropped = [name for name in ours.dhcp if name not in state.dhcp]
    for name in dropped:
        _end_dhcp(host, paths, name)
    wished = {*state.addresses}
    present = addresses(host)
    gone = [address for address in ours.addresses if address in present and address not in wished]
    gone += [address for address in sorted(present) if address[0] in dropped and address not in wished]
    lines = [f"address del {address} dev {name}" for name, address in dict.fromkeys(gone)]
    kept = {version(gateway) for gateway in state.gateways}
    for gateway in ours.gateways:
        if version(gateway) not in kept and gateway in gateways(host, version(gateway)):
            lines.insert(0, f"route del default via {gateway}")
    if gone:
        # Otherwise the kernel takes the other addresses of a network away with its first one.
        host.set("net/ipv4/conf/all/promote_secondaries", "1")
    _batch(host, lines)


def _end_dhcp(host: Host, paths: Paths, name: str) -> None:
    folder = paths.services / f"dhcp-{name}"
    if host.read(folder / "run") is not None:
        # No supervisor yet, or none any more: then there is nothing to end.
        host.command(["sv", "-w", "5", "down", str(folder)])
        host.remove_service(folder)


def _batch(host: Host, lines: list[str]) -> None:
    if lines:
        run(host, ["ip", "-batch", "-"], stdin="".join(f"{line}\n" for line in lines))


def _tolerate(trouble: Callable[[HostError], None], action: Callable[[], None]) -> None:
    try:
        action()
    except HostError as error:
        trouble(error)


def _json(host: Host, argv: list[str]) -> Iterator[dict]:
    text = run(host, argv).stdout
    try:
        return json.loads(text or "[]")
    except ValueError:
        raise HostError(" ".join(argv), None, f"it printed something unreadable: {text[:100]!r}") from None


def set_down(host: Host, names: Collection[str]) -> None:
    _batch(host, [f"link set dev {name} down" for name in names])


def put_back_gateways(host: Host, before: Sequence[str], new: Sequence[str]) -> None:
    """The default routes as they were: the old one first, so that there is always one."""
    for kind in (4, 6):
        old = next((gateway for gateway in before if version(gateway) == kind), None)
        if old and old not in gateways(host, kind):
            _batch(host, [f"route replace default via {old}"])
    for gateway in new:
        if gateway not in before and gateway in gateways(host, version(gateway)):
            _batch(host, [f"route del default via {gateway}"])
