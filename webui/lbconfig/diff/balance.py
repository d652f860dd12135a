"""What changes about weights that follow the load, and about a least number of servers, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from lbconfig.model import names
from lbconfig.model.snapshot import Agent, AgentKind, LeastHealthy, TooFew, VirtualService


def balance_changes(old: VirtualService, new: VirtualService) -> Iterator[str]:
    for before, after in (
        (_agent(old.agent), _agent(new.agent)),
        (_slow_start(old.slow_start), _slow_start(new.slow_start)),
        (_least(old.least_healthy), _least(new.least_healthy)),
    ):
        if before != after:
            yield after


def _agent(agent: Agent) -> str:
    if agent.kind is AgentKind.OFF:
        return "Server weights stay as configured."
    asked = f" (port {agent.port}, every {agent.interval} s)" if agent.kind is not AgentKind.RESPONSE else ""
    told = names.AGENTS[agent.kind].long
    return f"Server weights follow {told}{asked}; each gets at least {agent.floor} % of its own."


def _slow_start(seconds: int) -> str:
    if not seconds:
        return "A server that was down gets its full weight at once."
    return f"Slow start: a server that was down returns to its full weight within {seconds} s."


def _least(least: LeastHealthy) -> str:
    if not least.servers:
        return "No minimum number of healthy servers."
    again = f", until {least.again} are up" if least.then is TooFew.ASIDE and least.again else ""
    return f"When fewer than {least.servers} of its servers are up: {names.TOO_FEW[least.then].long}{again}."
