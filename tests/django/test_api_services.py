"""Virtual services and real servers by the API: the same rules as on their page."""

import pytest
import stored
from api_robot import error, fields, robot

from draft import store as draft
from draft.models import Removal, Service

NEW = {
    "name": "lines",
    "address": "192.168.10.70",
    "port": 7000,
    "real_servers": [{"address": "10.2.0.51", "port": 7000}, {"address": "10.2.0.52", "port": 7000, "weight": 3}],
}


@pytest.fixture
def one(client, admin):
    return robot(admin)


def wish(number: int):
    return next(service for service in draft.current().services if service.id == number)


def test_list_and_get(one):
    assert [service["name"] for service in one.get("/services").json()] == ["shop", "mail", "names"]
    assert [service["id"] for service in one.get("/services?name=mail").json()] == [2]
    assert one.get("/services?name=nobody").json() == []
    assert one.get("/services/1").json() == one.get("/services").json()[0]
    assert one.get("/services/99").status_code == 404


def test_create(one):
    answer = one.post("/services", NEW)
    assert answer.status_code == 201, answer.content
    made = answer.json()
    assert answer.headers["Location"] == f"/api/v1/services/{made['id']}"
    assert one.get(f"/services/{made['id']}").json() == made
    assert made["scheduler"] == "wlc" and [server["weight"] for server in made["real_servers"]] == [1, 3]
    assert not {server["id"] for server in made["real_servers"]} & set(range(1, 8))
    assert Service.objects.get(pk=made["id"]).changed_by == "admin (token robot)"


def test_who_may_bring_a_program(admin, client):
    """It runs on the box. Who may change the draft may go on using one that is there."""
    check = {"kind": "program", "program": "#!/bin/sh\nexit 0\n"}
    some, all_rights = robot(admin, "read", "change", "apply"), robot(admin, "read", "change", "admin")
    refused = some.post("/services", NEW | {"check": check})
    assert refused.status_code == 403, refused.content
    assert error(refused)["message"].startswith(
        "A program of your own for a health check needs a token that may: admin"
    )
    assert stored.named("lines") is None
    made = all_rights.post("/services", NEW | {"check": check})
    assert made.status_code == 201, made.content
    number = made.json()["id"]
    assert some.patch(f"/services/{number}", {"check": {"interval": 9}}).status_code == 200
    assert some.patch(f"/services/{number}", {"check": {"program": "#!/bin/sh\nexit 1\n"}}).status_code == 403
    tag, whole = some.get("/draft").headers["ETag"], some.get("/draft").json()
    whole["services"][-1]["check"]["program"] = "#!/bin/sh\nexit 1\n"
    assert some.put("/draft", whole, If_Match=tag).status_code == 403
    assert all_rights.put("/draft", whole, If_Match=tag).status_code == 200


def test_the_id_of_a_removed_service_is_not_given_again(one):
    first = one.post("/services", NEW).json()["id"]
    assert one.delete(f"/services/{first}", If_Match="*").status_code == 204
    assert one.post("/services", NEW).json()["id"] > first


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"id": 9}, "id"),
        ({"name": "shop"}, "name"),
        ({"name": "$(reboot)"}, "name"),
        ({"name": 7}, "name"),
        ({"name": None}, "name"),
        ({"address": "nowhere"}, "address"),
        ({"port": 10**30}, "port"),
        ({"port": 80.0}, "port"),
        ({"port": True}, "port"),
        ({"protocol": "icmp"}, "protocol"),
        ({"check": {"kind": "exec"}}, "kind"),
        ({"check": {"kind": "http", "path": "/\n"}}, "path"),
        ({"check": []}, "check"),
        ({"colour": "red"}, "colour"),
        ({"real_servers": {}}, "real_servers"),
        ({"real_servers": [7]}, "real_servers[0]"),
        ({"real_servers": [{"address": "10.2.0.51"}]}, "port"),
        ({"real_servers": [{"address": "10.2.0.51", "port": 7000, "id": 1}]}, "id"),
        ({"real_servers": [{"address": "10.2.0.51", "port": 7000, "id": "1"}]}, "id"),
        ({"real_servers": [{"address": "10.2.0.51", "port": 7000}] * 2}, "address"),
    ],
    ids=str,
)
def test_what_makes_no_sense_names_object_and_field(one, change, field):
    before = draft.current()
    answer = one.post("/services", NEW | change)
    assert answer.status_code == 422, answer.content
    assert field in [found["field"] for found in error(answer)["problems"]]
    assert all(found["object"] and found["message"] for found in error(answer)["problems"])
    assert draft.current() == before


@pytest.mark.parametrize("body", [[], "text", 7, True], ids=str)
def test_a_service_is_an_object(one, body):
    assert one.post("/services", body).status_code == 422
    assert one.put("/services/1", body, If_Match="*").status_code == 422
    assert one.patch("/services/1", body).status_code == 422
    assert one.post("/services/1/real_servers", body).status_code == 422
    assert one.patch("/services/1/real_servers/1", body).status_code == 422


def test_replace(one):
    answer = one.get("/services/1")
    data, seen = answer.json(), answer.headers["ETag"]
    data["scheduler"] = "rr"
    data["real_servers"] = [data["real_servers"][1], {"address": "10.2.0.19", "port": 80}]
    assert one.put("/services/1", data).status_code == 428
    answer = one.put("/services/1", data, If_Match=seen)
    assert answer.status_code == 200
    servers = answer.json()["real_servers"]
    assert servers[0]["id"] == 2 and servers[1]["id"] not in range(1, 8)
    assert wish(1).scheduler == "rr" and len(wish(1).real_servers) == 2
    assert one.put("/services/1", data, If_Match=seen).status_code == 412
    assert fields(one.put("/services/1", data | {"id": 2}, If_Match="*")) == [("virtual service", "id")]
    other = data | {"real_servers": [{"id": 4, "address": "10.2.0.21", "port": 25}]}  # a server of another service
    assert fields(one.put("/services/1", other, If_Match="*")) == [("real server", "id")]
    assert stored.service_of(4).pk == 2


def test_two_programs_change_different_fields(one, admin):
    assert one.patch("/services/1", {"scheduler": "lc"}).status_code == 200
    assert robot(admin).patch("/services/1", {"check": {"path": "/up"}}).status_code == 200
    assert (wish(1).scheduler, wish(1).check.path, wish(1).check.expect) == ("lc", "/up", "ok")
    assert one.patch("/services/1", {"check": {"expect": None}}).json()["check"]["expect"] == ""
    seen = one.get("/services/1").headers["ETag"]
    one.patch("/services/1", {"note": "moved"})
    assert one.patch("/services/1", {"note": "other"}, If_Match=seen).status_code == 412
    answer = one.patch("/services/1", {"port": 25, "address": "192.168.10.25"})
    assert answer.status_code == 422 and "port" in [field for _, field in fields(answer)]


def test_what_it_would_spoil_elsewhere_is_refused(one):
    """The mail servers' VIP is a real server here: mail has a problem that it did not have."""
    answer = one.patch("/services/3", {"address": "10.2.0.21"})
    assert answer.status_code == 422
    assert wish(3).address == "192.168.10.53"


def test_delete(one):
    assert one.delete("/services/2").status_code == 428
    assert one.delete("/services/2", If_Match='"old"').status_code == 412
    assert one.delete("/services/2", If_Match=one.get("/services/2").headers["ETag"]).status_code == 204
    assert Removal.objects.get(service=2).changed_by == "admin (token robot)"
    assert one.delete("/services/2", If_Match="*").status_code == 404


def test_clone_enable_disable(one):
    assert one.post("/services/1/disable").json()["enabled"] is False
    made = one.post("/services/1/clone", {"name": "shop 2", "port": 81})
    assert made.status_code == 201, made.content
    copy = made.json()
    assert (copy["enabled"], copy["port"], copy["check"]["path"]) == (True, 81, "/health")
    assert len(copy["real_servers"]) == 3 and copy["real_servers"][0]["id"] > 7
    assert one.post("/services/1/enable").json()["enabled"] is True
    assert one.post("/services/1/enable", If_Match='"old"').status_code == 412
    assert "name" in [field for _, field in fields(one.post("/services/1/clone", {"name": "shop", "port": 82}))]
    assert one.post("/services/99/clone", {"name": "x"}).status_code == 404


def test_real_servers(one):
    assert [server["id"] for server in one.get("/services/1/real_servers").json()] == [1, 2, 3]
    made = one.post("/services/1/real_servers", {"address": "10.2.0.19", "port": 80, "weight": 4})
    assert made.status_code == 201 and made.json()["weight"] == 4
    path = f"/services/1/real_servers/{made.json()['id']}"
    assert made.headers["Location"] == f"/api/v1{path}"
    assert one.get(path).headers["ETag"] == made.headers["ETag"]
    assert one.patch(path, {"state": "quiesced"}).json()["state"] == "quiesced"
    data = one.get(path).json()
    assert one.put(path, data).status_code == 428
    assert one.put(path, data | {"weight": 9}, If_Match="*").json()["weight"] == 9
    assert fields(one.put(path, data | {"id": 1}, If_Match="*")) == [("real server", "id")]
    assert fields(one.patch(path, {"weight": 0}))[0][1] == "weight"
    assert one.patch(path, {"weight": 2}, If_Match='"old"').status_code == 412
    assert one.delete(path).status_code == 428
    assert one.delete(path, If_Match="*").status_code == 204
    assert one.get(path).status_code == 404
    assert one.get("/services/1/real_servers/4").status_code == 404  # of another service
    assert [server.id for server in wish(1).real_servers] == [1, 2, 3]


def test_who_may_not_apply_may_not_see_what_servers_answer(admin, box):
    """An address comes into the draft by the right to change it."""
    assert robot(admin, "read", "change").post("/services/1/try-check").status_code == 403
    assert robot(admin, "apply").post("/services/1/try-check").status_code == 200


def test_diagnose_and_try(one, box):
    found = one.post("/services/1/diagnose").json()
    assert found["findings"][0]["server"] == "10.2.0.12"
    trials = one.post("/services/1/try-check").json()["trials"]
    assert [trial["state"] for trial in trials] == ["up", "down", "up"]
    assert one.post("/services/99/diagnose").status_code == 404
    made = one.post("/services", NEW).json()["id"]
    assert one.post(f"/services/{made}/diagnose").status_code == 404  # the box does not run it yet
    assert len(one.post(f"/services/{made}/try-check").json()["trials"]) == 2


def test_a_fallback_server_that_is_checked_is_tried_beside_the_others(one, box):
    def tried(check):
        fallback = {"kind": "server", "address": "10.2.0.99", "check": check}
        assert one.patch("/services/1", {"fallback": fallback}).status_code == 200
        trials = one.post("/services/1/try-check").json()["trials"]
        return [trial["server"] for trial in trials if trial["fallback"]]

    assert tried("connect") == ["10.2.0.99"]
    assert tried("off") == []
