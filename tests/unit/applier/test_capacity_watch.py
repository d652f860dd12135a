"""A measurement over a host whose counters the test moves: what is kept, what is refused, what is told."""

import json
import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from board.machines.wait import until

from applier.base.paths import Paths
from applier.capacity import meter as capacity_meter
from applier.capacity import record as capacity_record
from applier.capacity import verbs
from applier.capacity.verbs import NOTHING_LASTED, Capacities
from applier.host.host import HostError, Output
from applier.kept.turn import Turn
from applier.wire.errors import ApplierRefused
from applier.wire.protocol import parse
from lbconfig.model.snapshot import FACTORY
from lbconfig.target import Target

NET = Path("/sys/class/net")
SOON = 20  # seconds
PROCESSOR = "processor\t: 0\nmodel name\t: Some CPU\nprocessor\t: 1\nmodel name\t: Some CPU\n"


class CountingHost:
    """Each look at the counters finds them a second later, with as much forwarded as `rates` says for it."""

    def __init__(self) -> None:
        self.rates = [100]  # packets, of each second in turn; the last one stays
        self.drops: dict[int, int] = {}  # second -> packets
        self.busy = 30  # ticks of 100
        self.second = 0
        self.packets = 0
        self.dropped = 0
        self.ipvs = True
        self.broken_after: int | None = None  # seconds, then nothing can be read any more
        self.cards = {"eth0": "DRIVER=igb\nPCI_SLOT_NAME=0000:03:00.0\n"}
        self.steps: threading.Semaphore | None = None  # each second waits for one

    def now(self):
        return 1000.0 + self.second

    def sleep(self, seconds):
        if self.steps:
            assert self.steps.acquire(timeout=SOON)
        self.pass_a_second()

    def pass_a_second(self):
        self.packets += self.rates[min(self.second, len(self.rates) - 1)]
        self.dropped += self.drops.get(self.second, 0)
        self.second += 1

    def read(self, path):
        if self.broken_after is not None and self.second > self.broken_after:
            raise HostError(f"read {path}", None, "the test wanted this to fail")
        if path == capacity_meter.TOTALS:
            return f"head\n{self.packets // 10:X} {self.packets:X} 0 {self.packets * 50:X} 0\n" if self.ipvs else None
        if path == capacity_meter.CPUS:
            busy = self.busy * self.second
            return f"cpu 0\ncpu0 {busy} 0 0 {100 * self.second - busy} 0 0 0 0\n"
        files = {
            capacity_meter.SOFTNET: f"00000000 {self.dropped:08x} 00000000\n",
            Path("/proc/cpuinfo"): PROCESSOR,
            **{NET / name / "device/uevent": text for name, text in self.cards.items()},
        }
        return files.get(path)

    def setting(self, key):
        return {"kernel/osrelease": "6.18.33"}.get(key)

    def command(self, argv, stdin="", timeout=20.0):
        assert argv in (["ip", "-json", "address", "show"], ["ip", "-json", "-details", "address", "show"])
        return Output(0, json.dumps([{"ifname": name, "flags": ["UP"]} for name in ("lo", *self.cards)]), "")


@dataclass
class Core:
    """What of the daemon is asked."""

    paths: Paths
    host: CountingHost
    running: Target = field(default_factory=lambda: Target(None, FACTORY))
    turn: Turn = field(default_factory=Turn)


@pytest.fixture
def host():
    return CountingHost()


@pytest.fixture
def paths(tmp_path):
    return Paths(state=tmp_path / "state", run=tmp_path / "run", shared=tmp_path)


@pytest.fixture
def box(paths, host):
    return Capacities(Core(paths, host))


def ended(box) -> dict:
    wait_for(lambda: box.capacity()["job"]["state"] != "running")
    return box.capacity()["job"]


def wait_for(condition) -> None:
    until("a measurement", condition, SOON, 0.01, expected=())


def refused(action, *words) -> str:
    with pytest.raises(ApplierRefused) as caught:
        action(*words)
    return caught.value.code


def test_what_lasted_is_kept_with_its_hardware(box, host, paths):
    host.rates, host.drops = [100, 500, 500, 500, 500, 500, 900, 10], {6: 40}
    box.capacity_watch(12, "ann")
    job = ended(box)
    assert (job["state"], job["percent"], job["dropped"]) == ("done", 100, 40)
    [one] = json.loads(paths.capacity.read_text())
    assert one["limit"]["rates"] == {"connections": 50, "packets": 500, "bytes": 25_000}
    assert (one["limit"]["held"], one["limit"]["busiest"]) == ("box", 0.3)
    assert one["hardware"] == {"processor": "Some CPU", "cpus": 2, "cards": ["igb 0000:03:00.0"]}
    assert (one["user"], one["seconds"], one["kernel"], one["dropped"]) == ("ann", 12, "6.18.33", 40)


def test_who_looks_while_the_first_one_is_kept_does_not_lose_it(box, host, paths, monkeypatch):
    box.capacity_watch(10, "ann")
    ended(box)
    [one] = box.capacity()["measurements"]
    paths.capacity.unlink()
    record = capacity_record.Measurements(paths)
    load, looked, added = record._load, threading.Event(), threading.Event()

    def slowly():
        found = load()
        looked.set()
        added.wait(0.3)
        return found

    monkeypatch.setattr(record, "_load", slowly)
    looker = threading.Thread(target=record.all)
    looker.start()
    assert looked.wait(SOON)
    monkeypatch.setattr(record, "_load", load)
    record.add(one)
    added.set()
    looker.join()
    assert len(record.all()) == 1


def test_a_new_applier_knows_it_and_says_how_near_the_box_is(box, host, paths):
    host.rates = [500]
    box.capacity_watch(10, "ann")
    ended(box)
    later = Capacities(Core(paths, host))
    assert later.load()["share"] is None  # it is counted from now on
    host.rates = [125]
    host.pass_a_second()
    found = later.load()
    assert (found["share"], found["now"]["packets"]) == (0.25, 125)
    assert {one["figure"]: one["at_least"] for one in found["limits"]} == {
        "connections": True, "packets": True, "bytes": True,
    }  # fmt: skip


def test_a_disk_in_another_box_shows_no_limit(box, host, paths):
    box.capacity_watch(10, "ann")
    ended(box)
    assert box.load() is not None
    host.cards["eth0"] = "DRIVER=e1000e\nPCI_SLOT_NAME=0000:03:00.0\n"
    moved = Capacities(Core(paths, host))
    assert moved.load() is None
    assert [one["same"] for one in moved.capacity()["measurements"]] == [False]


def test_a_box_that_was_never_measured_has_no_share(box, host):
    assert box.load() is None
    assert box.capacity()["measurements"] == []
    host.pass_a_second()
    assert box.capacity()["now"]["packets"] == 100


def test_nothing_is_kept_where_nothing_was_forwarded(box, host, paths):
    host.rates = [0]
    box.capacity_watch(10, "ann")
    job = ended(box)
    assert (job["state"], job["message"]) == ("failed", NOTHING_LASTED)
    assert not paths.capacity.exists()


def test_one_at_a_time_and_stopping_keeps_what_lasted(box, host):
    go = host.steps = threading.Semaphore(0)
    assert refused(box.capacity_stop, "bob") == "not-measuring"
    box.capacity_watch(600, "ann")
    assert refused(box.capacity_watch, 10, "bob") == "busy"
    for _ in range(6):
        go.release()
    wait_for(lambda: box.capacity()["job"]["percent"] >= 1)
    box.capacity_stop("bob")
    go.release()
    assert ended(box)["state"] == "stopped"
    assert box.load()["limits"]


def test_counters_that_cannot_be_read_any_more_end_it(box, host, paths):
    host.broken_after = 7
    box.capacity_watch(20, "ann")
    wait_for(lambda: host.second > 7)
    assert refused(box.capacity) == "no-capacity"
    host.broken_after = None
    job = ended(box)
    assert job["state"] == "failed" and "the test wanted this to fail" in job["message"]
    assert not paths.capacity.exists()


@pytest.mark.parametrize("error", [ZeroDivisionError("a mistake"), MemoryError("none is left")])
def test_a_mistake_of_ours_ends_it_and_the_next_one_begins(box, monkeypatch, error):
    def broken(*_):
        raise error

    with monkeypatch.context() as mistaken:
        mistaken.setattr(verbs, "sustained", broken)
        box.capacity_watch(10, "ann")
        job = ended(box)
    assert job["state"] == "failed" and repr(error) in job["message"]
    box.capacity_watch(10, "bob")
    assert ended(box)["state"] == "done"


def test_a_box_without_ipvs_cannot_be_measured(box, host):
    host.ipvs = False
    assert refused(box.capacity_watch, 10, "ann") == "no-capacity"
    assert box.capacity()["now"] is None


def test_a_full_disk_is_told(box, host, paths):
    paths.capacity.mkdir(parents=True)  # a folder cannot be replaced by a file
    box.capacity_watch(10, "ann")
    job = ended(box)
    assert job["state"] == "failed" and "did not finish" in job["message"]


@pytest.mark.parametrize("text", ["", "null", "[1]", '[{"when": ""}]', '{"a": 1}', "[[]]", '"x"', '["\\u0000"]'])
def test_a_file_that_is_not_ours_counts_as_none(box, paths, text):
    paths.capacity.write_text(text)
    assert box.load() is None
    box.capacity_watch(10, "ann")
    ended(box)
    assert len(json.loads(paths.capacity.read_text())) == 1


def test_the_oldest_go(box, paths):
    for _ in range(23):
        box.capacity_watch(10, "ann")
        ended(box)
    assert len(json.loads(paths.capacity.read_text())) == 20


@pytest.mark.parametrize("seconds", [9, 601, 0, -1, 10**30, "30", 30.0, True, None, [30], "$(reboot)"])
def test_seconds_out_of_bounds_are_named(seconds):
    line = json.dumps({"verb": "capacity_watch", "seconds": seconds, "user": "ann"}).encode()
    with pytest.raises(ApplierRefused) as caught:
        parse(line)
    assert caught.value.code == "bad-field"
    assert [problem["field"] for problem in caught.value.problems] == ["seconds"]
