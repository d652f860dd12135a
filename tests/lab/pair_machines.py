"""Two whole boxes and the world around them: three machines, in networks that the world's guest switches.

    real servers 10.2.0.0/24 --- eth1 of both boxes, clients 10.1.0.0/24 --- eth2, the pair cable 192.0.2.0/30 --- eth3

A box may lose its power and come back: its cables end at the world, which stays. What follows below are the steps in
which two boxes become a pair.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from board.lab.build import Image
from board.machines.director import PYTHON, Director, wish, wish6
from board.machines.flood import Flood
from board.machines.lab import FIRMWARE, OF_DIRECTOR, director_disk
from board.machines.link import Forward, Link, Plug, UserNetwork, free_port
from board.machines.machine import CommandFailed, flash, make_data_disk, make_overlay
from board.machines.wait import until
from board.machines.world import World

from lbconfig.model.snapshot import Interface, Network, Snapshot, VirtualService

NETWORKS = ("servers", "clients", "cable")
BOOT = 400.0  # seconds: three machines start side by side
SOON = 240.0  # seconds for what two quiet boxes do within ten
ROOM = 448  # MiB by which a flashed disk is larger than its image: two configurations, and a bundle
# On a busy host the program that waits, or joins, may not even have been loaded in its time.
SLOW = (OSError, CommandFailed)
API = "import json, sys; from command.api import Api; print(json.dumps(Api().ask(*json.load(sys.stdin))))"


class Machines:
    def __init__(
        self, folder: Path, image: Image, flashed: Path | None = None, floods: bool = False, memory: int = 512
    ) -> None:
        """`flashed`: the disk image that both boxes start from, each with two slots of its own.

        `floods`: the cable from the clients to the first box can carry a flood along. `memory` of each box, in MiB.
        """
        self.folder = folder
        self.flashed = flashed
        self.memory = memory
        self.flood: Flood | None = None
        cables = [[Link(folder / f"{network}{number}") for network in NETWORKS] for number in (1, 2)]
        self._flooded = folder / "flooded" if floods else None
        self.world = World(folder, image, tuple(one.listening_end() for box in cables for one in box[:2]))
        self.world.nics += tuple(box[2].listening_end() for box in cables)
        self.world.data = make_overlay(make_data_disk(folder / "world.img", 8), folder / "world.qcow2")
        self._world_end = cables[0][1].path
        if self._flooded is not None:
            cables[0][1] = Link(self._flooded)
        self.boxes = [self._box(number, image, cables[number - 1]) for number in (1, 2)]

    def _box(self, number: int, image: Image, cables: list[Link]) -> Director:
        """With a folder for its own disk."""
        forward = Forward(free_port(), "10.0.2.15", 443)
        disk = self.folder / f"disk{number}"
        disk.mkdir()
        nics: tuple[Plug, ...] = (UserNetwork((forward,)), *(one.other_end() for one in cables))
        box = Director(
            f"lb{number}", self.folder, image, nics=nics,
            data=flash(self.flashed, disk / "disk.qcow2", ROOM) if self.flashed else director_disk(disk),
            firmware=FIRMWARE if self.flashed else OF_DIRECTOR, memory=self.memory,
        )  # fmt: skip
        box.url = f"https://127.0.0.1:{forward.host_port}"
        return box

    def start(self) -> None:
        self.world.start()
        if self._flooded is not None:
            self.flood = Flood(self._flooded, self._world_end)
            self.flood.plugged_in()
        for one in self.boxes:
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
        if self.flood is not None:
            self.flood.close()


@contextlib.contextmanager
def turned_on(image: Image, flashed: Path | None = None, floods: bool = False, memory: int = 512) -> Iterator[Machines]:
    """All three machines, booted; as Machines has it."""
    folder = Path(tempfile.mkdtemp(prefix="fairlead-"))
    made = Machines(folder, image, flashed, floods, memory)
    try:
        made.start()
        yield made
    finally:
        made.kill()
        shutil.rmtree(folder)


def told(record_property: Callable[[str, object], None], capsys: pytest.CaptureFixture[str], text: str) -> None:
    """Keep a figure for the report, and show it at once."""
    record_property("figures", text)
    with capsys.disabled():
        print(f"\n{text}", end="", flush=True)


def ask(box: Director, method: str, path: str, data: object = None, timeout: float = 120) -> Any:
    """The API of a box, as its own root asks it."""
    box.write("/run/asked.json", json.dumps([method, path, data]))
    return json.loads(box.succeed(f"{PYTHON} -c '{API}' </run/asked.json", timeout))


# --- two boxes become a pair -----------------------------------------------------------------------------


def alone(number: int, own: str, *services: VirtualService, six: bool = False) -> Snapshot:
    """As a box is before: the first one has the addresses that servers and clients know. `six`: of IPv6 as well."""
    plain = wish6(*services) if six else wish(*services)
    dhcp, *ends = plain.network.interfaces
    moved = [dataclasses.replace(one, addresses=tuple(_with_host(text, own) for text in one.addresses)) for one in ends]
    cable = Interface("eth3", addresses=(f"192.0.2.{number}/30",))
    return dataclasses.replace(plain, network=Network(f"lb{number}", interfaces=(dhcp, *moved, cable)))


def _with_host(address: str, own: str) -> str:
    """Of "10.2.0.1/24" or "2001:db8:2::1/64" the one with this number."""
    text, length = address.split("/")
    return f"{text[:-1]}{own}/{length}"


def join(first: Director, second: Director) -> float:
    """By a code; seconds until both boxes know it and hear each other over the link."""
    began = time.monotonic()
    code = until("a code", lambda: ask(first, "POST", "pair/code"), SOON, 1.0, SLOW)["invitation"]["code"]
    wanted = {"address": "10.2.0.1", "code": code}
    until("the boxes to be joined", lambda: ask(second, "POST", "pair/join", wanted), SOON, 1.0, SLOW)
    until("the first box to know it", lambda: ask(first, "GET", "pair/joining")["joined"], SOON, 1.0)
    joined = time.monotonic() - began
    for box in (first, second):
        linked(box)
    return joined


def propose(first: Director) -> None:
    """The pair of both, as the page would propose it."""
    ask(first, "POST", "draft/discard")  # the draft is what runs
    proposed = ask(first, "POST", "pair/proposal")
    assert proposed == {"hostname": "lb2", "problems": []}


def sentence(box: Director) -> str:
    return ask(box, "GET", "pair")["sentence"]


def own(box: Director) -> dict[str, Any]:
    """What the box says of itself as one of the pair."""
    return next(one for one in ask(box, "GET", "pair")["boxes"] if one["own"])


def leads(box: Director, other: Director) -> None:
    words = _leading(box, other)

    def said() -> bool:
        found = [sentence(one) for one in (box, other)]
        assert all(one.startswith(words) for one in found), found
        return True

    until(words, said, SOON, 1.0, (OSError, AssertionError))


def leading(one: Director, other: Director) -> Director:
    """The box that leads, once both say the same of that."""
    ways = ((one, other), (other, one))

    def found() -> Director | None:
        said = [sentence(box) for box in (one, other)]
        return next((way[0] for way in ways if all(text.startswith(_leading(*way)) for text in said)), None)

    box = until("a box that leads", found, SOON, 1.0, SLOW)
    assert box
    return box


def _leading(box: Director, other: Director) -> str:
    return f"{box.name} leads, {other.name} stands by and is in step"  # and how many connections it knows


def linked(box: Director) -> None:
    until("the link", lambda: "latest handshake" in box.execute("wg show pair0").output, SOON, 1.0)


def apply_draft(box: Director) -> None:
    """As soon as the boxes hear each other; the command confirms by itself."""

    def ended() -> bool:
        done = box.execute("fairlead apply --comment pair", 400)
        said = done.output + done.errors
        assert done.exit == 0 or "is not heard" in said or "try again" in said, said
        return done.exit == 0

    until("the apply of both", ended, SOON, 1.0)


def become_a_pair(machines: Machines, *services: VirtualService) -> None:
    """Two new boxes, of which the first one has these services; it leads."""
    first, second = machines.boxes
    first.apply(alone(1, "1", *services))
    second.apply(alone(2, "5"))
    first.wait_until_healthy("rs1", "rs2", "rs3", timeout=SOON)
    join(first, second)
    propose(first)
    apply_draft(first)
    leads(first, second)


class Holders:
    """Who answers for an address of the clients' network, from now on."""

    _file, _program = "/run/world/holders", "/run/world/holders.py"

    def __init__(self, world: World, address: str) -> None:
        self._world = world
        world.write(self._program, (Path(__file__).parent / "holders.py").read_text())
        world.succeed(
            f"rm -f {self._file}; ip netns exec client python3 {self._program} eth0 {address} {self._file} "
            f">{self._file}.log 2>&1 & echo $! >{self._file}.pid"
        )

    def end(self) -> dict[str, Any]:
        """{"asked": number, "holders": {MAC address: [first, last answer in seconds since 1970]}, "both": number}."""
        self._world.succeed(f"kill $(cat {self._file}.pid)")
        return json.loads(self._world.wait_until_succeeds(["cat", self._file]))
