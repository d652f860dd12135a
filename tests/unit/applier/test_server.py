"""The socket: what it takes, what it refuses, and that nobody blocks anybody."""

import dataclasses
import json
import os
import socket
import threading
import time

import pytest
from board.machines.wait import until
from box import ONE, TWO, running_one
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from applier.apply import review
from applier.wire import protocol, server
from applier.wire.client import ApplierDown, ApplierRefused, Client
from applier.wire.server import Server
from lbconfig.model.canonical import digest, text
from lbconfig.model.kept import Reading
from lbconfig.model.problem import UNKNOWN_FIELD, UNPRINTABLE
from lbconfig.model.snapshot import SnapshotError, from_data, to_data
from lbconfig.render import render

SOON = 20  # seconds


@pytest.fixture
def box(tmp_path, monkeypatch):
    monkeypatch.setattr(server, "READ_SECONDS", 60.0)  # on a busy machine a client may come late
    box = running_one(tmp_path)
    box.server = Server(box.paths.socket, box.applier.handle, {os.getuid()})
    threading.Thread(target=box.server.serve, daemon=True).start()
    yield box
    box.server.close()


def talk(box, data: bytes, end=False) -> dict:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(SOON)
        connection.connect(str(box.paths.socket))
        connection.sendall(data)
        if end:
            connection.shutdown(socket.SHUT_WR)
        answer = b""
        while not answer.endswith(b"\n"):
            part = connection.recv(65536)
            if not part:
                break
            answer += part
    return json.loads(answer)


def _unless_running(run: dict) -> dict:
    return {} if run["state"] == "running" else run


def request(verb, **fields) -> bytes:
    needed = {"known": []} if verb == "status" else {}
    return json.dumps({"verb": verb, **needed, **fields}).encode() + b"\n"


APPLY = {
    "snapshot": {},
    "digest": "0" * 64,
    "base": 1,
    "user": "ann",
    "comment": "",
    "client": "",
    "confirm_within": None,
    "services": [],
}


@pytest.mark.parametrize(
    ("data", "code", "words"),
    [
        (b"\n", "not-json", "not JSON"),
        (b"hello\n", "not-json", "not JSON"),
        (b"\xff\xfe\n", "not-json", "not JSON"),
        (b"[" * 100_000 + b"\n", "not-json", "not JSON"),
        (b'{"verb": ' + b"9" * 5000 + b"}\n", "not-json", "not JSON"),
        (b"[]\n", "bad-request", "must be a JSON object"),
        (b"null\n", "bad-request", "must be a JSON object"),
        (b"{}\n", "unknown-verb", "no verb"),
        (request("explode"), "unknown-verb", "no verb 'explode'"),
        (request(["status"]), "unknown-verb", "no verb"),
        (request("status", x=1), "bad-field", "x is not a field"),
        (request("generation"), "bad-field", "number is missing"),
        (request("generation", number=1, files=1), "bad-field", "files must be true or false"),
        (request("generation", number="1", files=False), "bad-field", "number must be a whole number"),
        (request("generation", number=True, files=False), "bad-field", "number must be a whole number"),
        (request("generation", number=-1, files=False), "bad-field", "number must be a whole number"),
        (request("generation", number=99, files=False), "unknown-generation", "no revision 99"),
        (request("check", snapshot=[]), "bad-field", "snapshot must be an object"),
        (request("check", snapshot={"port": 1}, services=[]), "bad-snapshot", f"port: {UNKNOWN_FIELD}"),
        (request("check", snapshot={}, services={}), "bad-field", "services must be a list"),
        (request("check", snapshot={"services": ["0" * 64]}, services=[]), "unknown-snapshot", "send all of it"),
        (request("check", snapshot={"services": ["x"]}, services=[]), "bad-snapshot", "services[0]: must be an object"),
        (request("check", snapshot={"services": ["x"]}, services=[["x"]]), "bad-snapshot", "services[0]: must be"),
        (request("missing", names=[7]), "bad-field", "names must be a list"),
        (request("setup_check", code=7), "bad-field", "code must be text"),
        (request("apply", **(APPLY | {"user": ""})), "bad-field", "user must have 1"),
        (request("apply", **(APPLY | {"user": "a\nb"})), "bad-field", f"user {UNPRINTABLE}"),
        (request("apply", **(APPLY | {"client": "a; b"})), "bad-field", "client must be an IP address"),
        (request("apply", **(APPLY | {"base": "1"})), "bad-field", "base must be"),
        (request("apply", **(APPLY | {"digest": "0"})), "bad-field", "digest must have 64"),
        (request("apply", **(APPLY | {"snapshot": {"services": 1}})), "bad-snapshot", "services: must be a list"),
    ],
    ids=lambda value: value[:40].decode("latin1") if isinstance(value, bytes) else None,
)
def test_bad_messages_are_refused_and_change_nothing(box, data, code, words):
    before = box.host.state()
    error = talk(box, data)["error"]
    assert error["code"] == code and words in error["message"]
    assert box.host.state() == before and box.host.changes == 0
    assert talk(box, request("status"))["result"]["confirmed"] == 1


def test_a_refusal_names_object_and_field(box):
    problem = talk(box, request("generation", number="1", files=False))["error"]["problems"][0]
    assert problem["object"] == "request 'generation'" and problem["field"] == "number"


@given(
    st.one_of(
        st.binary(max_size=200),
        st.recursive(st.none() | st.integers() | st.text(), st.lists).map(
            lambda value: json.dumps({"verb": "apply", "snapshot": value}).encode()
        ),
    )
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_message_ends_the_daemon(box, data):
    assert "error" in talk(box, data.replace(b"\n", b"") + b"\n")
    assert talk(box, request("status"))["result"]["confirmed"] == 1


def test_a_message_that_is_too_large(box):
    error = talk(box, b'{"verb": "' + b"x" * (protocol.MAX_REQUEST + 100_000) + b'"}\n')["error"]
    assert error["code"] == "too-large"


@pytest.fixture
def hurried(monkeypatch):
    """Whoever is slow is told so soon."""
    monkeypatch.setattr(server, "READ_SECONDS", 0.4)


def test_half_a_message_and_then_silence(box, hurried):
    assert talk(box, b'{"verb": "sta')["error"]["code"] == "incomplete"
    assert talk(box, b'{"verb": "sta', end=True)["error"]["code"] == "incomplete"


def test_a_message_that_trickles_has_no_more_time_than_others(box, hurried):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(box.paths.socket))
        begin = time.monotonic()
        for _ in range(30):
            time.sleep(0.05)
            try:
                connection.sendall(b" ")
            except OSError:
                break
            if time.monotonic() - begin > 1.2:
                break
        connection.settimeout(SOON)
        assert b"incomplete" in connection.recv(4096)


def test_slow_clients_block_nobody_and_too_many_are_turned_away(box):
    slow = []
    for _ in range(server.CONNECTIONS - 2):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(box.paths.socket))
        slow.append(connection)
    assert talk(box, request("status"))["result"]
    extra = []
    for _ in range(6):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(box.paths.socket))
        extra.append(connection)
    extra[-1].settimeout(SOON)
    assert b"overloaded" in extra[-1].recv(4096)
    for connection in slow + extra:
        connection.close()
    gone = (BrokenPipeError, ConnectionResetError)  # turned away before it had asked
    until("an answer", lambda: "result" in talk(box, request("status")), expected=gone)


def test_many_at_once(box):
    answers = []
    threads = [
        threading.Thread(target=lambda: answers.append(talk(box, request("status"))["result"]["confirmed"]))
        for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON)
    assert answers == [1] * 20


def test_a_client_that_goes_away_before_its_answer(box):
    for _ in range(5):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(box.paths.socket))
            connection.sendall(request("status"))
    assert talk(box, request("status"))["result"]


def test_only_root_and_the_web_may_ask(box, monkeypatch):
    monkeypatch.setattr(server, "peer_uid", lambda connection: 1000)
    error = talk(box, request("status"))["error"]
    assert error["code"] == "forbidden" and "1000" in error["message"]


def test_the_kernel_tells_who_asks(box):
    box.server._uids = {os.getuid() + 1}
    assert f"User id {os.getuid()}" in talk(box, request("status"))["error"]["message"]


def test_a_new_setup_code_is_for_root_alone(box, monkeypatch):
    box.server._uids = {990}
    monkeypatch.setattr(server, "peer_uid", lambda connection: 990)
    assert talk(box, request("new_setup_code"))["error"]["code"] == "forbidden"


def test_the_socket_is_for_its_group(box):
    assert box.paths.socket.stat().st_mode & 0o777 == 0o660


def test_a_mistake_in_a_verb_does_not_end_the_daemon(box, monkeypatch):
    monkeypatch.setitem(box.applier.verbs, "status", lambda known: 1 / 0)
    assert talk(box, request("status"))["error"]["code"] == "internal"
    assert talk(box, request("generations"))["result"]


def test_where_there_is_no_thread_to_be_had_the_daemon_goes_on(box, monkeypatch):
    """Each of them is turned away, and none takes a place for good."""

    def start(_):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as none_left:
        none_left.setattr(threading.Thread, "start", start)
        for _ in range(server.CONNECTIONS + 1):
            with socket.socket(socket.AF_UNIX) as connection:  # it says nothing, or it might be turned away before
                connection.settimeout(SOON)
                connection.connect(str(box.paths.socket))
                assert b"overloaded" in connection.recv(4096)
    assert talk(box, request("generations"))["result"]


# --- one question after the other, by one connection ---------------------------------------------------------


@pytest.fixture
def line(box):
    """line(data): the answer to one more line by the same connection; None: the box has ended it."""
    with socket.socket(socket.AF_UNIX) as connection, connection.makefile("rb") as answers:
        connection.settimeout(SOON)
        connection.connect(str(box.paths.socket))

        def ask(data: bytes = b"") -> dict | None:
            connection.sendall(data)
            answer = answers.readline()
            return json.loads(answer) if answer else None

        yield ask


def test_a_client_asks_again_by_the_same_connection(line):
    assert line(request("status"))["result"]["confirmed"] == 1
    assert line(request("explode"))["error"]["code"] == "unknown-verb"
    assert line(b"hello\n")["error"]["code"] == "not-json"
    assert line(request("status") + request("generations"))["result"]["confirmed"] == 1
    assert len(line()["result"]) == 1


def test_the_next_question_has_no_more_time_than_the_first(line, hurried):
    assert line(request("status"))["result"]
    assert line(b'{"verb": "sta')["error"]["code"] == "incomplete"
    assert line() is None


def test_a_client_that_asks_nothing_more_gives_its_place_back(box, line, monkeypatch):
    monkeypatch.setattr(server, "IDLE_SECONDS", 0.2)
    assert line(request("status"))["result"]
    assert line() is None
    until("its place", lambda: not box.server._open)


@pytest.fixture
def keeps(box):
    """A client that keeps its connections."""
    found = Client(box.paths.socket, SOON, keeps=True)
    yield found
    found._forget()


def test_a_client_keeps_its_connection(box, keeps, monkeypatch):
    accepted = []
    answer_all = box.server._answer_all
    monkeypatch.setattr(box.server, "_answer_all", lambda one: accepted.append(one) or answer_all(one))
    for _ in range(3):
        assert len(keeps.generations()) == 1
        with pytest.raises(ApplierRefused):
            keeps.generation(99)
    assert len(accepted) == 1
    for _ in range(3):
        assert len(Client(box.paths.socket).generations()) == 1
    assert len(accepted) == 4


def test_threads_that_ask_at_once_do_not_wait_for_each_other(box, keeps, monkeypatch):
    both = threading.Barrier(2, timeout=SOON)
    monkeypatch.setitem(box.applier.verbs, "generations", lambda: [both.wait()] * 0)
    threads = [threading.Thread(target=keeps.generations) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON)
    assert not both.broken and len(keeps._idle) == 2


def test_a_kept_connection_outlives_no_daemon(box, keeps, monkeypatch):
    """Nor does it stand in the way of the next one; and what was idle for too long is made anew."""
    assert len(keeps.generations()) == 1
    box.server.close()
    with pytest.raises(ApplierDown):
        keeps.generations()
    box.server = Server(box.paths.socket, box.applier.handle, {os.getuid()})
    threading.Thread(target=box.server.serve, daemon=True).start()
    monkeypatch.setattr(server, "IDLE_SECONDS", 0.1)
    for _ in range(2):
        assert len(keeps.generations()) == 1
        until("its end", lambda: not box.server._open)


# --- through the client -----------------------------------------------------------------------------------


def test_the_client_goes_all_the_way(box):
    client = Client(box.paths.socket)
    found = client.check(TWO)
    assert found["base"] == 1 and found["diff"] and found["snapshot"] == digest(TWO)
    assert any(change["kind"] == "added" for change in found["changes"])
    assert found["reach"]["reasons"] and found["impact"]["services"]
    with pytest.raises(ApplierRefused) as caught:
        client.apply("0" * 64, found["digest"], found["base"], "ann")
    assert caught.value.code == "unknown-snapshot"
    answer = client.apply(found["snapshot"], found["digest"], found["base"], "ann", "why", "192.168.1.1")
    name = answer["apply"]
    run = until("the end of the steps", lambda: _unless_running(client.progress()), interval=0.02)
    assert run["state"] == "waiting" and answer["confirm_within"] == run["confirm"]["within"] == 90
    run = client.confirm(secret=answer["secret"])
    assert run["id"] == name and run["state"] == "done", run
    assert [entry["number"] for entry in client.generations()] == [2, 1]
    assert client.status()["snapshot"] == to_data(TWO)
    second = client.generation(2, files=True)
    assert second["text"] == text(TWO) and second["files"] == render(TWO)
    assert client.generation(2) == {name: second[name] for name in second if name != "files"}
    assert (second["user"], second["comment"], second["outcome"]) == ("ann", "why", "confirmed")
    with pytest.raises(ApplierRefused) as caught:
        client.apply(ONE, found["digest"], 1, "bob")
    assert caught.value.code == "base-moved"


def test_only_services_that_the_daemon_does_not_know_are_sent(box, monkeypatch):
    sent = []
    ask = Client._ask

    def note(self, verb, **fields):
        sent.append((verb, fields))
        return ask(self, verb, **fields)

    def services(snapshot) -> int:
        sent.clear()
        assert Client(box.paths.socket).check(snapshot)["snapshot"] == digest(snapshot)
        assert [verb for verb, _ in sent] == ["missing", "check"]
        return len(sent[-1][1]["services"])

    monkeypatch.setattr(Client, "_ask", note)
    monkeypatch.setattr(review, "_reading", Reading())
    assert services(TWO) == len(TWO.services)
    assert services(TWO) == services(from_data(to_data(TWO))) == 0
    first, *others = TWO.services
    assert services(dataclasses.replace(TWO, services=(dataclasses.replace(first, note="new"), *others))) == 1
    assert services(dataclasses.replace(TWO, services=(*others, first))) == 0

    def forgets(self, verb, **fields):
        if verb == "check" and not fields["services"]:
            review._reading = Reading()  # as a daemon does that was started anew in between
        return ask(self, verb, **fields)

    monkeypatch.setattr(Client, "_ask", forgets)
    assert Client(box.paths.socket).check(TWO)["snapshot"] == digest(TWO)


def test_plain_data_are_sent_in_the_same_way(box):
    client, data = Client(box.paths.socket), to_data(TWO)
    assert client.check(data) == client.check(TWO)
    data["services"] *= 2
    assert [problem["field"] for problem in client.check(data)["problems"]].count("name") == len(TWO.services)
    for wrong in ({"services": 7}, {"services": ["x", None]}, {"services": [{"id": "x"}]}, {"port": 1}):
        with pytest.raises(ApplierRefused) as caught:
            client.check(wrong)
        with pytest.raises(SnapshotError) as expected:
            from_data(wrong)
        assert str(expected.value) in str(caught.value)


def test_what_runs_is_told_to_a_client_once(box):
    told = {known: talk(box, request("status", known=[known]))["result"] for known in ("", digest(ONE), digest(TWO))}
    assert {one["digest"] for one in told.values()} == {digest(ONE)}
    assert told[digest(ONE)]["snapshot"] is None
    assert told[""]["snapshot"] == told[digest(TWO)]["snapshot"] == to_data(ONE)
    for _ in range(3):
        assert Client(box.paths.socket).status()["snapshot"] == to_data(ONE)


def test_a_client_without_a_daemon_says_why(tmp_path):
    with pytest.raises(ApplierDown, match="No such file"):
        Client(tmp_path / "none.sock").status()
    path = tmp_path / "dead.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(1)
        with pytest.raises(ApplierDown, match=r"did not answer within 0\.2 seconds"):
            Client(path, timeout=0.2).status()
    with pytest.raises(ApplierDown, match="Connection refused"):
        Client(path).status()


@pytest.mark.parametrize("answer", [b"", b"{", b"[]\n", b"{}\n", b"\xff\n"])
def test_an_answer_that_makes_no_sense(tmp_path, answer):
    path = tmp_path / "odd.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(1)

        def once():
            connection, _ = listener.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(answer)

        thread = threading.Thread(target=once)
        thread.start()
        with pytest.raises(ApplierDown):
            Client(path, timeout=SOON).status()
        thread.join()
