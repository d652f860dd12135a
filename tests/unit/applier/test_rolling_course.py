"""The update of both boxes as a pure function: every phase, every doubt, and schedules at random."""

import itertools
import json
import random
import re
from dataclasses import asdict, dataclass, replace

import pytest
from tests.parts import ALL

from applier.pair.roles import FAULTY, HELD, LEADS, STANDS_BY
from applier.update.rolling import course as courses
from applier.update.rolling.course import Course, Deed, Half, Phase, Seen
from applier.update.rolling.record import Wrong, load, read_course, read_half, save
from lbconfig.model.problem import UNPRINTABLE
from lbconfig.model.reading import wrong_type

NEW, OLD = "0.3.0", "0.2.0"
COURSE = Course("0" * 32, "1" * 32, 0, ("lb1", "lb2"), NEW, "upload:1", 1000, "a" * 64, "ann", "2026-01-01T00:00:00Z")
RUNS_OLD = Half(OLD, True, "")
WAITS = Half(OLD, True, NEW, "installed", NEW)
TRIES = Half(OLD, True, NEW, "trying", NEW)
RUNS_NEW = Half(NEW, True, OLD, "good", NEW)
FAILED = Half(OLD, True, "", "failed", NEW, f"Version {NEW} did not come up: the web page answers with 502.")
BEFORE = Seen(1.0, WAITS, WAITS, 0.0, LEADS, STANDS_BY, True, True, True, 1000, 1000, "", 100.0)
AFTER = replace(BEFORE, peer=RUNS_NEW, own_role=STANDS_BY, peer_role=LEADS)


def step(phase: Phase, seen: Seen, **fields) -> tuple[Phase, Deed | None, str]:
    course, deed = courses.after(replace(COURSE, phase=phase, **fields), seen)
    return course.phase, deed, course.stopped


@pytest.mark.parametrize(
    ("phase", "seen", "then"),
    [
        (Phase.SENDS, replace(BEFORE, own=RUNS_OLD, peer=RUNS_OLD), (Phase.SENDS, Deed.SEND)),
        (Phase.SENDS, replace(BEFORE, peer=replace(RUNS_OLD, received=1000)), (Phase.INSTALLS, None)),
        (Phase.SENDS, BEFORE, (Phase.INSTALLS, None)),
        (Phase.SENDS, replace(BEFORE, peer=RUNS_NEW), (Phase.INSTALLS, None)),
        (Phase.INSTALLS, replace(BEFORE, own=RUNS_OLD, peer=replace(RUNS_OLD, received=1000)),
         (Phase.INSTALLS, Deed.INSTALL_PEER)),
        (Phase.INSTALLS, replace(BEFORE, own=RUNS_OLD, peer=RUNS_OLD), (Phase.SENDS, None)),
        (Phase.INSTALLS, replace(BEFORE, own=RUNS_OLD), (Phase.INSTALLS, Deed.INSTALL_OWN)),
        (Phase.INSTALLS, BEFORE, (Phase.RESTARTS, None)),
        (Phase.RESTARTS, BEFORE, (Phase.RESTARTS, Deed.RESTART_PEER)),
        (Phase.RESTARTS, replace(BEFORE, peer=TRIES), (Phase.RESTARTS, None)),
        (Phase.RESTARTS, replace(BEFORE, silent=200.0, waited=200.0, peer_role=""), (Phase.RESTARTS, None)),
        (Phase.RESTARTS, replace(BEFORE, peer=replace(RUNS_NEW, good=False)), (Phase.RESTARTS, None)),
        (Phase.RESTARTS, replace(BEFORE, peer=RUNS_NEW), (Phase.LEARNS, None)),
        (Phase.LEARNS, replace(BEFORE, peer=RUNS_NEW, in_step=False), (Phase.LEARNS, None)),
        (Phase.LEARNS, replace(BEFORE, peer=RUNS_NEW, ready=False), (Phase.LEARNS, None)),
        (Phase.LEARNS, replace(BEFORE, peer=RUNS_NEW, told=False), (Phase.LEARNS, None)),
        (Phase.LEARNS, replace(BEFORE, peer=RUNS_NEW, own_connections=10_000, peer_connections=9_899),
         (Phase.LEARNS, None)),
        (Phase.LEARNS, replace(BEFORE, peer=RUNS_NEW, own_connections=10_000, peer_connections=9_900),
         (Phase.HANDS_OVER, None)),
        (Phase.LEARNS, replace(BEFORE, own=RUNS_NEW, peer=RUNS_NEW), (Phase.OWN, None)),
        (Phase.LEARNS, AFTER, (Phase.HANDS_OVER, None)),
        (Phase.HANDS_OVER, replace(BEFORE, peer=RUNS_NEW), (Phase.HANDS_OVER, Deed.HAND_OVER)),
        (Phase.HANDS_OVER, AFTER, (Phase.WATCHES, None)),
        (Phase.WATCHES, replace(AFTER, waited=59.0), (Phase.WATCHES, None)),
        (Phase.WATCHES, replace(AFTER, waited=60.0), (Phase.OWN, None)),
        (Phase.WATCHES, replace(AFTER, waited=90.0, steady=59.0), (Phase.WATCHES, None)),
        (Phase.OWN, AFTER, (Phase.OWN, Deed.RESTART_OWN)),
        (Phase.OWN, replace(AFTER, peer_role=STANDS_BY), (Phase.OWN, None)),
        (Phase.OWN, replace(AFTER, own=TRIES), (Phase.OWN, None)),
        (Phase.OWN, replace(AFTER, own=replace(RUNS_NEW, good=False)), (Phase.OWN, None)),
        (Phase.OWN, replace(AFTER, own=RUNS_NEW, in_step=False), (Phase.OWN, None)),
        (Phase.OWN, replace(AFTER, own=RUNS_NEW), (Phase.DONE, None)),
        (Phase.BACK, AFTER, (Phase.BACK, Deed.HAND_BACK)),
        (Phase.BACK, replace(BEFORE, peer=RUNS_NEW), (Phase.BACK, Deed.RETURN_PEER)),
        (Phase.BACK, replace(BEFORE, peer=replace(RUNS_NEW, trial="trying", trial_version=OLD)), (Phase.BACK, None)),
        (Phase.BACK, replace(BEFORE, peer=RUNS_OLD), (Phase.WENT_BACK, None)),
        (Phase.BACK, replace(BEFORE, peer=replace(RUNS_OLD, good=False)), (Phase.BACK, None)),
    ],
)  # fmt: skip
def test_the_next_step_follows_from_how_the_boxes_are(phase, seen, then):
    assert step(phase, seen) == (*then, "")


@pytest.mark.parametrize(
    ("phase", "seen", "why"),
    [
        (Phase.SENDS, replace(BEFORE, peer=None, silent=200.0, waited=200.0), "lb2 does not answer"),
        (Phase.INSTALLS, replace(BEFORE, own=replace(RUNS_OLD, job="x", job_state="failed", job_message="No room.")),
         "lb1: No room."),
        (Phase.INSTALLS, replace(BEFORE, peer=replace(RUNS_OLD, job="y", job_state="failed", job_message="No room.")),
         "lb2: No room."),
        (Phase.INSTALLS, replace(BEFORE, peer=RUNS_OLD), "lb2 was restarted while version 0.3.0 was installed."),
        (Phase.INSTALLS, replace(BEFORE, own=replace(RUNS_OLD, job="x", job_state="running"), waited=3601.0),
         "could not be installed on both boxes in time"),
        (Phase.RESTARTS, replace(BEFORE, silent=1801.0, waited=1801.0), "has not come up with version 0.3.0 within 30"),
        (Phase.RESTARTS, replace(BEFORE, peer=FAILED), "lb2: Version 0.3.0 did not come up: the web page answers with"),
        (Phase.RESTARTS, replace(BEFORE, own_role=STANDS_BY, peer_role=LEADS), "lb2 leads by now, so it was not"),
        (Phase.RESTARTS, replace(BEFORE, own_role=FAULTY, waited=61.0), "lb1 does not lead, so lb2 was not restarted."),
        (Phase.LEARNS, replace(BEFORE, peer=FAILED), "lb2 runs version 0.2.0 again. Version 0.3.0 did not come up"),
        (Phase.LEARNS, replace(BEFORE, peer=RUNS_NEW, in_step=False, waited=121.0), "is not in step with lb1"),
        (Phase.LEARNS, replace(BEFORE, peer=RUNS_NEW, peer_role=HELD, waited=121.0), "but is held"),
        (Phase.LEARNS, replace(BEFORE, peer=RUNS_NEW, ready=False, waited=121.0), "but is not ready to lead"),
        (Phase.LEARNS, replace(BEFORE, peer=RUNS_NEW, own_connections=1240, peer_connections=1000, waited=121.0),
         "lb2 knows only 1,000 of 1,240 connections."),
        (Phase.HANDS_OVER, replace(BEFORE, peer=FAILED), "lb2 runs version 0.2.0 again."),
        (Phase.HANDS_OVER, replace(BEFORE, own_role=HELD, peer_role=STANDS_BY, waited=61.0), "but lb2 does not lead"),
        (Phase.WATCHES, replace(AFTER, own_role=LEADS), "lb1 leads again, so it was not restarted."),
        (Phase.WATCHES, replace(AFTER, peer_role=HELD), "was to lead with version 0.3.0, but does not."),
        (Phase.WATCHES, replace(AFTER, steady=30.0, waited=601.0), "its link comes and goes."),
        (Phase.WATCHES, replace(AFTER, worse="1 gateway does not answer."), "lb2 lacks what lb1 has: 1 gateway"),
        (Phase.WATCHES, replace(AFTER, peer=replace(RUNS_NEW, faults=(("table", "The table differs."),))),
         "lb2 has a fault that lb1 has not: The table differs."),
        (Phase.OWN, replace(AFTER, own=FAILED), "lb1: Version 0.3.0 did not come up"),
        (Phase.OWN, replace(AFTER, own_role=LEADS, peer_role=STANDS_BY, waited=61.0), "because lb2 does not lead"),
        (Phase.OWN, replace(AFTER, own=RUNS_NEW, in_step=False, waited=1801.0), "is not in step with lb2"),
        (Phase.BACK, replace(BEFORE, silent=1801.0, waited=1801.0), "has not come back with its version before"),
        (Phase.BACK, replace(AFTER, own_role=FAULTY, waited=61.0), "lb1 cannot lead, so lb2 was not restarted."),
    ],
)  # fmt: skip
def test_any_doubt_stops_it_with_a_sentence(phase, seen, why):
    after, deed, stopped = step(phase, seen, jobs=("x", "y"))
    assert (after, deed) == (phase, None) and why in stopped


RUNS = replace(BEFORE, peer=RUNS_NEW)
AGAIN = replace(AFTER, own=RUNS_NEW)
LOST = replace(BEFORE, own_role=STANDS_BY)  # it has handed over, and hears nobody
# Who is silent at which step, and for how long (seconds) that is waited for; then why it stops.
SILENCES = [
    (
        Phase.SENDS,
        replace(BEFORE, own=RUNS_OLD, peer=RUNS_OLD),
        courses.GONE,
        "lb2 does not answer over the pair link.",
    ),
    (
        Phase.INSTALLS,
        replace(BEFORE, peer=replace(RUNS_OLD, job="y", job_state="running")),
        courses.GONE,
        "lb2 does not answer over the pair link.",
    ),
    (Phase.RESTARTS, BEFORE, courses.RETURNS, "lb2 has not come up with version 0.3.0 within 30 minutes."),
    (Phase.LEARNS, RUNS, courses.SETTLES, "lb2 does not answer over the pair link."),
    (Phase.HANDS_OVER, RUNS, courses.MOVES, "lb2 does not answer over the pair link."),
    (Phase.HANDS_OVER, LOST, courses.MOVES, "lb1 has handed over, but lb2 does not lead."),
    (Phase.WATCHES, AFTER, courses.MOVES, "lb2 was to lead with version 0.3.0, but has not answered for 60 seconds."),
    (Phase.OWN, AFTER, courses.MOVES, "lb1 was not restarted, because lb2 does not answer."),
    (Phase.OWN, AGAIN, courses.RETURNS, "lb1 runs version 0.3.0, but lb2 does not answer."),
    (Phase.BACK, RUNS, courses.RETURNS, "lb2 has not come back with its version before within 30 minutes."),
]


@pytest.mark.parametrize(("phase", "seen", "bound", "why"), SILENCES)
@pytest.mark.parametrize("role", ["", "as before"], ids=["no beat", "beats"])
def test_a_silence_is_waited_for_as_long_as_the_step_allows(phase, seen, bound, why, role):
    """Nothing is done meanwhile that the other box would have to know of, and nobody is restarted."""
    silent = replace(seen, peer_role="" if role == "" else seen.peer_role)
    if (phase, seen) == (Phase.HANDS_OVER, LOST):
        silent = replace(seen, peer_role="")
    for seconds in (courses.AWAY + 1, bound - 1, bound):
        after, deed, stopped = step(phase, replace(silent, silent=seconds, waited=seconds), jobs=("x", "y"))
        assert (after, stopped) == (phase, "") and deed in (None, Deed.SEND), seconds
    late = replace(silent, silent=bound + 1, waited=bound + 1)
    assert step(phase, late, jobs=("x", "y")) == (phase, None, why)
    assert {one for one, *_ in SILENCES} == {one for one in Phase if one not in courses.OVER}, "each step has a row"


@pytest.mark.parametrize(("phase", "seen"), [(Phase.HANDS_OVER, RUNS), (Phase.OWN, AFTER)])
def test_the_desk_lets_go_only_of_what_the_other_box_has_answered_for_just_now(phase, seen):
    assert step(phase, seen)[1] is not None
    assert step(phase, replace(seen, silent=2.0)) == (phase, None, "")


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase not in courses.OVER])
def test_what_is_refused_for_the_moment_is_asked_again_and_all_else_stops(phase):
    for code in ("busy", "peer-away", "overloaded"):
        assert step(phase, replace(BEFORE, failed=(code, "Wait.")))[2] != "Wait."
        late = replace(BEFORE, waited=10_000.0, failed=(code, "Wait."))
        assert step(phase, late) == (phase, None, "Wait.")
    assert step(phase, replace(BEFORE, failed=("version-too-old", "Too old."))) == (phase, None, "Too old.")


def test_nothing_happens_by_itself_once_it_has_stopped_or_is_over():
    for phase in Phase:
        assert courses.after(replace(COURSE, phase=phase, stopped="why"), BEFORE)[1] is None
    for phase in courses.OVER:
        assert courses.after(replace(COURSE, phase=phase), BEFORE) == (replace(COURSE, phase=phase), None)
        assert courses.choices(replace(COURSE, phase=phase), WAITS, WAITS) == ()


def test_what_somebody_has_ended_at_the_other_box_is_over_here():
    left = replace(BEFORE, peer=replace(RUNS_NEW, left=True))
    for stopped in ("", "why"):
        assert step(Phase.OWN, left, stopped=stopped) == (Phase.LEFT, None, "")


def test_what_can_be_decided_and_what_becomes_of_it():
    stopped = replace(COURSE, phase=Phase.LEARNS, stopped="lb2 knows only 1 of 9.", doubt="connections")
    assert courses.choices(stopped, WAITS, RUNS_NEW) == ("go-on", "go-back", "leave")
    few = replace(BEFORE, peer=RUNS_NEW, peer_connections=1, waited=500.0)
    assert courses.after(courses.chosen(stopped, "go-on", "bob"), few).course.phase is Phase.HANDS_OVER
    assert courses.chosen(stopped, "go-back", "bob").phase is Phase.BACK
    for doubt, phase in (("roles", Phase.LEARNS), ("asked", Phase.LEARNS), ("worse", Phase.WATCHES)):
        watched = replace(stopped, phase=Phase.WATCHES, doubt=doubt)
        assert courses.chosen(watched, "go-on", "bob").phase is phase, doubt
    assert courses.chosen(stopped, "leave", "bob").phase is Phase.LEFT
    assert courses.choices(COURSE, WAITS, WAITS) == ("stop",)
    halted = courses.chosen(COURSE, "stop", "bob")
    assert halted.stopped == "bob has stopped the update." and courses.choices(halted, WAITS, None) == ("leave",)
    assert courses.choices(stopped, WAITS, FAILED) == ("leave",)
    assert courses.choices(stopped, WAITS, replace(RUNS_NEW, other="")) == ("go-on", "leave"), "that one is too old"
    assert courses.choices(replace(stopped, phase=Phase.OWN), RUNS_NEW, RUNS_NEW) == ("go-on", "leave")


@pytest.mark.parametrize(
    ("doubt", "seen"),
    [
        ("worse", replace(AFTER, waited=60.0, worse="1 gateway does not answer.")),
        ("faults", replace(AFTER, waited=60.0, peer=replace(RUNS_NEW, faults=(("table", "It differs."),)))),
    ],
)
def test_a_doubt_that_was_accepted_stops_it_no_more(doubt, seen):
    course = replace(COURSE, phase=Phase.WATCHES)
    stopped = courses.after(course, seen).course
    assert stopped.doubt == doubt
    assert courses.after(courses.chosen(stopped, "go-on", "bob"), seen).course.phase is Phase.OWN


def test_a_desk_that_was_restarted_goes_on_unless_the_bundle_is_gone_with_it():
    for phase in Phase:
        course = replace(COURSE, phase=phase)
        again = courses.resumed(course)
        assert (again != course) == (phase in (Phase.SENDS, Phase.INSTALLS)), phase
    assert "lb1 was restarted before both boxes had version 0.3.0." in courses.resumed(COURSE).stopped


def test_each_phase_has_words():
    for phase, stopped in itertools.product(Phase, ("", "Why.")):
        course = replace(COURSE, phase=phase, stopped=stopped)
        words, steps = courses.sentence(course, 12, replace(RUNS_OLD, received=400, percent=34)), courses.steps(course)
        assert words.endswith(".") and (words == stopped) == bool(stopped)
        states = [one["state"] for one in steps]
        assert states == sorted(states, key=["done", "now", "stopped", "later"].index)
        if phase not in courses.OVER:
            assert states.count("stopped" if stopped else "now") == 1
    assert courses.sentence(COURSE, 12, replace(RUNS_OLD, received=400)) == "The bundle is sent to lb2: 40 %."
    installs = courses.sentence(replace(COURSE, phase=Phase.INSTALLS), 12, replace(RUNS_OLD, percent=34))
    assert installs == "Version 0.3.0 is installed: lb1 12 %, lb2 34 %."


# --- on the disk and over the channel ----------------------------------------------------------------------


def test_what_is_kept_is_read_by_a_version_that_knows_less_or_more(tmp_path):
    course = replace(COURSE, phase=Phase.OWN, jobs=("x", "y"), accepted=("connections",))
    path = tmp_path / "shared/pair-update"
    assert load(path) is None
    save(path, course)
    assert load(path) == course
    data = json.loads(path.read_text())
    path.write_text(json.dumps({**data, "colour": "green"}))
    assert load(path) == course
    del data["accepted"]
    path.write_text(json.dumps(data))
    assert load(path) == replace(course, accepted=())
    for text in ("", "[]", "{}", '{"phase": "sleeps"}', "[" * 100_000):
        path.write_text(text)
        assert load(path) is None


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("id", "../../etc", "id: must be 32 hexadecimal digits"),
        ("digest", "a", "digest: must be 64 hexadecimal digits"),
        ("desk", 2, "desk: must be 0 or 1"),
        ("desk", True, f"desk: {wrong_type(int, True)}"),
        ("size", 0, "size: must be 1 to"),
        ("phase", "sleeps", "phase: must be one of"),
        ("version", "\x1b[2J", f"version: {UNPRINTABLE}"),
        ("names", ["lb1"], "names: must have exactly 2 entries"),
        ("user", None, f"user: {wrong_type(str, None)}"),
    ],
)
def test_a_wrong_course_is_named_by_its_field(field, value, why):
    with pytest.raises(Wrong, match=re.escape(why)):
        read_course({**asdict(COURSE), field: value})


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("faults", [["a", "b"]] * 101, "faults: has more than 100 entries"),
        ("received", -1, "received: must be 0 to"),
        ("percent", 101, "percent: must be 0 to 100"),
        ("good", 1, f"good: {wrong_type(bool, 1)}"),
        ("trial_sentence", "x" * 2000, "trial_sentence: is longer than"),
    ],
)
def test_a_wrong_answer_is_named_by_its_field(field, value, why):
    with pytest.raises(Wrong, match=re.escape(why)):
        read_half({**asdict(WAITS), field: value})


# --- at random ---------------------------------------------------------------------------------------------


@dataclass
class World:
    """Two boxes that are updated: what is done takes a while, fails now and then, and is cut short."""

    random: random.Random
    trouble: float  # how often anything goes wrong
    half: list[Half]
    roles: list[str]
    down: list[float]  # seconds until it is up again
    clock: float = 0.0

    def luck(self) -> bool:
        return self.random.random() >= self.trouble

    def elect(self) -> None:
        up = [number for number in (0, 1) if not self.down[number]]
        for number in (0, 1):
            if number not in up:
                self.roles[number] = ""
            elif not self.roles[number]:
                self.roles[number] = STANDS_BY
        if LEADS not in self.roles:
            self.roles = [LEADS if number == next(iter(up), None) else role for number, role in enumerate(self.roles)]

    def restart(self, number: int, version: str) -> None:
        assert self.roles[number] != LEADS, "the box that leads was restarted"
        assert not self.down[1 - number], "both boxes are down"
        half = self.half[number]
        if half.version == version:
            return
        seconds = self.random.uniform(20, 300)
        self.down[number] = seconds
        if self.luck():
            self.half[number] = Half(version, True, half.version, "good", version)
        else:
            self.half[number] = replace(half, other="", trial="failed", trial_version=version, trial_sentence="No.")

    def does(self, deed: Deed) -> tuple[str, str] | None:
        if deed in courses.OF_PEER and self.down[1]:
            return "peer-away", "lb2 does not answer."
        if not self.luck():
            return self.random.choice([("busy", "Busy."), ("peer-away", "Away."), ("disk-error", "The disk.")])
        match deed:
            case Deed.SEND:
                self.half[1] = replace(self.half[1], received=min(1000, self.half[1].received + 300))
            case Deed.INSTALL_PEER | Deed.INSTALL_OWN:
                number = int(deed is Deed.INSTALL_PEER)
                assert number == 0 or self.half[1].received == 1000
                half = replace(self.half[number], other=NEW, trial="installed", trial_version=NEW)
                failed = replace(self.half[number], job="job", job_state="failed", job_message="No.")
                self.half[number] = half if self.luck() else failed
            case Deed.RESTART_PEER:
                self.restart(1, NEW)
            case Deed.RESTART_OWN:
                self.restart(0, NEW)
            case Deed.RETURN_PEER:
                self.restart(1, OLD)
            case Deed.HAND_OVER | Deed.HAND_BACK:
                to = int(deed is Deed.HAND_OVER)
                if self.roles[1 - to] == LEADS and self.roles[to] == STANDS_BY:
                    self.roles[to], self.roles[1 - to] = LEADS, STANDS_BY
        return None

    def passes(self, seconds: float) -> None:
        self.clock += seconds
        self.down = [max(0.0, left - seconds) for left in self.down]
        if not self.luck():  # power cut
            number = self.random.randrange(2)
            self.down[number] = max(self.down[number], self.random.uniform(10, 100))
        self.elect()


def one_schedule(seed: int, trouble: float) -> Course:
    choose = random.Random(seed)
    world = World(choose, trouble, [RUNS_OLD, RUNS_OLD], [LEADS, STANDS_BY], [0.0, 0.0])
    course, entered, answered, steady, peer, failed = COURSE, 0.0, 0.0, 0.0, None, None
    choices = 0
    for _ in range(3000):
        world.passes(choose.uniform(1, 4))
        if course.over:
            break
        if world.down[0]:
            if course != courses.resumed(course):
                course = courses.resumed(course)
            peer, failed, entered = None, None, world.clock
            continue
        if course.stopped:
            assert course.stopped.endswith(".")
            possible = courses.choices(course, world.half[0], peer)
            assert "leave" in possible
            choices += 1
            # Nobody goes on for ever with what does not work.
            course = courses.chosen(course, choose.choice(possible) if choices < 20 else "leave", "bob")
            entered = world.clock
            continue
        if not world.down[1] and world.luck():
            steady = world.clock if world.clock - answered > courses.AWAY else steady
            peer, answered = world.half[1], world.clock
        heard = "" if world.down[1] else world.roles[1]
        seen = Seen(
            world.clock - entered, world.half[0], peer, world.clock - answered, world.roles[0], heard,
            bool(heard) and world.luck(), bool(heard) and world.luck(), world.luck(), 1000, 1000 if world.luck() else 3,
            "" if world.luck() else "1 gateway does not answer.", world.clock - steady, failed,
        )  # fmt: skip
        failed = None
        following, deed = courses.after(course, seen)
        if following.phase is not course.phase or following.stopped != course.stopped:
            entered = world.clock
        course = following
        if deed is not None:
            failed = world.does(deed)
            if deed in (Deed.INSTALL_OWN, Deed.INSTALL_PEER) and failed is None:
                own, other = course.jobs
                course = replace(course, jobs=("job", other) if deed is Deed.INSTALL_OWN else (own, "job"))
                number = int(deed is Deed.INSTALL_PEER)
                world.half[number] = replace(world.half[number], job="job")
    else:
        raise AssertionError(f"seed {seed} does not end: {course}")
    versions = [half.version for half in world.half]
    if course.phase is Phase.DONE:
        assert versions == [NEW, NEW]
    if course.phase is Phase.WENT_BACK:
        assert versions == [OLD, OLD]
    return course


def test_without_trouble_it_is_done():
    assert {one_schedule(seed, 0.0).phase for seed in range(20)} == {Phase.DONE}


def test_schedules_at_random_end_and_never_leave_clients_alone():
    """The box that leads is never restarted, and never one while the other one is down."""
    seeds = range(10_000 if ALL else 300)
    ends = {one_schedule(seed, random.Random(seed).choice((0.005, 0.02, 0.05))).phase for seed in seeds}
    assert ends == set(courses.OVER)
