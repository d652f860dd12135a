"""Five hundred connections of strangers, and an admin who works meanwhile.

The promises are two seconds for the overview and five for a log-in. How quick a busy machine is proves nothing, so
here everything only has to come; the thorough ones take a minute each and print how long it took, and for how much of
it the web process had work and no processor: that is the machine's doing, and this one runs the strangers as well.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import statistics
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from board.machines.wait import found, until
from tests.lab.fixtures import thorough
from tests.peers.front import PASSWORD, USER, Front
from tests.peers.strangers import KINDS, Strangers

CONNECTIONS = 500
SOURCES = {"one source": ["127.0.2.1"], "many sources": [f"127.0.2.{number}" for number in range(1, 51)]}
# So many of the connections are held before anybody looks: of one source the firewall lets in 40 at once, and bodies of
# many find no room beyond some three hundred.
HELD = {"one source": 40, "many sources": 250}
WAITS = 600  # seconds, of a change
POLL = 2.0  # seconds between two looks at the overview, as its page does it
LOOKS = 4  # between two log-ins
SIZE = 64 * 1024  # bytes, more than the applier keeps in memory of any one thing
HELD_BY_SOMEBODY = ("01", "08")  # established, or left by the client alone: proc_net_tcp(5)


@dataclass
class Admin:
    """Somebody at another address who uses a new connection for everything. All times in seconds."""

    front: Front
    cookies: str
    overviews: list[float] = field(default_factory=list)
    log_ins: list[float] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)  # of the web process for a processor, in each log-in

    # A source may log in ten times a minute.
    _sources = itertools.cycle([f"127.0.3.{number}" for number in range(1, 101)])

    def looks(self) -> None:
        began = time.monotonic()
        status, text, _ = self.front.ask("GET", "/", source="127.0.3.1", Cookie=self.cookies)
        self.overviews.append(time.monotonic() - began)
        assert status == 200 and "shop" in text, (status, text)

    def logs_in(self) -> None:
        began, waited = time.monotonic(), waiting(self.front)
        answer, _ = self.front.form("/login/", source=next(self._sources), username=USER, password=PASSWORD)
        self.log_ins.append(time.monotonic() - began)
        self.waits.append(waiting(self.front) - waited)
        assert answer[0] == 302, answer

    def confirms(self, apply: str) -> None:
        """A connection proves nothing until it is clearly younger than what waits; then it is enough."""
        page = f"/changes/progress/{apply}/"

        def ends() -> bool:
            answer, _ = self.front.form(page, self.cookies, post="/changes/confirm/", apply=apply)
            assert answer[0] == 302, answer
            _, text, _ = self.front.ask("GET", page, Cookie=self.cookies)
            return found('data-state="([a-z ]+)"', text) == "done"

        until("the change to be confirmed", ends, expected=())

    def told(self) -> str:
        looks, log_ins = self.overviews, self.log_ins
        return (
            f"overview median {statistics.median(looks):.2f} s, longest {max(looks):.2f} s of {len(looks)}; "
            f"log-in median {statistics.median(log_ins):.2f} s, longest {max(log_ins):.2f} s of {len(log_ins)}; "
            f"without a processor median {statistics.median(self.waits):.2f} s, longest {max(self.waits):.2f} s"
        )


def waiting(front: Front) -> float:
    """Seconds that threads of the web process were ready to run and did not: sched-stats.rst of the kernel."""
    nanoseconds = 0
    for number in front.processes():
        with contextlib.suppress(OSError):  # it has just ended
            if b"gunicorn" in Path(f"/proc/{number}/cmdline").read_bytes():
                for thread in Path(f"/proc/{number}/task").iterdir():
                    nanoseconds += int((thread / "schedstat").read_text().split()[1])
    return nanoseconds / 1e9


def ask(front: Front, token: str, method: str, path: str, **body: object) -> dict:
    words = {"Authorization": f"Bearer {token}", "Content_Type": "application/json"}
    status, text, _ = front.ask(method, f"/api/v1{path}", json.dumps(body).encode() if body else b"", **words)
    assert status in (200, 202), (status, text)
    return json.loads(text)


def waiting_change(front: Front, token: str) -> str:
    """The id of its apply."""
    ask(front, token, "PATCH", "/sorry", title=f"At {time.monotonic()}")
    review = ask(front, token, "GET", "/draft/review")
    wanted = {"digest": review["digest"], "base": review["base"], "confirm_within": WAITS}
    return ask(front, token, "POST", "/applies", **wanted)["apply"]


def root_writes(front: Front) -> None:
    """As the applier does, in memory and on the disk: a new file takes the old one's place."""
    for folder in ("run/fairlead", "data/applier"):
        new = front.root / folder / "by-root.new"
        new.write_bytes(os.urandom(SIZE))
        new.rename(new.with_suffix(""))


def left(front: Front) -> dict[str, object]:
    """What strangers could leave behind."""
    states = [line.split()[3] for line in Path(f"/proc/{front.first}/net/tcp").read_text().splitlines()[1:]]
    bodies = front.root / "run/fairlead/bodies"
    return {
        "connections": sum(states.count(state) for state in HELD_BY_SOMEBODY),
        "bodies": [path for path in bodies.rglob("*") if path.is_file()],
        "room": os.statvfs(bodies).f_bfree,
        "processes": sorted(front.processes()),
    }


@pytest.mark.parametrize("seconds", [0.0, pytest.param(60.0, marks=thorough)], ids=["short", "a minute"])
@pytest.mark.parametrize("sources", SOURCES)
@pytest.mark.parametrize("kind", KINDS)
def test_an_admin_works_while_strangers_hold_connections(front, cookies, token, capsys, kind, sources, seconds):
    before = left(front)
    admin, apply = Admin(front, cookies), waiting_change(front, token)
    addresses = itertools.islice(itertools.cycle(SOURCES[sources]), CONNECTIONS)
    with front.firewall(), closing(Strangers(KINDS[kind], addresses, front.web, front.enter)) as strangers:
        until(f"{kind} of {sources}", lambda: strangers.held() >= HELD[sources])
        end = time.monotonic() + seconds
        while True:
            root_writes(front)
            admin.logs_in()
            for _ in range(LOOKS):
                admin.looks()
                time.sleep(min(POLL, max(0.0, end - time.monotonic())))
            if time.monotonic() >= end:
                break
        held = strangers.held()
        admin.confirms(apply)
    until("nothing to be left behind", lambda: left(front) == before | {"connections": 0})
    if seconds:
        with capsys.disabled():
            print(f"\n{kind}, {sources}, {held} held at the end: {admin.told()}")
