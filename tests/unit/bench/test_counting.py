"""The arithmetic of counted instructions, the file that they are read from, and what the tables make of them."""

import shutil
import struct
import subprocess

import pytest
from bench.counted import Cost
from bench.counting import CannotCount, Counting, Counts, Symbols, check_version, per_unit
from board.machines.wait import until
from hypothesis import given
from hypothesis import strategies as st

from bench import compiled, counting, instructions

amounts = st.integers(0, 10**12)


@given(amounts, amounts, st.integers(1, 10**6), st.floats(0.1, 1e3), st.floats(0.1, 1e3))
def test_what_runs_anyway_is_taken_off(each, idle, units, seconds, idle_seconds):
    """`each` instructions for a unit, and `idle` ones a second whatever happens, give `each` again."""
    used = Counts(each * units + idle * seconds, 0)
    found = per_unit(used, seconds, Counts(idle * idle_seconds, 0), idle_seconds, units)
    assert found.kernel == pytest.approx(each, rel=1e-6, abs=1e-6 * (idle * seconds / units + 1))
    assert found.programs == 0


def test_kernel_and_programs_are_told_apart():
    found = per_unit(Counts(1000, 500), 2.0, Counts(50, 25), 1.0, 10)
    assert (found.kernel, found.programs, found.all) == (90, 45, 135)


@pytest.mark.parametrize(("seconds", "idle_seconds", "units"), [(0, 1, 1), (1, 0, 1), (1, 1, 0), (-1, 1, 1)])
def test_nothing_cannot_be_counted(seconds, idle_seconds, units):
    with pytest.raises(ValueError, match="nothing to count"):
        per_unit(Counts(1, 1), seconds, Counts(1, 1), idle_seconds, units)


@pytest.mark.parametrize("text", ["QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7)", "QEMU emulator version 8.2.1"])
def test_a_qemu_with_the_plugin_s_api(text):
    check_version(text)


@pytest.mark.parametrize(("text", "said"), [("QEMU emulator version 10.0.2", "QEMU 10 has"), ("", "does not say")])
def test_another_qemu_is_refused_in_a_sentence(text, said):
    with pytest.raises(CannotCount, match=said):
        check_version(text)


def test_the_file_s_numbers(tmp_path):
    file = tmp_path / "counts"
    file.write_bytes(struct.pack("8Q", 7, 9, 0xFFFFFFFF81000000, 40, 0, 0, 0xFFFFFFFF81000100, 2))
    found = Counting(file)
    assert found.read() == Counts(7, 9)
    assert found.places() == {0xFFFFFFFF81000000: 40, 0xFFFFFFFF81000100: 2}


def test_addresses_belong_to_the_function_that_begins_before_them():
    kernel = Symbols.of("ffffffff81000100 t second\nffffffff81000000 T first\nffffffff81000080 d data\n")
    assert kernel.by_function({0xFFFFFFFF81000000: 1, 0xFFFFFFFF810000FF: 2, 0xFFFFFFFF81000100: 4, 0x10: 8}) == {
        "first": 3, "second": 4, "?": 8,
    }  # fmt: skip


@pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not installed")
def test_the_plugin_counts_what_a_machine_runs(tmp_path):
    """A machine without a disk, stopped before its first instruction and let go: only then something is counted."""
    file = tmp_path / "counts"
    plugin = counting.plugin_words(file)
    words = ["qemu-system-x86_64", "-accel", "tcg", "-display", "none", "-nodefaults", "-S", "-monitor", "stdio"]
    with subprocess.Popen([*words, *plugin], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as machine:
        try:
            until("the file of counts", lambda: file.exists() and file.stat().st_size)
            counts = Counting(file)
            assert counts.read() == Counts(0, 0)
            machine.stdin.write(b"cont\n")
            machine.stdin.flush()
            until("instructions of the firmware", lambda: counts.read().all > 0)
        finally:
            machine.kill()


@pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not installed")
def test_a_plugin_without_a_file_ends_the_machine_with_a_sentence():
    plugin = compiled.library("instructions")
    done = subprocess.run(
        ["qemu-system-x86_64", "-accel", "tcg", "-display", "none", "-plugin", str(plugin)],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert done.returncode
    assert "out=FILE" in done.stderr


def costs(*all_of: float) -> list[Cost]:
    return [Cost(Counts(one, 0), 100, 0, 5.0, 0) for one in all_of]


def test_the_tables_show_median_spread_and_whether_an_aim_is_reached():
    found = {
        (False, "direct routing", "ours"): costs(100, 110, 108),
        (False, "direct routing", "stock"): costs(200, 190, 210),
        (False, "routing, requests alone", "bare"): costs(90, 90, 90),
        (True, "NAT", "ours"): costs(10, 10, 10),
        (False, "NAT", "alone"): costs(100, 100, 100),
        (False, "NAT", "large messages"): costs(103, 104, 105),
    }
    shown = instructions.result(found)
    [routing] = [row for row in shown.tables[0].rows if row[0] == "direct routing"]
    assert routing[2].rounds == (100, 110, 108)
    assert routing[4] == pytest.approx(108 / 200)
    assert [(row[0], row[4]) for row in shown.tables[2].rows] == [
        ("direct routing, ours", "no"),  # 1.2 times as much as routing
        ("direct routing, ours", None),  # nothing to compare with
        ("direct routing, a box with one interface, ours", None),
        ("NAT, ours", None),
        ("NAT, ours", None),
        ("direct routing, ours", "yes"),
        ("NAT, ours", None),
        ("tunnel, ours", None),
        *((f"{way}, a box with one interface, ours", None) for way in ("direct routing", "NAT", "tunnel")),
    ]
    assert [row[0] for row in shown.tables[1].rows] == ["NAT"]
    assert "NAT" not in [row[0] for row in shown.tables[0].rows], "what is measured in a pair has a table of its own"
    assert [row[4:] for row in shown.tables[3].rows] == [(None, None), (1.04, None), (None, None), (None, None)]


def test_every_set_up_has_a_name_of_its_own_and_is_measured_in_some_box():
    kinds = [(one.datagrams, one.name) for one in instructions.setups()]
    assert len(kinds) == len(set(kinds))
    assert all(set(one.boxes) <= {"ours", "stock", "bare"} and one.boxes for one in instructions.setups())


def test_every_aim_names_set_ups_that_are_measured():
    measured = {(one.name, box) for one in instructions.setups() if not one.datagrams for box in one.boxes}
    for name, box, other, of, _ in instructions.AIMS:
        assert {(name, box), (other, of)} <= measured
