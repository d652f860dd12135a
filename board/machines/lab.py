"""A director and the world around it: two machines, and the networks between them.

The director runs the layers of the developer image; with FAIRLEAD_IMAGE=fairlead.img (make test-vm IMAGE=…) that disk
image, by FAIRLEAD_FIRMWARE=bios (default) or uefi.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from board.lab.build import Image
from board.machines.director import Director, service, wish
from board.machines.link import Forward, Link, UserNetwork, free_port
from board.machines.machine import flash, make_data_disk, make_overlay, opened
from board.machines.wait import until
from board.machines.world import World

from lbconfig.model.snapshot import CheckKind, HealthCheck

TIMEOUT = 3  # seconds; with less a busy host makes an emulated server look dead
BALANCED = wish(
    service(1, "site", check=HealthCheck(CheckKind.HTTP, path="/health", expect="ok", interval=2, timeout=TIMEOUT)),
    service(2, "lines", port=7000, check=HealthCheck(CheckKind.CONNECT, interval=2, timeout=TIMEOUT)),
)
DATA_DISK = 128  # MiB
GIVEN_IMAGE = os.environ.get("FAIRLEAD_IMAGE", "")
FIRMWARE = os.environ.get("FAIRLEAD_FIRMWARE", "bios")
OF_DIRECTOR = FIRMWARE if GIVEN_IMAGE else ""  # a director's whose disk is `director_disk`


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

    def reach(self, moment: str, make: Callable[[Lab], None]) -> None:
        """Go to this moment; if it was never saved, `make` brings both machines there."""
        if moment not in self.moments:
            make(self)
            self.save(moment)
        self.go_back(moment)

    def kill(self) -> None:
        """Cut the power of both; `go_back` turns them on in the order that their cables need."""
        for machine in (self.director, self.world):
            machine.kill()

    def save(self, moment: str) -> None:
        for machine in (self.director, self.world):
            machine.save(moment)
        self.moments.add(moment)


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
        firmware=OF_DIRECTOR,
    )
    director.url = f"https://127.0.0.1:{forward.host_port}"
    world = World(folder, image, (servers.listening_end(), world_clients.listening_end()))
    # The world writes to no disk; it has one because QEMU keeps a machine's saved memory in it.
    world.data = make_overlay(make_data_disk(folder / "world.img", 8), folder / "world.qcow2")
    return Lab(director, world)


def director_disk(folder: Path) -> Path:
    return flashed(folder) if GIVEN_IMAGE else data_disk(folder)


def flashed(folder: Path) -> Path:
    """A disk with GIVEN_IMAGE on it."""
    return flash(opened(Path(GIVEN_IMAGE), folder / "disk.img"), folder / "disk.qcow2")


def data_disk(folder: Path) -> Path:
    return make_overlay(make_data_disk(folder / "data.img", DATA_DISK), folder / "data.qcow2")


def boot(lab: Lab) -> None:
    lab.first_boot = lab.director.wait_until_up()
    lab.world.wait_for_servers()
    until("the address on the console", lambda: "https://10.0.2.15" in lab.director.console)
    lab.first_console = lab.director.console
