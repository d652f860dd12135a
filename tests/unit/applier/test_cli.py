"""`python3 -m applier.client`, as the console and the stories of the lab use it."""

import dataclasses
import json

import pytest

from applier import cli, fake
from applier.paths import Paths
from lbconfig.snapshot import to_json


@pytest.fixture(autouse=True)
def box(monkeypatch):
    monkeypatch.setenv("FAIRLEAD_APPLIER", "fake")
    yield fake.reset(instant=True)
    fake.reset()


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
    path.write_text(to_json(dataclasses.replace(fake.sample_snapshot(), services=())))
    assert cli.main(["apply", str(path)]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "done"
    box.failing_step = "verify"
    path.write_text(to_json(fake.sample_snapshot()))
    assert cli.main(["apply", str(path)]) == 1


def test_refusals_and_a_daemon_that_is_away(box, capsys, tmp_path):
    path = tmp_path / "snapshot.json"
    path.write_text(
        to_json(
            dataclasses.replace(
                fake.sample_snapshot(), network=dataclasses.replace(fake.sample_snapshot().network, hostname="-")
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
