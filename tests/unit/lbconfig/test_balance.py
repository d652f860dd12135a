"""Weights that follow the load, and a least number of servers: the rules, the words, and the way of the table."""

import dataclasses

import pytest
from lbconfig_samples import with_service
from tests.texts import within

from lbconfig.diff.services import summary
from lbconfig.model.snapshot import (
    Agent,
    AgentKind,
    CheckKind,
    HealthCheck,
    LeastHealthy,
    RealServer,
    Scheduler,
    ServerState,
    TooFew,
)
from lbconfig.render import ldirectord
from lbconfig.validate.services import validate
from lbconfig.wanted import table as ipvs
from lbconfig.wanted.table import Server, Table

TEXT = Agent(AgentKind.TEXT)
SERVERS = (RealServer(1, "10.2.0.11", 80, 2), RealServer(2, "10.2.0.12", 80))


def balanced(**fields):
    snapshot = with_service(**{"real_servers": SERVERS, **fields})
    return dataclasses.replace(snapshot, services=snapshot.services[:1])


def test_what_may_be_said():
    for fields in (
        {"agent": TEXT},
        {"agent": Agent(AgentKind.HTTP, 8080, 60, 100), "slow_start": 600, "scheduler": Scheduler.WRR},
        {"agent": Agent(AgentKind.RESPONSE, floor=25)},
        {"least_healthy": LeastHealthy(1, TooFew.KEEP), "scheduler": Scheduler.RR},
        {"least_healthy": LeastHealthy(1, TooFew.ASIDE, 2)},
    ):
        assert validate(balanced(**fields)) == [], fields


@pytest.mark.parametrize(
    ("fields", "path", "words"),
    [
        ({"agent": TEXT, "scheduler": Scheduler.RR}, "agent.kind", "needs a scheduler that goes by weights"),
        ({"agent": TEXT, "check": HealthCheck(CheckKind.OFF)}, "agent.kind", "needs a health check"),
        ({"agent": Agent(AgentKind.TEXT, 0)}, "agent.port", within(1, 65535, 0)),
        ({"agent": Agent(AgentKind.TEXT, 2**80)}, "agent.port", within(1, 65535, 2**80)),
        ({"agent": Agent(AgentKind.TEXT, 1, 1)}, "agent.interval", within(2, 60, 1)),
        ({"agent": Agent(AgentKind.TEXT, floor=9)}, "agent.floor", within(10, 100, 9)),
        ({"agent": Agent(AgentKind.RESPONSE, 8080)}, "agent.port", "has no effect"),
        ({"agent": Agent(floor=20)}, "agent.floor", "has no effect"),
        ({"slow_start": 601}, "slow_start", within(0, 600, 601)),
        ({"slow_start": 5, "scheduler": Scheduler.SH}, "slow_start", "needs a scheduler that goes by weights"),
        ({"least_healthy": LeastHealthy(3)}, "least_healthy.servers", within(0, 2, 3)),
        ({"least_healthy": LeastHealthy(-1)}, "least_healthy.servers", within(0, 2, -1)),
        ({"least_healthy": LeastHealthy(0, TooFew.KEEP)}, "least_healthy.then", "has no effect"),
        ({"least_healthy": LeastHealthy(1, TooFew.KEEP, 2)}, "least_healthy.again", "has no effect"),
        ({"least_healthy": LeastHealthy(2, TooFew.ASIDE, 1)}, "least_healthy.again", within(2, 2, 1)),
        (
            {"least_healthy": LeastHealthy(1), "check": HealthCheck(CheckKind.OFF)},
            "least_healthy.servers",
            "needs a health check",
        ),
    ],
)
def test_what_may_not_be_said(fields, path, words):
    [problem] = validate(balanced(**fields))
    assert problem.path.endswith(f"].{path}")
    assert words in problem.message


def test_a_weight_has_room_for_its_steps():
    snapshot = balanced(agent=TEXT, real_servers=(dataclasses.replace(SERVERS[0], weight=656),))
    [problem] = validate(snapshot)
    assert problem.path.endswith(".real_servers[id=1].weight")
    assert "must be at most 655 where weights follow the load, not 656" in problem.message


def test_the_review_says_it():
    old = balanced()
    new = balanced(agent=TEXT, slow_start=30, least_healthy=LeastHealthy(1, TooFew.ASIDE, 2))
    [there] = summary(old, new)
    assert there.sentences == (
        "Server weights follow an agent on each server (port 3333, every 5 s); each gets at least 10 % of its own.",
        "Slow start: a server that was down returns to its full weight within 30 s.",
        "When fewer than 1 of its servers are up: serve nobody, until 2 are up.",
    )
    [back] = summary(new, old)
    assert back.sentences == (
        "Server weights stay as configured.",
        "A server that was down gets its full weight at once.",
        "No minimum number of healthy servers.",
    )


def test_the_checks_are_told_and_the_table_has_finer_weights():
    snapshot = balanced(agent=TEXT, slow_start=30, least_healthy=LeastHealthy(1, TooFew.KEEP))
    [service] = snapshot.services
    text = ldirectord.render(snapshot)
    line = "agent=text port=3333 interval=5 floor=10 slow=30 least=1 then=keep again=0"
    assert f"# balance -t {service.address}:{service.port} id={service.id} {line}\n" in text
    assert "10.2.0.11:80 masq 200\n" in text and "10.2.0.12:80 masq 100\n" in text
    assert "# balance" not in ldirectord.render(balanced())


# What the table has, and what an apply of the same configuration leaves there; the whole weight is 200.
KEPT = [(0, 0), (20, 20), (110, 110), (200, 200)]
SET_RIGHT = [(1, 200), (2, 200), (19, 200), (201, 200), (65535, 200)]


@pytest.mark.parametrize(("weight", "left"), KEPT + SET_RIGHT)
def test_only_what_the_checks_can_have_written_is_theirs(weight, left):
    snapshot = balanced(agent=TEXT, real_servers=SERVERS[:1])
    wanted = ipvs.wanted(snapshot)
    [service] = wanted.services
    running = Table({service: {("10.2.0.11", 80): Server(weight)}})
    changes = ipvs.changes(running, wanted, ipvs.checked(snapshot))
    assert [change.new.weight for change in changes] == ([left] if left != weight else [])


def test_whoever_drains_has_no_weight():
    drains = dataclasses.replace(SERVERS[0], state=ServerState.QUIESCED)
    snapshot = balanced(agent=TEXT, real_servers=(drains,))
    wanted = ipvs.wanted(snapshot)
    [service] = wanted.services
    running = Table({service: {("10.2.0.11", 80): Server(150)}})
    [change] = ipvs.changes(running, wanted, ipvs.checked(snapshot))
    assert change.new.weight == 0


def test_without_it_a_weight_is_the_admin_s_again():
    snapshot = balanced(real_servers=SERVERS[:1])
    wanted = ipvs.wanted(snapshot)
    [service] = wanted.services
    running = Table({service: {("10.2.0.11", 80): Server(150)}})
    [change] = ipvs.changes(running, wanted, ipvs.checked(snapshot))
    assert change.new.weight == 2
