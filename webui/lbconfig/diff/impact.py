"""What a change does to the connections that are open now: kept, closed, or refused for a moment.

A connection lives in the kernel under its service and its real server. It is kept while both stay in the table, and
closed when one of them leaves; where the policy does not release it, it gets no answer until its time is over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lbconfig.diff.change import REFUSED
from lbconfig.model.snapshot import Snapshot, VirtualService
from lbconfig.wanted import table as ipvs

FALLBACK = 0  # the id under which the connections of a fallback server are counted

# Service id -> {real server id: connections that are open}.
Live = Mapping[int, Mapping[int, int]]


@dataclass(frozen=True, slots=True)
class ServiceImpact:
    id: int
    name: str
    kept: int
    closed: int
    refused: bool  # new connections may be refused for a moment
    leaves: str  # what leaves the table: "service", "place", "server"; "": nothing
    sentence: str  # for the admin; "": nothing to say


@dataclass(frozen=True, slots=True)
class Impact:
    services: tuple[ServiceImpact, ...]  # every service that runs
    sentence: str  # all together

    @property
    def kept(self) -> int:
        return sum(service.kept for service in self.services)

    @property
    def closed(self) -> int:
        return sum(service.closed for service in self.services)


def impact(running: Snapshot, new: Snapshot, live: Live) -> Impact:
    """`live` as the kernel's table says; what it does not name counts as 0. Both snapshots must be valid."""
    after = {service.id: service for service in new.enabled_services}
    by_key = {ipvs.key(service): service for service in new.enabled_services}
    releases = new.policy.release_removed
    services = tuple(
        _service(one, by_key.get(ipvs.key(one)), one.id in after, live.get(one.id, {}), releases)
        for one in running.enabled_services
    )
    return Impact(services, _total(services, releases))


def _service(
    old: VirtualService, new: VirtualService | None, stays: bool, counts: Mapping[int, int], releases: bool
) -> ServiceImpact:
    """`new`: the service that has its place in the kernel's table afterwards; `stays`: it is served somewhere."""
    if new is old:  # the usual case, and a thousand services have many servers to look at
        return ServiceImpact(old.id, old.name, sum(counts.values()), 0, False, "", "")
    after = new if new is not None and _covered(old, new) else None  # None: what `old` served is served no more
    places = set() if after is None else _places(after)
    gone = {key for key, place in _numbered(old).items() if place not in places}
    closed = sum(count for key, count in counts.items() if key in gone)
    kept = sum(counts.values()) - closed
    refused = after is not None and old.scheduler != after.scheduler
    leaves = ("server" if gone - {FALLBACK} else "") if after else ("place" if stays else "service")
    return ServiceImpact(
        old.id, old.name, kept, closed, refused, leaves, _sentence(leaves, kept, closed, refused, releases)
    )


def _covered(old: VirtualService, new: VirtualService) -> bool:
    """Whether `new` is reached wherever `old` was. What brings more packets to the same mark closes nothing."""
    return (
        set(old.vips) <= set(new.vips)
        and set(old.protocol.parts) <= set(new.protocol.parts)
        and all(
            any(start <= first and last <= end for start, end in new.port_ranges) for first, last in old.port_ranges
        )
    )


def _numbered(service: VirtualService) -> dict[int, tuple[str, int]]:
    """Id to place of what may be in the table."""
    found = {server.id: (server.address, server.port) for server in service.real_servers if server.in_table}
    if fallback := service.fallback_server:
        found[FALLBACK] = (fallback.address, fallback.port)
    return found


def _places(service: VirtualService) -> set[tuple[str, int]]:
    return set(_numbered(service).values())


def _sentence(leaves: str, kept: int, closed: int, refused: bool, releases: bool) -> str:
    words = {
        "service": f"{_open(closed)} through it {_are(closed)} {_end(releases)}.",
        "place": f"It leaves its old address or port: {_open(closed)} there {_are(closed)} {_end(releases)}.",
        "server": f"{_open(closed)} to servers that leave {_are(closed)} {_end(releases)}, {kept} {_are(kept)} kept.",
    }
    none = {
        "service": "No connection is open through it at the moment.",
        "place": "It leaves its old address or port; no connection is open there at the moment.",
        "server": f"No connection is open to the servers that leave; {_open(kept)} {_are(kept)} kept.",
    }
    said = []
    if leaves:
        said.append((words if closed else none)[leaves])
    if refused:
        said.append(REFUSED)
        if not leaves:
            said.append(f"{_open(kept)} {_are(kept)} kept.")
    return " ".join(said)


def _total(services: tuple[ServiceImpact, ...], releases: bool) -> str:
    hit = [service for service in services if service.closed]
    closed, kept = sum(service.closed for service in hit), sum(service.kept for service in services)
    refused = sum(service.refused for service in services)
    many = f"{len(hit)} service{'s' * (len(hit) != 1)}"
    if closed:
        said = f"{_open(closed)} of {many} {_are(closed)} {_end(releases)}, {kept} {_are(kept)} kept."
    elif kept:
        said = f"No connection is closed, {kept} {_are(kept)} kept."
    else:
        said = "No connection is open now."
    if refused:
        said += f" {refused} service{'s' * (refused != 1)} may refuse new connections for a moment."
    return said


def _open(count: int) -> str:
    return f"{count} connection{'s' * (count != 1)}"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _end(releases: bool) -> str:
    return "closed" if releases else "left without an answer until they time out"
