"""`python3 -m applier.wire.client`, as the console and the stories of the lab use it."""

import dataclasses
import json

import pytest
from tests.fake import appliance

from applier.base.paths import Paths
from applier.wire import cli
from lbconfig.model.snapshot import to_json


@pytest.fixture(autouse=True)
def box(monkeypatch):
    monkeypatch.setattr("applier.wire.client.dial", appliance.Fake)
    yield appliance.reset(instant=True)
    appliance.reset()


def test_status_and_faults(box, capsys):
    assert cli.main(["status"]) == 0
    assert json.loads(capsys.readouterr().out)["confirmed"] == 3
    assert cli.main(["faults"]) == 0 and capsys.readouterr().out == ""
    box.fault("data-full", "It is full.")
    assert cli.main(["faults"]) == 0 and capsys.readouterr().out == "It is full.\n"


def test_diagnose(box, capsys):
    assert cli.main(["diagnose", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["findings"][0]["server"] == "10.2.0.12"
    assert cli.main(["diagnose", "99"]) == 1
    assert "unknown-service" in capsys.readouterr().err


def test_apply_waits_for_the_end(box, capsys, tmp_path):
    path = tmp_path / "snapshot.json"
    path.write_text(to_json(dataclasses.replace(appliance.sample_snapshot(), services=())))
    assert cli.main(["apply", str(path)]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "done"
    box.failing_step = "verify"
    path.write_text(to_json(appliance.sample_snapshot()))
    assert cli.main(["apply", str(path)]) == 1


def test_a_daemon_that_started_anew_knows_nothing_of_the_run(box, capsys, monkeypatch):
    monkeypatch.setattr(appliance.Fake, "progress", lambda _: None)
    assert cli.main(["repair"]) == 3
    assert "The applier has restarted" in capsys.readouterr().err


def test_what_is_decided_at_this_moment_does_not_wait(box, capsys, monkeypatch):
    decided = {"state": "waiting", "user": "admin", "confirm": {"left": None}}
    monkeypatch.setattr(appliance.Fake, "progress", lambda _: decided)
    assert cli.main(["pending"]) == 2
    assert capsys.readouterr().out == ""


def test_refusals_and_a_daemon_that_is_away(box, capsys, tmp_path):
    path = tmp_path / "snapshot.json"
    path.write_text(
        to_json(
            dataclasses.replace(
                appliance.sample_snapshot(),
                network=dataclasses.replace(appliance.sample_snapshot().network, hostname="-"),
            )
        )
    )
    assert cli.main(["apply", str(path)]) == 1
    assert "network, hostname" in capsys.readouterr().err
    assert cli.main(["generation", "99"]) == 1
    box.reachable = False
    assert cli.main(["status"]) == 3
    assert "cannot be reached" in capsys.readouterr().err


def test_the_setup_code_comes_from_the_file(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("FAIRLEAD_RUN", str(tmp_path))
    assert cli.main(["setup-code"]) == 2
    Paths.from_environment().setup_code.write_text("ABCD-EFGH-JKMN\n")
    assert cli.main(["setup-code"]) == 0
    assert capsys.readouterr().out == "ABCD-EFGH-JKMN\n"


@pytest.fixture
def moved(tmp_path):
    """A change that asks to be confirmed, in a file."""
    sample = appliance.sample_snapshot()
    path = tmp_path / "snapshot.json"
    network = dataclasses.replace(sample.network, gateway="192.168.10.254")
    path.write_text(to_json(dataclasses.replace(sample, network=network)))
    return str(path)


def test_who_applies_at_the_box_confirms_by_itself(box, capsys, moved):
    assert cli.main(["apply", moved]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "done"
    assert cli.main(["pending"]) == 2 and capsys.readouterr().out == ""
    assert cli.main(["confirm"]) == 1
    assert "not-waiting" in capsys.readouterr().err


def test_what_waits_is_shown_confirmed_and_taken_back(box, capsys, moved):
    for verb, state in (("roll-back", "not confirmed"), ("confirm", "done")):
        assert cli.main(["apply", moved, "--wait", "--confirm-within", "600", "--timeout", "0"]) == 4
        capsys.readouterr()
        assert cli.main(["pending"]) == 0
        assert "The changes of console wait to be confirmed: 600 seconds left." in capsys.readouterr().out
        assert cli.main([verb, "--user", "bob"]) == 0
        assert json.loads(capsys.readouterr().out)["state"] == state
