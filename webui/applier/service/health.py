"""The health of each real server, told from what is configured and what the kernel's table says."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Never

from applier.host.ipvs_listing import Entry
from applier.kept.events import Downs, Place
from applier.service import shares
from applier.wire.shapes import Event, FallbackStatus, Health, RealServerStatus, RunningStatus, ServiceStatus
from lbconfig.model.checks import worst_case_detection
from lbconfig.model.snapshot import CheckKind, FallbackCheck, RealServer, ServerState, Snapshot, VirtualService
from lbconfig.wanted import table as ipvs
from lbconfig.wanted.table import ServerKey, ServiceKey

NOTHING: Mapping[Any, Never] = MappingProxyType({})
SaidOf = Mapping[str, shares.Said]  # of one service
Servers = Mapping[ServerKey, Entry] | None  # by address and port; None: the service is not in the table
Why = Mapping[Place, Event]  # of one service
Entries = Mapping[ServiceKey, Mapping[ServerKey, Entry]]


class Told:
    """Tells the health again and again; of a service that did not change since the last time it is the same object."""

    def __init__(self) -> None:
        # By id: the service, its entries, whether its checks have just begun, what the checker says of its weights, why
        # its servers are down, and what was told. Replaced as a whole.
        self._last: dict[int, tuple[VirtualService, Servers, bool, SaidOf, Why, ServiceStatus]] = {}

    def __call__(
        self,
        snapshot: Snapshot,
        entries: Entries,
        checked_for: float | None,
        said: shares.Shares = NOTHING,
        downs: Downs = NOTHING,
    ) -> RunningStatus:
        """`checked_for`: seconds since the health checks were last started; None: they do not run."""
        last, told = self._last, {}
        for service in snapshot.services:
            begun = checked_for is not None and checked_for < worst_case_detection(service.check)
            table = entries.get(ipvs.key(service))
            why = downs.get(service.id, NOTHING)
            known = last.get(service.id)
            words = said.get(service.id, NOTHING)
            if known is None or known[0] is not service or known[1] is not table or known[2:5] != (begun, words, why):
                known = service, table, begun, words, why, _service(service, table, begun, words, why)
            told[service.id] = known
        self._last = told
        return {"services": [status for *_, status in told.values()]}


def _service(service: VirtualService, table: Servers, begun: bool, said: SaidOf, why: Why) -> ServiceStatus:
    servers: list[RealServerStatus] = []
    for server in service.real_servers:
        entry = (table or {}).get((server.address, server.port))
        words = said.get(shares.key(server.address, server.port))
        health = _health(service, server, entry, begun, words)
        event = why.get((server.address, server.port)) if health in ("down", "kept") else None
        servers.append(
            {
                "id": server.id,
                "address": server.address,
                "port": server.port,
                "weight": entry.weight if entry else 0,
                "active": entry.active if entry else 0,
                "inactive": entry.inactive if entry else 0,
                "share": _share(service, server, entry),
                "agent": words.word if words else "",
                "health": health,
                "since": event["when"] if event else "",
                "reason": event["reason"] if event else "",
            }
        )
    return {
        "id": service.id,
        "name": service.name,
        "table": table is not None,
        "real_servers": servers,
        "fallback": _fallback(service, table or {}, begun, why),
        "aside": shares.ALL in said,
    }


def _share(service: VirtualService, server: RealServer, entry: Entry | None) -> int | None:
    if not (service.weighed and entry):
        return None
    return round(100 * entry.weight / (server.weight * ipvs.FINE))


def _fallback(
    service: VirtualService, table: Mapping[tuple[str, int], Entry], begun: bool, why: Why
) -> FallbackStatus | None:
    """The table tells its health only while it is needed; before, the checks have told when it is down."""
    server = service.fallback_server
    if server is None:
        return None
    entry = table.get((server.address, server.port))
    checked = service.enabled and service.fallback.check is not FallbackCheck.OFF
    event = why.get((server.address, server.port)) if checked and entry is None else None
    return {
        "address": server.address,
        "port": server.port,
        "serves": entry is not None,
        "health": "unchecked" if not checked else "down" if event else "checking" if begun and not entry else "up",
        "since": event["when"] if event else "",
        "reason": event["reason"] if event else "",
        "active": entry.active if entry else 0,
        "inactive": entry.inactive if entry else 0,
    }


def _health(
    service: VirtualService, server: RealServer, entry: Entry | None, begun: bool, said: shares.Said | None
) -> Health:
    if not (service.enabled and server.in_table):
        return "disabled"
    if server.state is ServerState.QUIESCED:
        return "draining"
    if service.check.kind is CheckKind.OFF:
        return "unchecked"
    if entry is not None and entry.weight > 0:
        return "kept" if said and said.state == "kept" else "up"
    if said and said.word and said.state == "up":
        return "draining"
    if said and said.state == "well":
        return "waiting"
    return "checking" if begun else "down"
