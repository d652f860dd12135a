"""ldirectord: have it read a file, start it, stop it for certain, see how far it has come.

At the other end of the socket is the program that has loaded ldirectord once and forks it
(overlay/usr/lib/fairlead/perl/Fairlead/Spawner.pm, which explains the orders; decision 37).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from applier.base.paths import Paths
from applier.host.host import PRIVATE, Host, HostError, Process, wait_until

READ_SECONDS = 60.0  # for a file of many services on a slow box
STATE_SECONDS = 5.0
STOP_SECONDS = 10.0
START_SECONDS = 60.0  # Perl and its libraries are loaded before the first answer
KILL_SECONDS = 5
STAY_SECONDS = 3  # so long checks must have run when none has come to its end yet: their servers may be silent

_STATE = re.compile(r"(?P<state>down|again|starting|watching|checked) (?P<pid>\d+) (?P<seconds>\d+)")
_STATUS = re.compile(r"(?P<state>run|down|finish): [^:]*: (?:\(pid (?P<pid>\d+)\) )?(?P<seconds>\d+)s")


@dataclass(frozen=True, slots=True)
class Service:
    pid: int | None  # None: it does not run
    seconds: int  # for how long it has been so
    text: str
    again: bool = False  # it does not run, and will be started again
    checks: bool = False  # ldirectord alone: it was seen to check

    @property
    def active(self) -> bool:
        """It runs, or is about to be started again."""
        return self.pid is not None or self.again


def folder(paths: Paths) -> str:
    return str(paths.services / "ldirectord")


def state(host: Host, paths: Paths) -> Service:
    """How far the checks have come; without an answer they are taken as not running, and the text says why."""
    try:
        said = host.ask(paths.checker, "state", STATE_SECONDS)
    except HostError as error:
        # Who starts them may just be loading, and does so if they were wanted before.
        return Service(None, 0, str(error), again=host.read(paths.checks_wanted) is not None)
    match = _STATE.fullmatch(said)
    if match is None:
        return Service(None, 0, said or "nothing known")
    seconds = int(match["seconds"])
    text = f"{match['state']} for {seconds} s"
    if match["state"] in ("down", "again"):
        return Service(None, seconds, f"down for {seconds} s", again=match["state"] == "again")
    checks = match["state"] == "checked" or (match["state"] == "watching" and seconds >= STAY_SECONDS)
    return Service(int(match["pid"]), seconds, text, checks=checks)


def service(host: Host, folder: str) -> Service:
    """Any one that runit supervises."""
    text = " ".join(host.command(["sv", "status", folder]).stdout.split())
    match = _STATUS.match(text)
    if match is None:
        return Service(None, 0, text or "nothing known")
    pid = match["pid"] if match["state"] == "run" else None
    return Service(int(pid) if pid else None, int(match["seconds"]), text)


def processes(host: Host, paths: Paths) -> list[Process]:
    """Those that check, with the ipvsadm that they may have started: all of their process groups."""
    everything = host.processes()
    named = f"ldirectord: checks {paths.ldirectord}"
    groups = {process.group for process in everything if " ".join(process.argv).startswith(named)}
    return [process for process in everything if process.group in groups]


def read(host: Host, paths: Paths, text: str) -> None:
    """Have ldirectord read this text; HostError where it cannot. `start` goes on from there if it is the text then."""
    path = paths.candidate / "ldirectord.cf"
    host.put(path, text, PRIVATE)
    said = _ask(host, paths, f"read {path}", READ_SECONDS)
    if said != "good":
        raise HostError(f"ldirectord {path}", None, said.removeprefix("bad "))


def stop(host: Host, paths: Paths) -> None:
    """No process that checks is left when this returns; otherwise HostError."""
    # First: one that is just being started anew looks for it once it listens.
    host.put(paths.checks_wanted, None)
    try:
        said = host.ask(paths.checker, "stop", STOP_SECONDS)
    except HostError as error:
        said = str(error)  # it is gone, and what it had started has ended with it

    def left() -> str | None:
        found = processes(host, paths)
        return f"process {found[0].pid} ({' '.join(found[0].argv)})" if found else None

    try:
        wait_until(host, "the end of ldirectord", KILL_SECONDS, left)
    except HostError:
        for number in {process.group for process in processes(host, paths)}:
            host.kill_group(number)
        wait_until(host, f"the end of ldirectord ({said})", KILL_SECONDS, left)


def start(host: Host, paths: Paths) -> None:
    """Check by the file of this box."""
    said = _ask(host, paths, "start", READ_SECONDS)
    if said != "run":
        raise HostError("the start of ldirectord", None, said.removeprefix("bad "))


def _ask(host: Host, paths: Paths, order: str, seconds: float) -> str:
    """When the box has just been started the one who answers is still loading; somebody may have switched it off."""
    answers = []

    def ask() -> str | None:
        try:
            answers.append(host.ask(paths.checker, order, seconds))
        except HostError as error:
            host.command(["sv", "up", folder(paths)])
            return str(error)
        return None

    wait_until(host, "an answer of the health checks", START_SECONDS, ask)
    return answers[0]
