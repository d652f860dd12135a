"""What the appliers of two boxes in namespaces do about the pair: their verbs, by the real socket and the real client.

Both floaters are real. What one box says of itself is put into the other's memory, as the channel between them does.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.peers.pair import WAY_OUT, Box, Pair

from applier.apply.deadline import boottime
from applier.base.paths import Paths
from applier.host.host import COMMAND_TIMEOUT, Host, Live, Neighbours, Output
from applier.kept.events import Events
from applier.kept.faults import Faults
from applier.kept.generations import Generations
from applier.kept.turn import Turn
from applier.pair.asking import CLASS
from applier.pair.drills import Drills
from applier.pair.lookout import EACH, Lookout
from applier.pair.own import Own
from applier.pair.peer import Peer
from applier.pair.verbs import Pairs
from applier.parts.pair.comparing import Table
from applier.wire.client import Client
from applier.wire.server import Server
from applier.wire.shapes_pair import PathStatus
from lbconfig import migrate
from lbconfig.model.network import Interface
from lbconfig.model.snapshot import Snapshot
from lbconfig.target import Target

GOLDEN = Path(__file__).parents[1] / "golden/pair-of-two-boxes/snapshot.json"
# A file of a card below /sys, which shows this machine's cards -> the same out of what ip shows of the room's.
KNOWN_OF_LINKS: dict[str, Callable[[dict[str, Any]], str]] = {
    "address": lambda link: link["address"],
    "carrier": lambda link: str(int("LOWER_UP" in link["flags"])),
}


class InRoom(Live):
    """The door of a box whose applier runs beside it."""

    def __init__(self, box: Box) -> None:
        self._box = box

    def command(self, argv: Sequence[str], stdin: str = "", timeout: float = COMMAND_TIMEOUT) -> Output:
        return super().command(self._box.inside(*argv), stdin, timeout)

    def setting(self, key: str) -> str | None:
        if key.startswith("net/"):
            return self._box.do(f"cat /proc/sys/{key}").strip()
        return super().setting(key)

    def neighbours(self, interfaces: Collection[str]) -> Neighbours:
        with ThreadPoolExecutor(1, initializer=self._box.enter) as inside:
            return inside.submit(super().neighbours, interfaces).result(20)

    def read(self, path: Path) -> str | None:
        if path.parent.parent == CLASS and path.name in KNOWN_OF_LINKS:
            links = json.loads(self._box.do("ip -json link show"))
            return next((KNOWN_OF_LINKS[path.name](one) for one in links if one["ifname"] == path.parent.name), None)
        return super().read(path)


class Errands:
    """The other box does what it is asked for."""

    def __init__(self) -> None:
        self.other: dict[str, Callable[..., dict[str, Any]]] = {}

    def ask(self, verb: str, arguments: Mapping[str, object], within: float) -> dict[str, Any]:
        return self.other[verb](**json.loads(json.dumps(arguments)))


@dataclass
class Core:
    """What of the daemon the verbs need."""

    paths: Paths
    running: Target
    generations: Generations
    host: Host
    errands: Errands = field(default_factory=Errands)
    confirmed: int | None = None
    faults: Faults = field(default_factory=Faults)
    turn: Turn = field(default_factory=Turn)
    reasons: Events = field(default_factory=lambda: Events(Path("/nonexistent")))
    peer: Peer = field(default_factory=Peer)
    ready: bool = True
    lineage: tuple = ()

    def __post_init__(self) -> None:
        self.own = Own(self, boottime)

    def connections(self) -> int:
        return 0

    def established(self) -> int:
        return 0


class Applier:
    def __init__(self, box: Box, folder: Path) -> None:
        self.name = ("lb1", "lb2")[box.number]
        paths = replace(box.paths, state=folder, shared=folder / "shared")
        target = Target(12, in_these_networks(migrate.read(GOLDEN.read_text())), box.number)
        self.core = Core(paths, target, Generations(folder), InRoom(box))
        self.boxes = (target.snapshot.pair.boxes[box.number], target.snapshot.pair.boxes[1 - box.number])
        self.told = 0  # how often the other box was told all connections
        self.pairs = Pairs(self.core, boottime, self._tell)
        self.lookout = Lookout(self.core, self.pairs, boottime)
        # The rooms have no table of connections; what is compared of it, tests/unit has.
        self.drills = Drills(self.core, self.pairs, lambda *_: Table(1, frozenset({1, 2, 3}), frozenset(), True))
        self.verbs = {
            one.__name__: one
            for one in (
                self.pairs.pair, self.pairs.pair_hand_over, self.pairs.pair_hold, self.pairs.pair_release,
                self.drills.pair_drill, self.drills.pair_drills, self.drills.drill_compare, self.drills.drill_done,
                self.drills.drill_back, self.pairs.pair_knows,
            )
        }  # fmt: skip
        self.server = Server(folder / "socket", lambda request, _: self.verbs[request.verb](**request.fields), {0})
        self.client = Client(folder / "socket")

    @property
    def paths(self) -> list[PathStatus]:
        return self.pairs.hearing.shown()

    def _tell(self, _: object) -> None:
        self.told += 1

    def hears(self, other: Applier) -> None:
        self.core.peer.says(other.core.own.beat(other.name), boottime())


def in_these_networks(snapshot: Snapshot) -> Snapshot:
    """With the addresses that the boxes have here."""
    assert snapshot.pair is not None
    own = [("10.1.0.{}/24", "2001:db8:1::{}/64"), ("10.2.0.{}/24",)]
    boxes = [
        replace(
            box,
            network=replace(
                box.network,
                gateway=WAY_OUT,
                interfaces=tuple(
                    Interface(f"eth{at}", addresses=tuple(one.format(number) for one in addresses))
                    for at, addresses in enumerate(own)
                ),
            ),
        )
        for number, box in enumerate(snapshot.pair.boxes, 1)
    ]
    return replace(snapshot, pair=replace(snapshot.pair, boxes=(boxes[0], boxes[1])))


@contextlib.contextmanager
def appliers(pair: Pair, folder: Path, looking: bool = False) -> Iterator[list[Applier]]:
    """Of both boxes, each hearing the other one. `looking`: each looks which one is fitter, and hands over."""
    both = []
    for box in pair.boxes:
        (folder / box.name).mkdir()
        both.append(Applier(box, folder / box.name))
    for one, other in (both, both[::-1]):
        one.core.errands.other = other.verbs
    ended = threading.Event()

    def talk() -> None:
        while not ended.wait(EACH / 2):
            for one, other in (both, both[::-1]):
                one.hears(other)
                if not looking:
                    one.lookout.note(one.pairs.seen(one.boxes))

    def look(one: Applier) -> None:
        while not ended.wait(EACH):
            one.lookout.loop.turn()

    threads = [threading.Thread(target=talk), *(threading.Thread(target=one.server.serve) for one in both)]
    threads += [threading.Thread(target=look, args=[one]) for one in both if looking]
    for thread in threads:
        thread.start()
    try:
        yield both
    finally:
        ended.set()
        for one in both:
            one.server.close()
        for thread in threads:
            thread.join()
