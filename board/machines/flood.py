"""A lab with a cable between clients and director that can carry a flood along (flood.c)."""

from __future__ import annotations

import dataclasses
import fcntl
import hashlib
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from board.lab.build import BUILD, Image
from board.machines.director import NETWORK, wish
from board.machines.lab import Lab, make_lab
from board.machines.link import Link, LinkEnd
from board.machines.talking import Talking
from board.machines.wait import until

from lbconfig.model.snapshot import Snapshot, VirtualService

SOURCE = Path(__file__).with_name("flood.c")
# The Internet is behind the client, so that no source is forged in the director's eyes (rp_filter).
GATEWAY = "10.1.0.10"
STRANGERS = "198.18.0.0/15"  # 131,072 addresses (RFC 2544: for measurements)
SOON = 90.0  # seconds


class Flood:
    """One flood at a time; the director is `wish_flooded`, and its card at this cable has spoken before."""

    def __init__(self, director_end: Path, world_end: Path) -> None:
        words = ["setpriv", "--pdeathsig=KILL", compiled(), director_end, world_end]
        self.program = Talking(words, subprocess.PIPE)
        self.process = self.program.process
        self.ends = director_end, world_end
        self.running = False

    def plugged_in(self) -> None:
        """Wait until the director can be turned on. Raises RuntimeError where the program has ended."""
        director_end, world_end = self.ends

        def listens() -> bool:
            self._must_run()
            return director_end.exists()

        until("the cable", listens, SOON, 0.05)
        LinkEnd(world_end, listens=False).plugged_in(self._must_run)

    def begin(
        self,
        kind: str,
        target: str,
        rate: int = 0,
        seconds: float = 30,
        count: int = 20_000_000,
        sources: str = STRANGERS,
    ) -> None:
        """Packets of that kind ("syn", "ack", "udp") to "10.1.0.100:80"; rate 0: as many as the director takes."""
        address, _, port = target.rpartition(":")
        self._say(f"{kind} {address} {port} {sources} {rate} {count} {seconds}")
        self.running = True

    def end(self) -> tuple[int, float]:
        """Packets that the director has taken in, and seconds, when it is over; `stop` it first if it must end now."""
        said = self.program.hear().split()
        if not said:
            raise OSError(f"the cable has ended: {self.process.communicate()[1] or self.process.returncode}")
        self.running = False
        return int(said[1]), float(said[2])

    def stop(self) -> tuple[int, float]:
        self._say("stop")
        return self.end()

    def _must_run(self) -> None:
        """Raises RuntimeError."""
        if self.process.poll() is not None:
            raise RuntimeError(f"the cable has ended: {self.process.communicate()[1] or self.process.returncode}")

    def _say(self, line: str) -> None:
        self.program.say(line)

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


def compiled() -> Path:
    """The program, from the cache or compiled now."""
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:12]
    program = BUILD / f"flood-{digest}"
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / "flood.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            new = program.with_suffix(".new")
            subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", new, SOURCE], check=True)
            os.replace(new, program)
    return program


@contextmanager
def flooded_lab(
    folder: Path, image: Image, memory: int = 512, devices: tuple[str, ...] = ()
) -> Iterator[tuple[Lab, Flood]]:
    """Both machines turned on (see board.machines.lab.boot), and the cable between them.

    `devices`: more words for the director's QEMU.
    """
    lab = make_lab(folder, image, cable(folder), memory)
    lab.director.devices = devices
    with joined(lab) as flood:
        yield lab, flood


def cable(folder: Path) -> Link:
    """The director's end of the cable; its other end is the world's own, "clients"."""
    return Link(folder / "flooded")


@contextmanager
def joined(lab: Lab, moment: str = "") -> Iterator[Flood]:
    """Turn on both machines of a lab that was made with this `cable`, and what carries packets along it.

    `moment`: both as they were then. The cable serves one start of the director, and from a disk image going back is
    one (Machine.go_back).
    """
    folder = lab.director.folder
    with lab.world:
        flood = Flood(cable(folder).path, folder / "clients")
        try:
            flood.plugged_in()
            if moment:
                lab.go_back(moment)
            else:
                lab.director.start()
            yield flood
        finally:
            lab.director.kill()
            flood.close()


def wish_flooded(*services: VirtualService) -> Snapshot:
    """As `wish`, for a director whose way to the Internet is behind the flooded cable."""
    plain = wish(*services)
    return dataclasses.replace(plain, network=dataclasses.replace(NETWORK, gateway=GATEWAY))
