"""The draft by the API: as a whole and by its parts. Nobody overwrites what he has not seen."""

import dataclasses
import json

import pytest
import stored
from api_robot import error, fields, robot
from tests.fake import appliance

from api import drafts
from draft import store as draft
from draft.models import Service
from lbconfig.model.snapshot import Snapshot, from_data, to_data

HOSTILE = ["$(reboot)", "'; drop table", "\N{SNOWMAN}", "a\nb", "\x00", "x" * 5000, "\ud800", 10**30, -1, 1.5, None, []]


@pytest.fixture
def one(client, admin):
    return robot(admin)


def test_the_draft_and_what_runs_are_snapshots(one):
    answer = one.get("/draft")
    assert from_data(answer.json()) == draft.current()
    assert answer.headers["ETag"] == one.get("/running").headers["ETag"]


def test_the_whole_draft_is_replaced(one):
    answer = one.get("/draft")
    data = answer.json()
    data["services"][0]["scheduler"] = "lc"
    data["network"]["hostname"] = "other"
    stored = one.put("/draft", data, If_Match=answer.headers["ETag"])
    assert stored.status_code == 200 and stored.json() == data
    assert to_data(draft.current()) == data
    assert Service.objects.get(pk=1).changed_by == "admin (token robot)"
    assert Service.objects.get(pk=2).changed_by == ""  # what stays the same keeps its version
    again = one.put("/draft", data, If_Match=answer.headers["ETag"])
    assert again.status_code == 412 and error(again)["code"] == "changed"
    assert again.headers["ETag"] == stored.headers["ETag"]
    assert one.put("/draft", data, If_Match=f'"x", {stored.headers["ETag"]}').status_code == 200
    assert one.put("/draft", data).status_code == 428
    assert one.put("/draft", data, If_Match="*").status_code == 200


def test_a_draft_with_problems_is_not_stored(one):
    data = one.get("/draft").json()
    data["services"][0]["port"] = 0
    data["services"][1]["name"] = "shop"
    answer = one.put("/draft", data, If_Match="*")
    assert answer.status_code == 422 and error(answer)["code"] == "problems"
    assert ("virtual service 'shop'", "port") in fields(answer)
    assert "services[id=1].port" in [found["path"] for found in error(answer)["problems"]]
    assert Service.objects.get(pk=1).wish.port == 80


@pytest.mark.parametrize("value", HOSTILE, ids=ascii)
def test_hostile_values_are_refused_by_field(one, value):
    before = draft.current()
    data = json.loads(json.dumps(to_data(before)))
    data["services"][0]["address"] = value
    answer = one.put("/draft", data, If_Match="*")
    assert answer.status_code == 422 and fields(answer)[0][1] == "address"
    assert draft.current() == before


def test_unknown_fields_and_older_schemas(one):
    data = one.get("/draft").json()
    answer = one.put("/draft", data | {"extra\x00": 1}, If_Match="*")
    assert answer.status_code == 422 and error(answer)["problems"][0]["path"] == "extra?"
    for server in (server for service in data["services"] for server in service["real_servers"]):
        server["enabled"] = server.pop("state") == "enabled"
    assert one.put("/draft", data | {"schema": 1}, If_Match="*").status_code == 200
    assert one.put("/draft", data | {"schema": 99}, If_Match="*").status_code == 422


def test_discard(one, box):
    stored.change(1, scheduler="lc")
    seen = one.get("/draft").headers["ETag"]
    assert one.post("/draft/discard", If_Match='"other"').status_code == 412
    answer = one.post("/draft/discard", If_Match=seen)
    assert answer.status_code == 200 and answer.json() == to_data(box.snapshot)
    assert draft.current() == box.snapshot


def test_passwords_are_for_those_who_may_change_them(admin, client, box):
    check = dataclasses.replace(box.snapshot.services[0].check, password="geheim", login="kim")
    shop = dataclasses.replace(box.snapshot.services[0], check=check)
    box.snapshot = dataclasses.replace(box.snapshot, services=(shop, *box.snapshot.services[1:]))
    draft.replace(box.snapshot, "kim")
    reader, writer = robot(admin, "read"), robot(admin, "change")
    for path in ("/draft", "/running", "/services", "/services/1"):
        assert "geheim" not in reader.get(path).content.decode() and drafts.HIDDEN in reader.get(path).content.decode()
        assert "geheim" in writer.get(path).content.decode()
    assert reader.get("/services/1").headers["ETag"] == writer.get("/services/1").headers["ETag"]
    assert "geheim" not in reader.post("/check", to_data(box.snapshot)).content.decode()


# --- its parts ---


def test_every_part_of_the_snapshot_has_its_routes(one):
    assert set(drafts.PARTS) == {field.name for field in dataclasses.fields(Snapshot)} - {"services", "schema", "pair"}
    for name in drafts.PARTS:
        answer = one.get(f"/{name}")
        assert answer.json() == to_data(draft.current())[name]
        assert one.put(f"/{name}", answer.json()).status_code == 428
        stored = one.put(f"/{name}", answer.json(), If_Match=answer.headers["ETag"])
        assert stored.json() == {"value": answer.json(), "consequences": []}
        assert one.put(f"/{name}", answer.json() | {"more": 1}, If_Match="*").status_code == 422
        assert one.put(f"/{name}", [], If_Match="*").status_code == 422
        assert one.patch(f"/{name}", {"more": None}).status_code == 200  # it takes away what is not there
        assert one.patch(f"/{name}", {"more": 1}).status_code == 422


def test_a_part_is_changed_by_its_fields(one):
    answer = one.patch("/network", {"hostname": "north", "gateway": None}, kind="application/merge-patch+json")
    assert (answer.status_code == 422 and fields(answer)[0] == ("network", "gateway")) or answer.status_code == 200
    answer = one.patch("/policy", {"tcp_timeout": 1800})
    assert answer.json()["value"]["tcp_timeout"] == 1800 and draft.current().policy.tcp_timeout == 1800
    answer = one.patch("/policy", {"tcp_timeout": None})
    assert draft.current().policy.tcp_timeout == 900
    answer = one.patch("/policy", {"tcp_timeout": 0})
    assert answer.status_code == 422 and fields(answer) == [("connections", "tcp_timeout")]
    answer = one.patch("/sorry", {"paragraphs": ["Back at nine."]}, If_Match='"old"')
    assert answer.status_code == 412


def test_what_a_part_spoils_elsewhere_is_told_and_stops_the_apply(one):
    network = one.get("/network").json()
    network["interfaces"][1]["addresses"] = ["10.7.0.1/24"]
    network["gateway"] = ""
    answer = one.put("/network", network, If_Match="*")
    assert answer.status_code == 200
    assert {found["field"] for found in answer.json()["consequences"]} == {"address"}
    assert len(one.get("/draft/review").json()["problems"]) == len(answer.json()["consequences"])


def test_nobody_locks_himself_out(admin, client):
    far = robot(admin).client
    answer = far.generic(
        "PATCH", "/api/v1/management", b'{"allow": ["10.2.0.0/16"]}', "application/json", REMOTE_ADDR="192.168.10.9"
    )
    assert answer.status_code == 422 and answer.json()["error"]["code"] == "lock-out"
    assert answer.json()["error"]["problems"][0]["field"] == "allow"
    assert draft.current().management.allow == appliance.sample_snapshot().management.allow
