"""How the rest of the applier talks with the floater, and learns which role the box has."""

from __future__ import annotations

from applier.base.paths import Paths
from applier.host.host import Host, HostError
from applier.pair.roles import Role, read_role

ANSWERS = 5.0  # seconds; it never waits for anything, so on a box that is alive it needs none
LONGEST = 160  # bytes of a command with its reason


def role(host: Host, paths: Paths) -> Role | None:
    """The role of this box; None where it is not in a pair, or the floater has not started yet."""
    return read_role(host.read(paths.role) or "")


def hold(host: Host, paths: Paths, reason: str) -> None:
    """Stand aside until release(): the other box leads if it can. HostError where the floater does not answer."""
    _ask(host, paths, _short(f"hold {reason}"))


def release(host: Host, paths: Paths) -> None:
    """Stand by again, or lead where nobody does."""
    _ask(host, paths, "release")


def hand_over(host: Host, paths: Paths, reason: str = "") -> None:
    """Let the other box lead. HostError where this one does not.

    It answers at once, and does not know whether there is another one that is ready: who asks has made sure.
    """
    _ask(host, paths, _short(f"hand-over {reason}"))


def alive(host: Host, paths: Paths, relieved: bool) -> None:
    """Tell it that the applier is alive. `relieved`: the other box may lead once it is not any more."""
    _ask(host, paths, "alive relieved" if relieved else "alive")


def announce(host: Host, paths: Paths) -> None:
    """Tell the neighbours again: the other box has let go of the addresses."""
    _ask(host, paths, "announce")


def reload(host: Host, paths: Paths, remove: bool = False) -> None:
    """Take what is new in floating.json; with `remove` also give up what is no more in it.

    HostError where it cannot be read: the floater keeps what it has.
    """
    _ask(host, paths, "reload remove" if remove else "reload")


def keep(host: Host, paths: Paths) -> None:
    """Have it forget what it holds, and let it last for some seconds: the box makes it its own."""
    _ask(host, paths, "keep")


def _short(command: str) -> str:
    """One line that the floater takes: names of admins may be long, and have letters of several bytes."""
    return " ".join(command.split()).encode()[:LONGEST].decode(errors="ignore")


def _ask(host: Host, paths: Paths, command: str) -> None:
    answer = host.ask(paths.floater, command, ANSWERS)
    if answer != "ok":
        raise HostError(f"{paths.floater.name}: {command}", None, answer.removeprefix("error: "))
