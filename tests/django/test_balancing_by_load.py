"""Weights that follow the load, slow start and a least number of servers: the form, the overview, the API."""

import dataclasses

from api_robot import robot
from forms_on_page import form_values, words
from services_on_page import NEW, values_of
from tests.fake import appliance

from draft import store as draft
from lbconfig.model.snapshot import Agent, AgentKind, LeastHealthy, TooFew

LOAD = {
    "scheduler": "wrr",
    "agent_kind": "text",
    "agent_port": "4444",
    "agent_interval": "7",
    "agent_floor": "20",
    "slow_start": "60",
    "least_healthy_servers": "1",
    "least_healthy_then": "aside",
    "least_healthy_again": "1",
}


def added(client, **values):
    assert client.post("/services/add/", NEW | values).status_code == 302
    return draft.current().services[-1]


def test_what_is_entered_is_kept_and_shown_again(client):
    service = added(client, **LOAD)
    assert service.agent == Agent(AgentKind.TEXT, 4444, 7, 20)
    assert (service.slow_start, service.least_healthy) == (60, LeastHealthy(1, TooFew.ASIDE, 1))
    shown = values_of(client, service.id)
    assert {name: shown[name] for name in LOAD} == LOAD
    assert client.post(f"/services/{service.id}/", shown).status_code == 302
    assert draft.current().services[-1] == service


def test_fields_that_are_not_on_the_screen_are_not_saved(client):
    service = added(client, **LOAD | {"agent_kind": "off", "least_healthy_servers": ""})
    assert (service.agent, service.least_healthy) == (Agent(), LeastHealthy())
    service = added(client, **LOAD | {"name": "other", "port": "81", "agent_kind": "response", "agent_floor": ""})
    assert service.agent == Agent(AgentKind.RESPONSE)


def test_what_is_wrong_is_said_beside_its_field(client):
    page = client.post("/services/add/", NEW | LOAD | {"scheduler": "rr", "least_healthy_servers": "9"})
    assert page.status_code == 422
    assert "Needs a scheduler that goes by weights" in words(page)
    assert "Must be 0 to" in words(page)
    values = form_values(page)
    assert values["agent_port"] == "4444"
    assert draft.current() == appliance.sample_snapshot()


def test_the_api_has_them(client, admin):
    service = added(client, **LOAD)
    found = robot(admin).get(f"/services/{service.id}").json()
    agent = {"kind": "text", "port": 4444, "interval": 7, "floor": 20}
    assert found["agent"] == agent and found["slow_start"] == 60
    assert found["least_healthy"] == {"servers": 1, "then": "aside", "again": 1}


def runs(box, **fields):
    snapshot = box.snapshot
    first = dataclasses.replace(snapshot.services[0], **fields)
    box.snapshot = dataclasses.replace(snapshot, services=(first, *snapshot.services[1:]))
    draft.replace(box.snapshot, "kim")
    return first


def test_the_overview_says_when_too_few_are_up(client, box):
    service = runs(box, least_healthy=LeastHealthy(1, TooFew.KEEP))
    assert "must be up" not in words(client.get("/"))
    box.down = {(one.address, one.port) for one in service.real_servers}
    assert "at least 1 must be up" in words(client.get("/"))


def test_the_overview_says_the_share_and_the_agent_s_word(client, box, monkeypatch):
    runs(box, agent=Agent(AgentKind.TEXT))
    status = appliance.Fake.status

    def told(self, *words):
        found = status(self, *words)
        found["running"]["services"][0]["real_servers"][0] |= {"share": 60, "agent": "drain"}
        return found

    assert " now " not in words(client.get("/"))
    monkeypatch.setattr(appliance.Fake, "status", told)
    assert "2 now 60 %, drain" in words(client.get("/"))


def test_a_server_s_page_says_what_became_of_its_services(client, monkeypatch):
    [service, *_] = draft.current().services
    place = {"when": "2026-01-31T02:14:00Z", "service": service.id, "name": service.name, "failures": 0, "seconds": 0.1}
    one, address = service.real_servers[0], service.real_servers[0].address
    events = [
        {**place, "server": "", "port": 0, "state": "up", "reason": "2 of 3 servers are well"},
        {**place, "server": "", "port": 0, "state": "aside", "reason": "1 of 3 servers are well"},
        {**place, "server": address, "port": one.port, "state": "kept", "reason": "503 Busy"},
        {**place, "server": "", "port": 0, "state": "aside", "reason": "of another service", "service": 99},
        {**place, "server": "10.9.9.9", "port": 80, "state": "down", "reason": "of another server"},
    ]
    monkeypatch.setattr(appliance.Fake, "events", lambda self: events)
    page = words(client.get(f"/servers/{address}/"))
    for line in (
        "the service is back 2 of 3",
        "none serves 1 of 3",
        f"port {one.port} fails, kept 503 Busy after 0.1 s",
    ):
        assert line in page
    assert "another" not in page
