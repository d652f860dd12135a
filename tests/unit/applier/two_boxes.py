"""Two appliers of one pair over model hosts, and what carries words between them: in steps of a beat, by a clock of the
test's own."""

import dataclasses
import itertools
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

from box import DNS, WEB, Box

from applier.apply.share import Share
from applier.kept import pair_key
from applier.pair.roles import hold_reason
from lbconfig.agreement import BEAT
from lbconfig.model.snapshot import Interface, Management, Network, Pair, PairBox, Scheduler, Snapshot, Tuning
from lbconfig.validate.services import validate

KEYS = ("a" * 42 + "A=", "b" * 42 + "A=")
NAMES = ("lb1", "lb2")


def network(number: int, floats: bool = True) -> Network:
    """`floats`: in a pair."""
    own = 2 + number
    return Network(
        NAMES[number],
        "192.168.10.9",
        (
            Interface("eth0", addresses=(f"192.168.10.{own}/24",), floating=("192.168.10.1/24",) * floats),
            Interface("eth1", addresses=(f"10.2.0.{own}/24",), floating=("10.2.0.1/24",) * floats),
            Interface("eth2", addresses=(f"192.0.2.{number + 1}/30",)),
        ),
    )


def pair_of(*services, **fields) -> Snapshot:
    boxes = tuple(PairBox(network(n), Tuning(), "eth2", f"192.0.2.{n + 1}/30", KEYS[n]) for n in (0, 1))
    found = Snapshot(
        services=services or (WEB, DNS),
        management=Management(allow=("192.168.0.0/16",)),
        pair=Pair("0123456789abcdef" * 2, boxes),
    )
    found = dataclasses.replace(found, **fields)
    assert not validate(found), validate(found)
    return found


OLD = pair_of()
NEW = pair_of(dataclasses.replace(WEB, scheduler=Scheduler.RR), DNS)
THIRD = pair_of(DNS)


def with_other_addresses(snapshot: Snapshot, cards: tuple[str, ...]) -> Snapshot:
    """Both boxes get other own addresses on these interfaces."""

    def moved(number, one):
        interfaces = [
            dataclasses.replace(used, addresses=(f"{used.addresses[0].rpartition('.')[0]}.{5 + number}/{length}",))
            if used.name in cards
            else used
            for used in one.network.interfaces
            for length in [used.addresses[0].partition("/")[2]]
        ]
        cable = next(used.addresses[0] for used in interfaces if used.name == one.cable)
        network = dataclasses.replace(one.network, interfaces=tuple(interfaces))
        return dataclasses.replace(one, network=network, cable_address=cable)

    boxes = tuple(moved(number, one) for number, one in enumerate(snapshot.pair.boxes))
    return dataclasses.replace(snapshot, pair=dataclasses.replace(snapshot.pair, boxes=boxes))


class WatchedShare(Share):
    """Says which threads wait for the agreement."""

    waiting: dict[int, Callable[[], bool]] = {}

    def may_begin(self):
        self.waiting[threading.get_ident()] = lambda: not self._may_try and self._decision is None
        return super().may_begin()

    def wait(self):
        self.waiting[threading.get_ident()] = lambda: self._told and self._decision is None
        return super().wait()


class Half(Box):
    """One box of the pair."""

    def __init__(self, folder: Path, number: int) -> None:
        self.number = number
        self.booted = 0.0
        super().__init__(folder)

    def _daemon(self):
        applier = super()._daemon()
        applier.key = lambda: KEYS[self.number]
        # A review waits for an answer of the other box, which comes with the beats of the test (test_peer_review.py).
        applier.peer_review.both = lambda new, found: found
        self.connected = False
        return applier

    def may_lead(self, leads: bool) -> None:
        """Nobody holds it any more; it leads, or the other one does."""
        self.host.pair.rival = not leads
        self.host.pair.obey("release")

    def held(self) -> str | None:
        return hold_reason(self.host.files[self.paths.hold])

    @property
    def both(self):
        return self.applier.both

    @property
    def runs(self) -> Snapshot:
        return self.applier.running.snapshot

    @property
    def confirmed(self) -> Snapshot:
        generations = self.applier.generations
        return generations.load(generations.confirmed_number()).snapshot

    def note(self) -> dict:
        """The newest generation's record."""
        return self.applier.list_generations()[0]


class Two:
    """`fate` says of each message when it arrives: seconds from now, one for each copy of it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        # Tests before this one may have left applies that wait to be confirmed.
        self.of_others = set(threading.enumerate())
        self.boxes = [Half(folder / name, number) for number, name in enumerate(NAMES)]
        self.on: list[bool] = [True, True]
        self.now = 5000.0
        self.counter = itertools.count()
        self.fate: Callable[[int, int], list[float]] = lambda sender, number: [0.0]
        self.cut = False
        self.on_the_way: list[tuple[float, int, dict]] = []
        for box in self.boxes:
            (folder / NAMES[box.number]).mkdir(exist_ok=True)
            box.boottime = self.now
            box.paths.run.mkdir(parents=True, exist_ok=True)
            box.start()
            pair_key.make(box.host, box.paths)
            self.set_up(box)

    def set_up(self, box: Half) -> None:
        assert box.apply(OLD)["state"] == "done", box.applier.status()["apply"]
        box.may_lead(box.number == 0)

    # --- the boxes -----------------------------------------------------------------------------------

    def beat(self, count: int = 1) -> None:
        for _ in range(count):
            self.now += BEAT
            for box in self.boxes:
                if self.on[box.number]:
                    box.boottime = self.now - box.booted
                    box.applier.joined.tick()
                    box.both.tick()
                    self.settle()
            for box in self.boxes:
                if self.on[box.number] and self.speaks(box):
                    self._talk(box)

    def speaks(self, box: Half) -> bool:
        """Whether anything it says leaves it."""
        return True

    def until(self, done: Callable[[], bool], beats: int = 60) -> None:
        for _ in range(beats):
            if done():
                return
            self.beat()
        raise AssertionError([(box.note(), box.both._box and box.both._box.job) for box in self.boxes])

    def at_work(self) -> list[str]:
        """The threads of applies that do not wait for anybody."""
        here = [one for one in threading.enumerate() if one not in self.of_others]
        threads = [one for one in here if one.name.startswith(("apply-", "pair-"))]
        return [one.name for one in threads if not WatchedShare.waiting.get(one.ident, lambda: False)()]

    def settle(self) -> None:
        """Until each thread of an apply waits for the agreement, or has ended."""
        end = time.monotonic() + 20
        while working := self.at_work():
            assert time.monotonic() < end, working
            time.sleep(0.0005)

    def lead(self, number: int) -> None:
        """That box leads, and the other one knows."""
        for box in self.boxes:
            box.may_lead(box.number == number)
        self.beat()

    def stop(self, number: int) -> None:
        """Nothing comes from it or arrives there any more."""
        self.on[number] = False

    def start(self, number: int, how: str) -> None:
        """Its daemon again, or the whole box."""
        box = self.boxes[number]
        if how == "power_cut":
            box.booted = self.now - 20  # its clock counts anew, and its messages with it
        box.boottime = self.now - box.booted
        getattr(box, how)()
        self.on[number] = True
        for one in self.boxes:
            one.connected = False

    # --- the cable -----------------------------------------------------------------------------------

    def _talk(self, box: Half) -> None:
        other = self.boxes[1 - box.number]
        self._carry_errands(box, other)
        told = json.loads(json.dumps(box.both.pair_tells(-1, "")))
        if not told:
            return
        for delay in self.fate(box.number, next(self.counter)):
            self.on_the_way.append((self.now + delay, other.number, told))
        here = [one for one in self.on_the_way if one[0] <= self.now]
        self.on_the_way = [one for one in self.on_the_way if one[0] > self.now]
        for _, to, said in here:
            if self.on[to] and not self.cut:
                self._arrives(self.boxes[to], said)

    def _carry_errands(self, box: Half, other: Half) -> None:
        if not box.applier.errands.has_lines:
            return
        for line in json.loads(json.dumps(box.applier.errands.pair_errands())):
            errands = other.applier.errands
            if self.on[other.number] and not self.cut:
                (errands.pair_asked if line["kind"] == "ask" else errands.pair_answered)(line["body"])

    def errands(self) -> None:
        """Whatever the boxes ask and answer each other, as long as there is any of it."""
        while any(box.applier.errands.has_lines for box in self.boxes):
            for box, other in (self.boxes, self.boxes[::-1]):
                for line in box.applier.errands.pair_errands() if box.applier.errands.has_lines else ():
                    verb = other.applier.errands.pair_asked if line["kind"] == "ask" else None
                    (verb or other.applier.errands.pair_answered)(json.loads(json.dumps(line["body"])))

    def _arrives(self, box: Half, told: dict) -> None:
        other = self.boxes[1 - box.number]
        if not box.connected:
            box.connected = True
            box.both.pair_connected()
        box.both.peer_says(told["beat"])
        assert box.both.pair_hears(told["said"])["known"]
        self.settle()
        if told["fetch"]:
            content = json.loads(json.dumps(box.both.pair_content(told["fetch"], told["whole"])))
            if content and self.on[other.number] and not self.cut:
                other.both.pair_brings(content)
                self.settle()
