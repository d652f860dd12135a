"""What the box does now."""

from django.shortcuts import render

from lbconfig import names
from lbconfig.addresses import endpoint, shown
from lbconfig.snapshot import CheckKind, FallbackKind, RealServer, VirtualService
from monitoring import listing
from monitoring.frame import Frame, look

# Health in words and as a sign, so that nobody needs to tell colours apart.
HEALTH = {
    "up": ("▲", "up", "good"),
    "down": ("▼", "down", "bad"),
    "checking": ("…", "checking", "wait"),
    "draining": ("◐", "draining", "wait"),
    "disabled": ("■", "disabled", "off"),
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
    return {"listing": listing.choose(services(frame), request.GET), "names": names}


def services(frame: Frame) -> list[dict]:
    """Each service of the draft with what the kernel says of it, then those that still run but are removed."""
    running = {entry["id"]: entry for entry in frame.status["running"]["services"]} if frame.status else {}
    wished = {service.id: service for service in frame.draft.services}
    applied = {service.id: service for service in frame.running.services} if frame.running else {}
    if frame.running is None:  # nobody can say what runs: show the draft, and claim nothing
        applied = wished
    shown = [_service(service, running.get(service.id), applied.get(key)) for key, service in wished.items()]
    gone = [_service(service, running.get(key), service) for key, service in applied.items() if key not in wished]
    return shown + [entry | {"removed": True} for entry in gone]


def _service(service: VirtualService, running: dict | None, applied: VirtualService | None) -> dict:
    """`running`: what the kernel says of it; `applied`: the service as the box runs it."""
    live = {entry["id"]: entry for entry in running["real_servers"]} if running else {}
    silent = "unknown" if applied and running is None else "draft"
    runs = {server.id: server for server in applied.real_servers} if applied and running else {}
    servers = [_server(server, live.get(server.id), silent, runs.get(server.id)) for server in service.real_servers]
    states = [server["state"] for server in servers]
    up = sum(state in ("up", "unchecked") for state in states)
    return {
        "id": service.id,
        "name": service.name,
        "note": service.note,
        "disabled": not service.enabled,
        "place": endpoint(service.address, service.port),
        "more_ports": service.more_ports.replace(",", ", "),
        "more_addresses": ", ".join(service.more_addresses),
        "protocol": names.PROTOCOLS[service.protocol].long,
        "scheduler": names.SCHEDULERS[service.scheduler].long,
        "check": names.CHECKS[service.check.kind].long,
        "servers": servers,
        "up": up,
        "all": sum(state not in ("draining", "disabled", "draft") for state in states),
        "active": sum(server["active"] or 0 for server in servers),
        "waiting": applied != service,
        "new": applied is None,
        "running": running is not None,
        "unchecked": service.check.kind is CheckKind.OFF,
        "fallback": _fallback(applied, running),
        "missing": running is not None and not running["table"] and service.enabled,
    }


def _fallback(applied: VirtualService | None, running: dict | None) -> str:
    """Who answers in place of the real servers; "" while they do."""
    if not (applied and running and running["fallback"] and running["fallback"]["serves"]):
        return ""
    if applied.fallback.kind is FallbackKind.PAGE:
        return "sorry page shown"
    return f"fallback {shown(running['fallback']['address'], running['fallback']['port'])} serves"


def _server(server: RealServer, live: dict | None, silent: str, runs: RealServer | None) -> dict:
    """`runs`: the server as it is applied."""
    state = live["health"] if live else silent
    sign, word, tone = HEALTH.get(state, ("?", state, "wait"))
    return {
        "id": server.id,
        "wish": str(runs.state) if runs else "",
        "address": server.address,
        "place": shown(server.address, server.port),
        "state": state,
        "sign": sign,
        "word": word,
        "tone": tone,
        "weight": live["weight"] if live else None,
        "wished": server.weight,
        "active": live["active"] if live else None,
        "inactive": live["inactive"] if live else None,
    }
