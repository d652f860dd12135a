"""Two boxes that become a pair over loopback: the real messages, TLS and files; ARP and the firewall are pretended."""

import base64
import contextlib
import hashlib
import itertools
import json
import os
import socket
import ssl
import threading
import time
from pathlib import Path

import pytest
from board.machines.wait import PATIENCE
from tests.fake.joining import FakeHost, InThread, JoiningBox

from applier.host.host import HostError, Live
from applier.kept import pair_key
from applier.pair.joining import messages, proof, record, verbs, worker
from applier.pair.joining.messages import EARLY, Answer, Hello, JoinError, Proof, Proven
from applier.pair.joining.verbs import SECONDS, _certificate, confined
from applier.pair.joining.worker import Lines, Waits
from applier.wire.errors import ApplierRefused
from lbconfig.joining import Facts, joined, proposed
from lbconfig.model.reading import build
from lbconfig.model.snapshot import Interface, Management, Network, Snapshot
from lbconfig.validate.cards import Card
from lbconfig.validate.services import validate

OTHER = "127.0.0.2"  # where the first box answers: 127.0.0.1 is every box's own
FIRST = Snapshot(
    network=Network("lb1", interfaces=(Interface("eth0", addresses=("10.0.2.15/24",)),)),
    management=Management(("10.0.2.0/24",)),
)
SECOND = Snapshot(
    network=Network("lb2", interfaces=(Interface("eth0", addresses=("10.0.2.30/24",)),)),
    management=Management(("10.0.2.0/24",)),
)
CARDS = (Card("eth0", mac="52:54:00:00:00:01"), Card("eth1", mac="52:54:00:00:00:02"))


class Two:
    """Both boxes."""

    def __init__(self) -> None:
        with socket.create_server(("", 0)) as free:
            port = free.getsockname()[1]
        self.port = port
        self.runs = [FIRST, SECOND]
        self.first = Linked(lambda: self.runs[0], lambda: CARDS, port)
        self.second = Linked(lambda: self.runs[1], lambda: CARDS, port)
        self.first.other, self.second.other = self.second, self.first

    def invite(self) -> str:
        return self.first.verbs.pair_invite("admin")["invitation"]["code"]

    def join(self, code: str, address: str = OTHER):
        return self.second.verbs.pair_join(address, code, "admin")

    def refused(self, code: str, address: str = OTHER) -> tuple[str, str]:
        """The field that is to be looked at, and why."""
        with pytest.raises(ApplierRefused) as refusal:
            self.join(code, address)
        return next((one["field"] for one in refusal.value.problems), ""), refusal.value.message

    def settled(self):
        """What the first box says once it waits for nobody any more."""
        return self._until(lambda said: said["invitation"] is None and self.first.verbs._open is None)

    def joined(self) -> bool:
        """Both know each other, and each other's key."""
        return self.first.link["heard"] and agreed(self.first) == agreed(self.second)

    def has_tries(self, left: int) -> None:
        self._until(lambda said: said["invitation"]["tries"] == left)

    def until_it_waits(self) -> None:
        """The first box says nothing to a box that has come."""
        self._until(lambda _: not self.first.meets)

    def _until(self, right):
        end = time.monotonic() + PATIENCE
        while not right(said := self.first.verbs.pair_joining()):
            assert time.monotonic() < end
            time.sleep(0.01)
        return said


class Linked(JoiningBox):
    """It hears the other box as soon as WireGuard would: when each knows the other one's key."""

    other: "Linked"
    udp = True  # passes between the two
    meets = False  # it is saying something to the other box

    def begin(self) -> None:
        super().begin()
        real = self.verbs._meet

        def meet(*arguments) -> None:
            self.meets = True
            try:
                real(*arguments)
            finally:
                self.meets = False

        self.verbs._meet = meet

    @property
    def link(self):
        return {"heard": self.udp and self._knows(self.other) and self.other._knows(self), "lasts": 1.0}

    @link.setter
    def link(self, _) -> None: ...

    def _knows(self, other: "Linked") -> bool:
        found = record.load(self.paths)
        if found is None:
            return False
        own, key = (pair_key.public(box.host, box.paths) for box in (self, other))
        return found.keys == ((own, key) if found.box == 0 else (key, own))


def agreed(box: JoiningBox) -> tuple[str, tuple[str, str]] | None:
    """The pair's id and both keys, as they lie on the box's disk."""
    found = record.load(box.paths)
    return found and (found.id, found.keys)


@pytest.fixture
def two():
    both = Two()
    yield both
    both.first.verbs.pair_forget("test")
    both.second.verbs.pair_forget("test")


def test_a_code_makes_two_boxes_know_each_other(two):
    two.first.host.answering.add("10.0.2.16")
    two.second.host.answering.add("10.0.2.17")
    here = two.join(two.invite().lower().replace("-", " "))["joined"]
    there = two.settled()["joined"]
    assert (here["box"], there["box"]) == (1, 0) and here["id"] == there["id"] and here["keys"] == there["keys"]
    assert (here["other"], there["other"]) == ("lb1", "lb2") and here["facts"] is None
    assert (here["address"], there["address"]) == (OTHER, "127.0.0.1"), "where the link will be"
    assert there["taken"] == ["10.0.2.16", "10.0.2.17"]
    facts = build(Facts, there["facts"])
    pair = joined(FIRST, facts, proposed(FIRST, facts, there["taken"]), there["id"], tuple(there["keys"]))
    assert validate(pair) == [] and pair.pair.boxes[0].network.interfaces[0].addresses == ("10.0.2.18/24",)
    assert any("add element inet fairlead joining" in one for one in two.first.host.opened)
    assert "delete element" in two.first.host.opened[-1]


def test_what_was_agreed_outlives_the_process_and_holds_no_secret(two):
    code = two.invite()
    two.join(code)
    two.settled()
    text = two.first.paths.joined.read_text()
    assert agreed(two.first) == agreed(two.second)
    assert code not in text and proof.plain(code) not in text and two.first.paths.joined.stat().st_mode & 0o77 == 0
    two.first.paths.joined.write_text(text[: len(text) // 2])
    assert record.load(two.first.paths) is None and two.first.verbs.pair_joining()["joined"] is None


def test_a_code_is_good_once(two):
    code = two.invite()
    two.join(code)
    two.settled()
    two.second = JoiningBox(lambda: SECOND, lambda: CARDS, two.port)
    field, said = two.refused(code)
    assert field == "address" and "Make a pair" in said


def test_a_code_that_is_wrong_three_times_is_good_no_longer(two):
    code = two.invite()
    other = proof.new_code()
    assert [two.refused(other)[0] for _ in range(2)] == ["code", "code"]
    two.has_tries(1)
    assert "last try" in two.refused(other)[1]
    assert two.settled()["said"].startswith("The code was entered wrongly too often")
    assert two.refused(code)[0] == "address" and agreed(two.second) is None is agreed(two.first)


def test_a_code_that_comes_late_is_refused(two, monkeypatch):
    code = proof.new_code()
    monkeypatch.setattr(verbs, "SECONDS", 0)
    monkeypatch.setattr(proof, "new_code", lambda: code)
    two.first.verbs.pair_invite("admin")
    assert "in time" in two.settled()["said"]
    assert two.refused(code)[0] == "address"


def test_a_new_code_ends_the_one_before(two):
    code = two.invite()
    two.invite()
    assert two.refused(code)[0] == "code"


@pytest.mark.parametrize(
    ("address", "code", "field", "said"),
    [
        ("10.0.2.30", "AAAA-BBBB-CCCC-DDDD", "address", "of the box itself"),
        ("lb2", "AAAA-BBBB-CCCC-DDDD", "address", "of the box itself"),
        ("not an address", "AAAA-BBBB-CCCC-DDDD", "address", "Enter an address"),
        ("fe80::1%eth0", "AAAA-BBBB-CCCC-DDDD", "address", "link-local"),
        ("nobody.invalid", "AAAA-BBBB-CCCC-DDDD", "address", "no host of this name"),
        (OTHER, "AAAA-BBBB-CCCC-DDDD", "address", "No box waits there"),
        (OTHER, "AAAA-BBBB", "code", "sixteen"),
        (OTHER, "!!!!-BBBB-CCCC-DDDD", "code", "sixteen"),
    ],
)
def test_what_was_entered_wrongly_is_named(two, address, code, field, said):
    found, words = two.refused(code, address)
    assert found == field and said in words


def test_the_code_of_the_box_itself_is_no_code_of_the_other_one(two):
    own = two.second.verbs.pair_invite("admin")["invitation"]["code"]
    assert two.refused(own) == ("code", "This is the code that this box shows. Enter it on the other box.")


def test_a_box_of_a_pair_joins_nobody_and_invites_nobody(two):
    code = two.invite()
    two.join(code)
    found = two.settled()["joined"]
    facts = build(Facts, found["facts"])
    pair = joined(FIRST, facts, proposed(FIRST, facts), found["id"], tuple(found["keys"]))
    two.runs = [pair, pair]
    for ask in (lambda: two.first.verbs.pair_invite("admin"), lambda: two.join(code)):
        with pytest.raises(ApplierRefused) as refusal:
            ask()
        assert refusal.value.code == "paired"


def test_another_version_is_told_on_both(two, tmp_path):
    version = tmp_path / "VERSION"
    version.write_text("9.9\n")
    object.__setattr__(two.second.paths, "version_file", version)
    _, said = two.refused(two.invite())
    assert "'lb2' runs version '9.9'" in said and two.settled()["said"] == said
    assert agreed(two.first) is None is agreed(two.second)


def test_a_box_without_a_fixed_address_makes_no_pair(two):
    two.runs[0] = Snapshot(network=Network("lb1", interfaces=(Interface("eth0", dhcp=True),)))
    with pytest.raises(ApplierRefused, match="no fixed address"):
        two.invite()


def test_forgetting_ends_it(two):
    code = two.invite()
    two.first.verbs.pair_forget("admin")
    assert two.settled()["said"] == "" and two.refused(code)[0] == "address"


class Between:
    """Somebody between the boxes, who shows the second one a certificate of his own and passes on what both say."""

    def __init__(self, port: int) -> None:
        certificate, private = _certificate(FakeHost(set()))
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        worker._load(self.context, Waits(0, certificate, private, "", "", 0, 0))
        self.server = socket.create_server((OTHER, 0))
        self.heard: list[bytes] = []
        self.port, self.target = self.server.getsockname()[1], port
        threading.Thread(target=self.work, daemon=True).start()

    def work(self) -> None:
        out = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        out.check_hostname, out.verify_mode = False, ssl.CERT_NONE
        plain, _ = self.server.accept()
        with (
            contextlib.suppress(OSError, JoinError),
            self.context.wrap_socket(plain, server_side=True) as near,
            out.wrap_socket(socket.create_connection((OTHER, self.target))) as far,
        ):
            ends = [Lines(near, near), Lines(far, far)]
            for number in range(20):
                line = ends[number % 2].receive(1 << 20)
                self.heard.append(line)
                (far, near)[number % 2].sendall(line + b"\n")


def test_somebody_in_between_learns_nothing_and_passes_nothing(two):
    code = two.invite()
    between = Between(two.port)
    two.second.verbs._port = between.port
    field, said = two.refused(code)
    assert field == "code" and "not the code" in said
    kinds = [json.loads(line)["kind"] for line in between.heard]
    assert kinds == ["hello", "answer", "proof", "refused"]
    assert proof.plain(code).encode() not in b"".join(between.heard) and b"lb2" not in b"".join(between.heard)
    two.has_tries(2)
    assert agreed(two.first) is None is agreed(two.second)


def dialled(port: int) -> tuple[ssl.SSLSocket, bytes]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    secure = context.wrap_socket(socket.create_connection((OTHER, port), PATIENCE))
    return secure, hashlib.sha256(secure.getpeercert(binary_form=True)).digest()


def test_a_box_that_does_not_know_the_code_is_told_nothing_of_it(two):
    two.invite()
    secure, _ = dialled(two.port)
    with secure:
        lines = Lines(secure, secure)
        lines.send(Hello(messages.VERSION, "0" * 64))
        answer = messages.read(lines.receive(EARLY), Answer)
        lines.send(Proof(answer.key, "0" * 64))
        with pytest.raises(JoinError, match="not the code"):
            messages.read(lines.receive(EARLY), Proven)


STRANGE = {
    "empty": b"",
    "nothing": b"{}",
    "long": b"x" * 5000,
    "too early": b'{"kind":"tell","body":{}}',
    "deep": b"[" * 2000,
    "no text": b"\xff\xfe",
    "another version": b'{"kind":"hello","body":{"version":2,"nonce":"0"}}',
}


@pytest.mark.parametrize("line", STRANGE.values(), ids=STRANGE)
def test_strangers_who_say_anything_take_no_try(two, line):
    code = two.invite()
    secure, _ = dialled(two.port)
    with secure, contextlib.suppress(OSError):
        secure.sendall(line + b"\n")
        secure.settimeout(PATIENCE)
        while secure.recv(1 << 16):
            pass
    assert two.first.verbs.pair_joining()["invitation"]["tries"] == 3
    assert two.join(code)["joined"]


def test_strangers_who_say_nothing_delay_nobody(two):
    """More of them than are greeted at once: some before TLS, some in the middle of it, some after it."""
    code = two.invite()
    with contextlib.ExitStack() as opened:
        for number in range(3 * worker.GUESTS):
            plain = opened.enter_context(socket.create_connection((OTHER, two.port), PATIENCE))
            if number % 3 == 1:
                plain.sendall(b"\x16\x03\x01\x02\x00")  # the beginning of a ClientHello
            elif number % 3 == 2:
                opened.enter_context(dialled(two.port)[0])
        assert two.join(code)["joined"]
    assert two.settled()["joined"]


def test_guesses_that_come_at_once_are_no_more_guesses(two):
    """And the code is good no longer for one who had come before, either."""
    code = two.invite()
    guests = [dialled(two.port) for _ in range(5)]
    key = base64.b64encode(bytes(range(32))).decode()
    with contextlib.ExitStack() as opened:
        said = []
        for number, (secure, certificate) in enumerate(guests):
            opened.enter_context(secure)
            lines = Lines(secure, secure)
            lines.send(Hello(messages.VERSION, "0" * 64))
            answer = messages.read(lines.receive(EARLY), Answer)
            known = proof.secret(code if number == 4 else "A" * 16, certificate)
            shown = proof.prove(known, "second box", certificate, (answer.nonce, "0" * 64), (answer.key, key))
            said.append((lines, Proof(key, shown)))
        found = []
        for lines, shown in said:
            try:
                lines.send(shown)
                messages.read(lines.receive(EARLY), Proven)
                found.append("proven")
            except JoinError as error:
                found.append(error.why)
    assert "2 tries are left" in found[0] and "1 try is left" in found[1] and "the last try" in found[2], found
    assert "proven" not in found
    assert two.settled()["said"] == "The code was entered wrongly too often. Make a new one."


def test_a_box_that_is_slow_at_each_message_ends_no_invitation(two, monkeypatch):
    """Each is within its time, and all of them take longer than the program is usually waited for."""
    monkeypatch.setattr(verbs, "SILENCE", 0.4)
    code = two.invite()
    secure, _ = dialled(two.port)
    with secure:
        time.sleep(0.3)
        lines = Lines(secure, secure)
        lines.send(Hello(messages.VERSION, "0" * 64))
        messages.read(lines.receive(EARLY), Answer)
        time.sleep(0.3)
    monkeypatch.undo()
    assert two.first.verbs.pair_joining()["invitation"]["tries"] == 3
    assert two.join(code)["joined"]


class Cut(InThread):
    """The power goes at the box after so many lines to or from the program."""

    left = 0

    def _one(self) -> None:
        self.left -= 1
        if self.left < 0:
            self.end()
            raise HostError("worker", None, "the power is gone")

    def say(self, line: str) -> None:
        self._one()
        super().say(line)

    def lines(self, seconds: float):
        for line in super().lines(seconds):
            if '"waiting"' not in line:
                self._one()
            yield line


def cut_off(two, monkeypatch, box: str, left: int) -> None:
    """That box says and hears so many messages, and no more."""

    def start(argv):
        if argv[-1] != box:
            return InThread(argv[-1])
        program = Cut(argv[-1])
        program.left = left
        return program

    for one in (two.first, two.second):
        monkeypatch.setattr(one.host, "start", start)


@pytest.mark.parametrize("box", ["first", "second"])
@pytest.mark.parametrize("left", range(8))
def test_a_power_cut_at_any_message_leaves_no_pair_on_both_or_the_same_agreement(two, box, left, monkeypatch):
    """The first box, which makes the pair, never knows one that the second does not."""
    cut_off(two, monkeypatch, box, left)
    with contextlib.suppress(ApplierRefused, HostError):
        two.join(two.invite())
    if box == "first":
        two.settled()
    two.until_it_waits()
    first, second = record.load(two.first.paths), record.load(two.second.paths)
    assert first is None or (second is not None and (first.id, first.keys) == (second.id, second.keys))
    for one in (two.first, two.second):
        monkeypatch.undo()
        one.verbs.pair_forget("admin")
    assert record.load(two.first.paths) is None is record.load(two.second.paths)


def restarted(box: Linked) -> None:
    """Its applier, with whatever it has on its disk."""
    opened = box.verbs._open
    if opened is not None:
        opened.program.end()
        opened.thread.join(PATIENCE)
    box.begin()


@pytest.mark.parametrize("box", ["first", "second"])
@pytest.mark.parametrize("left", range(8))
def test_after_a_power_cut_at_any_message_the_code_is_entered_once_more(two, box, left, monkeypatch):
    """The same one as long as it is shown; if the first box was restarted, a new one."""
    cut_off(two, monkeypatch, box, left)
    code = ""
    with contextlib.suppress(ApplierRefused, HostError):
        code = two.invite()
        two.join(code)
    two.until_it_waits()
    restarted(getattr(two, box))
    monkeypatch.undo()
    if not two.joined():
        assert not (agreed(two.first) and not agreed(two.second)), "the first one waits for a box that knows nothing"
        two.join(code if two.first.verbs.pair_joining()["invitation"] else two.invite())
    assert two.joined()


WRITES = {
    "first": [(record, "keep")],
    "second": [(record, "forget"), (pair_key, "keep"), (record, "keep")],
}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("box", "write"), [(box, write) for box, all_of in WRITES.items() for write in all_of])
def test_after_a_power_cut_at_any_write_the_code_is_entered_once_more(two, box, write, after, monkeypatch):
    """Also at a box that was joined to a third one before."""
    module, name = write
    real, cut = getattr(module, name), getattr(two, box)
    old = record.Record("e" * 32, 1, ("a" * 42 + "A=", "b" * 42 + "A="), "old", "10.0.2.99", 1, None, ())
    pair_key.make(two.second.host, two.second.paths)
    record.keep(two.second.paths, old)

    def stops(paths, *rest):
        if paths is not cut.paths:
            return real(paths, *rest)
        if after:
            real(paths, *rest)
        raise HostError("worker", None, "the power is gone")

    code = two.invite()
    monkeypatch.setattr(module, name, stops)
    with contextlib.suppress(ApplierRefused):  # unless the other one is heard by then
        two.join(code)
    two.until_it_waits()
    restarted(cut)
    monkeypatch.undo()
    if not two.joined():
        assert agreed(two.first) is None or agreed(two.first) == agreed(two.second)
        two.join(code if two.first.verbs.pair_joining()["invitation"] else two.invite())
    assert two.joined()


class Wire:
    """What becomes of the message of this number between the two boxes, counted over both directions."""

    def __init__(self, at: int, fate: str) -> None:
        self.at, self.fate, self.count = at, fate, itertools.count()
        self.real, self.real_more = Lines.send, Lines._more

    def sender(self):
        def send(lines: Lines, message) -> None:
            if isinstance(lines._sink, int) or next(self.count) != self.at:
                self.real(lines, message)
                return
            if self.fate == "late":
                time.sleep(4 * SHORT)
            if self.fate != "lost":
                with contextlib.suppress(JoinError):
                    self.real(lines, message)
            with contextlib.suppress(OSError):
                lines._sink.shutdown(socket.SHUT_RDWR)
            raise JoinError("The connection between the two boxes was lost.")

        return send

    def reader(self):
        def more(lines: Lines, seconds: float) -> bytes:
            return self.real_more(lines, seconds if isinstance(lines._source, int) else min(seconds, SHORT))

        return more


SHORT = 0.2
MESSAGES = 10  # between the two, from Hello to Done


@pytest.mark.parametrize("at", range(MESSAGES))
@pytest.mark.parametrize("fate", ["lost", "last", "late"])
def test_the_same_code_is_answered_again_whichever_message_was_lost(two, at, fate, monkeypatch):
    """The message itself, all that come after it, or it comes when nobody waits for it any more."""
    wire = Wire(at, fate)
    code = two.invite()
    monkeypatch.setattr(Lines, "send", wire.sender())
    if fate == "late":
        monkeypatch.setattr(Lines, "_more", wire.reader())
    before = two.first.verbs.pair_joining()["invitation"]["tries"]
    with contextlib.suppress(ApplierRefused):
        two.join(code)
    two.until_it_waits()  # it may still be keeping what it was told last
    monkeypatch.undo()
    if agreed(two.first):
        assert two.joined(), "the first box has kept it, so the link goes up whatever the second one was told"
    elif agreed(two.second):
        assert not two.second.link["heard"]
    here = two.join(code)["joined"]
    assert two.joined() and here["other"] == "lb1"
    assert two.settled()["said"] == "" and before == 3, "no try was lost by it"


def test_the_same_box_gets_the_same_answer_until_it_is_heard(two):
    two.first.udp = two.second.udp = False
    code = two.invite()
    one, again = (two.join(code)["joined"] for _ in range(2))
    assert (one["id"], one["keys"]) == (again["id"], again["keys"]) and agreed(two.first) == agreed(two.second)
    third = JoiningBox(lambda: SECOND, lambda: CARDS, two.port)
    with pytest.raises(ApplierRefused, match="lb2 has joined with this code already"):
        third.verbs.pair_join(OTHER, code, "eve")
    assert two.first.verbs.pair_joining()["invitation"]["code"] == code
    two.first.udp = two.second.udp = True
    two.settled()
    assert two.join(code)["joined"]["id"] == one["id"], "nobody waits any more, and it need not ask"


def test_a_code_that_is_entered_twice_at_once_joins_once(two):
    """A browser or a program that repeats what was not answered in time."""
    code, said = two.invite(), []
    askers = [threading.Thread(target=lambda: said.append(two.join(code)["joined"])) for _ in range(2)]
    for one in askers:
        one.start()
    for one in askers:
        one.join(PATIENCE)
    assert len(said) == 2 and said[0] == said[1] and two.joined()


def test_a_code_that_was_typed_wrongly_forgets_nothing(two):
    two.first.udp = two.second.udp = False
    two.join(two.invite())
    known = agreed(two.second)
    assert two.refused(proof.new_code())[0] == "code" and agreed(two.second) == known
    assert pair_key.public(two.second.host, two.second.paths) in known[1]


def test_the_time_of_a_code_is_over_before_the_box_is_heard(two, monkeypatch):
    """What the first box does with a box that is joined by half: it shows a new code, which is entered there."""
    two.first.udp = two.second.udp = False
    monkeypatch.setattr(verbs, "SECONDS", 2)
    code = two.invite()
    two.join(code)
    assert two.settled()["joined"]["other"] == "lb2" and two.settled()["said"] == ""
    two.first.udp = two.second.udp = True
    record.forget(two.second.paths)  # somebody has reset it, say
    monkeypatch.undo()
    assert two.refused(code)[0] == "address"
    assert two.join(two.invite())["joined"]["other"] == "lb1" and two.joined()


def test_the_program_has_no_rights_and_ends_with_the_applier():
    if os.geteuid() != 0:
        pytest.skip("not root: nobody can become another user")
    program = Live().start(confined("first"))
    certificate, private = _certificate(Live())
    program.say(json.dumps(messages.plain(Waits(0, certificate, private, proof.new_code(), "k", 3, SECONDS))))
    assert json.loads(next(iter(program.lines(PATIENCE))))["kind"] == "listening"
    status = Path(f"/proc/{program._process.pid}/status").read_text()
    assert "Uid:\t986\t986\t986\t986" in status and "CapEff:\t0000000000000000" in status
    assert "NoNewPrivs:\t1" in status and "Groups:\t \n" in status
    program.end()
    assert program._process.returncode == 0
