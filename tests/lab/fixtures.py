"""Fixtures of the stories that boot machines; a conftest.py imports them by name.

Both machines boot once for all tests. Before each test they go back to the moment when the boxes had just
booted for the first time: nobody has set the director up, it runs the factory configuration, its web page
answers. Going back takes less than a second, a boot takes twenty.

The director runs the layers of the developer image. With FAIRLEAD_IMAGE=fairlead.img (make test-vm IMAGE=…) the same
stories run on that disk image, by FAIRLEAD_FIRMWARE=bios (default) or uefi.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from board.lab import disk as lab_disk
from board.lab.build import Image, build
from tests.lab.director import Director, service, wish
from tests.lab.link import Forward, Link, UserNetwork, free_port
from tests.lab.machine import flash, make_data_disk, make_overlay, opened
from tests.lab.wait import until
from tests.lab.world import SERVERS, World

from lbconfig.model.snapshot import CheckKind, HealthCheck

FRESH = "fresh"
BALANCED_MOMENT = "balanced"
TIMEOUT = 3  # seconds; with less a busy host makes an emulated server look dead
BALANCED = wish(
    service(1, "site", check=HealthCheck(CheckKind.HTTP, path="/health", expect="ok", interval=2, timeout=TIMEOUT)),
    service(2, "lines", port=7000, check=HealthCheck(CheckKind.CONNECT, interval=2, timeout=TIMEOUT)),
)
DATA_DISK = 128  # MiB
WAITING = 120.0  # seconds for the first boot
GIVEN_IMAGE = os.environ.get("FAIRLEAD_IMAGE", "")
# Long stories, and variants of others: on an image that somebody wants to release, or when asked for, not at every
# change (tests.parts).
thorough = pytest.mark.thorough
FIRMWARE = os.environ.get("FAIRLEAD_FIRMWARE", "bios")


@dataclass
class Lab:
    director: Director
    world: World
    first_boot: float = 0.0  # seconds from power-on until the web page answered
    first_console: str = ""  # what the director's console showed until then
    moments: set[str] = field(default_factory=set)  # to which `go_back` can go

    def go_back(self, moment: str) -> None:
        """Both machines as they were at `save`. A machine that is off is turned on for it."""
        for machine in (self.world, self.director):
            machine.go_back(moment)

    def save(self, moment: str) -> None:
        for machine in (self.director, self.world):
            machine.save(moment)
        self.moments.add(moment)


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
def lab(image: Image) -> Iterator[Lab]:
    """Both machines, booted for the first time."""
    folder = Path(tempfile.mkdtemp(prefix="fairlead-"))
    try:
        made = make_lab(folder, image)
        with made.world, made.director:
            boot(made)
            made.save(FRESH)
            yield made
    finally:
        shutil.rmtree(folder)


def make_lab(folder: Path, image: Image, clients: Link | None = None, memory: int = 512) -> Lab:
    """`clients`: where the director is plugged in on their side, if not right into the world; its memory in MiB."""
    servers, world_clients = Link(folder / "servers"), Link(folder / "clients")
    forward = Forward(free_port(), "10.0.2.15", 443)
    director = Director(
        "director",
        folder,
        image,
        nics=(UserNetwork((forward,)), servers.other_end(), (clients or world_clients).other_end()),
        data=director_disk(folder),
        memory=memory,
        firmware=FIRMWARE if GIVEN_IMAGE else "",
    )
    director.url = f"https://127.0.0.1:{forward.host_port}"
    world = World(folder, image, (servers.listening_end(), world_clients.listening_end()))
    # The world writes to no disk; it has one because QEMU keeps a machine's saved memory in it.
    world.data = make_overlay(make_data_disk(folder / "world.img", 8), folder / "world.qcow2")
    return Lab(director, world)


def director_disk(folder: Path) -> Path:
    if GIVEN_IMAGE:
        return flash(opened(Path(GIVEN_IMAGE), folder / "disk.img"), folder / "disk.qcow2")
    return make_overlay(make_data_disk(folder / "data.img", DATA_DISK), folder / "data.qcow2")


def boot(lab: Lab) -> None:
    lab.first_boot = lab.director.wait_until_up(WAITING)
    lab.world.wait_for_servers(WAITING)
    until("the address on the console", lambda: "https://10.0.2.15" in lab.director.console)
    lab.first_console = lab.director.console


@pytest.fixture
def fresh(lab: Lab) -> Lab:
    lab.go_back(FRESH)
    return lab


@pytest.fixture
def balanced(lab: Lab) -> Lab:
    """Both machines when the director balances BALANCED and knows that every server is up."""
    if BALANCED_MOMENT not in lab.moments:
        lab.go_back(FRESH)
        lab.director.apply(BALANCED)
        lab.director.wait_until_healthy(*SERVERS)
        lab.save(BALANCED_MOMENT)
    lab.go_back(BALANCED_MOMENT)
    return lab


@pytest.fixture
def director(request: pytest.FixtureRequest, lab: Lab) -> Director:
    """At the moment that the test asks for; without the fixture `balanced` that is the fresh one."""
    request.getfixturevalue("balanced" if "balanced" in request.fixturenames else "fresh")
    return lab.director


@pytest.fixture
def world(director: Director, lab: Lab) -> World:
    return lab.world
