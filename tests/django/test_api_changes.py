"""Review, apply, operations, history by the API."""

import pytest
import stored
from api_robot import error, fields, robot
from tests.fake import appliance

from applier.wire.client import ApplierRefused
from changes.models import Revision
from draft import store as draft
from lbconfig.model.snapshot import to_data


@pytest.fixture
def one(client, admin):
    return robot(admin)


def reviewed(one, **more) -> dict:
    found = one.get("/draft/review").json()
    return {"digest": found["digest"], "base": found["base"], **more}


def test_status(one, box):
    found = one.get("/status").json()
    assert found["generation"] == 3 and "snapshot" not in found
    assert found["running"]["services"][0]["real_servers"][1]["health"] == "down"


def test_review_and_apply(one, box):
    one.patch("/services/1", {"scheduler": "lc"})
    found = one.get("/draft/review").json()
    assert found["problems"] == [] and found["base"] == 3
    assert found["changes"][0]["object"] == "virtual service 'shop'"
    assert "ipvs.rules" in found["diff"] and "files" not in found
    started = one.post("/applies", reviewed(one, comment="quicker"))
    assert started.status_code == 202, started.content
    assert started.headers["Location"] == f"/api/v1/applies/{started.json()['apply']}"
    run = one.get(f"/applies/{started.json()['apply']}").json()
    assert run["state"] == "done" and run["user"] == "admin (token robot)"
    assert box.snapshot.services[0].scheduler == "lc"
    newest = one.get("/history?limit=1").json()[0]
    assert (newest["comment"], newest["outcome"], newest["user"]) == ("quicker", "confirmed", "admin (token robot)")
    assert one.get("/applies/apply-0").status_code == 404


def test_a_change_that_waits_is_confirmed_or_taken_back(one, box):
    for last, state, scheduler in (("confirm", "done", "lc"), ("roll-back", "not confirmed", "lc")):
        one.patch("/services/1", {"scheduler": "lc" if last == "confirm" else "sed"})
        started = one.post("/applies", reviewed(one, confirm_within=60)).json()
        assert started["secret"] and started["confirm_within"] == 60
        path = f"/applies/{started['apply']}"
        assert one.get(path).json()["state"] == "waiting"
        answer = one.post(f"{path}/{last}")
        assert answer.status_code == 200, answer.content
        box.finish()
        assert one.get(path).json()["state"] == state
        assert box.snapshot.services[0].scheduler == scheduler
        answer = one.post(f"{path}/{last}")
        assert answer.status_code == 409 and error(answer)["code"] == "not-waiting"
    assert fields(one.post("/applies", reviewed(one, confirm_within=10**9)))[0][1] == "confirm_within"
    assert one.post("/applies/apply-0/confirm").status_code == 404


def test_an_old_connection_confirms_nothing(one, box):
    started = one.post("/applies", reviewed(one, confirm_within=60)).json()
    answer = one.post(f"/applies/{started['apply']}/confirm", X_Connection_Age="3600")
    assert answer.status_code == 409 and error(answer)["code"] == "old-connection"


def test_what_moved_since_the_review_is_not_applied(one, box):
    before = box.snapshot
    was = reviewed(one)
    one.patch("/services/1", {"scheduler": "lc"})
    answer = one.post("/applies", was)
    assert answer.status_code == 409 and error(answer)["code"] == "digest-mismatch"
    answer = one.post("/applies", reviewed(one) | {"base": 2})
    assert answer.status_code == 409 and error(answer)["code"] == "base-moved"
    stored.change(1, port=0)
    assert one.get("/draft/review").json()["problems"][0]["field"] == "port"
    answer = one.post("/applies", was)
    assert answer.status_code == 422 and ("virtual service 'shop'", "port") in fields(answer)
    assert box.snapshot == before


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "digest"),
        ({"digest": "short"}, "digest"),
        ({"digest": "0" * 64, "base": 0}, "base"),
        ({"digest": "0" * 64, "base": 10**12}, "base"),
        ({"digest": "0" * 64, "base": "3"}, "base"),
        ({"digest": "0" * 64, "comment": "x" * 201}, "comment"),
        ({"digest": "0" * 64, "comment": "a\nb"}, "comment"),
        ({"digest": "0" * 64, "force": True}, "force"),
    ],
    ids=str,
)
def test_wrong_applies(one, body, field):
    answer = one.post("/applies", body)
    assert answer.status_code == 422 and [found[1] for found in fields(answer)] == [field]


def test_a_busy_applier(one, box):
    good = reviewed(one)
    box.refuse = ApplierRefused("busy", "Right now the changes of kim are being applied.")
    answer = one.post("/applies", good)
    assert answer.status_code == 409 and error(answer)["code"] == "busy"


def test_an_apply_that_is_put_back(one, box):
    box.failing_step = "ldirectord-start"
    one.patch("/services/1", {"scheduler": "lc"})
    run = one.get(f"/applies/{one.post('/applies', reviewed(one)).json()['apply']}").json()
    assert run["state"] == "rolled back"


def test_check_stores_nothing(one, box):
    before = draft.current()
    data = to_data(before)
    data["services"][0]["scheduler"] = "lc"
    found = one.post("/check", data).json()
    assert found["changes"] and draft.current() == before
    data["services"][0]["port"] = 0
    assert one.post("/check", data).json()["problems"][0]["field"] == "port"
    assert one.post("/check", {"services": 7}).status_code == 422


# --- operations ---


def test_operations_act_at_once(one, box):
    one.patch("/services/1", {"scheduler": "lc"})
    answer = one.post("/operations", {"operation": "drain", "address": "10.2.0.11"})
    assert answer.status_code == 202
    assert one.get(f"/applies/{answer.json()['apply']}").json()["state"] == "done"
    assert box.snapshot.services[0].real_servers[0].state == "quiesced"
    assert box.snapshot.services[0].scheduler == "wrr"  # the draft was not shipped
    assert stored.server(1).state == "quiesced"
    for operation, state in (("halt", "disabled"), ("resume", "enabled")):
        body = {"operation": operation, "address": "10.2.0.11", "service": 1}
        assert one.post("/operations", body).status_code == 202
        assert box.snapshot.services[0].real_servers[0].state == state


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"operation": "kill"}, 422),
        ({"operation": 1}, 422),
        ({"address": "10.2.0.99"}, 409),
        ({"address": "10.2.0.99", "service": 1}, 404),
        ({"address": "x" * 1000}, 409),
        ({"service": 2}, 404),
        ({"server": 4}, 404),
        ({"server": -1}, 422),
        ({"service": 10**30}, 422),
        ({"operation": "resume"}, 409),
        ({"more": 1}, 422),
    ],
    ids=str,
)
def test_wrong_operations_do_nothing(one, box, change, status):
    before = box.snapshot
    answer = one.post("/operations", {"operation": "drain", "address": "10.2.0.11"} | change)
    assert answer.status_code == status, answer.content
    assert box.snapshot == before


def test_an_address_that_a_service_has_twice(one, box):
    one.post("/services/1/real_servers", {"address": "10.2.0.11", "port": 8080})
    one.post("/applies", reviewed(one))
    body = {"operation": "drain", "address": "10.2.0.11", "service": 1}
    answer = one.post("/operations", body)
    assert answer.status_code == 422 and fields(answer) == [("request", "server")]
    assert one.post("/operations", body | {"server": 1}).status_code == 202
    assert [server.state for server in box.snapshot.services[0].real_servers][::3] == ["quiesced", "enabled"]


# --- history ---


def test_history(one, box):
    assert [found["number"] for found in one.get("/history").json()] == [3, 2, 1]
    assert [found["number"] for found in one.get("/history?before=3&limit=1").json()] == [2]
    whole = one.get("/history/2").json()
    assert whole["steps"] and whole["snapshot"] == to_data(appliance.sample_snapshot())
    assert one.get("/history/9").status_code == 404


def test_restore_goes_into_the_draft(one, box):
    one.get("/history")
    one.patch("/services/1", {"scheduler": "lc"})
    seen = one.get("/draft").headers["ETag"]
    assert one.post("/history/2/restore", If_Match='"old"').status_code == 412
    assert one.post("/history/2/restore", If_Match=seen).status_code == 200
    assert draft.current() == appliance.sample_snapshot()
    assert one.post("/history/9/restore").status_code == 404
    Revision.objects.filter(number=1).update(snapshot="")
    assert one.get("/history/1").json()["snapshot"] is None
    assert one.post("/history/1/restore").status_code == 409


def test_compare(one, box):
    one.patch("/services/1", {"scheduler": "lc"})
    found = one.get("/history/compare").json()
    assert (found["old"], found["new"]) == ("what runs", "the draft")
    assert [change["object"] for change in found["changes"]] == ["virtual service 'shop'"]
    assert "-s lc" in found["diff"]["ipvs.rules"] and found["unrendered"] == ""
    back = one.get("/history/compare?old=draft&new=3").json()
    assert back["new"] == "revision 3" and back["changes"] and back["changes"] != found["changes"]
    same = one.get("/history/compare?old=3&new=running").json()
    assert same["changes"] == [] and same["diff"] == {}
    assert one.get("/history/compare?old=9").status_code == 404
    assert one.get("/history/compare?new=nothing").status_code == 404
    assert one.get("/history/compare?old=1234567890").status_code == 400


def test_who_only_reads_sees_no_password_in_a_comparison(one, admin, box):
    check = {"kind": "imap", "login": "kim", "password": "geheim", "path": "/", "host": "", "expect": ""}
    assert one.patch("/services/1", {"check": check}).status_code == 200
    for path in ("/history/compare", "/draft", "/services", "/draft/review"):
        text = robot(admin, "read").get(path).content.decode()
        assert "geheim" not in text and "imap" in text.lower(), path


def test_a_comment_is_corrected(one, admin, box):
    assert one.post("/history/2/comment", {"comment": "for the sale"}).json()["comment"] == "for the sale"
    row = Revision.objects.get(number=2)
    assert (row.comment, row.corrected_by) == ("for the sale", "admin (token robot)")
    assert fields(one.post("/history/2/comment", {"comment": "x" * 201})) == [("request", "comment")]
    assert one.post("/history/9/comment", {"comment": ""}).status_code == 404


def test_history_without_an_applier_is_what_is_stored(one, box):
    one.get("/history")
    box.reachable = False
    assert len(one.get("/history").json()) == 3
