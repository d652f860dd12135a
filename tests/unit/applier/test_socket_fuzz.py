"""Whatever comes to the socket: the daemon lives, and who may not change anything has changed nothing.

make fuzz COUNT=20000      so many messages, other ones each time; the tests take 300 that are always the same
"""

import json
import os
import socket
import threading
from collections import Counter

import pytest
from box import ONE, TWO, running_one
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from model_host import ModelHost

from applier.host.host import Output
from applier.wire import protocol, server
from applier.wire.server import Server
from lbconfig.model.snapshot import to_data

COUNT = int(os.environ.get("FAIRLEAD_FUZZ", "300"))
FEW = settings(
    max_examples=COUNT,
    deadline=None,
    database=None,
    derandomize="FAIRLEAD_FUZZ" not in os.environ,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
NOBODY, WEB = 54321, 990

JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=50),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=20), inner, max_size=4),
    max_leaves=20,
)
# What the fields of the verbs are like when somebody means them.
MEANT = {
    "snapshot": st.sampled_from([to_data(ONE), to_data(TWO), {}, {"services": [{}]}]) | JUNK,
    "digest": st.sampled_from(["0" * 64, "f" * 64]),
    "base": st.sampled_from([None, 1, 2]),
    "user": st.sampled_from(["ann", "$(reboot)", "x" * 150]),
    "comment": st.text(max_size=30),
    "client": st.sampled_from(["", "192.168.10.9", "::1"]),
    "service": st.sampled_from([1, 2, 99]),
    "number": st.sampled_from([1, 2, 10**9]),
    "code": st.text(max_size=20),
    "source": st.sampled_from(["upload:" + "0" * 32, "usb:" + "0" * 16]),
    "slot": st.sampled_from(["A", "B"]),
    "said": st.sampled_from([{}, {"epoch": 1, "number": 1}]),
    "id": st.sampled_from(["a" * 32, "../x"]),
    "errand": st.sampled_from([{}, {"id": "a" * 32, "verb": "along_stamps", "arguments": {}}]),
    "answer": st.sampled_from([{}, {"id": "a" * 32, "result": {}}]),
    "stamps": st.sampled_from([{}, {"draft": "1"}, {"draft": 1}]),
}


@st.composite
def meant(draw, verbs=protocol.VERBS) -> bytes:
    """A verb with its fields, of which some are wrong, missing or too many."""
    verb = draw(st.sampled_from(sorted(verbs)))
    data = {"verb": verb}
    for name in verbs[verb]:
        kind = draw(st.sampled_from(["meant"] * 6 + ["junk", "missing"]))
        if kind != "missing":
            data[name] = draw(MEANT.get(name, JUNK) if kind == "meant" else JUNK)
    if draw(st.integers(0, 9)) == 0:
        data[draw(st.text(max_size=20))] = draw(JUNK)
    return json.dumps(data).encode()


LINES = st.one_of(
    meant(),
    meant(),
    st.binary(max_size=500).map(lambda data: data.replace(b"\n", b"")),
    JUNK.map(lambda data: json.dumps(data).encode()),
    st.builds(lambda line, cut: line[: max(1, cut * len(line) // 100)], meant(), st.integers(0, 99)),  # half a line
)


def for_pair():
    """The same with the verbs of the process that talks with the other box of a pair."""
    return st.one_of(meant(protocol.FOR_PAIR), LINES)


_modelled = ModelHost.command


def command(self, argv, *more, **others):
    """The model's; what it does not know is a program that fails, as it may on any box."""
    try:
        return _modelled(self, argv, *more, **others)
    except AssertionError:
        return Output(127, "", "no such luck")


@pytest.fixture
def serve(tmp_path, monkeypatch):
    """serve(uids): a box and its socket for these."""
    monkeypatch.setattr(server, "READ_SECONDS", 5.0)
    monkeypatch.setattr(ModelHost, "command", command)
    opened = []

    def begin(uids):
        box = running_one(tmp_path)
        box.server = Server(box.paths.socket, box.applier.handle, uids)
        threading.Thread(target=box.server.serve, daemon=True).start()
        opened.append(box)
        return box

    yield begin
    for box in opened:
        box.server.close()


def send(box, data: bytes, whole: bool = True) -> dict:
    """The answer; `whole`: with the new line that ends a request."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(20)
        connection.connect(str(box.paths.socket))
        try:
            connection.sendall(data + b"\n" * whole)
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it had seen enough; what it says is read anyway
        answer = b""
        while part := connection.recv(65536):
            answer += part
    return json.loads(answer)


def status(box) -> dict:
    return send(box, b'{"verb": "status", "known": []}')


def run_fuzz(box, check, lines=LINES) -> Counter:
    seen: Counter[str] = Counter()

    @FEW
    @given(lines, st.integers(0, 9))
    def one(line, dice):
        answer = send(box, line, whole=dice > 0)
        code = answer["error"]["code"] if "error" in answer else "result"
        assert code != "internal", (line, answer)
        check(line, code)
        seen[code] += 1

    one()
    return seen


def test_the_channel_of_a_pair_brings_nothing_about(serve, capsys, monkeypatch):
    """Its socket, as the process may ask it that has what strangers send: on a box that is in no pair, nothing is."""
    box = serve({os.getuid()})
    monkeypatch.setattr(box.server, "_verbs", protocol.FOR_PAIR)
    before = box.host.state()
    seen = run_fuzz(box, lambda line, code: None, for_pair())
    told("the applier's socket for the channel", seen, capsys)
    assert {"result", "not-json", "bad-field", "incomplete", "unknown-verb"} <= set(seen)
    assert box.host.state() == before and len(box.applier.list_generations()) == 1


def told(title: str, seen: Counter, capsys) -> None:
    with capsys.disabled():
        print(f"\n{title}: {seen.total()} messages tried, 0 crashes ({dict(seen.most_common())})")


def test_no_message_is_a_crash(serve, capsys):
    """As one who may; what it asks for is done, and an apply that ran is one whose digest was right."""
    box = serve({os.getuid()})
    before = box.host.state()

    seen = run_fuzz(box, lambda line, code: None)
    told("the applier's socket", seen, capsys)
    assert {"result", "not-json", "bad-field", "incomplete"} <= set(seen)
    found = status(box)["result"]
    assert found["confirmed"] == 1 and found["snapshot"] == to_data(ONE)
    assert box.host.state() == before


def test_nobody_but_root_and_the_web_process_changes_or_reads_anything(serve, capsys):
    box = serve({NOBODY})  # whoever runs this test is not that one
    before, changes, code = box.host.state(), box.host.changes, box.paths.setup_code.read_text()

    def check(line, answer):
        assert answer == "forbidden", line

    seen = run_fuzz(box, check)
    told("the applier's socket, a user without the right; changes: 0", seen, capsys)
    assert (box.host.state(), box.host.changes) == (before, changes)
    assert box.paths.setup_code.read_text() == code
    assert len(box.applier.list_generations()) == 1


def test_the_web_process_does_not_get_what_is_root_s(serve, monkeypatch, capsys):
    box = serve({0, WEB})
    monkeypatch.setattr(server, "peer_uid", lambda connection: WEB)
    code = box.paths.setup_code.read_text()

    def check(line, answer):
        data = json.loads(line) if answer == "result" else {}
        assert data.get("verb") not in protocol.FOR_ROOT

    seen = run_fuzz(box, check)
    told("the applier's socket, the web process; root's verbs that it got: 0", seen, capsys)
    for verb in protocol.FOR_ROOT:
        fields = dict.fromkeys(protocol.VERBS[verb])
        answer = send(box, json.dumps({"verb": verb, **fields}).encode())
        assert answer["error"]["code"] in ("forbidden", "bad-field"), verb
    assert box.paths.setup_code.read_text() == code


def test_many_at_once_and_lines_without_end(serve):
    box = serve({os.getuid()})
    idle = []
    for _ in range(server.CONNECTIONS + 20):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(20)
        connection.connect(str(box.paths.socket))
        idle.append(connection)
    for connection in idle[server.CONNECTIONS :]:
        assert json.loads(connection.makefile().readline())["error"]["code"] == "overloaded"
    for connection in idle[: server.CONNECTIONS]:
        connection.sendall(b'{"verb": "generations"}\n')
        assert len(json.loads(connection.makefile().readline())["result"]) == 1
        connection.close()
    huge = b'{"verb": "check", "snapshot": {"services": [' + b"[" * (protocol.MAX_REQUEST + 1000)
    for _ in range(3):
        assert send(box, huge)["error"]["code"] == "too-large"
    assert send(box, b"[" * 1_000_000)["error"]["code"] == "not-json"
    assert status(box)["result"]["confirmed"] == 1
