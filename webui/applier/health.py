"""The health of each real server, told from what is wished and what the kernel's table says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from applier.shapes import FallbackStatus, Health, RunningStatus, ServiceStatus
from lbconfig.render import ipvs
from lbconfig.snapshot import CheckKind, RealServer, ServerState, Snapshot, VirtualService
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
        begun = checked_for is not None and checked_for < worst_case_detection(service.check)
        services.append(_service(service, entries, begun))
    return {"services": services}


def _service(service: VirtualService, entries: Entries, begun: bool) -> ServiceStatus:
    table = entries.get(ipvs.key(service))
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
    return {
        "id": service.id,
        "name": service.name,
        "table": table is not None,
        "real_servers": servers,
        "fallback": _fallback(service, table or {}),
    }


def _fallback(service: VirtualService, table: Mapping[tuple[str, int], Entry]) -> FallbackStatus | None:
    server = service.fallback_server
    if server is None:
        return None
    entry = table.get((server.address, server.port))
    return {
        "address": server.address,
        "port": server.port,
        "serves": entry is not None,
        "active": entry.active if entry else 0,
        "inactive": entry.inactive if entry else 0,
    }


def _health(service: VirtualService, server: RealServer, entry: Entry | None, begun: bool) -> Health:
    if not (service.enabled and server.in_table):
        return "disabled"
    if server.state is ServerState.QUIESCED:
        return "draining"
    if service.check.kind is CheckKind.OFF:
        return "unchecked"
    if entry is not None and entry.weight > 0:
        return "up"
    return "checking" if begun else "down"
