"""The agent that the scripts for real servers bring along, asked by the real checks and by plain sockets."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from board.machines.wait import until
from tests.lab.fixtures import thorough
from tests.peers.inetd import NOBODY
from tests.peers.lab import address
from tests.peers.test_faults import Checker
from tests.peers.test_weights import TEXT

from lbconfig.model.snapshot import CheckKind, HealthCheck, RealServer, Scheduler, Snapshot, VirtualService
from lbconfig.render import ldirectord

SCRIPTS = Path(__file__).parents[2] / "webui/balancing/server_scripts"
PLACE, VIP = address(84)[0], "10.2.0.208:80"
STRANGER = "10.2.0.1"

# What each of these connections gets: at once, after a while, after much that nobody asked for, and from elsewhere.
ASK = """
import json, socket, sys, time
place, stranger = sys.argv[1:]
def heard(end):
    said = b""
    try:
        while piece := end.recv(1):
            said += piece
    except ConnectionResetError:
        pass
    return said.decode()
def connect(source=""):
    return socket.create_connection((place, 3333), 60, (source, 0) if source else None)
together = [connect() for _ in range(100)]
garbage = connect()
try:
    garbage.sendall(bytes(range(256)) * 4096)
except OSError:
    pass
time.sleep(1)
print(json.dumps([[heard(end) for end in together], heard(garbage), heard(connect(stranger)), heard(connect())]))
"""
BURN = "import time; end = time.monotonic() + 20\nwhile time.monotonic() < end: pass"


class Agent:
    """On a real server whose processors the test plays, unless it is told of real ones."""

    def __init__(self, lab, folder: Path) -> None:
        self._lab, self.folder, self._processes = lab, folder, []
        self._busy = self._idle = 0
        folder.chmod(0o777)  # it runs as nobody
        made = f"set -eu; server={PLACE}; . {SCRIPTS}/linux-agent.sh; agent_program"
        program = subprocess.run(["sh", "-c", made], capture_output=True, text=True, check=True).stdout
        (folder / "agent").write_text(program)
        (folder / "proc").mkdir()
        self.spend(0, 0)
        words = lab.box.beside(sys.executable, Path(__file__).with_name("inetd.py"), PLACE, folder, PLACE)
        self.door = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.door.stdout.readline() == "done\n"

    def spend(self, busy: int, idle: int) -> None:
        """What the processors do now, in hundredths of a second, as proc_stat(5) has it."""
        self._busy, self._idle = self._busy + busy, self._idle + idle
        # In one piece, as the kernel says it: an agent that reads nothing ends.
        new = self.folder / "proc/new"
        new.write_text(f"cpu  {self._busy} 0 0 {self._idle} 5 0 0 0 0 0\ncpu0 1 2 3 4\n")
        new.rename(self.folder / "proc/stat")

    def watch(self, pretended: bool = True) -> None:
        setpriv = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "sh", "agent", "watch"]
        line = "mount --bind proc /proc && " if pretended else ""
        words = ["unshare", "--mount", "sh", "-c", f'{line}exec "$@"', "sh", *setpriv]
        self._processes.append(subprocess.Popen(words, cwd=self.folder))

    def says(self) -> str:
        ask = f"import socket; print(socket.create_connection(('{PLACE}', 3333), 60).recv(99).decode().strip())"
        return self.do(sys.executable, "-c", ask).strip()

    def do(self, *words: str) -> str:
        words = self._lab.box.beside(*words)
        return subprocess.run(words, capture_output=True, text=True, timeout=120, check=True).stdout

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait(60)
        self.door.communicate(timeout=60)


@pytest.fixture
def agent(lab):
    folder = Path(tempfile.mkdtemp(prefix="fairlead-agent-"))
    (lab.box.root / "run/fairlead").mkdir(exist_ok=True)
    (lab.box.root / "run/fairlead/weights").unlink(missing_ok=True)
    lab.box.ip("address", "add", f"{PLACE}/32", "dev", "lan")
    found = Agent(lab, folder)
    yield found
    found.close()
    lab.box.ip("address", "del", f"{PLACE}/32", "dev", "lan")
    shutil.rmtree(folder)


@pytest.fixture
def weight(lab, agent):
    """What the checks write for the server of this agent."""
    check = HealthCheck(CheckKind.CONNECT, interval=1, timeout=5, failures=2)
    # The other one has no agent: the first could not be drained alone.
    other = RealServer(2, lab.servers["nginx"].addresses[0], 80)
    service = VirtualService(
        8, "site", "10.2.0.208", 80, scheduler=Scheduler.WRR, check=check, agent=TEXT,
        real_servers=(RealServer(1, PLACE, 80), other),
    )  # fmt: skip
    one = Checker(lab.box, ldirectord.render(Snapshot((service,))))
    yield lambda wanted: one.wait_for(f"the weight {wanted}", lambda: one.table()[VIP].get(f"{PLACE}:80") == wanted)
    lab.box.end_processes()
    one.wait()


def test_the_checks_follow_the_processors_and_what_the_admin_of_the_server_says(agent, weight):
    def says(wanted: str, busy: int, idle: int) -> bool:
        """Whether it says that by now; the processors go on like this."""
        agent.spend(busy, idle)
        return agent.says() == wanted

    weight(100)  # nobody says anything yet
    agent.watch()
    until("a mean", lambda: says("ready 60%", 40, 60))
    weight(60)
    (agent.folder / "drain").touch()
    weight(0)
    (agent.folder / "maint").touch()
    assert agent.says() == "maint"
    (agent.folder / "maint").unlink()
    (agent.folder / "drain").unlink()
    weight(60)
    # Ten seconds later nothing of that is left in the mean.
    until("a newer mean", lambda: says("ready 30%", 70, 30))
    weight(30)


def test_a_hundred_ask_at_once_one_reads_late_one_sends_garbage_and_a_stranger_asks(agent):
    (agent.folder / "idle").write_text("73\n")
    together, garbage, stranger, last = json.loads(agent.do(sys.executable, "-c", ASK, PLACE, STRANGER))
    assert together == ["ready 73%\n"] * 100
    assert (garbage in ("ready 73%\n", ""), stranger, last) == (True, "", "ready 73%\n")


def test_a_number_that_nobody_keeps_right_is_not_said(agent):
    assert agent.says() == ""


@thorough
def test_busy_processors_are_said_to_be_busy(agent):
    agent.watch(pretended=False)
    busy = [subprocess.Popen([sys.executable, "-c", BURN]) for _ in range(os.cpu_count() or 1)]
    try:
        until("few idle", lambda: agent.says().startswith("ready ") and int(agent.says()[6:-1]) <= 20, 60)
    finally:
        for one in busy:
            one.kill()
            one.wait(60)
