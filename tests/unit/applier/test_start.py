"""The start of the daemon: after a boot, after a kill, in the middle of an apply, and with a damaged disk."""

import dataclasses
import errno
import os
import shutil

import pytest
from box import ONE, TWO, Box, running_one

from applier.apply.runs import RunRecord
from applier.daemon import KEEP_IN_NEED
from applier.host.host import Output
from applier.kept import storage, way_back
from applier.kept.generations import Generations
from applier.wire.errors import ApplierRefused
from lbconfig.model.snapshot import FACTORY, to_data
from lbconfig.target import Target


def test_a_boot_brings_up_the_confirmed_generation_firewall_first(tmp_path):
    box = running_one(tmp_path).power_cut()
    status = box.applier.status()
    assert status["generation"] == 1 and not status["faults"]
    assert status["start"]["state"] == "done"
    assert sorted(box.host.links["eth0"].addresses) == ["192.168.10.2/24", "192.168.10.80/32", "2001:db8:1::2/64"]
    assert box.host.director_pid is not None and not box.host.violations
    changed = [entry for entry in box.host.log if not entry.startswith("put")]
    assert changed[0] == "nft -f"
    assert not [entry for entry in box.host.log if entry.startswith("set net/ipv4/ip_forward=0")]


def test_servers_of_checked_services_wait_at_boot_for_their_first_check(tmp_path):
    box = running_one(tmp_path)
    box.power_cut()
    added = next(entry for entry in box.host.log if entry.startswith("ipvsadm"))
    assert "10.2.0.11:80 -m -w 0" in added and "10.2.0.31:53 -m -w 1" in added


def test_what_clients_do_not_wait_for_starts_when_the_configuration_is_in_place_or_cannot_be(tmp_path, monkeypatch):
    """Where servers are checked that is up to ldirectord: see peers test_faults."""
    box = Box(tmp_path / "factory").start()
    assert box.host.log[-1] == "sv down later"
    box = Box(tmp_path / "broken")
    with monkeypatch.context() as broken:
        broken.setattr(way_back, "recover", lambda generations: 1 / 0)
        box.start()
    assert "start" in box.faults() and box.host.log == ["sv down later"]
    assert "sv down later" not in running_one(tmp_path / "checked").power_cut().host.log


def test_a_restart_of_the_daemon_changes_nothing(tmp_path):
    box = running_one(tmp_path)
    before, pid = box.host.state(), box.host.director_pid
    box.restart_daemon()
    assert box.host.state() == before and box.host.director_pid == pid
    assert box.host.log == ["put running.json"]
    assert box.applier.status()["generation"] == 1


def test_a_restart_repairs_what_somebody_changed_by_hand(tmp_path):
    box = running_one(tmp_path)
    before = box.host.state()
    box.host.links["eth0"].addresses.remove("192.168.10.80/32")
    box.host.table.pop(("udp", "192.168.10.80", 53))
    box.host.rules = None
    box.restart_daemon()
    box.host.sleep(30)
    assert box.host.state() == before and not box.host.violations


class Killed(BaseException):
    pass


def test_a_kill_at_any_change_of_an_apply_converges_to_the_confirmed_generation(tmp_path):
    probe = running_one(tmp_path / "probe")
    carry_out(probe)
    for number in range(probe.host.changes):
        box = running_one(tmp_path / str(number))
        before = box.host.state()
        change = box.host.change

        def killed(name, action, half=None, change=change, number=number, box=box):
            if box.host.changes == number:
                raise Killed
            return change(name, action, half)

        box.host.change = killed
        run_into_kill(box)
        box.host.change = change
        place = f"change {number}: {probe.host.log[number]}"
        was_confirmed = box.applier.generations.confirmed_number() == 2
        box.restart_daemon()
        box.host.sleep(30)
        status = box.applier.status()
        assert not status["faults"] and not box.host.violations, place
        if was_confirmed:
            assert status["generation"] == 2 and probe.host.log[number] == "put running.json"
            continue
        after = box.host.state()
        # What no configuration speaks of is left as it is.
        after["network"]["links"]["eth2"] = before["network"]["links"]["eth2"]
        after["settings"] = before["settings"]
        assert after == before, place
        assert box.host.links["eth2"].addresses == []
        assert box.applier.generations.entry(2)["outcome"] == "interrupted", place


def run_into_kill(box: Box) -> None:
    with pytest.raises(Killed):
        carry_out(box)


def carry_out(box: Box) -> None:
    """In this thread, and without waiting to be confirmed: test_confirm.py is about that."""
    number = box.applier.applies.store(TWO, "ann", "", "")
    box.applier.applies.carry_out(Target(number, TWO), RunRecord.of("killed", "ann", number))


def test_ldirectord_that_nobody_wants_is_stopped(tmp_path):
    box = running_one(tmp_path)
    assert box.apply(dataclasses.replace(ONE, services=ONE.services[1:]))["state"] == "done"
    box.host.director_pid = 77
    box.restart_daemon()
    assert box.host.director_pid is None and not box.faults()


def test_ldirectord_that_cannot_be_stopped_is_not_given_a_new_file(tmp_path):
    box = running_one(tmp_path)
    box.host.unkillable = True
    box.host.kill_group = lambda group: None
    checks = box.host.files[box.paths.ldirectord]
    run = box.apply(TWO)
    assert run["state"] == "rolled back" and "the end of ldirectord" in run["message"]
    assert box.host.files[box.paths.ldirectord] == checks and not box.host.violations


def test_a_mistake_at_the_start_leaves_a_daemon_that_answers(tmp_path, monkeypatch):
    box = running_one(tmp_path)
    monkeypatch.setattr(way_back, "recover", lambda generations: 1 / 0)
    box.restart_daemon()
    assert "The applier has failed" in box.faults()["start"]


# --- an nftables that does not work -------------------------------------------------------------------


def test_rules_that_cannot_be_loaded_at_boot_leave_a_closed_box_that_can_be_managed(tmp_path):
    box = running_one(tmp_path)
    box.host = type(box.host)(box.paths)
    box.host.bad_rules = True
    box.restart_daemon()
    assert "policy drop" in box.host.rules and "ip saddr 192.168.0.0/16 tcp dport 443 accept" in box.host.rules
    assert "services" not in box.host.rules
    assert box.host.links["eth0"].addresses and not box.host.violations
    assert "Load the firewall rules" in box.applier.status()["start"]["message"]
    assert "nft -f" in box.faults()["start"]


def test_without_any_firewall_the_box_stays_without_addresses(tmp_path):
    box = running_one(tmp_path)
    box.host = type(box.host)(box.paths)
    box.host._nft = lambda path, check=False: Output(1, "", "no nf_tables")
    box.restart_daemon()
    assert all(not link.addresses for link in box.host.links.values())
    assert box.host.settings["net/ipv4/ip_forward"] == "0"
    assert "without addresses" in box.faults()["start"]


def test_at_boot_one_bad_thing_does_not_keep_the_rest_down(tmp_path):
    box = running_one(tmp_path)
    box.host = type(box.host)(box.paths, links=("eth0",))  # the card of eth1 is broken
    box.restart_daemon()
    assert sorted(box.host.links["eth0"].addresses) == ["192.168.10.2/24", "192.168.10.80/32", "2001:db8:1::2/64"]
    assert box.host.director_pid is not None and box.host.table
    assert "eth1" in box.faults()["start"]


# --- generations that are gone --------------------------------------------------------------------------


def damage(state, what):
    if what == "folder":
        shutil.rmtree(state / "generations/000002")
    elif what == "link":
        (state / "confirmed").unlink()
    else:
        path = state / "generations/000002" / what
        path.write_text(path.read_text()[:-20])


@pytest.mark.parametrize("what", ["folder", "link", "snapshot.json", "meta.json", "files/nftables.conf"])
def test_a_damaged_generation_is_replaced_by_its_second_copy(tmp_path, what):
    box = running_one(tmp_path)
    assert box.apply(TWO)["state"] == "done"
    damage(box.paths.state, what)
    box.power_cut()
    status = box.applier.status()
    assert status["snapshot"] == to_data(TWO)
    assert status["confirmed"] == status["generation"] == 3
    assert "Revision 2" in box.faults()["generation-missing"]
    box.power_cut()
    assert not box.faults() and box.applier.status()["generation"] == 3


def test_without_the_second_copy_the_newest_older_one_is_loaded(tmp_path):
    box = running_one(tmp_path)
    box.apply(TWO)
    damage(box.paths.state, "snapshot.json")
    (box.paths.state / "confirmed.json").write_text("{")
    box.power_cut()
    assert box.applier.status()["generation"] == 1
    assert "older revision 1" in box.faults()["generation-missing"]
    assert box.apply(TWO)["generation"] == 3  # and no number is used twice
    assert not box.faults()


def test_when_all_is_gone_the_factory_configuration_runs_with_a_fault(tmp_path):
    box = running_one(tmp_path)
    shutil.rmtree(box.paths.state / "generations/000001")
    (box.paths.state / "confirmed.json").unlink()
    box.power_cut()
    assert box.applier.running.snapshot == FACTORY
    assert "factory configuration" in box.faults()["generation-missing"]
    assert box.apply(TWO)["generation"] == 2


def test_a_generation_is_not_confirmed_because_it_is_there(tmp_path):
    box = Box(tmp_path).start()
    Generations(box.paths.state).create(ONE, "ann", "")
    box.power_cut()
    assert box.applier.running.snapshot == FACTORY and not box.faults()


# --- a data partition in trouble -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "code", "word"),
    [
        (errno.ENOSPC, "data-full", "full"),
        (errno.EROFS, "data-read-only", "read-only"),
        (errno.EIO, "data-error", "error"),
    ],
)
def test_a_disk_that_takes_nothing_refuses_the_apply_and_changes_nothing(tmp_path, monkeypatch, number, code, word):
    box = running_one(tmp_path)
    before, names = box.host.state(), sorted(os.listdir(box.paths.state / "generations"))
    real = os.write

    def write(handle, data):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(ApplierRefused) as caught:
        box.apply(TWO)
    assert caught.value.code == code and word in caught.value.message
    assert box.host.state() == before and box.host.changes == 0
    assert sorted(os.listdir(box.paths.state / "generations")) == names
    monkeypatch.setattr(os, "write", real)
    assert box.apply(TWO)["state"] == "done"


def test_a_disk_that_fills_up_during_the_apply_puts_everything_back(tmp_path, monkeypatch):
    box = running_one(tmp_path)
    before = box.host.state()

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Generations, "confirm", full)
    run = box.apply(TWO)
    assert run["state"] == "rolled back" and "No space left" in run["message"]
    box.host.sleep(30)
    assert box.host.state() == before and box.applier.generations.confirmed_number() == 1


def test_making_room_spends_the_reserve_and_keeps_what_matters(tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "RESERVE", 1 << 20)
    monkeypatch.setattr(storage, "PLENTY", 0)
    box = running_one(tmp_path)
    assert box.paths.reserve.stat().st_size == 1 << 20
    numbers = [box.apply(snapshot)["generation"] for snapshot in (TWO, ONE) * (KEEP_IN_NEED // 2 + 1)]
    assert set(box.applier.make_room()) == {"freed", "free"}
    assert not box.paths.reserve.exists()
    assert box.applier.generations.numbers() == numbers[-KEEP_IN_NEED:]
    assert box.applier.generations.confirmed_number() == numbers[-1]
    assert box.restart_daemon().paths.reserve.exists()  # set aside again, now that there is room


def test_nothing_is_set_aside_where_there_is_little_room(tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "PLENTY", 1 << 60)
    assert not running_one(tmp_path).paths.reserve.exists()


def test_a_data_partition_that_is_not_there_is_a_fault_and_the_box_runs(tmp_path):
    box = Box(tmp_path)
    box.paths = dataclasses.replace(box.paths, mount=tmp_path / "data")  # nothing is mounted there
    box.restart_daemon()
    status = box.applier.status()
    assert status["data"] == {"total": 0, "free": 0}
    assert "data partition is not there" in box.faults()["data-missing"]
    assert not status["setup_code_active"]  # nobody may take over a box whose disk is gone
    assert box.host.links["eth0"].up
    with pytest.raises(ApplierRefused, match="data partition is not there") as caught:
        box.apply(TWO)
    assert caught.value.code == "data-missing"


def test_the_boot_scripts_know_better_what_is_wrong_with_the_disk(tmp_path):
    box = Box(tmp_path)
    box.paths = dataclasses.replace(box.paths, mount=tmp_path / "data")
    box.paths.boot_faults.mkdir(parents=True)
    (box.paths.boot_faults / storage.BOOT_FAULT).write_text("The disk has no label.\n")
    box.restart_daemon()
    assert box.faults() == {"data-partition": "The disk has no label."}


def test_a_read_only_partition_is_seen_without_writing(tmp_path, monkeypatch):
    box = running_one(tmp_path)
    real = os.statvfs

    class Numbers:
        def __init__(self, path):
            self._real = real(path)

        f_flag = os.ST_RDONLY

        def __getattr__(self, name):
            return getattr(self._real, name)

    monkeypatch.setattr(os, "statvfs", Numbers)
    assert "data-read-only" in box.faults()
    monkeypatch.setattr(os, "statvfs", real)
    assert not box.faults()
