"""Two boxes of a pair as the applier sees them: each with its verbs and its lookout, over a floater that is a model.

The clock is the test's; each word of one box is heard by the other one half a second later at the most.
"""

import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from applier.base.paths import Paths
from applier.host.host import HostError, Output
from applier.kept.events import Events
from applier.kept.faults import Faults
from applier.kept.generations import Generations
from applier.kept.turn import Turn
from applier.pair import roles
from applier.pair.lookout import EACH, Lookout
from applier.pair.own import Own
from applier.pair.peer import Peer
from applier.pair.roles import FAULTY, HELD, LEADS, STANDS_BY, Role
from applier.pair.verbs import Pairs
from applier.wire.errors import ApplierRefused
from lbconfig import migrate
from lbconfig.target import Target

GOLDEN = Path(__file__).parents[2] / "golden/pair-of-two-boxes/snapshot.json"
SNAPSHOT = migrate.read(GOLDEN.read_text())
HOLDS = 2.0  # seconds that a hand-over holds the box


@dataclass
class PairHost:
    """The door of one box: its floater, its links and its gateway."""

    world: "World"
    paths: Paths
    number: int
    role: str = STANDS_BY
    reason: str = ""
    since: float = 0.0
    held: str | None = None
    until: float | None = None  # when a hand-over is over
    settings: dict = field(default_factory=lambda: {"net/ipv4/ip_forward": "1", "kernel/random/boot_id": "one"})
    carriers: dict = field(default_factory=lambda: {"eth0": "1\n", "eth1": "1\n", "eth2": "1\n"})
    answering: bool = True  # the gateway
    asked: list = field(default_factory=list)
    deaf: bool = False  # the floater does not answer
    questions: list = field(default_factory=list)  # frames that ask for floating addresses

    def now(self):
        return self.world.clock

    def sleep(self, seconds):
        self.world.pass_time(seconds)

    def setting(self, key):
        return self.settings.get(key)

    def read(self, path):
        if path == self.paths.role:
            return roles.role_text(Role(self.role, self.since, self.reason)) if self.role else None
        if path == self.paths.floating:
            return '{"version": 1, "lease": 10, "addresses": [["eth0", "10.0.2.15/32"], ["eth0", "10.0.2.100/32"]]}'
        if path.name == "address":
            return "52:54:00:00:00:01\n"
        if path.name == "carrier":
            return self.carriers.get(path.parent.name)
        raise AssertionError(f"the model does not know {path}")

    def neighbours(self, interfaces):
        return Neighbours(self)

    def command(self, argv, stdin="", timeout=20.0):
        assert argv[0] in ("arping", "ping"), argv
        return Output(0 if self.answering else 1, "", "")

    def ask(self, path, line, timeout):
        assert path == self.paths.floater
        self.asked.append(line)
        if self.deaf:
            raise HostError(f"{path.name}: {line}", None, "Connection refused")
        match line.split():
            case ["hold", *reason]:
                self.held, self.until = " ".join(reason), None
            case ["release"]:
                self.held, self.until = None, None
            case ["hand-over", *_] if self.role != LEADS:
                return "error: this box does not lead"
            case ["hand-over", *reason]:
                self.held, self.until = roles.handing_over(" ".join(reason)), self.world.clock + HOLDS
        self.world.elect()
        return "ok"

    def becomes(self, role, reason=""):
        if role != self.role:
            self.since = self.world.clock
        self.role, self.reason = role, reason


class Neighbours:
    """The other box answers some milliseconds after it has begun to lead."""

    def __init__(self, host):
        self.host = host

    def ask(self, interface, frame):
        self.host.questions.append(frame)

    def answers(self, seconds):
        time.sleep(0.001)
        other = self.host.world.boxes[1 - self.host.number].host
        if self.host.questions and other.role == LEADS:
            for address in self.host.world.answering:
                yield "eth0", address, self.host.since + 0.031

    def close(self):
        pass


@dataclass
class Errands:
    """What is asked of the other box while a hand-over goes on."""

    world: "World"
    number: int

    def ask(self, verb, arguments, within):
        assert (verb, arguments) == ("pair_knows", {})
        if not self.world.path:
            raise ApplierRefused("peer-away", "The other box is not heard.")
        return self.world.boxes[1 - self.number].pairs.pair_knows()


@dataclass
class Core:
    paths: Paths
    host: PairHost
    running: Target
    generations: Generations
    confirmed: int | None = None
    faults: Faults = field(default_factory=Faults)
    turn: Turn = field(default_factory=Turn)
    peer: Peer = field(default_factory=Peer)
    reasons: Events = field(default_factory=lambda: Events(Path("/nonexistent")))
    ready: bool = True
    lineage: tuple = ()
    open: int = 0  # connections of TCP

    def __post_init__(self):
        self.own = Own(self, self.host.now)

    def connections(self):
        return 7

    def established(self):
        return self.open


@dataclass
class Box:
    core: Core
    host: PairHost
    pairs: Pairs
    lookout: Lookout
    told: list = field(default_factory=list)  # moments at which the other one was told all connections

    def refusal(self, ask):
        """What it is refused with: code and message."""
        try:
            ask()
        except ApplierRefused as refusal:
            return refusal.code, refusal.message
        raise AssertionError("it was not refused")


class World:
    def __init__(self, folder):
        self.clock = 10_000.0
        self.path = True  # whether they hear each other
        self.ready = [True, True]
        self.faulty = [False, False]
        self.slow = False  # keepalived of the other box takes over nothing
        self.answering = ["10.0.2.15", "10.0.2.100"]  # floating addresses
        self.boxes = [self._box(folder / f"box{number}", number) for number in (0, 1)]
        self.elect()
        self.pass_time(1)

    def _box(self, folder, number):
        paths = Paths(state=folder / "state", run=folder / "run", shared=folder / "shared")
        paths.state.mkdir(parents=True)
        host = PairHost(self, paths, number)
        core = Core(paths, host, Target(12, SNAPSHOT, number), Generations(paths.state))
        told = []
        pairs = Pairs(core, lambda: self.clock, lambda _: told.append(self.clock))
        core.errands = Errands(self, number)
        return Box(core, host, pairs, Lookout(core, pairs, lambda: self.clock), told)

    def elect(self):
        """As keepalived does: who leads goes on, else the first one that may."""
        hosts = [box.host for box in getattr(self, "boxes", [])]
        for host in hosts:
            if self.faulty[host.number]:
                host.becomes(FAULTY, "no link")
            elif host.held is not None:
                host.becomes(HELD, host.held)
            elif host.role in (HELD, FAULTY):
                host.becomes(STANDS_BY)
        able = [host for host in hosts if host.role == STANDS_BY]
        if able and not self.slow and LEADS not in [host.role for host in hosts]:
            able[0].becomes(LEADS)

    def pass_time(self, seconds):
        end = self.clock + seconds
        while self.clock < end:
            self.clock += min(EACH, end - self.clock)
            for box in self.boxes:
                if box.host.until is not None and self.clock >= box.host.until:
                    box.host.held, box.host.until = None, None
            self.elect()
            for box, other in (self.boxes, self.boxes[::-1]):
                if self.path:
                    self.beat(box, other)

    def skip(self, seconds):
        """Time in which nothing happens and nobody looks."""
        self.clock += seconds
        self.pass_time(EACH)

    def beat(self, box, other):
        """`box` hears `other`."""
        name = SNAPSHOT.pair.boxes[other.host.number].name
        said = replace(other.core.own.beat(name), lineage=(other.core.running.digest,))
        box.core.peer.says(replace(said, ready=said.ready and self.ready[other.host.number]), self.clock)

    def watched(self, seconds):
        """Time passes while both look out."""
        for _ in range(round(seconds / EACH)):
            self.pass_time(EACH)
            for box in self.boxes:
                box.lookout.turn()

    def roles(self):
        return [box.host.role for box in self.boxes]
