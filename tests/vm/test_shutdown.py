"""Whoever turns the box off, it goes down in order: services first, then the disk, which needs no repair afterwards."""

import subprocess

import pytest
from board.machines.director import Director
from tests.lab.fixtures import thorough

pytestmark = pytest.mark.timeout(900)

# A child of a service, as a web worker is that still answers when its parent has been killed.
LEFT_BEHIND = "setsid sh -c 'exec sleep 600 9>/data/held' >/dev/null 2>&1 </dev/null &"

DOWN = 60.0  # seconds that it may take; a service may have five to end
REPAIRED = "recovering journal"  # e2fsck, of a file system that was still mounted when the power went

WAYS = {
    "the power button": lambda box: box.monitor.ask("system_powerdown"),
    "the hypervisor's shut down": lambda box: box.agent().send({"execute": "guest-shutdown"}),
    "the console": lambda box: box.choose("Power off"),
}


def journal_was_needed(box: Director) -> bool:
    box.wait_until_started()
    return REPAIRED in box.read("/run/fairlead/e2fsck.log")


@pytest.mark.parametrize(
    "way", ["the power button", *(pytest.param(way, marks=thorough) for way in list(WAYS)[1:])]
)  # fmt: skip
def test_turned_off_in_order(director, way):
    director.succeed(f"echo kept > /disk/written; {LEFT_BEHIND}")
    director.wait_until_succeeds("test -e /data/held")
    WAYS[way](director)
    try:
        director.process.wait(DOWN)
    except subprocess.TimeoutExpired:
        pytest.fail(f"still on after {DOWN:g} s; the console: {director.console[-1500:]}")
    director.start()
    assert not journal_was_needed(director)
    assert director.read("/disk/written") == "kept\n"


@thorough
def test_a_power_cut_is_no_order(director):
    """The contrast: what the story above looks for is there when the box has not gone down in order."""
    director.kill()
    director.start()
    assert journal_was_needed(director)
