"""The process that talks with the other box of a pair: two of them, in networks of their own and without any rights.

Behind each is a real applier over a model host. The link is a plain cable here: what WireGuard does for it, a booted
machine shows.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from board.lab.build import TOP
from board.machines.wait import until
from joined_boxes import set_up
from tests.parts import ALL
from two_boxes import NEW, OLD, THIRD, Half, pair_of, with_other_addresses

from applier.kept import pair_key
from applier.pair import client, watch
from applier.pair.channel import CONNECTIONS
from applier.pair.ready import NOT_YET
from applier.wire.errors import ApplierRefused
from applier.wire.protocol import FOR_PAIR, FOR_PEER
from applier.wire.server import Server
from lbconfig import agreement
from lbconfig.agreement_lines import LONG, MAX_LINE, Writer
from lbconfig.diff.cutoff import SHORTEST
from lbconfig.model.snapshot import CheckKind, HealthCheck, RealServer, VirtualService, to_json
from lbconfig.wanted.pair_link import CHANNEL_PORT

ADDRESSES = ("169.254.64.1", "169.254.64.2")
NOBODY = 65534
FUZZED = 100_000 if ALL else 2_000
OFF = HealthCheck(CheckKind.OFF)
SLOW = ("rate", "2mbit", "burst", "16kb", "latency", "400ms")  # of a line between two sites
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="not root: there can be no boxes of their own")


class RealHalf(Half):
    """By the clock of this machine."""

    @property
    def boottime(self) -> float:
        return time.monotonic()

    @boottime.setter
    def boottime(self, value: float) -> None:
        pass


class End:
    """A box with its applier, a network, and the process that talks."""

    def __init__(self, folder: Path, number: int, prepare: Callable[[Half], None]) -> None:
        self.number = number
        self.half = RealHalf(folder / f"lb{number + 1}", number)
        (folder / f"lb{number + 1}").mkdir(mode=0o755)
        self.half.start()
        pair_key.make(self.half.host, self.half.paths)
        prepare(self.half)
        self.holder = subprocess.Popen(
            ["unshare", "--net", "--kill-child", "sh", "-c", "ip link set lo up; echo ready; read -r _"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.holder.stdout.readline() == "ready\n"
        self.log = folder / f"log{number}"
        self.channel: subprocess.Popen | None = None
        self.server: Server | None = None

    def enter(self) -> list[str]:
        return ["nsenter", f"--target={self.holder.pid}", "--net"]

    def do(self, *words: str) -> str:
        words = (*self.enter(), *words)
        return subprocess.run(words, check=True, timeout=30, capture_output=True, text=True).stdout

    def begin(self) -> None:
        """As the box does: the applier, and the process."""
        run = self.half.paths.run
        os.chmod(run, 0o755)
        self.serve()
        self.talk()

    def serve(self) -> None:
        """The applier with its socket."""
        self.server = Server(self.half.paths.pair_socket, self.half.applier.handle, {NOBODY}, NOBODY, FOR_PAIR)
        threading.Thread(target=self.server.serve, daemon=True).start()
        self.ticking = threading.Event()
        threading.Thread(target=self.tick, args=(self.ticking, self.half.applier), daemon=True).start()

    def close_server(self) -> None:
        self.ticking.set()
        self.server.close()

    @staticmethod
    def tick(ended: threading.Event, applier) -> None:
        while not ended.wait(0.1):
            applier.joined.tick()
            applier.both.tick()

    def talk(self) -> None:
        words = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs"]
        words += ["--inh-caps=-all", "--bounding-set=-all", sys.executable, "-m", "applier.pair.channel"]
        words += [self.half.paths.run, *ADDRESSES]
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(TOP / "webui"), "PYTHONDONTWRITEBYTECODE": "1"}
        with self.log.open("ab") as log:
            self.channel = subprocess.Popen([*self.enter(), *words], env=environment, stdout=log, stderr=log)

    def kill(self) -> None:
        self.channel.kill()
        self.channel.wait(60)

    def close(self) -> None:
        if self.channel:
            self.kill()
        if self.server:
            self.close_server()
        self.holder.communicate(timeout=60)

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")


def in_a_pair(half: Half) -> None:
    assert half.apply(OLD)["state"] == "done"
    half.may_lead(half.number == 0)


@pytest.fixture
def ends(monkeypatch):
    with two_ends(monkeypatch, in_a_pair) as found:
        yield found


@pytest.fixture
def joined(monkeypatch):
    """Two boxes that run configurations of their own and know each other."""
    with two_ends(monkeypatch, set_up) as found:
        yield found


@contextlib.contextmanager
def two_ends(monkeypatch, prepare: Callable[[Half], None]) -> Iterator[list[End]]:
    monkeypatch.setattr(agreement, "SILENT", 60.0)  # a process that is started again may take its time
    folder = Path(tempfile.mkdtemp(prefix="fairlead-channel-"))
    os.chmod(folder, 0o755)
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        found = []
        for number in (0, 1):
            found.append(End(folder, number, prepare))
            stack.callback(found[-1].close)
        first, second = found
        first.do("ip", "link", "add", "cable", "type", "veth", "peer", "name", "other", "netns", str(second.holder.pid))
        for end, name in ((first, "cable"), (second, "other")):
            end.do("ip", "address", "add", f"{ADDRESSES[end.number]}/30", "dev", name)
            end.do("ip", "link", "set", name, "up")
        yield found


def agree(ends, snapshot) -> None:
    until(
        "both boxes to run it",
        lambda: all(end.half.confirmed == snapshot and not end.half.applier.turn.taken for end in ends),
        60,
    )


def hear_each_other(ends) -> None:
    until("both boxes to hear each other", lambda: not any(end.half.both.silent() for end in ends), 60)
    # A line of its own, which may come later.
    until("what they say of themselves", lambda: all(end.half.applier.peer.beat for end in ends), 60)


class Stranger:
    """Somebody at the first box's end, with the second one's address: what a box that went wrong might send."""

    def __init__(self, end: End) -> None:
        self.end = end
        code = (
            "import socket, sys, os\n"
            f"made = socket.create_connection(('{ADDRESSES[0]}', {CHANNEL_PORT}), 20, ('{ADDRESSES[1]}', 0))\n"
            "passed = socket.socket(fileno=int(sys.argv[1]))\n"
            "socket.send_fds(passed, [b'x'], [made.fileno()])\n"
        )
        ours, theirs = socket.socketpair()
        words = [*end.enter(), sys.executable, "-c", code, str(theirs.fileno())]
        subprocess.run(words, check=True, timeout=60, pass_fds=[theirs.fileno()])
        _, [handle], *_ = socket.recv_fds(ours, 1, 1)
        ours.close()
        theirs.close()
        self.connection = socket.socket(fileno=handle)
        self.connection.settimeout(60)

    def send(self, data: bytes) -> bool:
        """Whether the other end takes it."""
        try:
            self.connection.sendall(data)
        except OSError:
            return False
        return True

    def is_ended(self) -> bool:
        """The other end says nothing, and ends it."""
        try:
            return self.connection.recv(1) == b""
        except ConnectionResetError:
            return True


def test_two_boxes_agree_over_it_and_it_may_be_killed(ends):
    first, second = ends
    for end in ends:
        end.begin()
    hear_each_other(ends)
    assert {end.half.applier.peer.beat.hostname for end in ends} == {"lb1", "lb2"}
    first.half.begin(NEW)
    agree(ends, NEW)
    second.kill()
    second.talk()
    first.half.begin(THIRD, confirm_within=600)
    until("both to wait", lambda: all(end.half.applier.applies.waiting for end in ends), 60)
    first.kill()
    first.talk()
    first.half.applier.applies.confirm("", first.half.secret, "")
    agree(ends, THIRD)
    # Nobody but that user is answered, and it only where it is meant to ask.
    asked = socket.socket(socket.AF_UNIX)
    asked.connect(str(first.half.paths.pair_socket))
    asked.sendall(b'{"verb": "status", "known": []}\n')
    assert json.loads(asked.makefile().readline())["error"]["code"] == "forbidden"
    asked.close()
    first.server._uids = frozenset({0, NOBODY})
    asked = socket.socket(socket.AF_UNIX)
    asked.connect(str(first.half.paths.pair_socket))
    asked.sendall(b'{"verb": "status", "known": []}\n')
    assert json.loads(asked.makefile().readline())["error"]["code"] == "unknown-verb"
    asked.close()
    status = Path(f"/proc/{first.channel.pid}/status").read_text()
    assert f"Uid:\t{NOBODY}\t{NOBODY}" in status and "CapEff:\t0000000000000000" in status


def test_own_addresses_of_both_boxes_go_back_where_nobody_confirms_them(ends, capsys):
    first = ends[0].half
    for end in ends:
        end.begin()
    hear_each_other(ends)
    first.begin(with_other_addresses(OLD, ("eth0", "eth1")), confirm_within=SHORTEST)
    until("both to wait", lambda: all(end.half.applier.applies.waiting for end in ends), 60)
    back: dict[int, float] = {}

    def are_back() -> bool:
        for end in ends:
            if end.half.runs == OLD and not end.half.applier.turn.taken:
                back.setdefault(end.number, time.monotonic())
        return len(back) == 2

    until("both to be back", are_back, 60)
    with capsys.disabled():
        print(f"\nboth have their former addresses: {abs(back[0] - back[1]):.1f} s apart")
    for end in ends:
        assert f"192.168.10.{2 + end.number}/24" in str(end.half.host.links["eth0"].addresses)
        assert end.half.confirmed == OLD and not end.half.host.violations
    hear_each_other(ends)


def test_two_boxes_that_were_joined_make_their_first_apply_over_it(joined):
    """The process is killed at either box on the way, and goes on where it was once they are a pair."""
    first, second = joined
    for end in joined:
        end.begin()
    hear_each_other(joined)
    assert {end.half.runs.pair for end in joined} == {None}
    first.half.begin(OLD, confirm_within=600)
    until("both to wait", lambda: all(end.half.applier.applies.waiting for end in joined), 60)
    for end in joined:
        end.kill()
        end.talk()
    first.half.applier.applies.confirm("", first.half.secret, "")
    agree(joined, OLD)
    until("both to need nothing else", lambda: not any(end.half.paths.joined.exists() for end in joined), 60)
    second.half.may_lead(False)
    hear_each_other(joined)
    first.half.begin(NEW)
    agree(joined, NEW)


def test_a_box_that_comes_back_is_told_all_connections_before_it_may_lead(ends, monkeypatch):
    """What is lost on the way is told again; and a box of before, which cannot tell, keeps nobody from leading."""
    first, second = (end.half for end in ends)
    monkeypatch.setattr(watch, "tell_peer", lambda core: None)  # what a box tells by itself, nobody acknowledges
    told, known = [], [0]

    def tell(core) -> None:
        told.append(core)
        known[0] = 400 if len(told) == 1 else 1240

    monkeypatch.setattr(first.applier.pairs, "_tell", tell)
    monkeypatch.setattr(first.applier, "established", lambda: 1240)
    come_back(second, known)
    for end in ends:
        end.begin()
    hear_each_other(ends)
    until("it to stand by", lambda: looks_at_its_pair(second) == "stands by", 60)
    assert len(told) == 2 and known == [1240]

    second_end = ends[1]
    second_end.close_server()
    monkeypatch.delitem(FOR_PEER, "pair_retell")
    known[0] = 0
    come_back(second, known)
    second_end.serve()
    hear_each_other(ends)
    until("it to stand by anyway", lambda: looks_at_its_pair(second) == "stands by", 60)
    assert len(told) == 2 and known == [0]


def come_back(half: Half, known: list[int]) -> None:
    """It was switched off; the other one leads."""
    half.power_cut()
    half.host.pair.rival = True
    half.host.files[half.paths.first_round] = ""
    half.applier.established = lambda: known[0]
    assert half.held() == NOT_YET


def looks_at_its_pair(half: Half) -> str:
    """The role that it has then."""
    half.host.pair.received += 1
    half.applier.pair_watch.tick()
    return client.role(half.host, half.paths).role


def shop(number: int) -> VirtualService:
    """With ten real servers, whose addresses and names are their own."""
    servers = tuple(
        RealServer(number * 10 + place, f"10.2.{number % 250 + 1}.{number // 250 * 10 + place + 1}", 8080, name=name)
        for place in range(10)
        for name in [f"web-{number}-{place}"]
    )
    return VirtualService(number, f"shop {number}", "192.168.10.1", 10_000 + number, check=OFF, real_servers=servers)


def test_a_large_configuration_takes_little_of_a_slow_line(ends):
    """Else there is no beat for seconds, and what takes so long is asked for again and sent twice."""
    first = ends[0]
    large = pair_of(*(shop(number) for number in range(1, 401)))
    for end, name in zip(ends, ("cable", "other"), strict=True):
        end.do("tc", "qdisc", "add", "dev", name, "root", "tbf", *SLOW)
        end.begin()
    hear_each_other(ends)
    first.half.begin(large)
    agree(ends, large)
    sent = json.loads(first.do("ip", "-json", "-stats", "link", "show", "cable"))[0]["stats64"]["tx"]["bytes"]
    assert sent < len(to_json(large)) / 4


def test_one_box_forgets_the_other_one(joined):
    second = joined[1]
    for end in joined:
        end.begin()
    hear_each_other(joined)
    second.half.applier.joinings.pair_forget("ann")
    until("both to know nobody", lambda: not any(end.half.paths.joined.exists() for end in joined), 60)
    until("both to be alone", lambda: not any(end.half.both.place for end in joined), 60)


def lines(count: int):
    """Lines as they are, cut, joined, with other values; by a seed, so always the same."""
    dice = random.Random(24)
    pair = OLD.pair.id
    good = [
        Writer(pair, 1).other("beat", {"hostname": "lb2", "role": "leads"}),
        Writer(pair, 1).other("fetch", {"id": "a" * 32, "whole": False}),
        Writer(pair, 1).other("state", {"epoch": 1, "number": 1, "lineage": []}),
        Writer(pair, 1).other("content", {"about": {}, "snapshot": {}, "services": []}),
        Writer(pair, 1).other("ask", {"id": "a" * 32, "verb": "apply", "arguments": {}}),
        Writer(pair, 1).other("answer", {"id": "a" * 32, "code": "no-room", "message": "x"}),
        Writer(pair, 1).other("answer", {"id": "a" * 32, "result": {"long": "x" * LONG}}),
        Writer("f" * 32, 1).other("fetch", {"id": "a" * 32, "whole": False}),
        Writer(pair, 0).other("fetch", {"id": "a" * 32, "whole": False}),
    ]
    for _ in range(count):
        line = bytearray(dice.choice(good))
        for _ in range(dice.randrange(4)):
            line[dice.randrange(len(line))] = dice.randrange(256)
        yield bytes(line[: dice.randrange(len(line))] if dice.random() < 0.2 else line)


def test_whatever_comes_to_it_nothing_changes(ends, capsys):
    """Fuzzed lines, one that is too long, too many connections: the process lives, and the applier hears nothing."""
    first, second = ends
    first.begin()
    before = first.half.host.state()
    until("it to listen", lambda: _listens(first), 60)
    sent = 0
    stranger = Stranger(second)
    for line in lines(FUZZED):
        if not stranger.send(line + b"\n" * (not line.endswith(b"\n"))):
            stranger.connection.close()
            stranger = Stranger(second)
        sent += 1
    stranger.connection.close()
    with capsys.disabled():
        print(f"\nthe channel: {sent} lines tried")
    stranger = Stranger(second)
    head = Writer(OLD.pair.id, 1).other("fetch", {"id": []})[:-4]
    stranger.send(head + b"[]," * ((MAX_LINE - len(head)) // 3 - 10) + b"0]}}\n")  # of small things, as many as can be
    stranger.send(b" " * (MAX_LINE + 100_000))
    assert stranger.is_ended()
    idle = [Stranger(second) for _ in range(CONNECTIONS + 1)]
    assert idle[-1].is_ended()
    assert all(one.is_ended() for one in idle)  # none for longer than a line may take
    assert first.channel.poll() is None and "Traceback" not in first.said and "refused" in first.said
    assert first.half.host.state() == before and first.half.confirmed == OLD
    assert first.half.applier.peer.beat is None and first.half.both.silent()
    second.begin()
    hear_each_other(ends)


def test_one_box_asks_the_other_one(ends, monkeypatch):
    """Long answers, lines that are wrong, late and twice, and a peer that is killed in the middle."""
    monkeypatch.setitem(FOR_PEER, "greet", {"name": lambda value: None if isinstance(value, str) else "must be text"})
    may_end = threading.Event()
    greeted = []

    def greet(name: str) -> dict[str, str]:
        greeted.append(name)
        if name == "wait":
            may_end.wait(60)
        return {"said": name}

    for end in ends:
        end.half.applier.verbs["greet"] = greet
        end.begin()
    hear_each_other(ends)
    first, second = (end.half.applier.errands for end in ends)
    long = "é" * (MAX_LINE // 6 - 1000)
    assert first.ask("greet", {"name": long}, 60) == {"said": long}
    assert second.ask("greet", {"name": "lb1"}, 60) == {"said": "lb1"}
    with pytest.raises(ApplierRefused, match="name must be text"):
        first.ask("greet", {"name": 3}, 60)
    greeted.clear()
    found = []
    thread = threading.Thread(target=lambda: found.append(_refused(first, "wait", 20)))
    thread.start()
    until("it to be asked", lambda: greeted == ["wait"], 60)
    ends[1].kill()
    stranger = Stranger(ends[1])
    ask = Writer(OLD.pair.id, 1).other("ask", {"id": "b" * 32, "verb": "greet", "arguments": {"name": "twice"}})
    stranger.send(ask + ask + ask.replace(b'"id"', b'"di"') + ask.replace(b"greet", b"apply"))
    until("it to be asked", lambda: "twice" in greeted, 60)
    may_end.set()
    stranger.connection.close()
    ends[1].talk()
    # What the killed process was about to be given may be lost with it.
    again = {"name": "lb1 again"}
    until("an answer", lambda: second.ask("greet", again, 5)["said"] == "lb1 again", 60, expected=(ApplierRefused,))
    assert first.ask("greet", {"name": "lb2 again"}, 60) == {"said": "lb2 again"}
    thread.join(60)
    assert found in ([""], ["peer-away"])  # whether the answer was taken by the one that was killed
    assert [*dict.fromkeys(greeted)] == ["wait", "twice", "lb1 again", "lb2 again"]
    assert greeted.count("wait") == greeted.count("twice") == greeted.count("lb2 again") == 1
    assert "Traceback" not in ends[0].said + ends[1].said


def _refused(errands, name: str, within: float) -> str:
    """How it was refused; "": it was answered."""
    try:
        errands.ask("greet", {"name": name}, within)
    except ApplierRefused as refused:
        return refused.code
    return ""


def _listens(end: End) -> bool:
    listening = f"{ADDRESSES[end.number]}:{CHANNEL_PORT}"
    done = subprocess.run([*end.enter(), "ss", "-Hltn"], capture_output=True, text=True, timeout=30, check=True)
    return listening in done.stdout
