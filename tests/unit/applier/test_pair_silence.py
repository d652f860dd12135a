"""What a process is at, by the real /proc, and which part of its silence counts."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from board.machines.wait import until

from applier.pair.silence import Silence, Work, of_process

TICKS = os.sysconf("SC_CLK_TCK")
HANGS = "import threading; threading.Event().wait()"
RUNS = "while True: pass"
ONE_OF_TWO = f"import threading; threading.Thread(target=lambda: exec({RUNS!r})).start(); {HANGS}"


@pytest.fixture
def begin():
    begun = []

    def begin(program):
        begun.append(subprocess.Popen([sys.executable, "-c", program]))
        return begun[-1]

    yield begin
    for process in begun:
        process.kill()
        process.wait()


def found(process):
    work = of_process(process.pid)
    assert work is not None
    return work


@pytest.mark.parametrize("program", [RUNS, ONE_OF_TWO])
def test_one_that_runs_wants_the_processor_and_uses_it(begin, program):
    process = begin(program)
    until("it to run", lambda: found(process).wants, 30)
    before = found(process)
    until("more of the processor", lambda: found(process).used >= before.used + 0.1, 30)
    assert found(process).start == before.start


def test_one_that_waits_or_is_stopped_wants_nothing(begin):
    process = begin(HANGS)
    until("it to wait", lambda: "futex" in Path(f"/proc/{process.pid}/wchan").read_text(), 30)
    assert not found(process).wants
    busy = begin(RUNS)
    until("it to run", lambda: found(busy).wants, 30)
    busy.send_signal(signal.SIGSTOP)
    until("it to stop", lambda: not found(busy).wants, 30)


def test_one_that_has_ended_is_not_there(begin):
    process = begin("")
    process.wait()
    assert of_process(process.pid) is None


@pytest.mark.parametrize(
    ("stat", "work"),
    [
        ("7 (a) R (b c) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 1 0 4711 0", Work(4711, 300 / TICKS, False)),
        ("7 (x) R 1 2 3", None),
        ("", None),
        ("7 (x) S 1 2 3 4 5 6 7 8 9 10 many 50 0 0 20 0 1 0 4711 0", None),
    ],
)
def test_a_name_may_look_like_fields_and_what_cannot_be_read_is_not_there(tmp_path, stat, work):
    (tmp_path / "7/task/7").mkdir(parents=True)
    (tmp_path / "7/task/8").mkdir()  # a thread that ends just now
    for file in (tmp_path / "7/stat", tmp_path / "7/task/7/stat"):
        file.write_text(stat)
    assert of_process(7, str(tmp_path)) == work


def test_only_what_it_gets_of_the_processor_counts_while_it_wants_more():
    silence = Silence(7, 100.0)
    silence.look(Work(1, 5.0, True), 102.0)
    assert silence.seconds == 2.0  # what it was at meanwhile is not known
    silence.look(Work(1, 5.1, True), 112.0)
    assert silence.seconds == pytest.approx(2.1)
    silence.look(Work(1, 9.1, True), 113.0)
    assert silence.seconds == pytest.approx(3.1)  # on several processors
    silence.look(Work(1, 9.1, False), 114.0)
    silence.look(None, 115.0)
    assert silence.seconds == pytest.approx(5.1)
