"""Who else comes while two boxes are being joined: listens in between, guesses, says anything, or nothing at all."""

import base64
import contextlib
import hashlib
import json
import socket
import ssl
import threading
import time

import pytest
from board.machines.wait import PATIENCE
from tests.fake.joining import FakeHost
from tests.peers.joining_boxes import OTHER, agreed

from applier.pair.joining import messages, proof, verbs, worker
from applier.pair.joining.messages import EARLY, Answer, Hello, JoinError, Proof, Proven
from applier.pair.joining.verbs import _certificate
from applier.pair.joining.worker import Lines, Waits


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
