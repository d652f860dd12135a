"""The table of settings: by memory, within bounds, and never the same key as wanted/settings.py."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lbconfig_samples import SAMPLE

from lbconfig.hardware.facts import Cpu, Machine
from lbconfig.hardware.settings import BY_KEY, TABLE, TABLE_SIZE, problem, wanted
from lbconfig.migrate import read
from lbconfig.model.snapshot import SORRY_PORT
from lbconfig.model.tuning import SettingChoice
from lbconfig.wanted import settings as sysctl

GOLDEN = Path(__file__).parents[2] / "golden"


def machine(memory: int) -> Machine:
    return Machine((Cpu(0),), memory)


def values(memory: int, *choices: SettingChoice) -> dict[str, str]:
    return {one.key: one.value for one in wanted(machine(memory), choices)}


def test_no_key_is_both_of_the_machine_and_of_the_configuration():
    for text in [path.read_text() for path in GOLDEN.glob("*/snapshot.json")]:
        assert not {one.key for one in sysctl.settings(read(text))} & {*BY_KEY}
    assert not {one.key for one in sysctl.settings(SAMPLE)} & {*BY_KEY}
    assert len(BY_KEY) == len(TABLE)


@given(st.integers(0, 1 << 24))
def test_the_standard_of_any_memory_is_one_that_could_be_chosen(memory):
    for one in wanted(machine(memory)):
        assert problem(SettingChoice(one.key, one.standard)) is None, one


@pytest.mark.parametrize(
    ("memory", "tracked", "bits"),
    [(470, "65536", "17"), (2048, "262144", "19"), (16_000, "2097152", "22"), (0, "65536", "12")],
)
def test_tables_grow_with_the_memory(memory, tracked, bits):
    found = values(memory)
    assert (found["net/netfilter/nf_conntrack_max"], found[TABLE_SIZE]) == (tracked, bits)


def test_ports_of_the_box_leave_its_own_alone():
    first, last = map(int, values(1024)["net/ipv4/ip_local_port_range"].split())
    assert first > 1024 and last < SORRY_PORT
    assert BY_KEY["net/ipv4/ip_local_port_range"].highest == SORRY_PORT - 1


def test_an_admins_value_takes_the_place_of_the_tables():
    found = {one.key: one for one in wanted(machine(1024), [SettingChoice("net/core/somaxconn", "512")])}
    assert (found["net/core/somaxconn"].value, found["net/core/somaxconn"].standard) == ("512", "4096")
    assert found["net/core/rmem_max"].value == found["net/core/rmem_max"].standard == "5242880"


def test_where_a_setting_lies():
    assert BY_KEY["net/core/somaxconn"].path == "/proc/sys/net/core/somaxconn"
    assert BY_KEY[TABLE_SIZE].path == "/sys/module/ip_vs/parameters/conn_tab_bits" and BY_KEY[TABLE_SIZE].at_start


@pytest.mark.parametrize(
    ("key", "value", "field", "words"),
    [
        ("net/ipv4/ip_forward", "0", "key", "no setting that can be chosen"),
        ("../../etc/passwd", "1", "key", "no setting"),
        ("", "1", "key", "no setting"),
        ("net/core/somaxconn", "", "value", "a whole number, not ''"),
        ("net/core/somaxconn", "-1", "value", "a whole number"),
        ("net/core/somaxconn", "１２８", "value", "a whole number"),
        ("net/core/somaxconn", "4096; reboot", "value", "a whole number"),
        ("net/core/somaxconn", "9" * 1000, "value", "a whole number"),
        ("net/core/somaxconn", "70000", "value", "must be 128 to 65535"),
        ("net/core/netdev_budget_usecs", "2000", "value", "must be 8000 to 100000"),
        ("net/ipv4/tcp_rmem", "4096", "value", "3 whole numbers"),
        ("net/ipv4/tcp_rmem", "4096  4096 4096", "value", "3 whole numbers"),
        ("net/ipv4/tcp_rmem", "8192 4096 16384", "value", "must not go down"),
        ("net/ipv4/ip_local_port_range", "32768 64503", "value", "must be 1024 to 64502"),
    ],
)
def test_what_may_not_be_chosen_is_told_by_field(key, value, field, words):
    found = problem(SettingChoice(key, value))
    assert found is not None and found[0] == field and words in found[1]
