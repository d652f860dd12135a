"""Two whole boxes and the world around them: three machines, in networks that the world's guest switches.

    real servers 10.2.0.0/24 --- eth1 of both boxes, clients 10.1.0.0/24 --- eth2, the pair cable 192.0.2.0/30 --- eth3

A box may lose its power and come back: its cables end at the world, which stays.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from board.lab.build import Image
from board.machines.director import Director
from board.machines.lab import FIRMWARE, GIVEN_IMAGE, director_disk
from board.machines.link import Forward, Link, Plug, UserNetwork, free_port
from board.machines.machine import make_data_disk, make_overlay
from board.machines.world import World
from tests.lab.pair_room import PYTHON

NETWORKS = ("servers", "clients", "cable")
BOOT = 400.0  # seconds: three machines start side by side
API = "import json, sys; from command.api import Api; print(json.dumps(Api().ask(*json.load(sys.stdin))))"


class Machines:
    def __init__(self, folder: Path, image: Image) -> None:
        self.folder = folder
        cables = [[Link(folder / f"{network}{number}") for network in NETWORKS] for number in (1, 2)]
        self.world = World(folder, image, tuple(one.listening_end() for box in cables for one in box[:2]))
        self.world.nics += tuple(box[2].listening_end() for box in cables)
        self.world.data = make_overlay(make_data_disk(folder / "world.img", 8), folder / "world.qcow2")
        self.boxes = [self._box(number, image, cables[number - 1]) for number in (1, 2)]

    def _box(self, number: int, image: Image, cables: list[Link]) -> Director:
        """With a folder for its own disk."""
        forward = Forward(free_port(), "10.0.2.15", 443)
        disk = self.folder / f"disk{number}"
        disk.mkdir()
        nics: tuple[Plug, ...] = (UserNetwork((forward,)), *(one.other_end() for one in cables))
        box = Director(
            f"lb{number}", self.folder, image, nics=nics, data=director_disk(disk),
            firmware=FIRMWARE if GIVEN_IMAGE else "",
        )  # fmt: skip
        box.url = f"https://127.0.0.1:{forward.host_port}"
        return box

    def start(self) -> None:
        for one in (self.world, *self.boxes):
            one.start()
        self.world.wait_for_servers(BOOT)
        # The first box's cards are in the switches already; the world knows nothing of the others.
        self.world.succeed(
            "set -e; ip link add cable type bridge; ip link set cable up; "
            "for pair in eth2:servers eth3:clients eth4:cable eth5:cable; do "
            'ip link set "${pair%:*}" master "${pair#*:}"; ip link set "${pair%:*}" up; done'
        )
        for box in self.boxes:
            box.wait_until_up(BOOT)

    def kill(self) -> None:
        for one in (*self.boxes, self.world):
            one.kill()


def ask(box: Director, method: str, path: str, data: object = None, timeout: float = 120) -> Any:
    """The API of a box, as its own root asks it."""
    box.write("/run/asked.json", json.dumps([method, path, data]))
    return json.loads(box.succeed(f"{PYTHON} -c '{API}' </run/asked.json", timeout))
