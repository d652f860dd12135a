"""Two doors to the system for tests.

Recorder writes down what Live was asked and answered; Replay answers from such a recording.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from applier.host.host import COMMAND_TIMEOUT, PUBLIC, HostError, Live, Output


class Recorder(Live):
    """Live, and a list of every question with its answer, in the form that Replay reads."""

    def __init__(self) -> None:
        self.entries: list[dict] = []

    def command(self, argv: Sequence[str], stdin: str = "", timeout: float = COMMAND_TIMEOUT) -> Output:
        output = super().command(argv, stdin, timeout)
        answer = {"exit": output.exit, "stdout": output.stdout, "stderr": output.stderr}
        self.entries.append({"argv": list(argv), "stdin": stdin, **answer})
        return output

    def netlink(self, request: bytes) -> list[bytes]:
        datagrams = super().netlink(request)
        self.entries.append({"netlink": request.hex(), "datagrams": [datagram.hex() for datagram in datagrams]})
        return datagrams

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(self.entries, indent=1, ensure_ascii=False) + "\n")


class Replay(Live):
    """Answers commands and netlink from a recording; an unknown question is an error, nothing is changed.

    A question asked more than once gets its recorded answers in turn, and then the last one again.
    """

    def __init__(self, entries: list[dict]) -> None:
        self._commands: dict[tuple, list[Output]] = {}
        self._netlink: dict[str, list[list[bytes]]] = {}
        for entry in entries:
            if "netlink" in entry:
                datagrams = [bytes.fromhex(text) for text in entry["datagrams"]]
                self._netlink.setdefault(entry["netlink"], []).append(datagrams)
            else:
                key = (tuple(entry["argv"]), entry["stdin"])
                output = Output(entry["exit"], entry["stdout"], entry["stderr"])
                self._commands.setdefault(key, []).append(output)

    @classmethod
    def load(cls, path: Path) -> Replay:
        return cls(json.loads(path.read_text()))

    def command(self, argv: Sequence[str], stdin: str = "", timeout: float = COMMAND_TIMEOUT) -> Output:
        return self._next(self._commands, (tuple(argv), stdin), " ".join(argv))

    def netlink(self, request: bytes) -> list[bytes]:
        return self._next(self._netlink, request.hex(), "netlink")

    @staticmethod
    def _next(answers: dict, key: object, name: str):
        known = answers.get(key)
        if not known:
            raise HostError(name, None, "this question is not in the recording")
        return known.pop(0) if len(known) > 1 else known[0]

    def set(self, key: str, value: str) -> None:
        raise HostError(f"setting {key} = {value}", None, "a recording changes nothing")

    def put(self, path: Path, text: str | None, mode: int = PUBLIC) -> None:
        raise HostError(f"write {path}", None, "a recording changes nothing")

    def tell(self, path: Path, text: str) -> None:
        raise HostError(f"write {text} to {path}", None, "a recording changes nothing")

    def add_service(self, folder: Path, template: Path) -> None:
        raise HostError(f"make the service {folder}", None, "a recording changes nothing")

    def remove_service(self, folder: Path) -> None:
        raise HostError(f"remove the service {folder}", None, "a recording changes nothing")

    def connect(self, address: str, port: int, timeout: float) -> str:
        raise HostError(f"connect to {address}:{port}", None, "a recording reaches nobody")

    def certificate(self, address: str, port: int, timeout: float) -> str:
        raise HostError(f"connect to {address}:{port}", None, "a recording reaches nobody")

    def send(self, interface: str, frame: bytes) -> None:
        raise HostError(f"send by {interface}", None, "a recording reaches nobody")

    def multicast(self, interface: str, group: str, port: int, datagrams: Sequence[bytes]) -> None:
        raise HostError(f"send by {interface}", None, "a recording reaches nobody")

    def kill_group(self, group: int) -> None:
        raise HostError("kill", None, "a recording changes nothing")

    end = kill_group
