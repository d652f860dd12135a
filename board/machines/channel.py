"""JSON lines over a UNIX socket of QEMU: its machine protocol (QMP) and its guest agent."""

from __future__ import annotations

import base64
import itertools
import json
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from board.machines.wait import PATIENCE


class ChannelError(OSError):
    """The other end is gone, silent for too long, or refused a command."""


class Channel:
    def __init__(self, path: Path, timeout: float = PATIENCE) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(timeout)
        self.socket.connect(str(path))
        self.rest = b""

    def close(self) -> None:
        self.socket.close()

    def send(self, message: dict, prefix: bytes = b"") -> None:
        self.socket.sendall(prefix + json.dumps(message).encode() + b"\n")

    def receive(self, timeout: float) -> dict:
        """The next JSON line. Raises ChannelError."""
        deadline = time.monotonic() + timeout
        while b"\n" not in self.rest:
            self.socket.settimeout(max(deadline - time.monotonic(), 0.01))
            try:
                data = self.socket.recv(1 << 20)
            except TimeoutError:
                raise ChannelError(f"no answer within {timeout:g} s") from None
            if not data:
                raise ChannelError("the other end closed the connection")
            self.rest += data
        line, self.rest = self.rest.split(b"\n", 1)
        # The agent answers guest-sync-delimited with a byte 0xFF before it: what came earlier is stale.
        return json.loads(line.rpartition(b"\xff")[2])

    def ask(self, command: str, timeout: float = PATIENCE, **arguments: object) -> Any:
        """Run a command of the protocol and return its result. Raises ChannelError."""
        return self.ask_with(command, arguments, timeout)

    def ask_with(self, command: str, arguments: dict[str, Any], timeout: float = PATIENCE) -> Any:
        """`ask` with arguments whose names are no names of Python."""
        self.send({"execute": command, "arguments": arguments} if arguments else {"execute": command})
        while True:
            answer = self.receive(timeout)
            if "error" in answer:
                raise ChannelError(f"{command}: {answer['error'].get('desc', answer['error'])}")
            if "return" in answer:
                return answer["return"]  # anything else is an event of QMP


class Monitor(Channel):
    """QEMU's own control channel."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.receive(10)  # the greeting
        self.ask("qmp_capabilities")

    def human(self, line: str, timeout: float = 60.0) -> str:
        """A command of the monitor for people; savevm and loadvm exist only there. Raises ChannelError."""
        answer = str(self.ask("human-monitor-command", timeout, **{"command-line": line}))
        if answer.startswith(("Error", "No ", "Device ")):
            raise ChannelError(f"{line}: {answer.strip()}")
        return answer


@dataclass(frozen=True)
class Done:
    """A command that ended in the guest."""

    exit: int
    output: str
    errors: str


class Agent(Channel):
    """The guest agent: runs commands in the guest as root."""

    tags = itertools.count(1)

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        try:
            self.synchronise(2.0)
        except OSError:
            self.close()  # QEMU talks to one at a time: the next one to try would wait behind this one
            raise

    def synchronise(self, timeout: float) -> None:
        """Drop whatever half-finished answers lie in the channel; tells at the same time that the agent lives."""
        tag = next(self.tags)
        deadline = time.monotonic() + timeout
        self.send({"execute": "guest-sync-delimited", "arguments": {"id": tag}}, prefix=b"\xff")
        while time.monotonic() < deadline:
            try:
                answer = self.receive(deadline - time.monotonic())
            except ValueError:
                continue
            if answer.get("return") == tag:
                return
        raise ChannelError("the guest agent does not answer")

    def run(self, argv: list[str], timeout: float, stdin: bytes = b"") -> Done:
        """Run a command to its end. Raises ChannelError when it is still running after `timeout` seconds."""
        words: dict[str, object] = {"path": argv[0], "arg": argv[1:], "env": ENVIRONMENT, "capture-output": True}
        if stdin:
            words["input-data"] = base64.b64encode(stdin).decode()
        started = self.ask_with("guest-exec", words)
        deadline = time.monotonic() + timeout
        pause = 0.02
        while True:
            status = self.ask("guest-exec-status", pid=started["pid"])
            if status["exited"]:
                ended = status.get("exitcode", 128 + status.get("signal", 0))
                return Done(ended, decoded(status, "out-data"), decoded(status, "err-data"))
            if time.monotonic() > deadline:
                raise ChannelError(f"{argv} was still running after {timeout:g} s")
            time.sleep(pause)
            pause = min(pause * 1.5, 0.3)


ENVIRONMENT = ["PATH=/usr/sbin:/usr/bin", "LANG=C", "PYTHONUTF8=1"]


def decoded(status: dict, key: str) -> str:
    return base64.b64decode(status.get(key, "")).decode(errors="replace")
