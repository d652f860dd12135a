"""Fixtures of the stories that boot machines; a conftest.py imports them by name.

Both machines boot once for all tests of a run (tests.lab.moments). Before each test they go back to the moment when
the boxes had just booted for the first time: nobody has set the director up, it runs the factory configuration, its
web page answers. Going back takes less than a second, a boot takes twenty.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from board.lab import disk as lab_disk
from board.lab.build import Image, build
from board.machines.director import Director
from board.machines.lab import BALANCED, FIRMWARE, GIVEN_IMAGE, Lab, boot, make_lab
from board.machines.link import Forward, UserNetwork, free_port
from board.machines.machine import flash, opened
from board.machines.world import SERVERS, World
from tests.lab.moments import SharedLab, shared

FRESH = "fresh"
BALANCED_MOMENT = "balanced"
# Long stories, and variants of others: on an image that somebody wants to release, or when asked for, not at every
# change (tests.parts).
thorough = pytest.mark.thorough


@pytest.fixture(scope="session")
def image() -> Image:
    return build()


@pytest.fixture(scope="session")
def flashed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The disk image that stories of disks start from: the given one, or the developer's."""
    disk = Path(GIVEN_IMAGE) if GIVEN_IMAGE else lab_disk.build(lambda _: None).disk
    return opened(disk, tmp_path_factory.mktemp("flashed") / disk.name)


@pytest.fixture
def box(flashed: Path) -> Iterator[Director]:
    """A machine of its own with a freshly flashed disk, not turned on yet."""
    folder = Path(tempfile.mkdtemp(prefix="fairlead-"))
    forward = Forward(free_port(), "10.0.2.15", 443)
    director = Director(
        "box", folder, nics=(UserNetwork((forward,)),), data=flash(flashed, folder / "disk.qcow2"), firmware=FIRMWARE
    )
    director.url = f"https://127.0.0.1:{forward.host_port}"
    try:
        yield director
    finally:
        director.kill()
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def moments(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The moments that were saved in this run, by whichever worker came first."""
    folder = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        folder = folder.parent
    with shared(folder / "moments") as found:
        yield found


@pytest.fixture(scope="session")
def lab(image: Image, moments: Path) -> Iterator[Lab]:
    """Both machines, after their first boot."""
    with tempfile.TemporaryDirectory(prefix="fairlead-") as folder:
        made = make_lab(Path(folder), image)
        one = SharedLab(made.director, made.world, kept=moments)
        try:
            one.reach(FRESH, begin)
            yield one
        finally:
            one.kill()


def begin(lab: Lab) -> None:
    lab.world.start()
    lab.director.start()
    boot(lab)


@pytest.fixture
def fresh(lab: Lab) -> Lab:
    lab.go_back(FRESH)
    return lab


@pytest.fixture
def balanced(lab: Lab) -> Lab:
    """Both machines when the director balances BALANCED and knows that every server is up."""
    lab.reach(BALANCED_MOMENT, balance)
    return lab


def balance(lab: Lab) -> None:
    lab.go_back(FRESH)
    lab.director.apply(BALANCED)
    lab.director.wait_until_healthy(*SERVERS)
    lab.director.own_certificate()  # else it would be made anew in the middle of the first story that looks at it


@pytest.fixture
def director(request: pytest.FixtureRequest, lab: Lab) -> Director:
    """At the moment that the test asks for; without the fixture `balanced` that is the fresh one."""
    request.getfixturevalue("balanced" if "balanced" in request.fixturenames else "fresh")
    return lab.director


@pytest.fixture
def world(director: Director, lab: Lab) -> World:
    return lab.world
