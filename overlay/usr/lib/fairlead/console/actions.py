"""What the menu of the console does. Each action gives back the text to show."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass

from screen import details
from state import gather

from applier.client import ApplierDown, ApplierRefused, connect


@dataclass(frozen=True)
class Action:
    title: str
    run: Callable[[], str]
    warning: str = ""  # asked for a "yes" first


def show_state() -> str:
    return details(gather())


def restore_database() -> str:
    """The web UI is down meanwhile; the box keeps balancing."""
    steps = (
        ["sv", "-w", "20", "down", "/run/service/web"],
        ["fairlead-web-user", "python3", "manage.py", "restore_database"],
        ["sv", "up", "/run/service/web"],
    )
    return "".join(command(step) for step in steps)


def new_setup_code() -> str:
    try:
        code = connect().new_setup_code()["code"]
    except (ApplierDown, ApplierRefused) as error:
        return f"{error}\n"
    return f"The new set-up code is {code}. The web page asks for it and for a new password.\n"


def make_room() -> str:
    try:
        room = connect().make_room()
    except (ApplierDown, ApplierRefused) as error:
        return f"{error}\n"
    return f"{room['freed'] / 1e6:.1f} MB were made free; {room['free'] / 1e6:.1f} MB are free now.\n"


def reboot() -> str:
    return command(["reboot"])


def power_off() -> str:
    return command(["poweroff"])


ACTIONS = [
    Action("Show the state", show_state),
    Action(
        "Restore the web page's database from its last backup",
        restore_database,
        "Changes that were not applied since that backup are lost. The running configuration stays.",
    ),
    Action(
        "New set-up code (forgotten password)",
        new_setup_code,
        "Whoever enters it on the web page becomes its administrator.",
    ),
    Action(
        "Make room on a full data partition",
        make_room,
        "All but the newest 10 configurations of the past are forgotten. What runs is not touched.",
    ),
    Action("Reboot", reboot, "Connections through the box break until it is up again."),
    Action("Power off", power_off, "Nothing is balanced until somebody turns the box on again."),
]


def command(words: list[str]) -> str:
    """Run a program and give back what it printed, with its exit code when that is not 0."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{words[0]}: {error}\n"
    failure = f"{words[0]} failed with exit code {done.returncode}.\n" if done.returncode else ""
    return done.stdout + done.stderr + failure
