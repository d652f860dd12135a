"""The machines that the stories run on."""

import multiprocessing
import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest
from board.machines import accelerator
from board.machines.director import VIP
from board.machines.lab import make_lab
from board.machines.world import SERVERS
from tests.lab.fixtures import BALANCED_MOMENT, FRESH, thorough
from tests.lab.moments import SharedLab, shared

pytestmark = pytest.mark.timeout(900)
BOOT = "dmesg | head -n 100"  # with its microseconds, that of no other boot


@thorough
def test_the_machines_stay_connected_when_one_starts_over(balanced, world):
    """It may fall on its way up (Machine.wait_for_agent), and whatever runs after that would see dead servers."""
    world.write("/run/before", "")
    world.start_over()
    world.wait_until_succeeds("! test -e /run/before")
    world.wait_for_servers()
    world.wait_until_succeeds("ip netns exec rs1 ping -c 1 -W 1 10.2.0.1")


FLOOD = """
import socket
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
one.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
for _ in range(2000):
    one.sendto(bytes(1000), ("10.1.0.255", 9))
"""


def test_the_world_goes_on_while_the_box_takes_no_packets(balanced, director, world):
    """As it does while it starts. What the world still sends there is lost then, as in any full network card."""
    director.running.send_signal(signal.SIGSTOP)
    try:
        world.succeed(["ip", "netns", "exec", "client", "python3", "-c", FLOOD], timeout=60)
        assert world.succeed("echo fine", timeout=60) == "fine\n"
    finally:
        director.running.send_signal(signal.SIGCONT)
    assert world.get(f"{VIP}:80/")[0] in SERVERS


def test_the_kernel_that_is_asked_for_an_accelerator_answers(image):
    assert accelerator.starts(accelerator.TCG, image.kernel, 60)
    assert not accelerator.starts(accelerator.TCG, image.kernel, 0.3), "it has not got so far, and is given up"


@pytest.fixture
def other(image, moments):
    """The lab of another worker, not turned on."""
    with tempfile.TemporaryDirectory(prefix="fairlead-") as folder:
        made = make_lab(Path(folder), image)
        one = SharedLab(made.director, made.world, kept=moments)
        yield one
        one.kill()


def never(_):
    raise AssertionError("it was made already")


def test_another_worker_goes_on_from_the_moments_of_the_first(balanced, director, other):
    other.reach(BALANCED_MOMENT, never)
    for ours, theirs in ((director, other.director), (balanced.world, other.world)):
        assert theirs.succeed(BOOT) == ours.succeed(BOOT), "it booted by itself"
    assert (other.first_boot, other.first_console) == (balanced.first_boot, balanced.first_console)
    # Both run, and nothing joins them: not their disks, not the networks, not the way to the web page.
    other.director.write("/data/mark", "")
    director.fail("test -e /data/mark")
    director.kill()
    assert other.director.page()[0] == 200
    assert other.world.get(f"{VIP}:80/")[0] in SERVERS
    other.go_back(FRESH)
    assert not other.director.status()["confirmed"]
    assert other.director.page()[0] == 200


def test_a_worker_that_dies_while_it_makes_a_moment_leaves_the_others_nothing(lab, other, tmp_path):
    other.kept = tmp_path / "moments"
    shutil.copytree(lab.kept, other.kept)

    def die(_):
        (other.kept / "marked").mkdir()
        (other.kept / "marked" / other.world.data.name).write_text("half")
        os.kill(os.getpid(), signal.SIGKILL)

    dying = multiprocessing.get_context("fork").Process(target=other.reach, args=("marked", die))
    dying.start()
    dying.join()
    assert dying.exitcode == -signal.SIGKILL

    def mark(made):
        made.go_back(FRESH)
        made.director.write("/data/mark", "made")

    other.reach(FRESH, never)
    other.reach("marked", mark)
    assert other.director.read("/data/mark") == "made"
    other.go_back(FRESH)
    other.director.fail("test -e /data/mark")


def test_the_last_worker_that_leaves_takes_the_moments_away(tmp_path):
    folder = tmp_path / "moments"
    with shared(folder):
        with shared(folder):
            folder.mkdir()
        assert folder.exists(), "somebody may still need them"
    assert not folder.exists()
