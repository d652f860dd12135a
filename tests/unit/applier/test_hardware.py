"""Tuning a machine in memory: what differs is written, in its order; what is refused is told and stops nothing."""

import dataclasses

import pytest
from box import ONE, Box, running_one
from hardware_box import QUEUES, MachineHost

from applier.apply.hardware_steps import PlaceInterrupts, TuneHardware
from applier.apply.job import Job
from applier.base.paths import Paths
from applier.hardware import tune as hardware
from applier.hardware.look import look
from applier.hardware.verbs import describe
from applier.host.host import HostError, Process
from applier.wire.errors import ApplierRefused
from lbconfig.hardware.settings import TABLE_SIZE
from lbconfig.model.snapshot import CardChoice, Power, SettingChoice, Tuning
from lbconfig.target import Target

PATHS = Paths()
USUAL = Tuning()


@pytest.fixture
def host():
    return MachineHost()


def wishing(tuning: Tuning):
    return dataclasses.replace(ONE, tuning=tuning)


def texts(files):
    """The kernel puts blanks and lines where it likes."""
    return {path: text.split() for path, text in files.items()}


def job(host, tuning, before=None, lenient=False):
    return Job(host, PATHS, None, Target(None, wishing(tuning)), before and Target(None, before), lenient=lenient)


def test_queues_come_first_and_what_depends_on_them_after(host):
    done = hardware.tune(host, PATHS, USUAL)
    assert not done.refused
    queues = host.told.index("ethtool -L eth0 combined 2")
    homes = [host.told.index(f"/proc/irq/{number}/smp_affinity_list = {cpu}") for number, cpu in ((24, 0), (25, 1))]
    assert queues < min(homes)
    assert host.files[f"{QUEUES}tx-1/xps_cpus"] == "2" and host.ring == 1024
    assert host.files["/proc/sys/net/core/somaxconn"] == "4096"
    assert host.files["/proc/irq/40/smp_affinity_list"] == "1"


def test_the_second_time_nothing_is_written(host):
    hardware.tune(host, PATHS, USUAL)
    host.told.clear()
    assert hardware.tune(host, PATHS, USUAL).changed == [] == host.told


def test_what_a_card_has_to_be_told_at_a_boot_is_known_whether_it_was_told_now_or_before(host):
    told = [("-L", "eth0", "combined", "2"), ("-G", "eth0", "rx", "1024", "tx", "1024")]
    for _ in range(2):
        run = job(host, USUAL, lenient=True)
        TuneHardware().do(run)
        assert [one.arguments for one in run.saved.cards if one.arguments[0] in ("-L", "-G")] == told
    host = MachineHost()
    host.stubborn = {"-L": "Operation not permitted"}
    TuneHardware().do(run := job(host, USUAL, lenient=True))
    assert "-L" not in {one.arguments[0] for one in run.saved.cards}


def test_what_was_changed_can_be_put_back(host):
    before = dict(host.files)
    done = hardware.tune(host, PATHS, USUAL)
    hardware.undo(host, done.undo)
    assert (host.queues, host.ring) == (1, 256)
    assert texts(host.files) == texts(before)


def test_what_is_refused_is_noted_and_stops_nothing(host):
    host.stubborn = {"-L": "Operation not permitted", "somaxconn": "Invalid argument"}
    done = hardware.tune(host, PATHS, USUAL)
    assert done.refused == {
        "ethtool -L eth0 combined 2": "Operation not permitted",
        "/proc/sys/net/core/somaxconn = 4096": "Invalid argument",
    }
    # One queue remains, so packets are spread by software.
    assert host.files[f"{QUEUES}rx-0/rps_cpus"] == "3" and host.ring == 1024
    assert hardware.refused(host, PATHS) == done.refused
    assert hardware.settings_that_differ(host, PATHS, USUAL) == []
    host.stubborn = {}
    assert not hardware.tune(host, PATHS, USUAL).refused and hardware.refused(host, PATHS) == {}


def test_a_card_that_says_yes_and_does_nothing_is_told(host):
    host._make = lambda: setattr(host, "queues", 1)
    done = hardware.tune(host, PATHS, USUAL)
    assert done.refused == {"ethtool -L eth0 combined 2": hardware.NOT_KEPT}
    assert host.told.count("ethtool -L eth0 combined 2") == 1


def test_one_object_alone(host):
    hardware.tune(host, PATHS, USUAL, "interrupt 40")
    assert host.told == ["/proc/irq/40/smp_affinity_list = 1"]


def test_files_that_cannot_be_read_are_not_told(host):
    host.files["/sys/class/net/eth0/speed"] = "unreadable"
    host.files["/proc/interrupts"] = "unreadable"
    assert look(host).cards[0].speed == 0 and look(host).interrupts == ()


def test_without_ethtool_a_machine_is_tuned_as_far_as_it_goes(host):
    def command(argv, stdin="", timeout=0):
        raise HostError("ethtool", None, "it cannot be run: No such file or directory")

    host.command = command
    done = hardware.tune(host, PATHS, USUAL)
    assert not done.refused and host.files[f"{QUEUES}rx-0/rps_cpus"] == "3"


def test_how_it_is_described(host):
    host.stubborn = {"-G": "Operation not supported"}
    hardware.tune(host, PATHS, USUAL)
    said = describe(look(host), USUAL, hardware.refused(host, PATHS))
    assert {one["object"]: one["state"] for one in said["actions"] if one["what"].startswith("room")} == {
        "eth0": "refused"
    }
    assert {one["state"] for one in said["actions"] if not one["what"].startswith("room")} == {"done"}
    settings = {one["key"]: one for one in said["settings"]}
    assert settings["net/core/somaxconn"]["state"] == "done"
    assert settings["net/core/rmem_max"] | {"reason": "", "source": ""} == {
        "key": "net/core/rmem_max", "value": None, "wanted": "5242880", "standard": "5242880", "lowest": 212_992,
        "highest": 268_435_456, "reason": "", "source": "", "state": "absent", "message": "",
    }  # fmt: skip
    assert settings[TABLE_SIZE]["state"] == "differs" and "restarts" in settings[TABLE_SIZE]["message"]
    assert said["machine"]["cards"][0]["name"] == "eth0" and said["findings"] == []


# --- as steps ----------------------------------------------------------------------------------------


def test_an_apply_that_wishes_nothing_else_looks_at_no_card(host):
    assert not TuneHardware().due(job(host, USUAL, ONE))
    assert TuneHardware().due(job(host, Tuning(power=Power.BOARD), ONE))
    assert TuneHardware().due(job(host, USUAL, ONE, lenient=True))


def test_an_apply_that_takes_a_card_into_use_places_its_interrupts(host):
    first, *others = ONE.network.interfaces
    fewer = dataclasses.replace(ONE, network=dataclasses.replace(ONE.network, interfaces=(first,)))
    run = job(host, USUAL, fewer)
    assert others and PlaceInterrupts().due(run) and not TuneHardware().due(run)
    assert not PlaceInterrupts().due(job(host, USUAL, ONE))


def test_an_apply_and_its_undo(host):
    hardware.tune(host, PATHS, USUAL)
    before = dict(host.files)
    wish = Tuning((SettingChoice("net/core/somaxconn", "512"),), (CardChoice("eth0", queues=1),))
    run = job(host, wish, ONE)
    steps = TuneHardware(), PlaceInterrupts()
    for step in steps:
        assert step.due(run)
        step.do(run)
    assert host.queues == 1 and host.files["/proc/sys/net/core/somaxconn"] == "512"
    for step in reversed(steps):
        step.undo(run)
    assert host.queues == 2
    assert texts(host.files) == texts(before)


def test_a_choice_that_the_kernel_refuses_fails_the_apply_but_never_the_boot(host):
    host.stubborn = {"somaxconn": "Invalid argument"}
    wish = Tuning((SettingChoice("net/core/somaxconn", "512"),))
    with pytest.raises(HostError, match="refuses what you chose: kernel setting net/core/somaxconn: Invalid argument"):
        TuneHardware().do(job(host, wish, ONE))
    assert "refused" in TuneHardware().do(job(host, wish, lenient=True))


# --- as verbs, and at the start ----------------------------------------------------------------------


def test_the_balancer_is_loaded_with_a_table_by_memory(tmp_path):
    box = running_one(tmp_path)
    seen = []
    box.host.command = lambda argv, stdin="", timeout=0: seen.append(list(argv))
    box.applier.tuner.load_balancer()
    assert box.host.files[box.paths.module_options] == "options ip_vs conn_tab_bits=12\n"
    assert seen == [["modprobe", "-q", "-a", "ip_vs", "ip_vs_rr", "ip_vs_wrr", "ip_vs_lc", "ip_vs_wlc"]]


def test_the_choice_of_a_table_size_holds_at_the_next_start(tmp_path):
    box = running_one(tmp_path)
    assert box.apply(wishing(Tuning((SettingChoice(TABLE_SIZE, "20"),))))["state"] == "done"
    box.host.command = lambda argv, stdin="", timeout=0: None
    box.applier.tuner.load_balancer()
    assert box.host.files[box.paths.module_options] == "options ip_vs conn_tab_bits=20\n"


def test_the_verbs(tmp_path):
    box = Box(tmp_path).start()
    assert box.applier.tuner.hardware()["actions"] == []
    assert box.applier.tuner.tune("", "ann")["findings"] == []
    with (
        box.applier.turn.take("something else happens"),
        pytest.raises(ApplierRefused, match="something else happens"),
    ):
        box.applier.tuner.tune("", "ann")


def test_a_program_that_moves_interrupts_is_ended(host):
    running = {311: "/usr/sbin/irqbalance", 312: "/usr/sbin/thermald", 313: "/usr/bin/irqbalance-ui"}
    host.processes = lambda: [Process(pid, pid, (name, "--foreground")) for pid, name in running.items()]
    host.end = running.pop
    host.now, host.sleep = lambda: 0.0, lambda seconds: None
    assert [one["code"] for one in describe(look(host), USUAL, {})["findings"]].count("meddler") == 1
    assert hardware.end_meddlers(host) == ["irqbalance"]
    assert running.keys() == {312, 313}
    assert hardware.end_meddlers(host) == []
    assert "meddler" not in {one["code"] for one in describe(look(host), USUAL, {})["findings"]}


def test_a_program_that_will_not_end_is_still_found(host):
    clock = iter(range(100))
    host.processes = lambda: [Process(311, 311, ("irqbalance",))]
    host.end = lambda pid: None
    host.now, host.sleep = lambda: next(clock), lambda seconds: None
    assert hardware.end_meddlers(host) == []
    assert "meddler" in {one["code"] for one in describe(look(host), USUAL, {})["findings"]}


def test_a_card_without_a_driver_is_found_by_its_pci_device(host):
    host.files["/sys/bus/pci/devices/0000:07:00.0/uevent"] = "PCI_CLASS=20000\nPCI_ID=8086:1563\n"
    assert look(host).driverless == ("0000:07:00.0 (8086:1563)",)
