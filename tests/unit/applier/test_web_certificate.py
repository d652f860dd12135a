"""The certificate of the web page: asked before, shown together with the port, put back, and never in nobody's way."""

import dataclasses
import json

import confirm_box
import lbconfig_certificates as pems
import pytest
from box import ONE, Box
from model_host import ModelHost

from applier.kept import page_key
from applier.wire.errors import ApplierRefused
from applier.wire.shapes import ENDED
from lbconfig.model import certificate
from lbconfig.model.snapshot import Management, Snapshot
from lbconfig.render import web


def showing(chain: str, key: str, port: int = 443) -> Snapshot:
    shown = dataclasses.replace(ONE.management, certificate=chain, key=key, port=port)
    return dataclasses.replace(ONE, management=shown)


LB = showing(pems.LB + pems.ROOT, pems.LB_KEY)
OTHER = showing(pems.OTHER, pems.OTHER_KEY)
ENDED_ONE = showing(pems.ENDED, pems.ENDED_KEY)

quick, box = confirm_box.quick, confirm_box.box


def shown(box: Box, port: int = 443) -> str:
    return box.host.certificate("127.0.0.1", port, 1.0)


def fingerprint(snapshot: Snapshot) -> str:
    return certificate.first(snapshot.management.certificate).fingerprint


def key_file(box: Box, snapshot: Snapshot):
    return box.paths.certificates / web.name(snapshot.management)


def test_it_is_shown_and_asks_to_be_confirmed(box):
    assert shown(box) == "of the box itself"
    box.begin(LB)
    run = box.until("waiting", *ENDED)
    assert run["confirm"]["reasons"] == ["The web page gets another certificate; your browser may warn about it."]
    done = [name for name, state in box.states().items() if state == "done"]
    assert done == ["store", "lint", "web-page", "verify"]
    assert shown(box) == fingerprint(LB)
    assert box.host.files[key_file(box, LB)] == LB.management.page_key
    assert box.host.modes[key_file(box, LB)] == 0o640
    assert box.applier.applies.confirm("", box.secret, "")["state"] == "done"
    assert box.power_cut() and shown(box) == fingerprint(LB)
    assert not box.faults()


def test_nobody_confirms_and_the_old_one_is_back(box):
    before = box.host.state()
    box.begin(LB)
    box.until("waiting", *ENDED)
    box.boottime += 90
    assert box.until(*ENDED)["state"] == "not confirmed"
    box.host.sleep(30)
    assert shown(box) == "of the box itself" and box.host.state() == before


def test_port_and_certificate_go_together_and_back(box):
    assert box.apply(OTHER)["state"] == "done"
    before = box.host.state()
    box.begin(showing(pems.LB, pems.LB_KEY, 8443))
    run = box.until("waiting", *ENDED)
    assert len(run["confirm"]["reasons"]) == 2 and shown(box, 8443) == fingerprint(LB)
    box.boottime += 90
    assert box.until(*ENDED)["state"] == "not confirmed"
    box.host.sleep(30)
    assert shown(box) == fingerprint(OTHER) and box.host.state() == before


def test_a_key_that_is_not_used_any_more_does_not_lie_about(box):
    for snapshot in (LB, OTHER):
        assert box.apply(snapshot)["state"] == "done"
    assert key_file(box, OTHER) in box.host.files and key_file(box, LB) not in box.host.files
    assert box.apply(ONE)["state"] == "done"
    assert not [path for path in box.host.files if path.parent == box.paths.certificates]


def test_a_daemon_that_was_killed_goes_back_as_well(box):
    box.begin(LB)
    box.until("waiting", *ENDED)
    box.restart_daemon()
    box.until("waiting", *ENDED)
    box.boottime += 90
    assert box.until(*ENDED)["state"] == "not confirmed" and shown(box) == "of the box itself"


def test_after_a_power_cut_nobody_has_confirmed_it(box):
    box.begin(LB)
    box.until("waiting", *ENDED)
    assert box.power_cut() and shown(box) == "of the box itself"


@pytest.mark.parametrize(
    ("trouble", "words"),
    [("bad_web", "unexpected end of file"), ("deaf_web", "the certificate of the box itself")],
)
def test_an_nginx_that_does_not_take_it_keeps_the_old_one(box, trouble, words):
    before = box.host.state()
    setattr(box.host, trouble, "ssl_certificate")
    run = box.apply(LB)
    assert run["state"] == "rolled back" and words in run["message"]
    box.host.sleep(30)
    assert box.host.state() == before and not box.faults()


REFUSED = {
    "the key of another": (showing(pems.LB, pems.OTHER_KEY), "key", "does not belong to the certificate"),
    "a key of another kind": (showing(pems.LB, pems.RSA_KEY), "key", "does not belong to the certificate"),
    "ended": (ENDED_ONE, "certificate", "ended on 2021-01-01"),
    "not begun": (showing(pems.LATER, pems.LATER_KEY), "certificate", "is valid only from 2098-01-01 on"),
    "weak": (showing(pems.WEAK, pems.RSA_KEY), "certificate", "2048 to 8192 bits"),
}


@pytest.mark.parametrize(("snapshot", "field", "words"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_before_anything_is_touched(box, snapshot, field, words):
    before, changes = box.host.state(), box.host.changes
    data = dataclasses.asdict(snapshot)
    [problem] = box.applier.check(data)["problems"]
    assert (problem["path"], problem["field"]) == (f"management.{field}", field) and words in problem["message"]
    with pytest.raises(ApplierRefused) as caught:
        box.applier.applies.apply(data, "0" * 64, 1, "ann", "", "", None)
    assert caught.value.code == "problems" and [one["field"] for one in caught.value.problems] == [field]
    assert box.host.state() == before and box.host.changes == changes


def test_one_that_ended_meanwhile_stops_no_other_change(box, monkeypatch):
    monkeypatch.setattr(page_key, "now", lambda: "2020-06-01T00:00:00Z")
    assert box.apply(ENDED_ONE)["state"] == "done"
    monkeypatch.undo()
    other = dataclasses.replace(ENDED_ONE, network=dataclasses.replace(ONE.network, hostname="renamed"))
    assert box.apply(other)["state"] == "done" and shown(box) == fingerprint(ENDED_ONE)
    assert box.apply(ONE)["state"] == "done"
    [problem] = box.applier.check(dataclasses.asdict(ENDED_ONE))["problems"]
    assert "ended on" in problem["message"]


@pytest.mark.parametrize("how", ["openssl", "nginx"])
def test_a_boot_that_cannot_use_it_shows_the_own_one_and_says_so(box, monkeypatch, how):
    assert box.apply(LB)["state"] == "done"
    if how == "openssl":
        monkeypatch.setattr(
            page_key, "unusable", lambda management: {"certificate": "is signed in a way that is too weak"}
        )
    else:
        monkeypatch.setattr(ModelHost, "bad_web", "ssl_certificate")
    box.power_cut()
    assert shown(box) == "of the box itself"
    assert "shows the box's own certificate, as yours cannot be used" in box.faults()["start"]
    monkeypatch.undo()
    box.restart_daemon()
    assert shown(box) == fingerprint(LB) and not box.faults()


def test_a_file_that_somebody_spoilt_is_drift_and_is_repaired(box):
    assert box.apply(LB)["state"] == "done"
    box.host.files[key_file(box, LB)] = OTHER.management.page_key
    box.applier.drift.look()
    box.restart_daemon()
    assert box.host.files[key_file(box, LB)] == LB.management.page_key and shown(box) == fingerprint(LB)


def test_another_change_leaves_it_alone(box):
    assert box.apply(LB)["state"] == "done"
    del box.host.log[:]
    other = dataclasses.replace(LB, network=dataclasses.replace(ONE.network, hostname="renamed"))
    assert box.apply(other)["state"] == "done"
    assert box.states()["web-page"] == "skipped" and "sv hup nginx" not in box.host.log


def test_whatever_holds_the_key_is_for_root_alone(box):
    """Of the running state; the web server reads the one file that is for it."""
    assert box.apply(LB)["state"] == "done"
    secret = pems.LB_KEY.splitlines()[1]
    holders = {path: box.host.modes[path] for path, text in box.host.files.items() if secret in text}
    assert holders == {key_file(box, LB): 0o640, box.paths.running: 0o600}
    assert json.loads(box.host.files[box.paths.running])["snapshot"]["management"]["key"] == pems.LB_KEY
    for path in box.paths.state.rglob("*"):
        if path.is_file() and secret in path.read_text(errors="replace"):
            assert path.stat().st_mode & 0o077 == 0, path


def test_openssl_says_whether_they_belong_together():
    assert page_key.unusable(Management(certificate=pems.LB, key=pems.LB_KEY)) == {}
    assert page_key.unusable(Management(certificate=pems.LB, key=pems.LB_KEY_OF_EC)) == {}
    assert list(page_key.unusable(Management(certificate=pems.LB, key=pems.LB_KEY_LOCKED))) == ["key"]
    assert list(page_key.unusable(Management(certificate="x", key="y"))) == ["key"]
