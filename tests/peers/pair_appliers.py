"""What the appliers of two boxes in namespaces do about the pair: their verbs, by the real socket and the real client.

Both floaters are real. What one box says of itself is put into the other's memory, as the channel between them does.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.peers.pair import Box, Pair

from applier.apply.deadline import boottime
from applier.base.paths import Paths
from applier.host.host import Host, Live
from applier.kept.events import Events
from applier.kept.faults import Faults
from applier.kept.generations import Generations
from applier.kept.turn import Turn
from applier.pair.lookout import EACH, Lookout
from applier.pair.own import Own
from applier.pair.peer import Peer
from applier.pair.verbs import Pairs
from applier.wire.client import Client
from applier.wire.server import Server
from lbconfig import migrate
from lbconfig.target import Target

GOLDEN = Path(__file__).parents[1] / "golden/pair-of-two-boxes/snapshot.json"


@dataclass
class Core:
    """What of the daemon the verbs need."""

    paths: Paths
    running: Target
    generations: Generations
    host: Host = field(default_factory=Live)
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


class Applier:
    def __init__(self, box: Box, folder: Path) -> None:
        self.name = ("lb1", "lb2")[box.number]
        paths = replace(box.paths, state=folder, shared=folder / "shared")
        target = Target(12, migrate.read(GOLDEN.read_text()), box.number)
        self.core = Core(paths, target, Generations(folder))
        self.boxes = (target.snapshot.pair.boxes[box.number], target.snapshot.pair.boxes[1 - box.number])
        self.told = 0  # how often the other box was told all connections
        self.pairs = Pairs(self.core, boottime, self._tell)
        self.lookout = Lookout(self.core, self.pairs, boottime)
        verbs = {
            one.__name__: one
            for one in (self.pairs.pair, self.pairs.pair_hand_over, self.pairs.pair_hold, self.pairs.pair_release)
        }
        self.server = Server(folder / "socket", lambda request, _: verbs[request.verb](**request.fields), {0})
        self.client = Client(folder / "socket")

    def _tell(self, _: object) -> None:
        self.told += 1

    def hears(self, other: Applier) -> None:
        self.core.peer.says(other.core.own.beat(other.name), boottime())


@contextlib.contextmanager
def appliers(pair: Pair, folder: Path) -> Iterator[list[Applier]]:
    """Of both boxes, each hearing the other one."""
    both = []
    for box in pair.boxes:
        (folder / box.name).mkdir()
        both.append(Applier(box, folder / box.name))
    ended = threading.Event()

    def talk() -> None:
        while not ended.wait(EACH / 2):
            for one, other in (both, both[::-1]):
                one.hears(other)
                one.lookout.note(one.pairs.seen(one.boxes))

    threads = [threading.Thread(target=talk), *(threading.Thread(target=one.server.serve) for one in both)]
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
