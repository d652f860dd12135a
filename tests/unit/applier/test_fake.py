"""The fake behaves as the real one does, as far as a screen can tell."""

import dataclasses
import inspect

import pytest
from tests.fake import appliance

from applier.apply.runs import ALONE, in_vain_sentence
from applier.wire import client
from applier.wire.client import ApplierDown, ApplierRefused, Client, connect
from lbconfig.diff.cutoff import NETWORK_WORDS
from lbconfig.model.snapshot import FACTORY, from_data
from lbconfig.validate.services import validate


@pytest.fixture(autouse=True)
def box():
    yield appliance.reset(instant=True)
    appliance.reset()


def apply(name="other", **fields):
    applier = appliance.Fake()
    snapshot = from_data(applier.status()["snapshot"])
    service = dataclasses.replace(snapshot.services[0], name=name)
    new = dataclasses.replace(snapshot, services=(service, *snapshot.services[1:]))
    review = applier.check(new)
    return applier.apply(new, **({"digest": review["digest"], "base": review["base"], "user": "ann"} | fields))


def test_it_has_the_methods_of_the_client():
    for name, method in inspect.getmembers(Client, inspect.isfunction):
        if not name.startswith("_"):
            theirs = list(inspect.signature(method).parameters)
            assert list(inspect.signature(getattr(appliance.Fake, name)).parameters) == theirs, name


def test_who_asks_is_connected_with_it_and_else_with_the_socket(monkeypatch):
    # Where Django's tests run in the same process, its settings have put the fake here already.
    monkeypatch.setattr(client, "dial", client._dial)
    assert isinstance(connect(), Client)
    monkeypatch.setattr(client, "dial", appliance.Fake)
    assert isinstance(connect(), appliance.Fake)


def test_the_sample_is_valid_and_has_something_of_everything():
    assert not validate(appliance.sample_snapshot())
    services = appliance.Fake().status()["running"]["services"]
    health = {server["health"] for service in services for server in service["real_servers"]}
    assert health == {"up", "down", "disabled", "unchecked"}


def test_an_apply_at_once(box):
    name = apply()["apply"]
    status = appliance.Fake().status()
    assert status["apply"]["id"] == name and status["apply"]["state"] == "done"
    assert status["generation"] == status["confirmed"] == 4
    assert status["snapshot"]["services"][0]["name"] == "other"
    assert appliance.Fake().generations()[0]["outcome"] == "confirmed"
    assert "nftables.conf" in appliance.Fake().generation(4, files=True)["files"]


def test_an_apply_that_takes_its_time(monkeypatch):
    appliance.reset()
    now = [0.0]
    monkeypatch.setattr(appliance.fake_run.time, "monotonic", lambda: now[0])
    apply()
    with pytest.raises(ApplierRefused, match="The changes of ann") as caught:
        apply("third")
    assert caught.value.code == "busy"
    seen = []
    for _ in range(40):
        run = appliance.Fake().status()["apply"]
        seen.append(sum(step["state"] in ("done", "skipped") for step in run["steps"]))
        now[0] += 0.25
    assert seen == sorted(seen) and seen[0] == 0 and seen[-1] == len(ALONE)
    assert run["state"] == "done"


def moved():
    """A change that may cut the admin off."""
    snapshot = appliance.sample_snapshot()
    return dataclasses.replace(snapshot, network=dataclasses.replace(snapshot.network, gateway="192.168.10.254"))


def begin(**fields):
    applier = appliance.Fake()
    review = applier.check(moved())
    assert review["reach"]["reasons"] == [NETWORK_WORDS["gateway"]]
    return applier.apply(moved(), review["digest"], review["base"], "ann", **fields)


def test_a_change_that_waits_and_is_confirmed(box):
    answer = begin()
    status = appliance.Fake().status()
    assert status["apply"]["state"] == "waiting" and 80 < status["apply"]["confirm"]["left"] <= 90
    assert (status["generation"], status["confirmed"]) == (4, 3)
    with pytest.raises(ApplierRefused, match="wait to be confirmed"):
        apply()
    with pytest.raises(ApplierRefused) as caught:
        appliance.Fake().confirm(secret="wrong")
    assert caught.value.code == "wrong-secret"
    assert appliance.Fake().confirm(secret=answer["secret"])["state"] == "done"
    assert appliance.Fake().status()["confirmed"] == 4
    with pytest.raises(ApplierRefused) as caught:
        appliance.Fake().confirm(secret=answer["secret"])
    assert caught.value.code == "not-waiting"


def test_a_change_that_nobody_confirms_or_that_somebody_takes_back(box):
    begin(confirm_within=30)
    box.expire()
    run = appliance.Fake().status()["apply"]
    assert run["state"] == "not confirmed" and in_vain_sentence(30) in run["message"]
    assert appliance.Fake().status()["generation"] == 3 and box.snapshot == appliance.sample_snapshot()
    name = begin()["apply"]
    assert appliance.Fake().roll_back(apply=name, user="bob")["message"].startswith("bob took the changes back")
    assert [one["outcome"] for one in appliance.Fake().generations()[:2]] == ["not confirmed"] * 2


def test_the_impact_is_counted_from_its_table(box):
    snapshot = dataclasses.replace(appliance.sample_snapshot(), services=appliance.sample_snapshot().services[1:])
    impact = appliance.Fake().check(snapshot)["impact"]
    assert (impact["closed"], impact["services"][0]["kept"]) == (25, 0)
    assert {one["name"]: one["kept"] for one in impact["services"]} == {"shop": 0, "mail": 33, "names": 76}


def test_a_failing_step_is_put_back(box):
    box.failing_step = "ldirectord-start"
    apply()
    run = appliance.Fake().status()["apply"]
    assert run["state"] == "rolled back"
    states = {step["name"]: step["state"] for step in run["steps"]}
    assert states["ipvs"] == "undone" and states["ldirectord-start"] == "failed" and states["confirm"] == "skipped"
    assert appliance.Fake().status()["confirmed"] == 3
    assert appliance.Fake().generations()[0]["outcome"] == "rolled back"


@pytest.mark.parametrize(
    ("fields", "code"),
    [({"digest": "0" * 64}, "digest-mismatch"), ({"base": 1}, "base-moved"), ({"client": "203.0.113.9"}, "lock-out")],
)
def test_it_refuses_what_the_real_one_refuses(fields, code):
    with pytest.raises(ApplierRefused) as caught:
        apply(**fields)
    assert caught.value.code == code


def test_problems_come_from_the_real_validation():
    assert appliance.Fake().check(FACTORY)["problems"] == []
    with pytest.raises(ApplierRefused) as caught:
        apply(name="no/good")
    assert caught.value.code == "problems"


def test_arrangements(box):
    box.fault("data-full", "It is full.")
    box.down.clear()
    status = appliance.Fake().status()
    assert status["faults"][0]["message"] == "It is full."
    assert "down" not in str(status["running"])
    box.refuse = ApplierRefused("data-full", "It is full.")
    with pytest.raises(ApplierRefused, match="It is full"):
        apply()
    box.reachable = False
    with pytest.raises(ApplierDown):
        appliance.Fake().status()


def test_the_setup_code(box):
    applier = appliance.Fake()
    assert applier.status()["setup_code_active"] and applier.setup_open() == {"open": True}
    assert applier.setup_check("nope") == {"valid": False}
    assert applier.setup_check(appliance.SETUP_CODE) == {"valid": True}
    with pytest.raises(ApplierRefused, match="not the set-up code"):
        applier.setup_done("nope")
    applier.setup_done(appliance.SETUP_CODE)
    assert not applier.status()["setup_code_active"] and applier.setup_open() == {"open": False}
    assert applier.setup_check(appliance.SETUP_CODE) == {"valid": False}


def test_a_box_from_the_factory():
    appliance.reset(snapshot=FACTORY, confirmed=None, instant=True)
    status = appliance.Fake().status()
    assert status["generation"] is None and status["running"] == {"services": []}
    assert appliance.Fake().check(appliance.sample_snapshot())["base"] is None
