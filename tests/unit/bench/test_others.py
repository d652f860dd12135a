"""What other programs took while something was measured."""

import subprocess
import sys

from bench import others

LINE = "cpu  100 20 30 4000 500 6 7 8 0 0\ncpu0 1 2\n"
BURN = "import time; end = time.process_time() + 0.5\nwhile time.process_time() < end: pass"


def test_idle_and_waiting_processors_are_not_busy():
    assert others.busy(LINE) == (100 + 20 + 30 + 6 + 7 + 8) / others.TICKS


def test_what_ended_is_still_counted():
    before = others.own()
    subprocess.run([sys.executable, "-c", BURN], check=True)
    assert others.own() - before >= 0.4


def test_a_share_is_a_share():
    with others.Others() as seen:
        subprocess.run([sys.executable, "-c", BURN], check=True)
    assert 0 <= seen.share <= 1


def test_a_process_that_has_ended_counts_nothing(tmp_path):
    assert others.of_process(tmp_path / "stat") == 0
