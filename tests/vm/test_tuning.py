"""A box with two CPUs is tuned when it starts: read from its kernel, and seen by traffic that goes through it.

Its card towards the servers is VMware's, the only one of QEMU's with several queues that needs no privilege; the
others have one queue, which is spread by software.
"""

import dataclasses
import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from board.machines.director import VIP, Director
from board.machines.lab import BALANCED, Lab, make_lab
from board.machines.world import SERVERS
from tests.lab.fixtures import thorough

from lbconfig.hardware.settings import TABLE, TABLE_SIZE
from lbconfig.model.snapshot import SettingChoice, Tuning

pytestmark = pytest.mark.timeout(900)

CPUS = 2
BACKLOG = "net/core/somaxconn"


@pytest.fixture
def lab(image) -> Iterator[Lab]:
    folder = Path(tempfile.mkdtemp(prefix="fairlead-"))
    made = make_lab(folder, image)
    made.director.cpus = CPUS
    made.director.cards = {1: "vmxnet3"}
    try:
        with made.world, made.director:
            made.director.wait_until_up()
            made.world.wait_for_servers()
            yield made
    finally:
        shutil.rmtree(folder)


def homes(box: Director) -> dict[str, str]:
    """The kernel's own word: who has registered for an interrupt, and which CPUs may serve it."""
    found = {}
    for line in box.read("/proc/interrupts").splitlines():
        if match := re.match(r"\s*(\d+):.*\s(\S+)$", line):
            found[match[2]] = box.read(f"/proc/irq/{match[1]}/smp_affinity_list").strip()
    return found


def masks(box: Director, card: str, kind: str) -> list[int]:
    text = box.succeed(f"cat /sys/class/net/{card}/queues/*/{kind}")
    return [int(line.replace(",", ""), 16) for line in text.split()]


def value(box: Director, path: str) -> str:
    return " ".join(box.read(path).split())


def wished(*choices: tuple[str, str]):
    return dataclasses.replace(BALANCED, tuning=Tuning(tuple(SettingChoice(*one) for one in choices)))


@thorough
def test_a_box_is_tuned_from_its_start_and_as_an_admin_wishes(lab):
    box, world = lab.director, lab.world
    said = json.loads(box.applier("hardware"))
    # What an emulated card refuses is told; nothing is left that nobody has tried.
    assert [one for one in said["actions"] if one["state"] == "differs"] == []
    assert [one for one in said["settings"] if one["state"] not in ("done", "absent")] == []
    assert len(said["machine"]["cpus"]) == CPUS
    settings_are_as_told(box, said["settings"])
    box.apply(BALANCED)  # it takes the other two cards into use
    queues_are_at_home(box)
    box.wait_until_healthy(*SERVERS)
    assert world.count(f"{VIP}:80/", 30) == {"rs1": 10, "rs2": 10, "rs3": 10}
    both_cpus_have_worked(box)
    a_choice_arrives_and_goes_back(box)
    what_somebody_spoils_is_mended(box)
    choices_hold_after_a_restart(box)
    assert world.count(f"{VIP}:80/", 6) == {"rs1": 2, "rs2": 2, "rs3": 2}


def queues_are_at_home(box: Director) -> None:
    found = homes(box)
    assert {name: home for name, home in found.items() if name.startswith("eth1-rxtx-")} == {
        "eth1-rxtx-0": "0",
        "eth1-rxtx-1": "1",
    }, found
    assert masks(box, "eth1", "xps_cpus") == [0b01, 0b10] and masks(box, "eth1", "rps_cpus") == [0, 0]
    assert masks(box, "eth0", "rps_cpus") == masks(box, "eth2", "rps_cpus") == [0b11]
    single = {home for name, home in found.items() if re.fullmatch(r"virtio\d+-input\.0", name)}
    assert single <= {"0", "1"} and len(single) == 2, found  # two cards of one queue do not meet on one CPU


def settings_are_as_told(box: Director, told: list[dict]) -> None:
    paths = {row.key: row.path for row in TABLE}
    for one in told:
        if one["state"] == "done":
            assert value(box, paths[one["key"]]) == one["wanted"]
    assert int(value(box, paths[TABLE_SIZE])) > 12  # the usual one of Debian's kernel
    assert value(box, paths["net/core/rmem_max"]) == "5242880"


def both_cpus_have_worked(box: Director) -> None:
    """Packets of the servers' and of the clients' side were worked on by each of them."""
    lines = [line.split() for line in box.read("/proc/net/softnet_stat").splitlines()]
    assert len(lines) == CPUS and all(int(words[0], 16) > 20 for words in lines), lines


def a_choice_arrives_and_goes_back(box: Director) -> None:
    box.apply(wished((BACKLOG, "512"), (TABLE_SIZE, "14")))
    assert value(box, f"/proc/sys/{BACKLOG}") == "512"
    run = box.apply_unconfirmed(wished((BACKLOG, "1024"), (TABLE_SIZE, "14")), within=10)
    assert run["state"] == "not confirmed"
    assert {step["name"]: step["state"] for step in run["steps"]}["hardware"] == "undone"
    assert value(box, f"/proc/sys/{BACKLOG}") == "512"


def what_somebody_spoils_is_mended(box: Director) -> None:
    box.succeed(f"echo 200 > /proc/sys/{BACKLOG}; echo 0 > /sys/class/net/eth0/queues/rx-0/rps_cpus")
    said = json.loads(box.applier("hardware"))
    assert [one["object"] for one in said["actions"] if one["state"] == "differs"] == ["eth0"]
    box.applier("tune")
    assert value(box, f"/proc/sys/{BACKLOG}") == "512" and masks(box, "eth0", "rps_cpus") == [0b11]


def choices_hold_after_a_restart(box: Director) -> None:
    box.stop()
    box.start()
    box.wait_until_started()
    box.wait_until_healthy(*SERVERS)
    assert value(box, f"/proc/sys/{BACKLOG}") == "512"
    assert value(box, "/sys/module/ip_vs/parameters/conn_tab_bits") == "14"
    queues_are_at_home(box)
