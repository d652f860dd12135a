"""The web page as the box starts it, in a room: nginx and gunicorn by their own run scripts, a pretended appliance.

Clients are in the room's network, too: every address of 127.0.0.0/8 is one of theirs.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import http.client
import os
import select
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlencode

import django
from board.lab.build import TOP
from board.machines.wait import found, until
from tests.peers.room import CLEAN, ENDS, Room

from lbconfig.model.snapshot import FACTORY, Management
from lbconfig.render import nftables, web

OVERLAY = TOP / "overlay"
SITE_PACKAGES = Path(django.__file__).parents[1]
STARTS = 120.0  # seconds, on a busy machine
ANSWERS = 20.0  # seconds for a page on a busy machine, while nobody is in the way
NEW_NETWORK = 0x40000000  # setns(2), CLONE_NEWNET
PRETENDED = """
export PYTHONPATH=$PYTHONPATH:/usr/lib/fairlead/beside DJANGO_SETTINGS_MODULE=tests.fake.settings FAIRLEAD_FAKE=instant
"""
EARLY = ("/", "/changes/progress/1/", "/set-up/restore/", "/api/v1/status")  # asked for before the web process starts
DATA = "256m"  # of the data partition
USER, PASSWORD, CODE = "admin", "a good password", "TEST-CODE-2222"
SIX = "2001:db8:5::1"  # of the box; its /64 and the next belong to clients
Made = TypeVar("Made")
_libc = ctypes.CDLL(None, use_errno=True)


class Front(Room):
    def __init__(self, tree: Path) -> None:
        super().__init__("front", OVERLAY, tree)
        self.log = self.root / "root/front.log"
        self._running: list[subprocess.Popen] = []
        self.early: dict[str, tuple[int, str, http.client.HTTPMessage]] = {}
        self._network = os.open(f"/proc/{self.first}/ns/net", os.O_RDONLY)

    def start(self) -> None:
        for source, name in ((TOP / "webui", "webui"), (SITE_PACKAGES, "python"), (TOP / "tests", "beside/tests")):
            self.mount("--bind", source, f"usr/lib/fairlead/{name}")
        self.do("/etc/init.d/S01mounts", "start")
        for folder in ("data", "disk"):
            self.mount("-t", "tmpfs", "-o", f"size={DATA}", folder, folder)
        self.do("/etc/init.d/S20folders", "start")
        with (self.root / "etc/fairlead/web-environment").open("a") as environment:
            environment.write(PRETENDED)
        for address in (SIX, "2001:db8:5::2", "2001:db8:5::3", "2001:db8:5:1::2"):
            self.ip("-6", "address", "add", f"{address}/128", "dev", "lo", "nodad")
        (self.root / "run/fairlead/web.conf").write_text(web.alone(FACTORY))
        self._begin("nginx")
        self.early = until("nginx", lambda: {path: self.get(path) for path in EARLY}, STARTS)
        self._begin("web")
        until("the web page", self._answers, STARTS)

    def _begin(self, service: str) -> None:
        with self.log.open("a") as log:
            words = self.inside("sh", f"/etc/sv/{service}/run")
            self._running.append(subprocess.Popen(words, env=CLEAN, stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def _answers(self) -> bool:
        """AssertionError with what they said where nginx or gunicorn has ended."""
        assert all(process.poll() is None for process in self._running), self.log.read_text()
        return self.get("/set-up/")[0] == 200

    def close(self) -> str:
        os.close(self._network)
        said = super().close()
        for process in self._running:
            process.wait(ENDS)
        return said

    def mount(self, *words: object) -> None:
        *rest, place = words
        target = self.root / str(place)
        target.mkdir(parents=True, exist_ok=True)
        inside = f"{self.folder}/root/{place}"
        enter = ["nsenter", f"--target={self.first}", "--mount", "mount", *map(str, rest), inside]
        subprocess.run(enter, check=True, timeout=30)

    def do(self, *words: str) -> str:
        done = subprocess.run(self.inside(*words), env=CLEAN, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    # --- clients ---

    def enter(self) -> None:
        """Take the thread that calls this, and no other, into the room's network."""
        if _libc.setns(self._network, NEW_NETWORK):
            raise OSError(ctypes.get_errno(), "setns")

    def _made(self, make: Callable[[], Made]) -> Made:
        """What it makes in a thread of its own: only that goes into the room's network, and its sockets stay there."""
        made: list = []

        def inside() -> None:
            try:
                self.enter()
                made.append(make())
            except OSError as error:
                made.append(error)

        thread = threading.Thread(target=inside)
        thread.start()
        thread.join()
        if isinstance(made[0], OSError):
            raise made[0]
        return made[0]

    web = ("127.0.0.1", 443)

    def plain(self, source: str = "127.0.0.2", patience: float = ANSWERS) -> socket.socket:
        """A TCP connection to the web page; nothing on it takes longer than `patience` seconds."""
        return self._made(lambda: socket.create_connection((_target(source), 443), patience, (source, 0)))

    def half_open(self, sources: Iterable[str]) -> list[socket.socket]:
        """One connection from each that says nothing, or that nobody answers."""

        def begin() -> list[socket.socket]:
            begun = []
            for source in sources:
                one = socket.socket(socket.AF_INET6 if ":" in source else socket.AF_INET)
                one.setblocking(False)
                one.bind((source, 0))
                one.connect_ex((_target(source), 443))
                begun.append(one)
            return begun

        return self._made(begin)

    @contextlib.contextmanager
    def firewall(self) -> Iterator[None]:
        """The box's rules, for clients on this machine as well."""
        allowed = dataclasses.replace(FACTORY, management=Management(("127.0.0.0/8", "2001:db8::/32")))
        rules = nftables.render(allowed).replace("iif lo accept\n", "")
        subprocess.run(self.inside("nft", "-f", "-"), input=rules, text=True, env=CLEAN, check=True, timeout=30)
        try:
            yield
        finally:
            self.do("nft", "delete", "table", "inet", "fairlead")

    def connect(self, source: str = "127.0.0.2", patience: float = ANSWERS) -> ssl.SSLSocket:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context.wrap_socket(self.plain(source, patience))

    def ask(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        source: str = "127.0.0.2",
        patience: float = ANSWERS,
        **headers: str,
    ) -> tuple[int, str, http.client.HTTPMessage]:
        """Status, text and headers."""
        connection = http.client.HTTPSConnection("box")
        connection.sock = self.connect(source, patience)
        try:
            names = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body or None, {"Referer": f"https://box{path}", **names})
            answer = connection.getresponse()
            return answer.status, answer.read().decode(errors="replace"), answer.headers
        finally:
            connection.close()

    @contextlib.contextmanager
    def far_away(self) -> Iterator[None]:
        """Let the kernel hold little of what goes to a client, as on a slow line."""
        file = "/proc/sys/net/ipv4/tcp_wmem"
        before = self.do("cat", file)
        self.do("sh", "-c", f"echo 4096 16384 16384 >{file}")
        try:
            yield
        finally:
            self.do("sh", "-c", f"echo {before.strip()} >{file}")

    def get(self, path: str, source: str = "127.0.0.3") -> tuple[int, str, http.client.HTTPMessage]:
        return self.ask("GET", path, source=source)

    def slow(
        self, path: str, length: int, sent: bytes = b"x", source: str = "127.0.0.2", **headers: str
    ) -> ssl.SSLSocket:
        """A POST that has sent its headers and the beginning of its body."""
        lines = {"Host": "box", "Referer": f"https://box{path}", "Content-Length": str(length), **headers}
        head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in lines.items())
        one = self.connect(source)
        one.sendall(f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + sent)
        return one

    def form(
        self,
        path: str,
        cookies: str = "",
        source: str = "127.0.0.3",
        post: str = "",
        patience: float = ANSWERS,
        **fields: object,
    ):
        """Fill in a form as a browser does; the answer and the cookies from then on."""
        _, text, headers = self.ask("GET", path, source=source, patience=patience, Cookie=cookies)
        kept = _cookies(cookies, headers)
        fields["csrfmiddlewaretoken"] = found(r'name="csrfmiddlewaretoken" value="([^"]+)"', text)
        answer = self.ask(
            "POST", post or path, urlencode(fields, doseq=True).encode(), source, patience, Cookie=kept,
            Content_Type="application/x-www-form-urlencoded",
        )  # fmt: skip
        return answer, _cookies(kept, answer[2])

    def set_up(self) -> str:
        """The first admin; the cookies of his session. It cannot be done again, so nothing hurries it."""
        fields = {"code": CODE, "username": USER, "password": PASSWORD, "again": PASSWORD}
        answer, cookies = self.form("/set-up/", patience=STARTS, **fields)
        assert answer[0] == 302, answer
        return cookies


def open_ones(begun: list[socket.socket]) -> int:
    """How many of the connections have come about."""
    waiting = select.poll()
    for one in begun:
        waiting.register(one, select.POLLOUT)
    return sum(bool(event & select.POLLOUT and not event & select.POLLERR) for _, event in waiting.poll(0))


def _target(source: str) -> str:
    return SIX if ":" in source else "127.0.0.1"


def _cookies(before: str, headers: http.client.HTTPMessage) -> str:
    jar = dict(one.split("=", 1) for one in before.split("; ") if one)
    for line in headers.get_all("Set-Cookie") or []:
        jar.update([line.partition(";")[0].split("=", 1)])
    return "; ".join(f"{name}={value}" for name, value in jar.items())
