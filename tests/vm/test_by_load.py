"""Weights that follow the load, on a box with a kernel's table: nobody but the checks changes them."""

import dataclasses

import pytest
from board.machines.director import VIP, service, wish
from board.machines.wait import until
from board.machines.world import SERVERS

from lbconfig.model.snapshot import Agent, AgentKind, Scheduler

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("balanced")]

SITE = dataclasses.replace(
    service(1, "site", scheduler=Scheduler.WRR), agent=Agent(AgentKind.TEXT, interval=2), slow_start=600
)
OTHER = service(2, "other", 81, server_port=80)


def shares(director) -> dict[str, int]:
    table = director.weights()
    return {name: table[f"{VIP}:80", f"{address}:80"] for name, address in SERVERS.items()}


def test_an_agent_s_weights_outlive_an_apply_a_look_a_repair_and_both_programs(director, world):
    world.agent_says("rs1", "40%\n")
    world.agent_says("rs2", "drain\n")
    director.apply(wish(SITE))
    wanted = {"rs1": 40, "rs2": 0, "rs3": 100}
    until("the agents' shares", lambda: shares(director) == wanted)
    until("what is shown", lambda: told(director) == [("up", 40, ""), ("draining", 0, "drain"), ("up", 100, "")])
    director.apply(wish(SITE, OTHER))
    assert shares(director) == wanted
    director.succeed("ipvsadm -e -t 10.1.0.100:80 -r 10.2.0.13:80 -m -w 500")
    [found] = until("what is not the checks' own", lambda: differences(director), expected=())
    assert SERVERS["rs3"] in found
    director.applier("repair")
    assert shares(director) == wanted
    director.succeed("sv restart /run/service/applier")
    until("the applier", lambda: director.execute("fairlead-applier status").exit == 0)
    assert shares(director) == wanted


def differences(director) -> list[str]:
    """One counts from the second look on that finds it."""
    director.applier("look")
    return [one["object"] for one in director.status()["drift"]["differences"]]


def told(director) -> list[tuple]:
    [service] = director.status()["running"]["services"]
    return [(one["health"], one["share"], one["agent"]) for one in service["real_servers"]]
