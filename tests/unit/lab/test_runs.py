"""What a run of the tests says at its end and keeps: retries, times, and which part of a full run it was."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from board.machines import spent
from board.machines.wait import until
from hypothesis import given
from hypothesis import strategies as st
from tests import parts, times

TOP = Path(__file__).parents[3]
STORIES = """
import time
import pytest
from board.machines.spent import APPLYING, HEALTH, retried, spent

@pytest.fixture(scope="module", autouse=True)
def machine():
    retried("turned on once more")
    yield
    retried("turned off once more")

def test_one():
    with spent(APPLYING), spent(HEALTH):
        time.sleep(0.05)
    retried("asked once more")

@pytest.mark.thorough
def test_long():
    pass
"""


sides = pytest.mark.parametrize("words", [(), ("-n", "2", "--dist", "loadfile")], ids=["alone", "side by side"])
FAILS_ONCE = """
from pathlib import Path

def test_of_a_race(again=Path("seen")):
    seen = again.exists()
    again.touch()
    assert seen, "too early"

def test_of_a_fault():
    assert False, "for good"
"""


def run(folder: Path, *words: str, stories: str = STORIES, **environment: str) -> str:
    """What pytest prints of these stories, with our conftest.py and nothing else of ours."""
    place = folder / "tests/vm"
    place.mkdir(parents=True)
    (place / "test_stories.py").write_text(stories)
    shutil.copy(TOP / "tests/conftest.py", folder / "tests")
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = thorough\n")
    # Tests of the web UI in the same process name its settings for pytest-django, which is not what runs there.
    ours = ("FAIRLEAD_", "PYTEST_", "DJANGO_")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    # Of the plugins those that these runs need: to load Django's and Playwright's takes longer than all else.
    clean |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "xdist.plugin,pytest_rerunfailures"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", *words],
        cwd=folder, env=clean | {"PYTHONPATH": str(TOP)} | environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


@sides
def test_every_retry_is_printed_and_counted(tmp_path, words):
    said = run(tmp_path, *words, FAIRLEAD_ALL="1")
    assert "2 passed" in said, said
    assert "tried once more: 3" in said
    for name, what in (("one", "turned on"), ("one", "asked"), ("long", "turned off")):
        assert f"tests/vm/test_stories.py::test_{name}: {what} once more" in said
    kept = times.read(tmp_path / "build/times")
    assert [len(record["retries"]) for record in kept.values()] == [2, 1]
    assert "tried once more: 3" in times.table(kept, 10)


@sides
def test_what_failed_once_is_told_and_counted_and_what_fails_twice_has_failed(tmp_path, words):
    said = run(tmp_path, *words, "--reruns", "1", stories=FAILS_ONCE)
    assert "1 failed, 1 passed, 2 rerun" in said, said
    assert "failed, and was run once more: tests/vm/test_stories.py::test_of_a_race" in said
    assert "AssertionError: too early" in said
    assert "tried once more: 2" in said
    retries = {name.partition("::")[2]: one["retries"] for name, one in times.read(tmp_path / "build/times").items()}
    assert {name: len(found) for name, found in retries.items()} == {"test_of_a_race": 1, "test_of_a_fault": 1}


def test_a_run_without_retries_says_nothing_of_them(tmp_path):
    said = run(tmp_path, "--co")
    assert "2 tests collected" in said
    assert "once more" not in said


def test_what_is_left_out_is_collected_and_says_why(tmp_path):
    said = run(tmp_path)
    assert "1 passed, 1 skipped" in said, said
    assert "make test-long or ALL=1 runs it" in said
    assert [name.partition("::")[2] for name in times.read(tmp_path / "build/times")] == ["test_one"]


def test_a_part_that_is_none_is_named(tmp_path):
    assert "PART must be such as 1/4, not '5/4'" in run(tmp_path, FAIRLEAD_PART="5/4")


def test_parts_have_all_of_it_once(tmp_path):
    found = [run(tmp_path / part[0], "--co", "-q", FAIRLEAD_ALL="1", FAIRLEAD_PART=part) for part in ("1/2", "2/2")]
    assert sorted(line for said in found for line in said.splitlines() if "::" in line) == [
        "tests/vm/test_stories.py::test_long",
        "tests/vm/test_stories.py::test_one",
    ]


@given(st.sets(st.text(max_size=3)), st.integers(1, 9), st.dictionaries(st.text(max_size=3), st.floats(0, 1e4)))
def test_every_test_is_in_exactly_one_part(names, count, seconds):
    found = [parts.part_of(sorted(names), number, count, seconds) for number in range(1, count + 1)]
    assert sorted(name for part in found for name in part) == sorted(names)


def test_the_longest_file_begins_first_and_files_stay_together():
    files = ["a.py", "a.py", "new.py", "long.py", "long.py", "a.py"]
    order = [files[place] for place in parts.longest_first(files, {"a.py": 3, "long.py": 40})]
    assert order == ["long.py"] * 2 + ["a.py"] * 3 + ["new.py"]
    assert parts.longest_first(files, {}) == list(range(6))


def test_parts_are_about_equally_long():
    seconds = {"a": 100.0, "b": 60.0, "c": 50.0, "d": 10.0}
    assert parts.part_of("abcd", 1, 2, seconds) == {"a", "d"}
    assert parts.part_of("abcd", 2, 2, seconds) == {"b", "c"}


@pytest.mark.parametrize("text", ["", "1", "0/4", "5/4", "1/4/4", "a/b"])
def test_what_is_no_part_is_refused(text):
    with pytest.raises(ValueError, match="PART must be such as 1/4"):
        parts.read_part(text)


def test_the_outer_kind_of_work_counts(monkeypatch):
    monkeypatch.setattr(spent, "_seconds", spent._seconds.copy())
    monkeypatch.setattr(spent, "retries", [])
    spent.take()

    @spent.spent(spent.BOOTING)
    def boot():
        with spent.spent(spent.WEB):
            spent.retried("once more")

    boot()
    seconds, retries, close = spent.take()
    assert (list(seconds), retries, close) == ([spent.BOOTING], ["once more"], {})
    assert spent.take() == ({}, [], {})


def test_a_wait_that_took_more_than_a_fourth_of_its_bound_is_kept_and_told(tmp_path):
    spent.take()
    for seconds in (2.0, 3.0, 2.6):
        spent.waited("the web page", seconds, 10.0)
    close = spent.take()[2]
    assert close == {"the web page": (3.0, 10.0)}
    assert spent.take()[2] == {}
    record = {"test": "tests/vm/test_a.py::test_b", "seconds": 9.0, "spent": {}, "retries": [], "close": close}
    (tmp_path / "vm.jsonl").write_text(json.dumps(record))
    assert times.table(times.read(tmp_path), 5)[-2:] == [
        "waits that a host 4 times slower would not end in time: 1",
        "tests/vm/test_a.py::test_b: the web page: 3 of 10 s",
    ]


def test_a_wait_tells_how_close_it_was():
    spent.take()
    ends = iter([False, True])
    assert until("the end", lambda: next(ends), timeout=0.2, interval=0.1)
    assert until("the start", lambda: True, timeout=30.0)
    [(what, (seconds, bound))] = spent.take()[2].items()
    assert (what, bound) == ("the end", 0.2)
    assert seconds >= 0.1


def test_the_last_record_of_a_test_counts(tmp_path):
    record = {"test": "tests/vm/test_a.py::test_b", "seconds": 9.0, "spent": {"booting": 5.0}}
    record |= {"retries": [], "close": {}}
    lines = [json.dumps(record), json.dumps(record | {"seconds": 7.0, "retries": ["x"]})]
    (tmp_path / "vm.jsonl").write_text("\n".join(lines))
    found = times.read(tmp_path)
    assert times.row(list(found.values())) == [7.0, 5.0, 0.0, 0.0, 0.0, 0.0, 2.0]
    assert times.table(found, 5)[-3:-1] == ["tried once more: 1", "tests/vm/test_a.py::test_b: x"]


def test_every_test_on_machines_and_among_peers_finds_its_fixtures():
    """Those of the long ones, too: in the gate a fixture of another scope would show only after half an hour."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--setup-plan", "-p", "no:cacheprovider", "tests/vm", "tests/peers"],
        cwd=TOP, env=os.environ | {"FAIRLEAD_ALL": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, "\n".join(line for line in done.stdout.splitlines() if "SETUP" not in line)[-4000:]
