"""What the box does now."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from django.shortcuts import render

from applier.wire.shapes import RealServerStatus, ServiceStatus
from draft.frame import Frame, look
from lbconfig.model import names
from lbconfig.model.addresses import endpoint, shown
from lbconfig.model.snapshot import CheckKind, FallbackKind, RealServer, VirtualService
from monitoring import listing
from system.capacity import summary

# Health in words and as a sign, so that nobody needs to tell colours apart.
HEALTH = {
    "up": ("▲", "up", "good"),
    "down": ("▼", "down", "bad"),
    "checking": ("…", "checking", "wait"),
    "draining": ("◐", "draining", "wait"),
    "disabled": ("■", "disabled", "off"),
    "kept": ("▼", "fails, kept", "bad"),
    "waiting": ("◐", "well, but too few others are", "wait"),
    "unchecked": ("◇", "not checked", "wait"),
    "draft": ("+", "not applied", "off"),
    "unknown": ("?", "not known", "off"),
}


def overview(request):
    return render(request, "monitoring/overview.html", _context(request))


def live_overview(request):
    """The part of the overview that the page fetches again every two seconds."""
    return render(request, "monitoring/live.html", _context(request) | {"refresh": True})


def _context(request) -> dict:
    frame = look(request)
    chosen = listing.choose(services(frame), request.GET)
    chosen.page.object_list = [_row(one) for one in chosen.page.object_list]
    return {"listing": chosen, "names": names, "load": summary(frame.status["load"] if frame.status else None)}


@dataclass(frozen=True)
class Shown:
    """A service and what is known of it, before anybody knows whether it is on the page that is asked for."""

    wish: VirtualService
    running: ServiceStatus | None  # what the kernel says of it
    applied: VirtualService | None  # as the box runs it
    removed: bool = False

    @cached_property
    def live(self) -> dict[int, RealServerStatus]:
        return {entry["id"]: entry for entry in self.running["real_servers"]} if self.running else {}

    def state(self, server: RealServer) -> str:
        """The health of a real server, or why it is unknown."""
        live = self.live.get(server.id)
        return live["health"] if live else "unknown" if self.applied and self.running is None else "draft"

    @cached_property
    def states(self) -> list[str]:
        return [self.state(server) for server in self.wish.real_servers]

    @property
    def up(self) -> int:
        return sum(state in ("up", "unchecked") for state in self.states)

    @property
    def all(self) -> int:
        """Servers that should answer."""
        return sum(state not in ("draining", "disabled", "draft") for state in self.states)

    @property
    def missing(self) -> bool:
        return self.running is not None and not self.running["table"] and self.wish.enabled

    @property
    def fallback(self) -> str:
        """Who answers instead of the real servers; "" while they do."""
        if not (self.applied and self.running and self.running["fallback"] and self.running["fallback"]["serves"]):
            return ""
        if self.applied.fallback.kind is FallbackKind.PAGE:
            return "sorry page shown"
        return f"fallback {shown(self.running['fallback']['address'], self.running['fallback']['port'])} serves"

    @property
    def fallback_down(self) -> str:
        """What is said where the fallback server is down; else ""."""
        fallback = self.running["fallback"] if self.applied and self.running else None
        if not (fallback and fallback["health"] == "down"):
            return ""
        too = ", too" if self.all and not self.up else ""
        return f"the fallback server {shown(fallback['address'], fallback['port'])} is down{too}: {fallback['reason']}"

    @property
    def too_few(self) -> str:
        """What is said where fewer servers are up than there must be; else ""."""
        least = self.applied.least_healthy if self.applied else None
        if not (least and self.running) or (self.up >= least.servers and not self.running["aside"]):
            return ""
        aside = "none serves: " if self.running["aside"] else ""
        return f"{aside}at least {max(least.servers, least.again if aside else 0)} must be up"

    @property
    def trouble(self) -> bool:
        """It is not in the table, somebody stands in or could not, or a server that should answer does not."""
        stands_in = bool(self.fallback or self.fallback_down)
        return self.missing or stands_in or (self.running is not None and self.up < self.all)

    @property
    def text(self) -> str:
        """What it can be found by."""
        wish = self.wish
        places = (endpoint(wish.address, wish.port), *wish.more_addresses, wish.more_ports)
        servers = (f"{shown(server.address, server.port)}\n{server.name}" for server in wish.real_servers)
        return "\n".join((wish.name, wish.note, *wish.tags, *places, *servers)).casefold()


def services(frame: Frame) -> list[Shown]:
    """Each service of the draft with what the kernel says of it, then those that still run but are removed."""
    running = {entry["id"]: entry for entry in frame.status["running"]["services"]} if frame.status else {}
    wished = {service.id: service for service in frame.draft.services}
    applied = {service.id: service for service in frame.running.services} if frame.running else {}
    if frame.running is None:  # what runs is unknown: show the draft, and claim nothing
        applied = wished
    kept = [Shown(service, running.get(key), applied.get(key)) for key, service in wished.items()]
    gone = [
        Shown(service, running.get(key), service, removed=True) for key, service in applied.items() if key not in wished
    ]
    return kept + gone


def _row(one: Shown) -> dict:
    service, running, applied = one.wish, one.running, one.applied
    runs = {server.id: server for server in applied.real_servers} if applied and running else {}
    servers = [
        _server(server, one.live.get(server.id), one.state(server), runs.get(server.id))
        for server in service.real_servers
    ]
    return {
        "id": service.id,
        "name": service.name,
        "note": service.note,
        "tags": service.tags,
        "disabled": not service.enabled,
        "place": endpoint(service.address, service.port),
        "more_ports": service.more_ports.replace(",", ", "),
        "more_addresses": ", ".join(service.more_addresses),
        "protocol": names.PROTOCOLS[service.protocol].long,
        "scheduler": names.SCHEDULERS[service.scheduler].long,
        "check": names.CHECKS[service.check.kind].long,
        "servers": servers,
        "up": one.up,
        "all": one.all,
        "active": sum(server["active"] or 0 for server in servers),
        "waiting": applied != service,
        "new": applied is None,
        "running": running is not None,
        "unchecked": service.check.kind is CheckKind.OFF,
        "fallback": one.fallback,
        "fallback_down": one.fallback_down,
        "too_few": one.too_few,
        "missing": one.missing,
        "removed": one.removed,
    }


def _server(server: RealServer, live: RealServerStatus | None, state: str, runs: RealServer | None) -> dict:
    """`live`: what the kernel says of it; `runs`: the server as it is applied."""
    sign, word, tone = HEALTH.get(state, ("?", state, "wait"))
    return {
        "id": server.id,
        "wish": str(runs.state) if runs else "",
        "address": server.address,
        "place": shown(server.address, server.port),
        "name": server.name,
        "state": state,
        "sign": sign,
        "word": word,
        "tone": tone,
        "weight": live["weight"] if live else None,
        "share": live["share"] if live and (state in ("up", "kept") or live["agent"]) else None,
        "agent": live["agent"] if live else "",
        "since": live["since"] if live else "",
        "reason": live["reason"] if live else "",
        "wished": server.weight,
        "active": live["active"] if live else None,
        "inactive": live["inactive"] if live else None,
    }
