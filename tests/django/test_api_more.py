"""Firewall rules, backup files and the factory reset by the API."""

import logging

import pytest
from api_robot import error, fields, robot
from tests.fake import appliance

from draft import store as draft
from system import backupfile, sealed

PASSPHRASE = "a long \N{SNOWMAN} passphrase"


@pytest.fixture
def one(client, admin):
    return robot(admin)


# --- firewall ---


def test_rules_are_a_part_of_the_draft(one, box):
    rule = {"id": 1, "name": "monitoring", "protocol": "tcp", "ports": "9100", "sources": ["10.9.0.0/16"]}
    assert one.patch("/firewall", {"rules": [rule]}).status_code == 200
    assert [found.name for found in draft.current().firewall.rules] == ["monitoring"]
    answer = one.patch("/firewall", {"rules": [rule | {"ports": "x"}]})
    assert answer.status_code == 422 and fields(answer) == [("firewall rule 'monitoring'", "ports")]
    seen = one.get("/draft/review").json()
    one.post("/applies", {"digest": seen["digest"], "base": seen["base"]})
    assert [found["id"] for found in one.get("/firewall/counters").json()] == [1]


def test_a_packet_is_tried_on_the_draft_and_on_what_runs(one, box):
    packet = {"source": "192.168.10.7", "destination": "192.168.10.2", "interface": "eth0", "port": 9100}
    found = one.post("/firewall/test", packet).json()
    assert found["draft"]["fate"] == found["running"]["fate"] == "dropped"
    one.patch("/firewall", {"rules": [{"id": 4, "name": "monitoring", "protocol": "tcp", "ports": "9100"}]})
    found = one.post("/firewall/test", packet).json()
    assert (found["draft"]["fate"], found["draft"]["rule"]) == ("passed", 4)
    assert found["running"]["fate"] == "dropped"
    to_shop = packet | {"destination": "192.168.10.80", "port": 80}
    assert one.post("/firewall/test", to_shop).json()["running"]["service"] == 1
    query = {"source": "fe80::7", "destination": "ff02::1", "interface": "eth0", "protocol": "icmp", "icmp": 130}
    assert one.post("/firewall/test", query).json()["draft"]["fate"] == "passed"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"source": "10.0.0.0/8"}, "source"),
        ({"source": "x; reboot"}, "source"),
        ({"destination": "2001:db8::1"}, "destination"),
        ({"interface": "eth9"}, "interface"),
        ({"interface": ""}, "interface"),
        ({"protocol": "any"}, "protocol"),
        ({"protocol": "icmp", "icmp": 8}, "icmp"),
        ({"protocol": "tcp", "destination": "ff02::1"}, "destination"),
        ({"port": 0}, "port"),
        ({"port": 10**30}, "port"),
        ({"source_port": -1}, "source_port"),
        ({"port": "80"}, "port"),
        ({"more": 1}, "more"),
    ],
    ids=str,
)
def test_wrong_packets(one, box, change, field):
    packet = {"source": "192.168.10.7", "destination": "192.168.10.2", "interface": "eth0", "port": 80}
    answer = one.post("/firewall/test", packet | change)
    assert answer.status_code == 422 and [found[1] for found in fields(answer)] == [field]


# --- backup file and factory reset ---


@pytest.mark.django_db(transaction=True)
def test_a_backup_file_opens_with_its_passphrase(one, admin, box, tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(sealed.Writer.__init__, "__defaults__", (sealed.Cost(4, 8, 1),))
    caplog.set_level(logging.INFO)
    answer = one.post("/backup", {"passphrase": PASSPHRASE})
    assert answer.status_code == 200 and ".fairlead-backup" in answer.headers["Content-Disposition"]
    file = tmp_path / "backup"
    file.write_bytes(answer.getvalue())
    (tmp_path / "good").mkdir()
    with file.open("rb") as taken:
        texts = backupfile.open_into(tmp_path / "good", taken, PASSPHRASE)
    assert backupfile.about(texts["about.json"]).users == ["admin"]
    with file.open("rb") as taken, pytest.raises(sealed.NotOpened):
        backupfile.open_into(tmp_path, taken, PASSPHRASE[:-1])
    assert "admin (token robot) took a backup file" in caplog.text and PASSPHRASE not in caplog.text


@pytest.mark.parametrize("passphrase", ["", "too short", "x" * 129, 7, "tab\tand more of it", None], ids=str)
def test_a_passphrase_that_will_not_do(one, box, passphrase):
    answer = one.post("/backup", {"passphrase": passphrase})
    assert answer.status_code == 422 and [found[1] for found in fields(answer)] == ["passphrase"]


def test_no_backup_file_without_an_applier(one, box):
    box.reachable = False
    answer = one.post("/backup", {"passphrase": PASSPHRASE})
    assert answer.status_code == 503 and error(answer)["code"] == "applier-down"


def test_factory_reset(one, box):
    answer = one.post("/factory-reset", {"hostname": "wrong"})
    assert answer.status_code == 422 and error(answer)["code"] == "wrong-hostname"
    assert one.post("/factory-reset", {"hostname": appliance.sample_snapshot().network.hostname}).status_code == 202
    assert box.recovery.resets == ["admin (token robot)"]


def test_these_are_for_admins_only(admin, box):
    hostname = appliance.sample_snapshot().network.hostname
    for path, body in (("/backup", {"passphrase": PASSPHRASE}), ("/factory-reset", {"hostname": hostname})):
        assert robot(admin, "read", "change", "apply", "update").post(path, body).status_code == 403
    assert box.recovery.resets == []
