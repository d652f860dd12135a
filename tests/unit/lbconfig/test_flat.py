"""Between an object of a snapshot and the flat values of a form."""

import dataclasses

from lbconfig_strategies import of_snapshots

from lbconfig.model.firewall import Per, RateLimit, Rule
from lbconfig.model.flat import defaults, flat, shaped
from lbconfig.model.snapshot import AgentKind, CheckKind, HealthCheck, RealServer, Request, TooFew, VirtualService

WEB = VirtualService(
    3, "web", "192.0.2.1", 80, more_addresses=("192.0.2.2",), check=HealthCheck(CheckKind.HTTP, port=8)
)


@of_snapshots(100)
def test_there_and_back(snapshot):
    for service in snapshot.services:
        values = flat(service)
        assert "real_servers" not in values and all(not isinstance(one, HealthCheck) for one in values.values())
        assert shaped(VirtualService, values, real_servers=service.real_servers) == service
        assert all(shaped(RealServer, flat(one)) == one for one in service.real_servers)
    assert all(shaped(Rule, flat(rule)) == rule for rule in snapshot.firewall.rules)


def test_names_are_those_of_the_fields_with_that_of_their_object_before():
    values = flat(WEB)
    assert (values["check_kind"], values["check_port"], values["port"]) == (CheckKind.HTTP, 8, 80)
    assert values["more_addresses"] == ("192.0.2.2",) and values["least_healthy_then"] is TooFew.TELL
    assert flat(Rule(1, "x", limit=RateLimit(5, Per.MINUTE)))["limit_per"] is Per.MINUTE


def test_a_list_of_objects_without_an_id_is_one_value():
    """They are not saved, versioned and merged by themselves, as real servers are."""
    more = (Request("/health", "ok"),)
    values = flat(dataclasses.replace(WEB, check=HealthCheck(CheckKind.HTTP, more_requests=more)))
    assert values["check_more_requests"] == more and defaults(VirtualService)["check_more_requests"] == ()


def test_what_is_left_open_is_as_it_begins():
    given_values = {"id": 1, "name": "x", "address": "192.0.2.1", "port": 53, "check_port": None, "agent_port": None}
    assert shaped(VirtualService, given_values) == VirtualService(1, "x", "192.0.2.1", 53)
    assert shaped(VirtualService, given_values | {"agent_kind": AgentKind.HTTP}).agent.port == 3333
    assert "name" not in defaults(VirtualService) and defaults(VirtualService)["check_path"] == "/"
