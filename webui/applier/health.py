"""The health of each real server, told from what is wished and what the kernel's table says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from applier.shapes import Health, RunningStatus, ServiceStatus
from lbconfig.snapshot import CheckKind, RealServer, Snapshot, VirtualService
from lbconfig.validate import worst_case_detection


@dataclass(frozen=True, slots=True)
class Entry:
    """A real server in the kernel's table."""

    weight: int
    active: int = 0
    inactive: int = 0


# (protocol, VIP, port) -> {(address, port): Entry}
Entries = Mapping[tuple[str, str, int], Mapping[tuple[str, int], Entry]]


def running(snapshot: Snapshot, entries: Entries, checked_for: float | None) -> RunningStatus:
    """`checked_for`: seconds since the health checks were last started; None: they do not run."""
    services = []
    for service in snapshot.services:
        begun = checked_for is not None and checked_for < worst_case_detection(service, snapshot)
        services.append(_service(service, entries, begun))
    return {"services": services}


def _service(service: VirtualService, entries: Entries, begun: bool) -> ServiceStatus:
    table = entries.get((str(service.protocol), service.address, service.port))
    servers = []
    for server in service.real_servers:
        entry = (table or {}).get((server.address, server.port))
        servers.append(
            {
                "id": server.id,
                "address": server.address,
                "port": server.port,
                "weight": entry.weight if entry else 0,
                "active": entry.active if entry else 0,
                "inactive": entry.inactive if entry else 0,
                "health": _health(service, server, entry, begun),
            }
        )
    return {"id": service.id, "name": service.name, "table": table is not None, "real_servers": servers}


def _health(service: VirtualService, server: RealServer, entry: Entry | None, begun: bool) -> Health:
    if not server.enabled:
        return "disabled"
    if service.check.kind is CheckKind.OFF:
        return "unchecked"
    if entry is not None and entry.weight > 0:
        return "up"
    return "checking" if begun else "down"
