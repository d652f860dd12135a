"""The web page at another port: nginx is asked, told and looked at; what fails leaves it where it was."""

import dataclasses
import re

import confirm_box
import pytest
from box import ONE, Box

from applier.wire.shapes import ENDED
from lbconfig.wanted.pair_link import LINK

MOVED = dataclasses.replace(ONE, management=dataclasses.replace(ONE.management, port=8443))
AGAIN = ["nginx -t", "sv hup nginx"]

quick, box = confirm_box.quick, confirm_box.box


def told(box: Box) -> list[str]:
    """What nginx was asked and told."""
    return [line for line in box.host.log if line in AGAIN]


def listens(box: Box, port: int) -> bool:
    """And the firewall lets nobody come by another one, but for the other box of a pair by the link."""
    rules = [rule for rule in box.host.rules.splitlines() if f'"{LINK}"' not in rule]
    opened = any(f"tcp dport {port} accept" in rule for rule in rules)
    opened = opened and {*re.findall(r"tcp dport (?:!= )?(\d+)", "\n".join(rules))} == {str(port)}
    return opened and box.host.web == f"listen {port} ssl default_server;\nlisten [::]:{port} ssl default_server;\n"


def test_it_moves_and_asks_to_be_confirmed(box):
    assert listens(box, 443)
    box.begin(MOVED)
    run = box.until("waiting", *ENDED)
    assert run["confirm"]["reasons"] == ["The web page moves to port 8443."]
    assert listens(box, 8443) and told(box) == AGAIN
    states = box.states()
    done = [name for name, state in states.items() if state == "done"]
    assert done == ["store", "lint", "nftables", "web-page", "verify"]
    assert box.applier.applies.confirm("", box.secret, "")["state"] == "done"
    assert box.power_cut().host.web and listens(box, 8443)
    assert told(box) == []  # it read everything when it started


def test_nobody_confirms_and_it_is_where_it_was(box):
    before = box.host.state()
    box.begin(MOVED)
    box.until("waiting", *ENDED)
    box.boottime += 90
    assert box.until(*ENDED)["state"] == "not confirmed"
    box.host.sleep(30)
    assert listens(box, 443) and box.host.state() == before


def test_another_change_leaves_nginx_alone(box):
    allow = (*ONE.management.allow, "10.0.0.0/8")
    assert box.apply(dataclasses.replace(ONE, management=dataclasses.replace(ONE.management, allow=allow)))
    assert box.states()["web-page"] == "skipped" and told(box) == []


@pytest.mark.parametrize(
    ("trouble", "words"),
    [("bad_web", "unexpected end of file"), ("deaf_web", "the web page at port 8443: not within 15 seconds")],
)
def test_an_nginx_that_cannot_is_left_as_it_was(box, trouble, words):
    before = box.host.state()
    setattr(box.host, trouble, "8443")
    run = box.apply(MOVED)
    assert run["state"] == "rolled back" and words in run["message"]
    box.host.sleep(30)
    assert box.host.state() == before and not box.faults()


def test_an_nginx_that_cannot_is_told_at_the_start_and_the_rest_comes_up(box):
    assert box.apply(MOVED)["state"] == "done"
    box.host.files[box.paths.web] = box.host.web.replace("8443", "9443")
    box.host.bad_web = "8443"
    box.restart_daemon()
    assert "Open the web page: port and certificate" in box.applier.status()["start"]["message"]
    assert "unexpected end of file" in box.faults()["start"]
    box.host.bad_web = ""
    box.restart_daemon()
    assert listens(box, 8443) and not box.faults()


def test_a_kill_before_nginx_was_told_is_made_up_for(box):
    """Its file is right already, and nginx still listens where it did."""
    assert box.apply(MOVED)["state"] == "done"
    box.host.web = box.host.web.replace("8443", "443")
    del box.host.files[box.paths.web_read]
    box.restart_daemon()
    assert listens(box, 8443)
