"""ldirectord as a runit service: stop it for certain, start it, see whether it stays."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from applier.host import Host, HostError, Process, run, wait_until
from applier.paths import Paths

LINT_TIMEOUT = 60.0  # seconds; Perl loads LWP first
LINT_GOOD = 3  # "not running", which it only says of a file that it could read
STOP_SECONDS = 10
START_SECONDS = 20
KILL_SECONDS = 5

_STATUS = re.compile(r"(?P<state>run|down|finish): [^:]*: (?:\(pid (?P<pid>\d+)\) )?(?P<seconds>\d+)s")


@dataclass(frozen=True, slots=True)
class Service:
    pid: int | None  # None: it does not run
    seconds: int  # for how long it has been so
    text: str

    @property
    def active(self) -> bool:
        """It runs, or its supervisor is about to start it again."""
        return self.pid is not None or "want up" in self.text


def check(host: Host, path: Path) -> None:
    run(host, ["ldirectord", str(path), "status"], timeout=LINT_TIMEOUT, accept=(LINT_GOOD,))


def has_checks(text: str) -> bool:
    """Whether the file gives ldirectord anything to do."""
    return any(line.startswith("virtual") for line in text.splitlines())


def folder(paths: Paths) -> str:
    return str(paths.services / "ldirectord")


def state(host: Host, paths: Paths) -> Service:
    return service(host, folder(paths))


def service(host: Host, folder: str) -> Service:
    """Any one that runit supervises."""
    text = " ".join(host.command(["sv", "status", folder]).stdout.split())
    match = _STATUS.match(text)
    if match is None:
        return Service(None, 0, text or "nothing known")
    pid = match["pid"] if match["state"] == "run" else None
    return Service(int(pid) if pid else None, int(match["seconds"]), text)


def processes(host: Host, paths: Paths, group: int | None = None) -> list[Process]:
    """ldirectord's, with the ipvsadm that it may have started, by process group and by its file's name."""
    everything = host.processes()
    name = str(paths.ldirectord)
    ours = [process for process in everything if name in process.argv and _is_ldirectord(process)]
    groups = {group, *(process.group for process in ours)}
    return [process for process in everything if process.group in groups]


def _is_ldirectord(process: Process) -> bool:
    return any(Path(word).name == "ldirectord" for word in process.argv)


def stop(host: Host, paths: Paths) -> None:
    """No process of it is left when this returns; otherwise HostError."""
    group = state(host, paths).pid
    output = host.command(["sv", "-w", str(STOP_SECONDS), "down", folder(paths)], timeout=STOP_SECONDS + 10)

    def left() -> str | None:
        found = processes(host, paths, group)
        if found:
            return f"process {found[0].pid} ({' '.join(found[0].argv)})"
        # A supervisor that has just seen it die takes a moment before it heeds the word.
        seen = state(host, paths)
        return seen.text if seen.active else None

    try:
        wait_until(host, "the end of ldirectord", KILL_SECONDS, left)
    except HostError:
        # Its supervisor is gone or did not manage. A signal that cannot be caught is what it would have got anyway.
        for number in {process.group for process in processes(host, paths, group)}:
            host.kill_group(number)
        wait_until(host, f"the end of ldirectord ({output.stdout.strip()})", KILL_SECONDS, left)


def start(host: Host, paths: Paths) -> None:
    """Under its supervisor, who may need a moment to notice the service at boot."""

    def up() -> str | None:
        output = host.command(["sv", "-w", "5", "up", folder(paths)], timeout=15)
        return None if output.exit == 0 else " ".join((output.stdout + output.stderr).split())

    wait_until(host, "the start of ldirectord", START_SECONDS, up)
