"""The text of the console, from answers of the pretended appliance."""

import os

import pytest

from console import screen, state

ADDRESSES = {"up": True, "name": "eth0", "mac": "", "addresses": ["10.1.0.2/24", "10.1.0.100/32", "2001:db8:1::2/64"]}
SERVICE = {"id": 1, "name": "site", "address": "10.1.0.100", "port": 80, "protocol": "tcp"}
SERVER = {"id": 2, "address": "10.2.0.11", "port": 80, "weight": 1, "active": 3, "inactive": 1, "health": "up"}
STATUS = {
    "version": "1.2",
    "generation": 7,
    "snapshot": {"services": [SERVICE]},
    "interfaces": [ADDRESSES, ADDRESSES | {"up": False, "addresses": ["10.9.0.1/24"]}],
    "running": {"services": [{"id": 1, "name": "site", "table": True, "real_servers": [SERVER]}]},
    "faults": [],
}


@pytest.fixture
def console():
    return state, screen


def test_where_the_box_runs_from_is_told(console, tmp_path):
    state, screen = console
    assert state.gather(tmp_path).place == ""
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk/disk").symlink_to("/dev/no-such-disk")
    (tmp_path / "slot").write_text("B\n")
    found = state.gather(tmp_path)
    assert found.place == "slot B of no-such-disk"
    assert not found.on_a_stick
    shown = screen.screen(found, [])
    assert "Runs from      slot B of no-such-disk" in shown and "USB stick" not in shown
    assert "This box runs from a USB stick; 'Install on a disk'" in screen.screen(state.State(on_a_stick=True), [])


def test_the_fault_of_the_web_process_is_read_from_its_own_file_alone(console, tmp_path):
    """It can put anything there: a link that root follows, a FIFO at which root waits, a terminal's orders."""
    state, _ = console
    (tmp_path / "secret").write_text("of root's")
    fault = tmp_path / "web" / "fault"
    fault.parent.mkdir()
    assert state.text(fault) == ""
    fault.write_bytes(b"damaged:\x1b[2J\nB\xc3\xbcro \xff")
    assert state.text(fault) == "damaged:?[2J Büro \N{REPLACEMENT CHARACTER}"
    fault.unlink()
    fault.symlink_to(tmp_path / "secret")
    assert state.text(fault) == ""
    fault.unlink()
    os.mkfifo(fault)
    assert state.text(fault) == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_of_somebody_else_s_is_not_told(console, tmp_path):
    state, _ = console
    path = tmp_path / "fault"
    path.write_text("of root's")
    os.chown(tmp_path, 12345, -1)
    assert state.text(path) == ""
    os.chown(path, 12345, -1)
    assert state.text(path) == "of root's"


def test_the_web_page_is_told_where_it_answers(console):
    state, _ = console
    assert state.addresses(STATUS) == ("10.1.0.2", "2001:db8:1::2")  # no virtual service's, no interface's that is down


@pytest.mark.parametrize(("port", "end"), [(443, ""), (8443, ":8443")])
def test_the_port_is_told_where_it_is_not_the_usual_one(console, port, end):
    state, screen = console
    found = STATUS | {"snapshot": STATUS["snapshot"] | {"management": {"port": port}}}
    shown = screen.screen(state.State(addresses=state.addresses(found), port=state.port(found)), [])
    assert f"https://10.1.0.2{end}\n" in shown and f"https://[2001:db8:1::2]{end}\n" in shown
    assert state.port(STATUS) == 443  # of a version that knew no other


@pytest.mark.parametrize(("only", "shown"), [("eth0", ["https://10.1.0.2", "https://[2001:db8:1::2]"]), ("eth1", [])])
def test_the_interfaces_of_the_web_page_are_told(console, only, shown):
    state, screen = console
    found = STATUS | {"snapshot": STATUS["snapshot"] | {"management": {"interfaces": [only]}}}
    seen = state.State(addresses=state.addresses(found), only=state.only(found))
    text = screen.screen(seen, [])
    assert f"answers on {only} only\n" in text and all(f"{place}\n" in text for place in shown)
    assert ("no address yet" in text) == (not shown)
    assert state.only(STATUS) == () and "answers on" not in screen.screen(state.State(), [])


def test_what_runs_in_a_few_words(console):
    state, _ = console
    assert state.configuration(STATUS) == "revision 7, 1 virtual service"
    assert state.configuration(STATUS | {"generation": None}) == "as delivered"
    assert state.services(STATUS) == ("site  10.1.0.100:80 tcp", "  10.2.0.11:80  up  3 active, 1 inactive")


def test_what_became_of_the_last_update(console):
    state, screen = console
    good = {"state": "good", "sentence": "Version 1.2 came up, passed its checks, and runs."}
    assert state.update(STATUS | {"update": good}) == good["sentence"]
    assert "  Last update    Version 1.2 came up" in screen.screen(state.State(update=good["sentence"]), [])
    assert state.update(STATUS | {"update": good | {"state": "failed"}}) == ""  # that is a fault
    assert state.update(STATUS | {"update": None}) == "" and "Last update" not in screen.screen(state.State(), [])


def test_without_an_applier_there_is_still_something_to_say(console, tmp_path):
    state, screen = console
    (tmp_path / "faults").mkdir()
    (tmp_path / "faults/data-partition").write_text("There is no data partition.\n")
    (tmp_path / "setup-code").write_text("ABCD-EFGH-JKMN\n")

    found = state.gather(tmp_path)
    assert "There is no data partition." in found.faults
    text = screen.screen(found, ["Reboot"])
    assert f"{screen.RED}  FAULT  There is no data partition.{screen.NORMAL}" in text
    assert "ABCD-EFGH-JKMN" in text
    assert "no address yet" in text
    assert "  1  Reboot" in text


def test_the_same_sentence_is_said_once(console):
    state, _ = console
    assert state.distinct(["a", "", "b", "a"]) == ("a", "b")
