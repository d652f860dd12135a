"""What the kernel of the box in memory would hold. Part of appliance.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from applier.host.ipvs_listing import Entry
from applier.service import health
from applier.wire.shapes import Event, InterfaceStatus
from lbconfig.model.snapshot import CheckKind, Interface, RealServer, ServerState, VirtualService
from lbconfig.pair import views
from lbconfig.validate.cards import Card, of_status
from lbconfig.wanted import table as ipvs

if TYPE_CHECKING:
    from tests.fake.appliance import Box


def entries(b: Box) -> health.Entries:
    """What the kernel's table would hold, with connections that look alive but are the same on every call."""
    table = {
        ipvs.key(service): {
            (server.address, server.port): _entry(b, service, server)
            for server in service.real_servers
            if server.in_table
        }
        for service in b.snapshot.enabled_services
    }
    for service in b.snapshot.enabled_services:
        servers, fallback = table[ipvs.key(service)], service.fallback_server
        fallback_is_down = fallback and (fallback.address, fallback.port) in b.down
        if fallback and not fallback_is_down and not any(entry.weight for entry in servers.values()):
            servers[fallback.address, fallback.port] = Entry(1, active=7)
    return table


def downs(b: Box) -> dict[int, dict[tuple[str, int], Event]]:
    """The same on every call, so that screens can be compared."""
    return {
        service.id: {
            (server.address, server.port): {
                "when": "2026-01-31T02:14:00Z",
                "service": service.id,
                "name": service.name,
                "server": server.address,
                "port": server.port,
                "state": "down",
                "reason": "503 Service Unavailable",
                "failures": service.check.failures,
                "seconds": 0.021,
            }
            for server in service.machines
            if (server.address, server.port) in b.down
        }
        for service in b.snapshot.enabled_services
    }


def _entry(b: Box, service: VirtualService, server: RealServer) -> Entry:
    if service.check.kind is not CheckKind.OFF and (server.address, server.port) in b.down:
        return Entry(weight=0)
    if server.state is ServerState.QUIESCED:
        return Entry(weight=0, active=server.id)
    return Entry(ipvs.weight_of(service, server), active=12 * server.weight + server.id, inactive=3 * server.id)


def present(b: Box) -> tuple[Card, ...]:
    """Nobody looks, unless a test says which cards there are."""
    return () if b.cards is None else of_status(interfaces(b))


def interfaces(b: Box) -> list[InterfaceStatus]:
    snapshot = views(b.snapshot)[0]  # of a pair: the first box
    known = {one.name: one for one in snapshot.network.interfaces}
    cards = known if b.cards is None else dict.fromkeys([*(name for name in known if known[name].made), *b.cards])
    vips = sorted({f"{vip}/32" for service in snapshot.enabled_services for vip in service.vips})
    return [
        {
            "name": interface.name,
            "mac": f"52:54:00:00:00:{index + 1:02x}",
            "up": True,
            "addresses": [*interface.addresses, *(vips if index == 0 else [])],
            "kind": "vlan" if interface.vlan else "bond" if interface.bond else "bridge" if interface.bridge else "",
            "master": next((one.name for one in snapshot.network.interfaces if interface.name in one.members), ""),
            "mtu": interface.mtu or 1500,
            "speed": 1000 if not interface.made else 0,
        }
        for index, interface in enumerate(known.get(name, Interface(name)) for name in cards)
    ]
