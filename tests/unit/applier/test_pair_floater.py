"""The floater by a pretended kernel and clock: when it holds addresses, and when it lets go of them.

The pipe, the socket and the files are real. tests/peers/test_pair.py has the real kernel, and keepalived.
"""

from __future__ import annotations

import errno
import itertools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from applier.base.paths import Paths
from applier.host.host import HostError, Live
from applier.pair import client, floater
from applier.pair.leases import Card, Place
from applier.pair.silence import Work

WEBUI = Path(__file__).resolve().parents[3] / "webui"
FIRST, SECOND, THIRD = ("eth0", "10.1.0.100/24"), ("eth0", "2001:db8:1::100/64"), ("eth1", "10.2.0.254/24")
LEASE = 10


class Clock:
    """Passes only while the floater waits."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.passes = True
        self.until = float("inf")  # no later than this the floater is asked to stop waiting
        self.stands = 0.0  # seconds that the box is stopped for, the next time that it waits

    def __call__(self) -> float:
        return self.now


class Poll:
    """That of the floater, but nothing that comes is waited for."""

    def __init__(self, real: select.poll, clock: Clock) -> None:
        self._poll, self._clock = real, clock
        self.register, self.unregister = real.register, real.unregister

    def poll(self, timeout: float) -> list[tuple[int, int]]:
        ready = self._poll.poll(0)
        if self._clock.passes:
            waits = 0.0 if ready else min(timeout / 1000, max(0.0, self._clock.until - self._clock.now))
            self._clock.now += self._clock.stands + waits
            self._clock.stands = 0.0
        return ready


class Kernel:
    """Writes down what it is told: (seconds since the first, word, addresses)."""

    clock: Clock

    def __init__(self) -> None:
        self.told: list[tuple[float, str, tuple[Place, ...]]] = []
        self.held: set[Place] = set()
        self.macs = {"eth0": "52:54:00:00:00:01", "eth1": "52:54:00:00:00:02"}
        self.refuses: dict[Place, int] = {}
        self.applier: Callable[[float], Work | None] = lambda _: None  # by seconds since the first

    def cards(self, names):
        return {name: Card(2, self.macs[name]) for name in names if name in self.macs}

    def change(self, message, batch):
        holds = message == batch.hold
        self.told.append((round(self.clock.now - 1000, 2), "hold" if holds else "drop", batch.places))
        self.held = self.held | set(batch.places) if holds else self.held - set(batch.places)
        return [(place, self.refuses[place]) for place in batch.places if place in self.refuses]

    def work(self, process):
        assert process == os.getpid()  # who has spoken
        return self.applier(self.clock.now - 1000)

    def announce(self, batch):
        self.told.append((round(self.clock.now - 1000, 2), "announce", batch.places))

    def times(self, word: str) -> list[float]:
        return [when for when, told, _ in self.told if told == word]


class Box:
    def __init__(self, folder: Path) -> None:
        self.folder, self.paths = folder, Paths(run=folder)
        self.clock = Kernel.clock = Clock()
        self.floating(FIRST, SECOND)
        self.keepalived = -1

    def floating(self, *addresses: tuple[str, str]) -> None:
        self.paths.floating.write_text(json.dumps({"version": 1, "addresses": addresses, "lease": LEASE}))

    def start(self) -> floater.Floater:
        """The floater; keepalived is there."""
        self.begin_keepalived()
        return self.start_alone()

    def start_alone(self) -> floater.Floater:
        self.floater = floater.Floater(str(self.folder))
        self.floater._poll = Poll(self.floater._poll, self.clock)
        self.kernel = self.floater._kernel
        self.floater.start()
        return self.floater

    def begin_keepalived(self) -> None:
        if not self.paths.vrrp_events.exists():
            os.mkfifo(self.paths.vrrp_events)
        self.keepalived = os.open(self.paths.vrrp_events, os.O_RDWR | os.O_NONBLOCK)

    def end_keepalived(self) -> None:
        os.close(self.keepalived)
        self.keepalived = -1

    def say(self, *words: str) -> None:
        """As keepalived does, by a group or by an instance."""
        for word in words:
            kind = 'GROUP "pair"' if word in ("MASTER", "BACKUP", "FAULT", "STOP") else 'INSTANCE "front"'
            os.write(self.keepalived, f"{kind} {word} 254\n".encode())

    def until(self, seconds: float) -> None:
        """Let it work until so many seconds after its start."""
        self.clock.until = 1000 + seconds
        while self.clock.now < self.clock.until:
            self.floater.turn()
        self.clock.until = float("inf")

    @property
    def role(self) -> str:
        return client.role(Live(), self.paths).role

    @property
    def reason(self) -> str:
        return client.role(Live(), self.paths).reason

    @property
    def hold(self) -> str:
        return self.paths.hold.read_text() if self.paths.hold.exists() else ""


@pytest.fixture
def box(monkeypatch, tmp_path):
    made = Box(tmp_path)
    monkeypatch.setattr(floater, "now", made.clock)
    monkeypatch.setattr(floater, "Kernel", Kernel)
    yield made
    if made.keepalived >= 0:
        made.end_keepalived()


def test_the_names_of_the_files_are_those_of_the_paths(tmp_path):
    paths = Paths(run=tmp_path)
    ours = [floater.EVENTS, floater.FLOATING, floater.HOLD, floater.ROLE, floater.SOCKET]
    theirs = [paths.vrrp_events, paths.floating, paths.hold, paths.role, paths.floater]
    assert [tmp_path / name for name in ours] == theirs


def test_it_loads_next_to_nothing():
    """It is kept in memory whole, and is there soon after it was killed."""
    heavy = {"dataclasses", "inspect", "logging", "pathlib", "subprocess", "ssl", "asyncio", "threading", "lbconfig"}
    code = "import sys, applier.pair.floater; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], env={"PYTHONPATH": str(WEBUI)}, capture_output=True, text=True, check=True
    )
    assert not heavy & set(done.stdout.split())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may lock so much memory")
def test_all_that_comes_from_files_is_in_memory_and_of_the_rest_what_is_used():
    code = "from applier.pair import floater; floater._lock(); print(open('/proc/self/smaps').read())"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(WEBUI)}, capture_output=True, text=True, check=True
    )
    files, others = [], []
    for line in done.stdout.splitlines():
        match line.split():
            case [_, rights, _, _, _, *path]:
                into = files if path and path[0].startswith("/") else others
                into.append({"path": path, "readable": rights[0] == "r"})
            case [("Size:" | "Rss:" | "Locked:") as name, number, "kB"]:
                into[-1][name] = int(number)
    assert len(files) > 5 and all(one["Rss:"] == one["Size:"] for one in files if one["readable"]), files
    others = [one for one in others if one["path"] in ([], ["[heap]"])]  # the kernel's own pages are not told of
    assert len(others) > 2 and all(one["Locked:"] == one["Rss:"] for one in others), others


def test_whoever_stands_by_holds_nothing(box):
    box.start()
    box.say("BACKUP")
    box.until(30)
    assert box.kernel.held == set() and box.kernel.times("hold") == box.kernel.times("announce") == []
    assert box.role == "stands by"


def test_whoever_leads_holds_announces_and_renews(box):
    box.start()
    box.say("BACKUP", "MASTER")
    box.until(35)
    assert box.kernel.held == {Place("eth0", "10.1.0.100"), Place("eth0", "2001:db8:1::100")}
    assert box.kernel.times("hold") == [LEASE / 4 * at for at in range(15)]
    assert box.kernel.times("announce")[:6] == [0, 0, 0.1, 0.5, 2.0, 12.0]
    assert (box.role, client.role(Live(), box.paths).since) == ("leads", 1000.0)


@pytest.mark.parametrize("word", ["BACKUP", "FAULT", "STOP"])
def test_whoever_leads_no_more_lets_go_at_once(box, word):
    box.start()
    box.say("MASTER")
    box.until(1)
    box.say(word)
    box.floater.turn()
    assert box.kernel.held == set()
    told = len(box.kernel.told)
    box.until(30)
    assert len(box.kernel.told) == told


def test_the_end_of_keepalived_is_the_end_of_leading(box):
    box.start()
    box.say("MASTER")
    box.until(1)
    box.end_keepalived()
    box.floater.turn()
    assert box.kernel.held == set()
    assert (box.role, box.reason) == ("fault", "keepalived does not run")


def test_keepalived_comes_back_by_another_pipe(box):
    box.start()
    box.say("MASTER")
    box.until(1)
    box.end_keepalived()
    box.floater.turn()
    box.paths.vrrp_events.unlink()
    box.begin_keepalived()
    box.say("BACKUP", "MASTER")
    box.until(5)
    assert box.kernel.held and box.role == "leads"


def test_what_keepalived_said_last_counts_and_half_a_line_waits(box):
    box.start()
    box.say("MASTER", "BACKUP", "MASTER", "BACKUP")
    box.until(1)
    assert box.kernel.held == set()
    os.write(box.keepalived, b'GROUP "pair" MAS')
    box.until(2)
    assert box.kernel.held == set()
    os.write(box.keepalived, b"TER 254\nrubbish\n\xff\xfe\n")
    box.until(3)
    assert box.kernel.held


def test_before_it_renews_it_looks_whether_it_still_leads(box):
    box.start()
    box.say("MASTER")
    box.until(2.2)
    box.clock.stands = 0.4  # the lease is due when it hears of the other box
    box.say("BACKUP")
    box.kernel.told.clear()
    box.until(8)
    assert box.kernel.times("hold") == [] and box.kernel.held == set()


@pytest.mark.parametrize("seconds", [1.0, 60.0])
def test_a_box_that_stood_still_waits_for_keepalived_before_it_renews(box, seconds):
    """All its processes go on at the same moment: what keepalived is about to notice, it has not said yet."""
    box.start()
    box.say("MASTER")
    box.until(5)
    box.clock.stands = seconds
    box.kernel.told.clear()
    thawed = box.clock.now - 1000 + seconds
    while box.clock.now - 1000 < thawed:
        box.floater.turn()
    box.say("BACKUP")
    box.until(thawed + 20)
    assert box.kernel.times("hold") == box.kernel.times("announce") == []


def test_a_keepalived_that_hangs_leads_no_more(box):
    """It has its end of the pipe open, and says nothing."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as hanging:
        # On a busy machine it might still be about to begin, which counts as being alive.
        hanging.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, hanging.pid, os.WSTOPPED)
        (box.folder / "vrrp.pid").write_text(f"{hanging.pid}\n")
        box.start()
        box.say("MASTER")
        box.until(4.9)
        assert box.kernel.held
        box.until(5.1)
        assert box.kernel.held == set() and (box.role, box.reason) == ("fault", "keepalived stands still")
        hanging.send_signal(signal.SIGCONT)
    box.say("FAULT", "BACKUP")
    box.until(30)
    assert box.role == "stands by" and not box.hold


def test_what_it_lets_go_of_is_not_due_any_more(box, monkeypatch):
    """After a standstill everything is due at the same moment."""
    (box.folder / "vrrp.pid").write_text("7\n")
    monkeypatch.setattr(floater, "_switches", lambda process: f"{process} {min(box.clock.now, 1009)}")
    box.start()
    box.say("MASTER")
    box.until(12.2)
    box.clock.stands = 1.0
    box.until(20)
    assert box.kernel.held == set() and box.reason in ("keepalived stands still", floater.WAKING)


def test_a_keepalived_that_runs_leads_on(box, monkeypatch):
    (box.folder / "vrrp.pid").write_text("7\n")
    monkeypatch.setattr(floater, "_switches", lambda process: f"{process} {box.clock.now}")
    box.start()
    box.say("MASTER")
    box.until(30)
    assert box.kernel.held and box.role == "leads" and box.hold == ""


def test_a_group_that_still_believes_it_leads_is_held_for_a_moment(box):
    """keepalived says nothing of its group when timers ran late, and nothing when that leads again."""
    box.start()
    box.say("MASTER")
    box.until(5)
    os.write(box.keepalived, b'INSTANCE "front" BACKUP 254\nINSTANCE "back" BACKUP 254\n')
    box.floater.turn()
    assert box.kernel.held == set() and box.role == "stands by" and not box.hold
    box.until(5.4)
    assert box.hold == f"1\n{floater.WAKING}\n"
    box.until(5.75)
    assert box.hold == "0\n"  # keepalived has not noticed in time
    box.until(6)
    assert box.hold == f"1\n{floater.WAKING}\n"
    box.say("FAULT")
    box.until(7)
    assert box.hold == "0\n"
    box.say("BACKUP")
    box.until(30)
    assert box.hold == "0\n" and box.role == "stands by"


def test_a_group_that_says_so_itself_is_not_held(box):
    box.start()
    box.say("MASTER")
    box.until(5)
    os.write(box.keepalived, b'INSTANCE "front" BACKUP 254\n')
    box.floater.turn()
    box.say("BACKUP")
    box.until(20)
    assert not box.hold


def test_a_box_that_stood_still_and_still_leads_goes_on(box):
    box.start()
    box.say("MASTER")
    box.until(5)
    box.clock.stands = 60.0
    box.kernel.told.clear()
    box.until(70)
    assert box.kernel.times("hold") and box.kernel.times("announce")


def test_a_box_that_is_late_every_time_goes_on_leading(box):
    box.start()
    box.say("MASTER")
    while box.clock.now < 1100:
        box.clock.stands = 0.8
        box.floater.turn()
    held = box.kernel.times("hold")
    assert max(later - earlier for earlier, later in itertools.pairwise(held)) < LEASE


def test_a_rival_of_less_priority_makes_it_announce_again_and_no_flood(box):
    box.start()
    box.say("MASTER")
    box.until(5)
    box.kernel.told.clear()
    for _ in range(50):
        box.say("MASTER_RX_LOWER_PRI")
        box.floater.turn()
    assert box.kernel.times("announce") == [5.0]
    box.until(8)
    assert box.kernel.times("announce") == [5.0, 5.1, 5.5, 7.0]


# --- started again ---


def again(box: Box) -> None:
    """As after a kill: nothing was put in order."""
    box.floater._listener.close()
    os.close(box.floater._events)
    box.clock.now += 1


def test_a_floater_that_was_killed_goes_on_leading(box):
    box.start()
    box.say("MASTER")
    box.until(1)
    again(box)
    box.start_alone()
    assert box.kernel.held == {Place("eth0", "10.1.0.100"), Place("eth0", "2001:db8:1::100")}
    assert box.role == "leads"


@pytest.mark.parametrize("word", ["BACKUP", "FAULT"])
def test_a_floater_that_was_killed_hears_what_was_said_meanwhile(box, word):
    box.start()
    box.say("MASTER")
    box.until(1)
    again(box)
    box.say(word)
    box.start_alone()
    assert box.kernel.held == set() and "hold" not in {told for _, told, _ in box.kernel.told}


def test_a_floater_that_was_killed_does_not_lead_without_keepalived(box):
    box.start()
    box.say("MASTER")
    box.until(1)
    again(box)
    box.end_keepalived()
    box.start_alone()
    assert box.kernel.times("hold") == [] and box.role == "fault"


def test_a_floater_that_is_ended_lets_go_and_has_the_other_box_lead(box):
    box.start()
    box.say("MASTER")
    box.until(1)
    box.floater.end()
    assert box.kernel.held == set()
    assert box.hold.splitlines() == ["1", floater.ENDED] and box.role == "held"
    again(box)
    box.start_alone()
    assert box.hold == "0\n" and box.kernel.times("hold") == []


def test_where_none_ran_before_it_drops_nothing(box):
    """They may be the addresses of a box that served alone."""
    box.start()
    assert box.kernel.told == []
    again(box)
    box.start_alone()
    assert len(box.kernel.times("drop")) == 1


def test_a_hold_by_others_outlives_it(box):
    box.start()
    box.paths.hold.write_text("1\nby hand\n")
    box.say("FAULT")
    box.until(1)
    box.floater.end()
    again(box)
    box.start_alone()
    assert (box.hold, box.role, box.reason) == ("1\nby hand\n", "held", "by hand")


def test_without_its_addresses_it_has_the_other_box_lead(box):
    box.paths.floating.write_text('{"version": 1, "addr')
    box.start()
    box.say("FAULT")
    box.until(1)
    assert box.hold.splitlines()[0] == "1" and box.reason.startswith("floating.json: it is not whole")


# --- what others ask for ---


def ask(box: Box, command, **more) -> None:
    """While the floater works beside."""
    failed: list[HostError] = []

    def asks() -> None:
        try:
            command(Live(), box.paths, **more)
        except HostError as error:
            failed.append(error)

    thread = threading.Thread(target=asks)
    thread.start()
    while thread.is_alive():
        box.clock.passes = False  # as long as somebody may be about to ask
        box.floater.turn()
        box.clock.passes = True
        thread.join(0.001)
    if failed:
        raise failed[0]


@pytest.fixture
def leading(box):
    box.start()
    box.say("MASTER")
    box.until(3)
    return box


def test_hold_and_release(leading):
    ask(leading, client.hold, reason="for a test")
    assert leading.hold == "1\nfor a test\n"
    leading.say("FAULT")
    leading.until(4)
    assert (leading.role, leading.reason) == ("held", "for a test")
    leading.until(60)
    assert leading.hold == "1\nfor a test\n"
    ask(leading, client.release)
    assert leading.hold == "0\n"


def test_a_hand_over_is_a_hold_that_ends_by_itself(leading):
    ask(leading, client.hand_over)
    assert leading.hold == "1\nhanding over\n"
    leading.say("FAULT")
    leading.until(4)
    assert leading.role == "held"
    leading.until(6)
    assert leading.hold == "0\n"


def test_a_floater_that_is_killed_in_a_hand_over_ends_it(leading):
    ask(leading, client.hand_over, reason="ann asked for it")
    assert leading.hold == "1\nhanding over: ann asked for it\n"
    leading.say("FAULT")
    leading.floater.turn()
    again(leading)
    leading.start_alone()
    leading.until(10)
    assert leading.hold == "0\n"


def test_a_hand_over_ends_once_there_is_memory_again(leading, monkeypatch, capfd):
    ask(leading, client.hand_over)
    with monkeypatch.context() as full:
        full.setattr(floater.os, "replace", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left")))
        leading.say("FAULT")
        leading.until(7)
        assert leading.hold == "1\nhanding over\n"
        assert "release: [Errno 28] No space left" in capfd.readouterr().err
    leading.until(9)
    assert leading.hold == "0\n"


def test_a_hold_during_a_hand_over_stays(leading):
    ask(leading, client.hand_over)
    ask(leading, client.hold, reason="by hand")
    leading.say("FAULT")
    leading.until(20)
    assert leading.hold == "1\nby hand\n"


@pytest.mark.parametrize("reason", ["\N{SNOWMAN}" * 500, "a\nrelease", "x" * 500])
def test_a_reason_of_any_length_is_one_line(leading, reason):
    ask(leading, client.hold, reason=reason)
    assert leading.hold.startswith("1\n") and leading.hold.count("\n") == 2


def test_only_whoever_leads_can_hand_over(box):
    box.start()
    box.say("BACKUP")
    box.until(1)
    with pytest.raises(HostError, match="floater: hand-over: this box does not lead: stands by"):
        ask(box, client.hand_over)
    assert not box.hold


def test_the_other_box_has_let_go(leading):
    leading.kernel.told.clear()
    ask(leading, client.announce)
    leading.until(6)
    assert len(leading.kernel.times("announce")) == 4


def test_new_addresses_are_taken_and_old_ones_kept_until_they_are_given_up(leading):
    leading.floating(SECOND, THIRD)
    ask(leading, client.reload)
    everything = {Place("eth0", "10.1.0.100"), Place("eth0", "2001:db8:1::100"), Place("eth1", "10.2.0.254")}
    assert leading.kernel.held == everything
    ask(leading, client.reload, remove=True)
    assert leading.kernel.held == everything - {Place("eth0", "10.1.0.100")}
    leading.kernel.told.clear()
    leading.until(20)
    assert Place("eth0", "10.1.0.100") not in {place for _, _, places in leading.kernel.told for place in places}


def test_what_is_kept_outlasts_it_and_is_renewed_no_more(leading):
    before = leading.kernel.held
    ask(leading, client.keep)
    leading.kernel.told.clear()
    leading.until(3 + floater.KEPT / 2 - 1)
    leading.end_keepalived()
    leading.floater.turn()
    leading.floater.end()
    assert leading.kernel.held == before and len(before) == 2 and leading.kernel.told == []


def test_one_that_keeps_and_is_not_ended_goes_on(leading):
    """Whoever asked for it has died: nobody would hold them once the kernel drops them."""
    ask(leading, client.keep)
    leading.kernel.told.clear()
    leading.until(3 + floater.KEPT)
    assert leading.kernel.times("hold")[0] <= 3 + floater.KEPT / 2 and len(leading.kernel.times("hold")) > 2


def test_whoever_stands_by_keeps_nothing(box):
    box.start()
    box.say("BACKUP")
    ask(box, client.keep)
    box.say("MASTER")
    box.until(5)
    assert box.kernel.held == set()


def test_whoever_stands_by_takes_nothing_that_is_new(box):
    box.start()
    box.say("BACKUP")
    box.floating(FIRST, THIRD)
    ask(box, client.reload, remove=True)
    assert box.kernel.held == set()
    box.say("MASTER")
    box.floater.turn()
    assert box.kernel.held == {Place("eth0", "10.1.0.100"), Place("eth1", "10.2.0.254")}


@pytest.mark.parametrize("text", ['{"version": 1, "addresses": [["eth0", "10.1', "", '{"version": 1, "lease": 10}'])
def test_a_file_that_is_wrong_or_cut_changes_nothing_and_is_told(leading, text):
    leading.paths.floating.write_text(text)
    held = leading.kernel.held
    for remove in (False, True):
        with pytest.raises(HostError, match=r"floater: reload.*: floating\.json: (it is not whole|addresses:)"):
            ask(leading, client.reload, remove=remove)
    leading.until(20)
    assert leading.kernel.held == held


def test_nobody_but_root_is_heard(leading, monkeypatch):
    user = os.geteuid()
    monkeypatch.setattr(floater.os, "geteuid", lambda: user + 1)
    with pytest.raises(HostError, match=f"only root may speak here, not user {user}"):
        ask(leading, client.hand_over)
    assert not leading.hold and leading.paths.floater.stat().st_mode & 0o777 == 0o600


def test_without_an_applier_the_other_box_leads_once_where_it_can(leading):
    begun = leading.clock.now - 1000
    for second in range(5):
        leading.until(begun + second)
        ask(leading, client.alive, relieved=True)
    leading.until(begun + 4 + floater.APPLIER - 0.1)
    assert not leading.hold
    leading.until(begun + 4 + floater.APPLIER + 0.1)
    assert leading.hold == "1\nhanding over: the applier does not answer\n"
    leading.until(begun + 60)
    assert leading.hold == "0\n" and leading.role == "leads"  # nobody has taken over


def silent_from(box, work):
    """The applier has said its last word, and does this from then on: seconds -> work. When that was."""
    box.kernel.applier = work
    ask(box, client.alive, relieved=True)
    return box.clock.now - 1000


def test_an_applier_that_gets_no_processor_is_not_given_up(leading):
    """It gets a hundredth of it, as in a flood, and speaks again after a minute; then it dies."""
    begun = silent_from(leading, lambda seconds: Work(1, seconds / 100, True))
    leading.until(begun + 60)
    assert not leading.hold and leading.role == "leads"
    begun = silent_from(leading, lambda _: None)
    leading.until(begun + floater.APPLIER + 0.1)
    assert "the applier does not answer" in leading.hold


@pytest.mark.parametrize(
    "work",
    [
        pytest.param(lambda seconds: Work(1, seconds, True), id="runs in circles"),
        pytest.param(lambda _: Work(1, 0.5, False), id="waits for something"),
        pytest.param(lambda seconds: Work(int(seconds), 0.5, True), id="is another process each time"),
    ],
)
def test_an_applier_that_could_speak_is_given_up(leading, work):
    begun = silent_from(leading, work)
    leading.until(begun + floater.APPLIER - 0.1)
    assert not leading.hold
    leading.until(begun + floater.APPLIER + 0.1)
    assert "the applier does not answer" in leading.hold


def test_time_without_a_processor_does_not_count_before_it_hangs(leading):
    begun = silent_from(leading, lambda seconds: Work(1, 0.5, seconds - begun < 30))
    leading.until(begun + 30 + floater.APPLIER - floater.MISSED - 1.1)
    assert not leading.hold
    leading.until(begun + 30 + floater.APPLIER - floater.MISSED + 0.1)
    assert "the applier does not answer" in leading.hold


def test_a_box_that_nobody_relieves_leads_on_without_an_applier(leading):
    ask(leading, client.alive, relieved=True)
    ask(leading, client.alive, relieved=False)
    leading.until(60)
    assert not leading.hold and leading.role == "leads"


def test_whoever_led_before_its_applier_died_hands_nothing_over(leading):
    ask(leading, client.alive, relieved=True)
    leading.say("BACKUP")
    leading.until(60)
    assert not leading.hold and leading.role == "stands by"


def test_an_applier_that_stood_still_with_the_whole_box_has_its_time_anew(leading):
    ask(leading, client.alive, relieved=True)
    leading.clock.stands = floater.APPLIER + 5
    leading.floater.turn()
    leading.until(leading.clock.now - 1000 + floater.SETTLES + 1)
    ask(leading, client.alive, relieved=True)
    leading.until(leading.clock.now - 1000 + floater.APPLIER - 1)
    assert not leading.hold


@pytest.mark.parametrize(
    ("said", "answered"),
    [("lead", "error: one of: hold"), ("", "error: one of: hold"), ("x" * 300, "error: one of: hold")],
)
def test_what_it_does_not_know_is_told(leading, said, answered):
    with pytest.raises(HostError, match="one of: hold"):
        ask(leading, lambda host, paths: client._ask(host, paths, said))


def test_who_says_nothing_or_too_much_keeps_nobody_waiting(leading):
    quiet = []
    for _ in range(floater.CONNECTIONS + 3):
        one = socket.socket(socket.AF_UNIX)
        one.connect(str(leading.paths.floater))
        quiet.append(one)
        leading.floater.turn()
    quiet[-1].send(b"x" * 1000)
    ask(leading, client.announce)
    assert quiet[-1].recv(100).startswith(b"error: a line has 200 bytes") and quiet[-1].recv(100) == b""
    assert len(leading.floater._talks) <= floater.CONNECTIONS
    for one in quiet:
        one.close()


# --- interfaces ---


def test_another_mac_or_a_new_interface_is_seen(leading, capfd):
    leading.floating(FIRST, SECOND, THIRD)
    del leading.kernel.macs["eth1"]
    ask(leading, client.reload)
    assert "10.2.0.254 at eth1: no such interface" in capfd.readouterr().err
    leading.until(9)
    assert Place("eth1", "10.2.0.254") not in leading.kernel.held and not capfd.readouterr().err
    leading.kernel.macs["eth1"] = "52:54:00:00:00:03"
    leading.until(12)
    assert Place("eth1", "10.2.0.254") in leading.kernel.held


def test_what_the_kernel_refuses_is_said_once(leading, capfd):
    leading.kernel.refuses[Place("eth0", "2001:db8:1::100")] = errno.EACCES
    leading.until(30)
    assert capfd.readouterr().err.count("2001:db8:1::100 at eth0: Permission denied") == 1
