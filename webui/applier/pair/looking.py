"""What keeps a box of a pair from serving as well as it could, as it sees it itself.

It is looked at every two seconds: only files of the kernel are read and the gateways asked. Which servers are alive,
the health checks have said already.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from pathlib import Path

from applier.base.paths import Paths
from applier.host.host import Host, HostError
from applier.kept.events import ALL, Downs
from applier.pair import client
from applier.pair.fitness import Observed
from lbconfig.model.addresses import contains
from lbconfig.model.network import Network
from lbconfig.model.snapshot import Snapshot, VirtualService

FORWARDING = "net/ipv4/ip_forward"
CLASS = Path("/sys/class/net")
ANSWERS = 1  # seconds that a gateway may take
# Faults of a box that does not run what it should, and so may serve nobody.
UNABLE = ("start", "not-restored", "table")


def observe(host: Host, paths: Paths, own: Snapshot, downs: Downs, faults: Mapping[str, str]) -> Observed:
    """`own` is the view of this box; `faults` are sentences by their code."""
    return Observed(
        _unable(host, paths, faults),
        tuple(_without_link(host, own.network)),
        tuple(_silent(host, own.network)),
        tuple(dead(own, downs)),
    )


def _unable(host: Host, paths: Paths, faults: Mapping[str, str]) -> str:
    for code in UNABLE:
        if code in faults:
            return faults[code].rstrip(".")
    if host.setting(FORWARDING) != "1":
        return "the kernel forwards nothing (net.ipv4.ip_forward)"
    return "" if client.role(host, paths) else "the floater does not run"


def _without_link(host: Host, network: Network) -> Iterator[str]:
    """Members of a bond or a bridge are not looked at: it has a link as long as one of them has."""
    for interface in network.interfaces:
        used = interface.on and (interface.addresses or interface.floating or interface.dhcp)
        if used and not _has_link(host, interface.name):
            yield interface.name


def _has_link(host: Host, name: str) -> bool:
    try:
        return (host.read(CLASS / name / "carrier") or "").strip() == "1"
    except HostError:  # of one that is switched off the kernel tells nothing
        return False


def _silent(host: Host, network: Network) -> Iterator[str]:
    """Gateways that do not answer. One in no network of this box is left out: it is asked by nothing that is known."""
    for gateway in filter(None, (network.gateway, network.gateway6)):
        place = _beside(network, gateway)
        if place is not None and not _answers(host, gateway, *place):
            yield gateway


def _beside(network: Network, gateway: str) -> tuple[str, str] | None:
    """(interface, own address there)."""
    for interface in network.interfaces:
        for text in interface.addresses if interface.on else ():
            own = ipaddress.ip_interface(text)
            if contains(own.network, gateway):
                return interface.name, str(own.ip)
    return None


def _answers(host: Host, gateway: str, interface: str, own: str) -> bool:
    if ":" in gateway:
        argv = ["ping", "-6", "-c", "1", "-W", str(ANSWERS), gateway]
    else:
        argv = ["arping", "-I", interface, "-s", own, "-c", "1", "-w", str(ANSWERS), gateway]
    return host.command(argv, timeout=ANSWERS + 5).exit == 0


def dead(snapshot: Snapshot, downs: Downs) -> Iterator[str]:
    """The names of services of which no server is alive, as far as the checks have said."""
    for service in snapshot.enabled_services:
        if _is_dead(service, downs):
            yield service.name


def _is_dead(service: VirtualService, downs: Downs) -> bool:
    gone = {place for place, event in downs.get(service.id, {}).items() if event["state"] in ("down", "aside")}
    servers = [(server.address, server.port) for server in service.real_servers if server.in_table]
    return bool(servers) and (ALL in gone or gone.issuperset(servers))
