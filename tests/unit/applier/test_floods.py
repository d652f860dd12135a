"""What is set against floods, and what the kernel makes of it by itself."""

import dataclasses
import logging

import pytest
from box import ONE, Box, running_one

from applier.apply.drift import AGAIN
from applier.host import reserve
from applier.host.host import HostError
from lbconfig.hardware import share
from lbconfig.model.snapshot import FloodDefence, Policy

MEMORY = "MemTotal:         496640 kB\nMemFree:          245312 kB\n"
ENTRY, PACKET, THRESHOLD = "net/ipv4/vs/drop_entry", "net/ipv4/vs/drop_packet", "net/ipv4/vs/amemthresh"


def differences(box: Box) -> list[str]:
    """After two looks, as far apart as the timer has them."""
    box.applier.drift.look()
    box.boottime += AGAIN
    return [one["object"] for one in box.applier.drift.look()["differences"]]


def with_memory(box: Box) -> Box:
    box.host.files[reserve.MEMORY] = MEMORY
    box.host.settings[THRESHOLD] = "1024"
    return box


def test_the_memory_that_stays_free_is_set_when_the_applier_starts_and_once(tmp_path):
    box = with_memory(Box(tmp_path)).start()
    assert box.host.settings[THRESHOLD] == "19865"  # 16 % of 485 MiB
    before = len(box.host.log)
    reserve.keep(box.host)
    assert len(box.host.log) == before


@pytest.mark.parametrize("memory", [None, "", "nonsense", "MemFree: 12 kB"])
def test_a_kernel_that_does_not_tell_its_memory_keeps_its_own_value(tmp_path, memory, caplog):
    box = with_memory(Box(tmp_path))
    box.host.files[reserve.MEMORY] = memory
    reserve.keep(box.host)
    assert box.host.settings[THRESHOLD] == "1024" and "does not tell" in caplog.text


def test_a_setting_that_cannot_be_written_is_said_in_the_log_and_stops_nothing(tmp_path, caplog):
    box = with_memory(Box(tmp_path))

    def refuse(key, value):
        raise HostError(f"setting {key}", None, "read-only")

    box.host.set = refuse
    with caplog.at_level(logging.ERROR):
        reserve.keep(box.host)
    assert "read-only" in caplog.text


@pytest.mark.parametrize(("memory", "pages"), [(0, 1024), (25_600, 1024), (496_640, 19_865), (64 << 20, 2_684_354)])
def test_small_boxes_keep_what_the_kernel_does_and_large_ones_a_part(memory, pages):
    assert share.threshold(memory) == pages


def test_the_kernel_switches_the_automatic_defence_on_by_itself_and_that_is_no_difference(tmp_path):
    box = running_one(tmp_path)
    assert (box.host.settings[ENTRY], box.host.settings[PACKET]) == ("1", "1")
    box.host.settings |= {ENTRY: "2", PACKET: "2"}
    assert not differences(box)
    before = len(box.host.log)
    assert box.apply(dataclasses.replace(ONE, policy=Policy(udp_timeout=77)))["state"] == "done"
    assert not [entry for entry in box.host.log[before:] if "drop_" in entry]


@pytest.mark.parametrize(
    ("when", "entries", "packets"),
    [(FloodDefence.AUTOMATIC, "1", "1"), (FloodDefence.ALWAYS, "3", "1"), (FloodDefence.NEVER, "0", "0")],
)
def test_the_admin_decides_when_the_table_gives_way(tmp_path, when, entries, packets):
    box = running_one(tmp_path)
    box.apply(dataclasses.replace(ONE, policy=Policy(flood_defence=when)))
    assert (box.host.settings[ENTRY], box.host.settings[PACKET]) == (entries, packets)
    assert not differences(box)
    box.host.settings[ENTRY] = "2" if when is FloodDefence.NEVER else "0"
    assert differences(box) == ["kernel setting net.ipv4.vs.drop_entry"]
