"""The rules for weights that follow the load, and for a least number of servers."""

from __future__ import annotations

from collections.abc import Iterator

from lbconfig.model import names
from lbconfig.model.problem import Place, Problem, each
from lbconfig.model.snapshot import Agent, AgentKind, CheckKind, Scheduler, TooFew, VirtualService
from lbconfig.validate.fields import in_range
from lbconfig.wanted.table import FINE, LEAST_SHARE

# By these a weight is a share at any moment. The others know 0 only (rr, lc, dh), hold a client to its server by what
# the weights were (sh, mh, lblc, lblcr), or mean something else by a weight (fo, ovf).
BY_WEIGHT = (Scheduler.WRR, Scheduler.WLC, Scheduler.SED, Scheduler.NQ, Scheduler.TWOS)
MOST_WEIGHT = 65535 // FINE
MAX_SLOW_START = 600  # seconds
INTERVALS = (2, 60)  # seconds
_FIELDS = {
    AgentKind.OFF: (),
    AgentKind.TEXT: ("port", "interval", "floor"),
    AgentKind.HTTP: ("port", "interval", "floor"),
    AgentKind.RESPONSE: ("floor",),
}


def agent_fields(kind: AgentKind) -> tuple[str, ...]:
    """Those that mean something for it."""
    return _FIELDS[kind]


def balance_problems(place: Place, service: VirtualService) -> Iterator[Problem]:
    agent, least = service.agent, service.least_healthy
    yield from each(
        place.inner("agent"),
        kind=_needs(service) if agent.kind is not AgentKind.OFF else None,
        port=in_range(agent.port, 1, 65535) or _unused(agent, "port"),
        interval=in_range(agent.interval, *INTERVALS) or _unused(agent, "interval"),
        floor=in_range(agent.floor, LEAST_SHARE, 100) or _unused(agent, "floor"),
    )
    yield from each(
        place,
        slow_start=in_range(service.slow_start, 0, MAX_SLOW_START) or (_needs(service) if service.slow_start else None),
    )
    yield from each(
        place.inner("least_healthy"),
        servers=_least(service),
        then=None if least.servers or least.then is TooFew.TELL else "has no effect without a least number of servers",
        again=_again(service),
    )


def weight_problem(service: VirtualService, weight: int) -> str | None:
    """Of a real server, beside what is true of each weight."""
    if service.weighed and weight > MOST_WEIGHT:
        return f"must be at most {MOST_WEIGHT} where weights follow the load, not {weight}"
    return None


def _needs(service: VirtualService) -> str | None:
    if service.check.kind is CheckKind.OFF:
        return "needs a health check: it is the checks that set these weights"
    if service.scheduler not in BY_WEIGHT:
        choice = ", ".join(names.SCHEDULERS[one].long for one in BY_WEIGHT)
        return f"needs a scheduler that goes by weights ({choice}), not {names.SCHEDULERS[service.scheduler].long}"
    return None


def _unused(agent: Agent, name: str) -> str | None:
    if name in agent_fields(agent.kind) or getattr(agent, name) == getattr(Agent(), name):
        return None
    return f"has no effect where the weights follow {names.AGENTS[agent.kind].long}: leave it out"


def _least(service: VirtualService) -> str | None:
    least = service.least_healthy.servers
    if not least:
        return None
    if service.check.kind is CheckKind.OFF:
        return "needs a health check: without one all servers count as up"
    return in_range(least, 0, _all(service))


def _again(service: VirtualService) -> str | None:
    least = service.least_healthy
    if not least.again:
        return None
    if least.then is not TooFew.ASIDE:
        return "has no effect where the service does not stand aside: leave it out"
    return in_range(least.again, least.servers, _all(service))


def _all(service: VirtualService) -> int:
    return sum(server.in_table for server in service.real_servers)
