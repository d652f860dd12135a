"""Measuring between two ports, over a host and a program that the test plays: who is refused, and what is kept."""

import json
from dataclasses import asdict, replace

import pytest
from test_capacity_watch import Core, CountingHost, ended, refused, wait_for

from applier.base.paths import Paths
from applier.capacity import sender
from applier.capacity.verbs import NO_CARD, TWICE, Capacities
from applier.hardware import tune as hardware
from applier.host.host import HostError, Output
from applier.wire.errors import ApplierRefused
from applier.wire.protocol import parse
from lbconfig.capacity.cable import LARGE, SMALL, Trial
from lbconfig.capacity.figures import Cpus, Rates
from lbconfig.model.network import Bond, Interface, Vlan
from lbconfig.model.snapshot import FACTORY
from lbconfig.target import Target
from lbconfig.validate.cards import Card

CPUS = Cpus(0.6, 0.8, 0.5)


def line(traffic, asked, seconds, sent, came):
    return json.dumps(
        {"traffic": traffic.name, "trial": asdict(Trial(asked, seconds, sent, Rates(came / 5, came, came * 46), CPUS))}
    )


LINES = (
    json.dumps({"balancer": 41, "sender": 42}),
    line(SMALL, 5000.0, 2.0, 2500, 500.0),
    line(SMALL, 500.0, 5.0, 2500, 500.0),
    line(SMALL, 750.0, 5.0, 3750, 600.0),
    line(LARGE, 5000.0, 2.0, 300, 100.0),
    line(LARGE, 100.0, 5.0, 500, 100.0),
)


class Played:
    """The program; `lines` may hold a function, which is called in its place."""

    def __init__(self, host, lines):
        self.host, self.said, self.todo, self.ended = host, [], lines, False

    def say(self, line):
        self.said.append(line)

    def lines(self, seconds):
        for one in self.todo:
            if callable(one):
                one()
            else:
                yield one

    def end(self):
        self.ended = True
        self.host.away.clear()


class CabledHost(CountingHost):
    """Cards eth0 to eth3; the configuration has eth0."""

    def __init__(self):
        super().__init__()
        self.cards = {f"eth{number}": f"DRIVER=igb\nPCI_SLOT_NAME=0000:03:00.{number}\n" for number in range(4)}
        self.more = {}  # name -> what else `ip` says of it
        self.away = {}  # name -> the process that has it
        self.module = 0  # what modprobe ends with
        self.lines = LINES
        self.program = None
        self.argv = ()

    def start(self, argv):
        self.argv, self.program = argv, Played(self, self.lines)
        return self.program

    def command(self, argv, stdin="", timeout=20.0):
        if argv[0] == "modprobe":
            return Output(self.module, "", "")
        if argv[:4] == ["ip", "link", "set", "dev"]:
            self.away[argv[4]] = argv[6]
            self.moved = {**self.away}
            return Output(0, "", "")
        assert argv in (["ip", "-json", "address", "show"], ["ip", "-json", "-details", "address", "show"])
        there = [name for name in ("lo", *self.cards) if name not in self.away]
        links = [
            {"ifname": name, "address": f"02:{name}", "flags": ["UP"], **self.more.get(name, {})} for name in there
        ]
        return Output(0, json.dumps(links), "")

    def sleep(self, seconds):
        self.second += 1


@pytest.fixture
def host(monkeypatch):
    host = CabledHost()
    host.tuned = []
    monkeypatch.setattr(hardware, "tune", lambda _host, _paths, _tuning, of="": host.tuned.append(of))
    return host


@pytest.fixture
def core(tmp_path, host):
    return Core(Paths(state=tmp_path / "state", run=tmp_path / "run", shared=tmp_path), host)


@pytest.fixture
def box(core):
    return Capacities(core)


def problems(action, *words) -> dict[str, str]:
    with pytest.raises(ApplierRefused) as caught:
        action(*words)
    assert caught.value.code == "not-free"
    return {one["field"]: one["message"] for one in caught.value.problems}


def test_from_the_first_rate_to_what_is_kept(box, host, core, tmp_path):
    box.capacity_between("eth1", "eth2", "ann")
    job = ended(box)
    assert (job["state"], job["between"], job["user"]) == ("done", True, "ann")
    assert host.moved == {"eth2": "41", "eth1": "42"} and host.program.said == ["the ports are yours"]
    assert tuple(host.argv[1:]) == ("-m", "applier.capacity.between", "eth2", "eth1", "02:eth2", "02:eth1")
    large, small = json.loads((tmp_path / "capacity.json").read_text())
    assert small["limit"]["rates"] == {"connections": 100, "packets": 500, "bytes": 23_000}
    assert (small["limit"]["held"], small["dropped"]) == ("sender", 1500 + 750)
    assert small["traffic"] == f"eth1 to eth2: {SMALL.name}" and large["traffic"] == f"eth1 to eth2: {LARGE.name}"
    assert host.program.ended and host.tuned == ["eth2", "eth1"] and not core.turn.taken
    assert {one["figure"]: one["at_least"] for one in box.load()["limits"]} == dict.fromkeys(
        ("connections", "packets", "bytes"), True
    )


def test_ports_that_nothing_uses_are_offered(box, host, core):
    assert box.capacity()["ports"] == ["eth1", "eth2", "eth3"]
    host.more["eth1"] = {"addr_info": [{"family": "inet", "local": "10.9.0.1", "prefixlen": 24, "scope": "global"}]}
    host.more["eth2"] = {"master": "br0"}
    assert box.capacity()["ports"] == ["eth3"]


@pytest.mark.parametrize(
    "more",
    [
        Interface("eth1", on=False),
        Interface("bond0", bond=Bond(("eth1", "eth5"))),
        Interface("eth1.7", vlan=Vlan("eth1", 7)),
    ],
)
def test_ports_of_the_configuration_are_not(box, core, more):
    network = FACTORY.network
    core.running = Target(1, replace(FACTORY, network=replace(network, interfaces=(*network.interfaces, more))))
    assert box.capacity()["ports"] == ["eth2", "eth3"]
    assert problems(box.capacity_between, "eth1", "eth2", "ann") == {
        "sender": "is part of the configuration; remove it there first"
    }
    assert not core.turn.taken


def test_what_is_no_free_port_is_named(box, host, core):
    assert problems(box.capacity_between, "eth9", "eth0", "ann") == {
        "sender": NO_CARD,
        "receiver": "is part of the configuration; remove it there first",
    }
    assert problems(box.capacity_between, "eth1", "eth1", "ann") == {"receiver": TWICE}
    assert not core.turn.taken and host.program is None


@pytest.mark.parametrize("name", ["", "x" * 16, 7, None, ["eth1"], "eth1\0", "eth1\n"])
def test_names_that_none_can_have_are_refused_by_field(name):
    with pytest.raises(ApplierRefused) as caught:
        parse(json.dumps({"verb": "capacity_between", "sender": name, "receiver": "eth1", "user": "ann"}).encode())
    assert [one["field"] for one in caught.value.problems] == ["sender"]


def test_nobody_changes_the_system_meanwhile_and_nobody_else_measures(box, host, core):
    with core.turn.take("the changes of bob are being applied"):
        assert refused(box.capacity_between, "eth1", "eth2", "ann") == "busy"
    seen = []

    def look():
        seen.append((core.turn.refusal().message, refused(box.capacity_watch, 10, "bob")))

    host.lines = (LINES[0], LINES[1], look, LINES[2])
    box.capacity_between("eth1", "eth2", "ann")
    assert ended(box)["state"] == "done"
    assert seen == [("Right now ann measures between eth1 and eth2; wait until that has ended.", "busy")]


@pytest.mark.parametrize("fails", [False, True])
def test_the_ports_are_cards_of_the_box_while_they_are_lent(box, host, fails):
    seen = []

    def look():
        seen.append(box.lent())
        if fails:
            raise HostError("ip", None, "it is broken")

    host.lines = (LINES[0], look, *LINES[1:])
    box.capacity_between("eth1", "eth2", "ann")
    assert ended(box)["state"] == ("failed" if fails else "done")
    assert seen == [(Card("eth1", mac="02:eth1", up=True), Card("eth2", mac="02:eth2", up=True))]
    assert box.lent() == ()


def test_stopping_keeps_what_lasted(box, host, core):
    host.lines = (*LINES[:3], lambda: box.capacity_stop("bob"), *LINES[3:])
    box.capacity_between("eth1", "eth2", "ann")
    assert ended(box)["state"] == "stopped"
    assert [one["limit"]["rates"]["packets"] for one in box.capacity()["measurements"]] == [500.0]
    assert not core.turn.taken and host.program.ended


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ((), "has ended (without a word)"),
        (("Traceback (most recent call last):",), "Traceback"),
        ((LINES[0], json.dumps({"error": "eth2 sees no cable."})), "eth2 sees no cable."),
        ((*LINES[:2], json.dumps({"error": "The sender failed: no."})), "The sender failed: no."),
    ],
)
def test_a_program_that_cannot_is_told_and_the_ports_come_back(box, host, core, lines, said):
    host.lines = lines
    box.capacity_between("eth1", "eth2", "ann")
    job = ended(box)
    assert job["state"] == "failed" and said in job["message"]
    assert host.program.ended and not host.away and not core.turn.taken
    assert box.capacity()["measurements"] == []


def test_ports_that_do_not_come_back_are_told(box, host, core):
    host.lines = (*LINES, lambda: host.cards.pop("eth2"))
    box.capacity_between("eth1", "eth2", "ann")
    job = ended(box)
    assert job["state"] == "failed" and "seen last: eth2 not there" in job["message"]
    assert not core.turn.taken


def test_a_mistake_of_ours_ends_it_and_the_ports_come_back(box, host, core):
    host.lines = (*LINES[:2], lambda: 1 / 0)
    box.capacity_between("eth1", "eth2", "ann")
    job = ended(box)
    assert job["state"] == "failed" and "ZeroDivisionError" in job["message"]
    assert host.program.ended and not host.away and not core.turn.taken


def test_a_sender_that_the_kernel_does_not_let_begin_says_so(host):
    """Nobody would look at what its thread raises, and the cable would be blamed."""

    class Refusing(CabledHost):
        def command(self, argv, stdin="", timeout=20.0):
            return Output(0, "", "")

        def names(self, folder):
            return ["kpktgend_0"]

        def read(self, path):
            return "Result: Idle"

        def tell(self, path, text):
            if text == "start\n":
                raise HostError(f"write {path}", None, "Cannot allocate memory")

    said = sender.answer(Refusing(), "eth1", "02:eth2", json.dumps([SMALL.name, 500.0, 0.0]))
    assert "Cannot allocate memory" in said.get("error", ""), said


def test_a_program_that_falls_silent_is_ended(box, host, core):
    def silence():
        raise HostError("measure", None, "it said nothing for 60 seconds")

    host.lines = (LINES[0], silence)
    box.capacity_between("eth1", "eth2", "ann")
    assert "said nothing" in ended(box)["message"]
    assert host.program.ended and not core.turn.taken


def test_a_kernel_without_a_sender_says_so(box, host, core):
    host.module = 1
    assert refused(box.capacity_between, "eth1", "eth2", "ann") == "no-capacity"
    assert not core.turn.taken
    wait_for(lambda: box.capacity()["job"] is None)
