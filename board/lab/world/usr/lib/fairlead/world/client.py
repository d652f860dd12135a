"""What the client does; each command prints JSON.

client.py get HOST:PORT/PATH COUNT [SOURCE]   requests one after the other, a new connection each: who answered
client.py ask HOST:PORT COUNT [PORT]          datagrams, each from a port that was not used before, or all from
                                              PORT: who answered
client.py talk HOST:PORT COUNT                SCTP associations one after the other: who answered
client.py download HOST:PORT/PATH             one request: who answered, bytes, their SHA-256, seconds
client.py load HOST:PORT/PATH CLIENTS SECONDS [BEFORE]
                                              requests of several clients at once, each one after the other: how many
                                              each server answered; those of BEFORE seconds come first and do not count
client.py hold HOST:PORT COUNT FILE           long TCP connections until SIGTERM; a report into FILE twice a second
client.py repeat get HOST:PORT/PATH FILE      requests, a new connection each, until SIGTERM; a report as above
client.py repeat ask HOST:PORT FILE           the same with datagrams, a new port each
client.py serve SOCKET                        commands as JSON lists, one for each connection to this UNIX socket: what
                                              they print is the answer; each in a fork, which has nothing to load
"""

from __future__ import annotations

import fcntl
import hashlib
import http.client
import json
import os
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

TIMEOUT = 5.0  # seconds for one answer
BEAT = 0.5  # seconds between two questions on a held connection
PAUSE = 0.1  # seconds between two repeated requests
SLOW = 1.0  # seconds; what takes longer is told with its time
MOST = 100  # of those
PORTS = "/run/world/ports"  # a byte for each datagram's port that was used
FIRST_PORT, PORT_COUNT = 10_000, 20_000  # below those that Linux chooses (ip_local_port_range)


def place(target: str) -> tuple[str, int]:
    """ "10.1.0.100:80" and "[2001:db8:1::100]:80" as host and port."""
    host, _, port = target.rpartition(":")
    return host.strip("[]"), int(port)


def get(url: str, count: str, source: str = "") -> list[str]:
    """The name of the server that answered each request, or what went wrong."""
    host, _, path = url.partition("/")
    answers = []
    for _ in range(int(count)):
        try:
            bound = (source, 0) if source else None
            connection = http.client.HTTPConnection(host, timeout=TIMEOUT, source_address=bound)
            connection.request("GET", f"/{path}")
            answer = connection.getresponse()
            answer.read()
            answers.append(answer.getheader("X-Server") or f"HTTP {answer.status}")
            connection.close()
        except (OSError, http.client.HTTPException) as error:
            answers.append(f"error: {error}")
    return answers


def ask(target: str, count: str, source: str = "0") -> list[str]:
    host, port = place(target)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    answers = []
    for _ in range(int(count)):
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.settimeout(TIMEOUT if source == "0" else 1.0)
            probe.bind(("", int(source) or fresh_port()))
            try:
                probe.sendto(b"hello", (host, port))
                answers.append(probe.recv(1000).decode().split()[0])
            except OSError as error:
                answers.append(f"error: {error}")
    return answers


def fresh_port() -> int:
    """Not the kernel's choice: by chance that is a port which the director still knows, with its server."""
    with open(PORTS, "a+") as used:
        fcntl.flock(used, fcntl.LOCK_EX)
        used.write(".")
        used.flush()
        return FIRST_PORT + used.tell() % PORT_COUNT


def talk(target: str, count: str) -> list[str]:
    answers = []
    for _ in range(int(count)):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_SCTP) as association:
            association.settimeout(TIMEOUT)
            try:
                association.connect(place(target))
                association.sendall(b"hello\n")
                answers.append(association.recv(1000).decode().split()[0])
            except OSError as error:
                answers.append(f"error: {error}")
    return answers


def download(url: str) -> dict:
    host, _, path = url.partition("/")
    begun = time.monotonic()
    connection = http.client.HTTPConnection(host, timeout=TIMEOUT)
    connection.request("GET", f"/{path}")
    answer = connection.getresponse()
    body = answer.read()
    return {
        "server": answer.getheader("X-Server"),
        "bytes": len(body),
        "sha256": hashlib.sha256(body).hexdigest(),
        "seconds": time.monotonic() - begun,
    }


def load(url: str, clients: str, seconds: str, before: str = "0") -> dict[str, int]:
    begin = time.monotonic() + float(before)

    def client(_: int) -> Counter[str]:
        answers: Counter[str] = Counter()
        while (asked := time.monotonic()) < begin + float(seconds):
            answer = get(url, "1")
            if asked >= begin:
                answers.update(answer)
        return answers

    with ThreadPoolExecutor(int(clients)) as pool:
        return sum(pool.map(client, range(int(clients))), Counter())


def hold(target: str, count: str, file: str) -> dict:
    """Connections that are spoken over all the time. Broken: refused, ended, silent or answered by another server."""
    host, port = place(target)
    held = [Held(host, port) for _ in range(int(count))]
    ending = told_to_end()
    rounds = 0
    while not ending:
        for one in held:
            one.beat()
        rounds += 1
        report = {
            "open": sum(not one.error for one in held),
            "broken": [one.error for one in held if one.error],
            "servers": sorted({one.server for one in held if one.server}),
            "shares": Counter(one.server for one in held if one.server),
            "rounds": rounds,
        }
        tell(file, report)
        time.sleep(BEAT)
    return report


def repeat(way: str, target: str, file: str) -> dict[str, object]:
    """`failed`: [second since 1970, what went wrong] of each that failed; `slowest`: seconds that one took.

    `slow`: [second since 1970 at its end, seconds] of those that took long; `stalls`: the same of pauses that were to
    be short, when this machine itself stood still.
    """
    ending = told_to_end()
    count, slowest = 0, 0.0
    failed: list[tuple[float, str]] = []
    slow: list[tuple[float, float]] = []
    stalls: list[tuple[float, float]] = []

    def report() -> dict[str, object]:
        return {"count": count, "failed": failed, "slowest": slowest, "slow": slow[:MOST], "stalls": stalls[:MOST]}

    told = 0.0
    while not ending:
        began = time.monotonic()
        [answer] = COMMANDS[way](target, "1")
        ended = time.monotonic()
        count += 1
        slowest = max(slowest, ended - began)
        if answer.startswith("error"):
            failed.append((time.time(), answer))
        if ended - began >= SLOW:
            slow.append((round(time.time(), 2), round(ended - began, 2)))
        if ended - told >= BEAT:
            tell(file, report())
            told = ended
        time.sleep(PAUSE)
        if (paused := time.monotonic() - ended) >= SLOW:
            stalls.append((round(time.time(), 2), round(paused, 2)))
    tell(file, report())
    return report()


def serve(path: str) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(path)
        door.listen()
        while True:
            connection, _ = door.accept()
            if os.fork() == 0:
                with connection, connection.makefile("rw") as lines:
                    command, *words = json.loads(lines.readline())
                    lines.write(json.dumps(COMMANDS[command](*words)) + "\n")
                os._exit(0)
            connection.close()


def told_to_end() -> list[int]:
    """Empty until SIGTERM comes."""
    ending: list[int] = []
    signal.signal(signal.SIGTERM, lambda *_: ending.append(1))
    return ending


def tell(file: str, report: dict[str, object]) -> None:
    with open(f"{file}.new", "w") as output:
        json.dump(report, output)
    os.replace(f"{file}.new", file)


class Held:
    def __init__(self, host: str, port: int) -> None:
        self.error = ""
        self.server = ""
        self.beats = 0
        try:
            self.socket = socket.create_connection((host, port), TIMEOUT)
        except OSError as error:
            self.error = f"connect: {error}"

    def beat(self) -> None:
        if self.error:
            return
        self.beats += 1
        try:
            self.socket.sendall(f"beat {self.beats}\n".encode())
            answer = self.socket.recv(1000).decode()
        except OSError as error:
            self.error = str(error)
            return
        server, _, rest = answer.partition(" ")
        if rest != f"beat {self.beats}\n" or self.server not in ("", server):
            self.error = f"from {self.server or 'nobody'} came {answer!r}"
        self.server = server


COMMANDS: dict[str, Callable[..., Any]] = {
    "get": get,
    "ask": ask,
    "talk": talk,
    "download": download,
    "load": load,
    "hold": hold,
    "repeat": repeat,
    "serve": serve,
}

if __name__ == "__main__":
    print(json.dumps(COMMANDS[sys.argv[1]](*sys.argv[2:])))
