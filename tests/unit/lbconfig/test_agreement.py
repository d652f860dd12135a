"""Two boxes agree on a configuration, whatever is lost, late, twice, killed or cut: the protocol of a pair."""

import itertools
import random
from dataclasses import dataclass, field

import pytest
from tests.parts import ALL

from lbconfig import agreement
from lbconfig.agreement import BEAT, Confirm, GoBack, Part, Refused, Revision, Stage, Standing, Tell, Try

FIRST = (Revision("r0", "d0"),)
SCHEDULES = 10_000 if ALL else 150
CALM = 400  # seconds after the last fault by which everything must have ended


@dataclass
class Machine:
    """A box with its disk, and what it runs."""

    index: int
    disk: agreement.Lineage = FIRST
    epoch: int = 0
    box: agreement.Box | None = None  # None: it is off
    runs: Revision = FIRST[0]
    trial: tuple[float, Revision, str] | None = None  # when a try ends, of what, and why it fails


@dataclass
class World:
    """Two boxes, the cable between them and a clock; `decided` has each change that a desk has written down."""

    seed: int
    faults: bool = True
    alone: bool = False
    now: float = 0.0
    cut: bool = False
    on_the_way: list = field(default_factory=list)  # (when it arrives, at which box, what)
    decided: set = field(default_factory=set)
    waited: set = field(default_factory=set)  # (box, change) that ran there, not confirmed
    tries: list = field(default_factory=list)  # (box, its epoch, change)
    full: set = field(default_factory=set)  # boxes whose disk takes nothing

    def __post_init__(self):
        self.random = random.Random(self.seed)
        self.machines = [Machine(0), Machine(1)]
        self.ids = (f"r{number}" for number in itertools.count(1))
        for machine in self.machines:
            self.start(machine)

    def start(self, machine):
        machine.epoch += 1
        machine.box = agreement.restarted(machine.index, machine.epoch, machine.disk)
        machine.runs, machine.trial = machine.disk[-1], None

    def stop(self, machine):
        machine.box = machine.trial = None

    def do(self, machine, what, *values, **names):
        """Call a function of the protocol for a box; whether it was taken. The power may go between two deeds."""
        before = machine.box
        try:
            machine.box, deeds = what(machine.box, *values, **names)
        except Refused:
            return False
        for deed in deeds:
            if self.faults and self.random.random() < 0.002:
                self.stop(machine)
                return True
            if isinstance(deed, Confirm) and machine.index in self.full:
                machine.runs = machine.disk[-1]
                machine.box, _ = agreement.not_confirmed(before, "the disk is full", self.now)
                break
            self.deed(machine, deed, before.job)
        return True

    def deed(self, machine, deed, job):
        match deed:
            case Try(revision):
                assert machine.trial is None
                now = machine.box.job
                if now.part is Part.DESK and not now.together:
                    assert (1 - machine.index, revision.id) in self.waited, "the desk tried before its peer"
                if not deed.follows:
                    once = machine.index, machine.epoch, revision.id
                    assert once not in self.tries, "a change was tried twice"
                    self.tries.append(once)
                why = "a step failed" if self.faults and self.random.random() < 0.15 else ""
                machine.trial = (self.now + self.random.choice([0.1, 1, 5, 15]), revision, why)
            case GoBack():
                machine.runs, machine.trial = machine.disk[-1], None
            case Confirm(lineage):
                part = job.part if job else None
                if part is Part.DESK:
                    assert (1 - machine.index, lineage[-1].id) in self.waited, "decided before the peer was ready"
                if part in (Part.DESK, Part.ALONE):
                    self.decided.add(lineage[-1].id)
                assert lineage[-1].id in self.decided, "a box confirmed what no desk had decided"
                assert part is None or machine.runs == lineage[-1], "a box confirmed what it does not run"
                machine.disk = lineage
                machine.runs = lineage[-1]
            case Tell():
                machine.box, said = agreement.message(machine.box)
                self.send(1 - machine.index, said)

    def send(self, to, said):
        if self.cut:
            return
        copies = self.random.choices([0, 1, 2], [10, 80, 10])[0] if self.faults else 1
        for _ in range(copies):
            late = self.random.choice([0, 0, 0.2, 3]) if self.faults else 0
            self.on_the_way.append((self.now + late, to, said))

    def pass_time(self, seconds):
        end = self.now + seconds
        while self.now < end:
            self.now += BEAT / 2
            here = [one for one in self.on_the_way if one[0] <= self.now]
            self.on_the_way = [one for one in self.on_the_way if one[0] > self.now]
            for _, to, said in here:
                if self.machines[to].box and not self.cut:
                    self.do(self.machines[to], agreement.hear, said, self.now)
            for machine in self.machines:
                self.at_work(machine)

    def at_work(self, machine):
        if machine.box is None:
            return
        if machine.trial and machine.trial[0] <= self.now:
            (_, revision, why), machine.trial = machine.trial, None
            machine.runs = machine.disk[-1] if why else revision
            if not why:
                self.waited.add((machine.index, revision.id))
            self.do(machine, agreement.tried, revision.id, why, self.now)
        if machine.box:
            self.do(machine, agreement.pass_time, self.now)
        if machine.box:
            job = machine.box.job
            assert machine.runs in (machine.disk[-1], job.revision if job else None)
            assert machine.box.lineage == machine.disk
            assert (machine.trial is not None) == (job is not None and job.stage is Stage.TRIES)

    def apply(self, machine, **how):
        revision = Revision(next(self.ids), f"d{self.random.randrange(3)}")
        within = how.pop("within", 0)
        return revision if self.do(machine, agreement.begin, revision, within, self.now, **how) else None

    def something(self):
        """A change, a proof, a choice, a power cut, a cable: one of what may happen."""
        machine = self.random.choice(self.machines)
        draw = self.random.random()
        if machine.box is None:
            if draw < 0.5:
                self.start(machine)
        elif draw < 0.4:
            alone = self.alone and machine.box.silent(self.now)
            self.apply(machine, within=self.random.choice([0, 30]), alone=alone, together=draw < 0.05)
        elif draw < 0.6 and machine.box.job:
            self.do(machine, agreement.proved, machine.box.job.revision.id, self.now)
        elif draw < 0.65:
            self.do(machine, agreement.give_up, "the admin wants it undone")
        elif draw < 0.75:
            self.do(machine, agreement.choose)
        elif draw < 0.85:
            self.stop(machine)
        else:
            self.cut = not self.cut

    def heal(self):
        self.faults = self.cut = False
        for machine in self.machines:
            if machine.box is None:
                self.start(machine)
        one, two = self.machines
        end = self.now + CALM
        while self.now < end:
            self.pass_time(20)
            stood = one.box.job, two.box.job, agreement.standing(one.disk, two.disk)
            if stood[:2] == (None, None) and stood[2] in (Standing.IN_STEP, Standing.FORKED):
                break
        assert one.box.job is None and two.box.job is None
        assert (one.runs, two.runs) == (one.disk[-1], two.disk[-1])
        return agreement.standing(one.disk, two.disk)


@pytest.mark.parametrize("alone", [False, True], ids=["together", "apart, too"])
def test_whatever_happens_both_run_the_same_or_both_know_that_they_do_not(alone):
    seen = set()
    for seed in range(SCHEDULES):
        world = World(seed, alone=alone)
        for _ in range(world.random.randrange(1, 15)):
            world.something()
            world.pass_time(world.random.choice([0.5, 2, 10, 40]))
        end = world.heal()
        seen.add(end)
        assert end is Standing.IN_STEP or (alone and end is Standing.FORKED), f"seed {seed}: {end}"
        if end is Standing.FORKED:
            assert all(agreement.stands(machine.box) is Standing.FORKED for machine in world.machines)
            assert world.do(world.machines[seed % 2], agreement.choose)
            stays = world.machines[seed % 2].disk
            world.pass_time(60)
            assert [machine.disk for machine in world.machines] == [stays, stays], f"seed {seed}"
    assert (Standing.FORKED in seen) == alone


@pytest.fixture
def world():
    world = World(0, faults=False)
    world.pass_time(2)
    return world


def jobs(world):
    return [machine.box.job and machine.box.job.stage for machine in world.machines]


def disks(world):
    return [machine.disk[-1].id for machine in world.machines]


def why(machine):
    return machine.box.refused[-1][1]


def until_both_wait(world, desk=0, **how):
    revision = world.apply(world.machines[desk], within=120, **how)
    while jobs(world) != [Stage.WAITS, Stage.WAITS]:
        world.pass_time(BEAT)
        assert world.now < 100
    assert disks(world) == ["r0", "r0"]
    return revision


@pytest.mark.parametrize("desk", [0, 1])
@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize("together", [False, True])
def test_a_change_is_confirmed_through_either_box(world, desk, at, together):
    revision = until_both_wait(world, desk, together=together)
    assert world.do(world.machines[at], agreement.proved, revision.id, world.now)
    world.pass_time(2)
    assert disks(world) == [revision.id, revision.id] and jobs(world) == [None, None]


def test_nobody_confirms_it(world):
    until_both_wait(world)
    world.pass_time(125)
    assert disks(world) == ["r0", "r0"] and jobs(world) == [None, None]
    said = "nobody confirmed it in time"
    assert [why(machine) for machine in world.machines] == [said, f"the other box: {said}"]


@pytest.mark.parametrize(("together", "longest"), [(False, agreement.SILENT), (True, agreement.TOGETHER)])
def test_the_path_between_them_goes_while_both_wait(world, together, longest):
    revision = until_both_wait(world, together=together)
    world.cut = True
    world.pass_time(longest - 2)
    assert jobs(world)[0]
    world.pass_time(4)
    assert jobs(world)[0] is None and why(world.machines[0]) == "the other box went away"
    # Its proof may still come: what the desk has given up stays given up.
    assert world.do(world.machines[1], agreement.proved, revision.id, world.now)
    world.pass_time(120 + agreement.DOUBT)
    assert disks(world) == ["r0", "r0"] and jobs(world) == [None, None]
    assert why(world.machines[1]) == "the other box fell silent"


def test_the_desk_decides_and_is_not_heard(world):
    revision = until_both_wait(world)
    world.cut = True
    assert world.do(world.machines[0], agreement.proved, revision.id, world.now)
    world.pass_time(300)
    assert disks(world) == [revision.id, "r0"]
    assert world.apply(world.machines[0]) is None  # the other box is away
    world.cut = False
    world.pass_time(1)
    assert world.apply(world.machines[1]) is None  # it is behind, and follows by itself
    world.pass_time(30)
    assert disks(world) == [revision.id, revision.id]


def test_both_admins_apply_at_once(world):
    first, second = (world.apply(machine) for machine in world.machines)
    world.pass_time(60)
    assert second and disks(world) == [first.id, first.id]
    assert why(world.machines[1]) == "a change at the other box was first"


def test_one_at_a_time_and_alone_only_where_the_other_is_away(world):
    assert world.apply(world.machines[0], alone=True) is None
    assert world.apply(world.machines[0]) and world.apply(world.machines[0]) is None
    world.pass_time(60)
    world.cut = True
    world.pass_time(20)
    assert world.apply(world.machines[0]) is None and world.apply(world.machines[0], alone=True)


def test_both_choose_their_own_fork_and_the_first_box_has_its_way(world):
    world.cut = True
    world.pass_time(20)
    for number, machine in enumerate(world.machines):
        machine.box, [*_] = agreement.begin(machine.box, Revision(f"s{number}", f"e{number}"), 0, world.now, alone=True)
        machine.trial = (world.now, Revision(f"s{number}", f"e{number}"), "")
    world.pass_time(20)
    assert disks(world) == ["s0", "s1"]
    world.cut = False
    world.pass_time(20)
    assert disks(world) == ["s0", "s1"]  # nothing happens by itself
    assert world.apply(world.machines[0]) is None
    assert all(world.do(machine, agreement.choose) for machine in reversed(world.machines))
    world.pass_time(30)
    assert disks(world) == ["s0", "s0"]
    assert not any(machine.box.chosen for machine in world.machines)
    assert not world.do(world.machines[0], agreement.choose)


def test_a_message_that_comes_late_says_nothing(world):
    _, early = agreement.message(world.machines[0].box)
    until_both_wait(world)
    peer = world.machines[1].box
    assert agreement.hear(peer, early, world.now) == (peer, [])


def test_a_change_that_begins_from_another_configuration_is_turned_down(world):
    peer = world.machines[1].box
    strange = (*FIRST, Revision("x1", "x"), Revision("x2", "x"))
    job = agreement.Job(Part.DESK, strange[-1], strange, Stage.ASKS, 0, 0)
    peer, deeds = agreement.hear(peer, agreement.Said(9, 1, FIRST, job), world.now)
    assert peer.refused == (("x2", "it is not in step"),) and deeds == [Tell()]


def test_a_peer_that_starts_anew_does_not_try_what_waits(world):
    revision = until_both_wait(world)
    job = world.machines[0].box.job
    peer = agreement.restarted(1, 9, FIRST)
    peer, deeds = agreement.hear(peer, agreement.Said(1, 999, FIRST, job), world.now)
    assert peer.job is None and not [deed for deed in deeds if isinstance(deed, Try)]
    world.start(world.machines[1])
    world.pass_time(3)
    assert why(world.machines[0]) == "the other box has started anew"
    assert disks(world) == ["r0", "r0"] and (1, 2, revision.id) not in world.tries


def test_what_was_had_long_ago_is_forgotten():
    box = agreement.restarted(0, 1, tuple(Revision(str(number), "") for number in range(2000)))
    assert len(box.lineage) == agreement.KNOWN and box.lineage[-1].id == "1999"


def test_a_box_that_counts_anew_is_heard_on_a_new_connection(world):
    box, other = world.machines[0].box, world.machines[1].box
    again = agreement.Said(other.epoch, 1, other.lineage, None)
    assert agreement.hear(box, again, world.now) == (box, [])
    box, _ = agreement.hear(agreement.connected(box), again, world.now)
    assert box.other == again
    assert agreement.connected(agreement.restarted(0, 1, FIRST)).other is None


@pytest.mark.parametrize("at", [0, 1])
def test_what_cannot_be_written_down_is_not_confirmed(world, at):
    """A full disk at the desk: both go back. At its peer: that one is behind, and tries again after a while."""
    revision = until_both_wait(world)
    world.full.add(at)
    assert world.do(world.machines[0], agreement.proved, revision.id, world.now)
    world.pass_time(5)
    assert why(world.machines[at]) == "the disk is full"
    assert jobs(world) == [None, None] and disks(world) == (["r0", "r0"] if at == 0 else [revision.id, "r0"])
    world.full.clear()
    world.pass_time(agreement.AGAIN + 20)
    assert disks(world) == (["r0", "r0"] if at == 0 else [revision.id, revision.id])
