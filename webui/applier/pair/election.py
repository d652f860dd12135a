"""keepalived, the floater, the channel: brought up when a pair comes, taken down when it goes, and told what changes.

Their services are there on every box, and stay down as long as their files are not (overlay/etc/sv).
"""

from __future__ import annotations

from typing import NamedTuple

from applier.base.paths import Paths
from applier.host.host import Host, HostError, run, wait_until
from applier.pair import client, roles
from applier.parts import director

VRRP, FLOATER = "vrrp", "floater"
CHANNEL = "pair"  # it talks with the other box (channel.py), and is ready for that as soon as it runs
SERVICES = (FLOATER, VRRP, CHANNEL)
WHAT = "the election of the box that leads"
STARTS = 30.0  # seconds: the floater loads Python, and a box that has just been started is busy
ENDS = 10  # seconds
ANSWERS = 20.0  # seconds: one that has died is started again
LETS_GO = 5.0  # seconds that the other box may take to lead, before this one goes on without waiting


class Files(NamedTuple):
    """What the two read; empty: it is not there."""

    keepalived: str
    floating: str
    hold: str


def files(host: Host, paths: Paths) -> Files:
    return Files(*(host.read(path) or "" for path in (paths.keepalived, paths.floating, paths.hold)))


def runs(host: Host, paths: Paths) -> bool:
    return all(_process(host, paths, name) is not None for name in SERVICES)


def begin(host: Host, paths: Paths, wanted: Files) -> None:
    """Write their files and start them. The hold comes first: keepalived elects as soon as it has been loaded."""
    host.put(paths.hold, wanted.hold)
    host.put(paths.floating, wanted.floating)
    host.put(paths.keepalived, wanted.keepalived)
    up(host, paths)


def up(host: Host, paths: Paths) -> None:
    """Start those that do not run. HostError where the floater does not hear keepalived after that."""
    wait_until(host, WHAT, STARTS, lambda: _missing(host, paths))


def keep(host: Host, paths: Paths) -> bool:
    """Before the end of a box that leads: have its addresses last until they are its own. Whether they do."""
    if not leads(host, paths):
        return False
    try:
        client.keep(host, paths)
    except HostError:
        return False  # they go at the end
    return True


def end(host: Host, paths: Paths, channel: bool = True) -> None:
    """Stop both, the addresses go with them, and leave nothing behind. HostError where they do not end.

    `channel`: that one as well.
    """
    if channel:
        end_channel(host, paths)
    for name in (VRRP, FLOATER):
        run(host, ["sv", "-w", str(ENDS), "stop", _folder(paths, name)])
    # The last one says that something of them may be there.
    for path in (paths.role, paths.hold, paths.floating, paths.keepalived):
        host.put(path, None)


def talks(host: Host, paths: Paths) -> bool:
    """Whether the channel runs."""
    return _process(host, paths, CHANNEL) is not None


def begin_channel(host: Host, paths: Paths) -> None:
    run(host, ["sv", "up", _folder(paths, CHANNEL)])


def end_channel(host: Host, paths: Paths) -> None:
    run(host, ["sv", "-w", str(ENDS), "stop", _folder(paths, CHANNEL)])


def restart(host: Host, paths: Paths, keepalived: str) -> None:
    """Have keepalived go on by another file. Without another box that leads meanwhile nobody does for some seconds."""
    host.put(paths.keepalived, keepalived)
    run(host, ["sv", "-w", str(ENDS), "restart", _folder(paths, VRRP)])
    up(host, paths)


def make_way(host: Host, paths: Paths) -> None:
    """Let the other box lead, if it does so soon."""
    client.hand_over(host, paths)
    try:
        wait_until(host, "the other box to lead", LETS_GO, lambda: "this one leads" if leads(host, paths) else None)
    except HostError:
        return  # this one goes on, and comes back a little later


def reload(host: Host, paths: Paths, floating: str, remove: bool) -> None:
    """Have the floater take what is new in the file, and with `remove` give up what is no more in it.

    One that does not run reads it when it starts.
    """
    host.put(paths.floating, floating)

    def told() -> str | None:
        if _process(host, paths, FLOATER) is None:
            return None
        try:
            client.reload(host, paths, remove)
        except HostError as error:
            return str(error)
        return None

    wait_until(host, "the floating addresses", ANSWERS, told)


def leads(host: Host, paths: Paths) -> bool:
    role = client.role(host, paths)
    return role is not None and role.role == roles.LEADS


def _missing(host: Host, paths: Paths) -> str | None:
    for name in SERVICES:
        if _process(host, paths, name) is None:
            # One that found no file when the box started may just be taking itself down.
            host.command(["sv", "up", _folder(paths, name)])
            return f"{name} does not run"
    role = client.role(host, paths)
    if role is None or (role.role == roles.FAULTY and role.reason == roles.NOT_RUNNING):
        return "keepalived has said nothing yet"
    return None


def _process(host: Host, paths: Paths, name: str) -> int | None:
    return director.service(host, _folder(paths, name)).pid


def _folder(paths: Paths, name: str) -> str:
    return str(paths.services / name)
