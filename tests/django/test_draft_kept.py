"""What the web page keeps of the draft and of what runs is never stale, and its cost does not grow with servers."""

import dataclasses
import random

import pytest
import stored
from django.db import connection
from django.test.utils import CaptureQueriesContext
from tests.fake import appliance

from applier.wire.client import ApplierDown
from changes import actions
from draft import store as draft
from draft import what_runs
from draft.models import Service
from lbconfig.model.canonical import digest
from lbconfig.model.snapshot import FACTORY, ServerState, Snapshot, from_data, to_data
from lbconfig.model.snapshot import RealServer as Server


def afresh() -> Snapshot:
    """The draft, with nothing known of it."""
    draft._services.forget_others(set())
    return draft.current()


def changed(snapshot: Snapshot, chance: random.Random) -> Snapshot:
    services = list(snapshot.services)
    match chance.randrange(5):
        case 0 if len(services) > 1:
            services.pop(chance.randrange(len(services)))
        case 1:
            number = max((one.id for one in services), default=0) + 1
            services.append(dataclasses.replace(appliance.sample_snapshot().services[0], id=number, name=f"n{number}",
                                                port=1000 + number, real_servers=()))  # fmt: skip
        case 2 if services:
            at = chance.randrange(len(services))
            services[at] = dataclasses.replace(services[at], note=f"{chance.random()}", more_addresses=("10.9.9.9",))
        case 3 if services:
            at, key = chance.randrange(len(services)), chance.randrange(100, 10**6)
            more = (*services[at].real_servers[:3], Server(key, f"10.3.0.{chance.randrange(1, 200)}", 80))
            services[at] = dataclasses.replace(services[at], real_servers=more)
        case _:
            return dataclasses.replace(snapshot, management=dataclasses.replace(snapshot.management, port=8443))
    return dataclasses.replace(snapshot, services=tuple(services))


def test_the_draft_is_what_its_rows_say(client):
    chance, wanted = random.Random(3), appliance.sample_snapshot()
    for _ in range(30):
        wanted = changed(wanted, chance)
        draft.replace(wanted, "ann")
        kept = draft.current()
        assert draft.same(kept, wanted) and kept == afresh()
        assert draft.current().services == kept.services
        assert all(one is other for one, other in zip(draft.current().services, draft.current().services, strict=True))


def test_a_row_that_nobody_stamped_is_seen_as_well(client):
    before = draft.current()
    stored.change_server(1, weight=7)
    after = draft.current()
    assert after.services[0].real_servers[0].weight == 7
    assert after.services[0] is not before.services[0] and after.services[1] is before.services[1]
    Service.objects.filter(pk=2).delete()
    assert [one.id for one in draft.current().services] == [1, 3]
    draft.set_state({1}, "10.2.0.11", ServerState.DISABLED, "ann")
    assert draft.current().services[0].real_servers[0].state is ServerState.DISABLED


def test_to_store_a_service_takes_a_few_queries_however_many_servers_it_has(client):
    counts = []
    for many in (2, 200):
        servers = tuple(Server(1000 * many + at, f"10.4.{at // 200}.{at % 200 + 1}", 80) for at in range(many))
        wanted = dataclasses.replace(draft.current().services[0], real_servers=servers)
        with CaptureQueriesContext(connection) as seen:
            draft.write_service(wanted, Service.objects.get(pk=1), "ann")
        counts.append(len(seen))
        assert draft.current().services[0] == wanted
        with CaptureQueriesContext(connection) as seen:
            draft.current()
        counts.append(len(seen))
    few, few_read, many, many_read = counts
    assert many_read == few_read and many <= few + 3  # SQLite takes them some hundred at a time


def test_what_runs_is_what_the_box_says(client, box):
    assert what_runs.current() is what_runs.current() and what_runs.current() == box.snapshot
    for number in range(8):  # somebody else, at the console, applies more than are kept
        box.snapshot = dataclasses.replace(box.snapshot, services=box.snapshot.services[: number % 3])
        assert what_runs.current() == from_data(to_data(box.snapshot))
        status = what_runs.status()
        box.snapshot = FACTORY
        assert digest(what_runs.of(status)) == status["digest"]
        what_runs.remember(dataclasses.replace(FACTORY, services=appliance.sample_snapshot().services[: number % 3]))
        box.snapshot = appliance.sample_snapshot()


def test_what_was_applied_here_is_not_asked_for_again(client, box, monkeypatch):
    wanted = dataclasses.replace(draft.current(), services=draft.current().services[:2])
    draft.replace(wanted, "ann")
    found = actions.review(draft.current())
    actions.apply(draft.current(), found["digest"], found["base"], "ann", "", "192.168.10.50")
    box.finish()
    status = what_runs.status()
    assert status["digest"] == digest(box.snapshot) and status["snapshot"] is None
    assert what_runs.of(status).services[0] is draft.current().services[0]


def test_a_box_that_does_not_answer(client, box):
    box.reachable = False
    with pytest.raises(ApplierDown):
        what_runs.current()
