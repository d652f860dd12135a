"""The machines that the stories run on."""

import pytest
from board.machines import accelerator
from tests.lab.fixtures import thorough

pytestmark = pytest.mark.timeout(900)


@thorough
def test_the_machines_stay_connected_when_one_starts_over(balanced, world):
    """It may fall on its way up (Machine.wait_for_agent), and whatever runs after that would see dead servers."""
    world.write("/run/before", "")
    world.start_over()
    world.wait_until_succeeds("! test -e /run/before")
    world.wait_for_servers()
    world.wait_until_succeeds("ip netns exec rs1 ping -c 1 -W 1 10.2.0.1")


def test_the_kernel_that_is_asked_for_an_accelerator_answers(image):
    assert accelerator.starts(accelerator.TCG, image.kernel, 60)
    assert not accelerator.starts(accelerator.TCG, image.kernel, 0.3), "it has not got so far, and is given up"
